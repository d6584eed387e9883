"""What can be read of a user's folders when some of it is wrong, and everything that is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from advisor.errors import KnowledgeError, Problems, UserError
from advisor.files import data_dir, read_tree, read_whole
from advisor.knowledge import load_knowledge
from advisor.knowledge.layers import Stack, holding, overlaid, stack
from advisor.knowledge.types import Knowledge, Names
from advisor.knowledge.vocabulary import FILE, FactType, Vocabulary, read_facts, vocabulary_of
from advisor.knowledge.yaml_fields import Collector
from advisor.remedies import rule_vocabulary
from advisor.rules.language import ReadRules, read_as_far
from advisor.rules.language.model import text_names
from advisor.yamlfile import read_yaml

_QUOTED = re.compile(r"'([^']+)'")
KINDS = {
    "gpu": "gpus",
    "model": "models",
    "format": "formats",
    "framework": "frameworks",
    "kv_type": "kv_types",
}
"""How an entry begins -> the table that its name belongs to."""


class Readable(Struct, frozen=True):
    """Folders as far as they can be read."""

    problems: Sequence[UserError]
    """Everything that is wrong, in any of them."""
    vocabulary: Vocabulary
    knowledge: Knowledge
    """The built-in one where the user's is wrong."""
    names: Mapping[str, Sequence[str]]
    """Table -> names, those of entries included in which something is wrong."""
    rules: ReadRules
    """As far as they can be read, built-in ones included."""
    unread: str = ""
    """The user's knowledge where it is wrong: what it names may be right."""


def read_all(rules: Stack = None, templates: Stack = None, knowledge: Stack = None) -> Readable:
    """Read the user's folders over the built-in ones, and keep going whatever is wrong.

    A mistake in one folder hides none in another: rules are checked against the vocabulary and
    the names as far as they can be read, and else against the built-in ones.
    """
    problems: list[UserError] = []
    known, names, unread = _knowledge(knowledge, problems)
    vocabulary = _vocabulary(knowledge, problems)
    texts = None
    try:
        texts = text_names(overlaid("templates", templates, [".j2", ".txt"]))
    except UserError as error:
        problems.append(error)
    over = data_dir("rules") if rules else None
    found = read_as_far(rules, vocabulary=vocabulary, templates=texts, names=names, over=over)
    problems += [error for error in found.problems if not _may_be_right(error, unread)]
    return Readable(problems, vocabulary, known, names, found, unread)


def _may_be_right(error: UserError, unread: str) -> bool:
    """Whether a name is unknown only because the entry that declares it is wrong itself."""
    name = _QUOTED.search(error.message)
    if name is None or not (error.lint == "unknown-fact" or "is not a name of" in error.message):
        return False
    written = rf"(?<![\w.-]){re.escape(name[1])}(?![\w.-])"
    fact = error.lint == "unknown-fact"
    return re.search(f"fact: {written}\n" if fact else written, unread) is not None


def _several(error: UserError) -> list[UserError]:
    if isinstance(error, Problems):
        return [one for one in error.errors if isinstance(one, UserError)]
    return [error]


def _knowledge(
    folders: Stack, problems: list[UserError]
) -> tuple[Knowledge, Mapping[str, Sequence[str]], str]:
    try:
        known = load_knowledge(folders)
    except UserError as error:
        problems += _several(error)
    else:
        return known, known.names(), ""
    built_in = load_knowledge()
    users = [content for path in stack(folders) for content in _user_files(path).values()]
    names = {table: list(found) for table, found in built_in.names().items()}
    for content in users:
        for table, name in _entry_names(content):
            names[table].append(name)
    text = "\n".join(content.decode(errors="replace") for content in users)
    every = {table: list(dict.fromkeys(found)) for table, found in names.items()}
    return built_in, Names(built_in, every), text


def _user_files(folder: Path) -> Mapping[str, bytes]:
    return read_tree(folder, [".yaml"]) if folder.is_dir() else {}


def _entry_names(content: bytes) -> Sequence[tuple[str, str]]:
    """List what a file of knowledge seems to hold."""
    root = read_yaml(content, "", KnowledgeError, [])
    nodes = root.value if root is not None and isinstance(root.value, list) else []
    return [
        (table, node.value[kind].text.strip())
        for node in nodes
        if isinstance(node.value, Mapping)
        for kind, table in KINDS.items()
        if kind in node.value
    ]


def _vocabulary(folders: Stack, problems: list[UserError]) -> Vocabulary:
    try:
        return rule_vocabulary(folders)
    except UserError as error:
        problems += _several(error)
    built_in = rule_vocabulary()
    users: dict[str, FactType] = {}
    for folder in holding(folders, FILE):
        found = read_facts(read_whole(folder / FILE), FILE, Collector(KnowledgeError))
        users = {**found, **users}
    return vocabulary_of({**users, **built_in.facts, **built_in.texts}.values())
