"""The rule language: YAML files with positions -> checked rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from advisor.errors import RuleFileError, Source, UserError, raise_problems
from advisor.files import compiled, data_dir, digest, hashed, read_tree
from advisor.knowledge.layers import Stack
from advisor.knowledge.types import Names as KnownNames
from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language.model import (
    Disabled,
    Places,
    Rule,
    RuleSet,
    Users,
    rule_layers,
    telling_paths,
)
from advisor.rules.language.model import short_name as _label

Names = Mapping[str, Collection[str]]

SCENARIOS = "scenarios/"
"""Files below this folder hold whole situations to test with, and no rules."""


class Parsed(NamedTuple):
    """Rules that are whole, as they are stored."""

    rules: tuple[Rule, ...]
    disabled: tuple[Disabled, ...]
    """Those that the user switched off."""


@telling_paths
def load_rules(
    folders: Stack = None,
    *,
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
    over: Path | None = None,
) -> RuleSet:
    """Read every ``*.yaml`` below folders but for ``scenarios/``, in sorted order.

    Args:
        folders: Where the rules are, each folder over those before it; the built-in ones by
            default.
        vocabulary: The facts that rules may name.
        templates: Names of the templates that exist; None: not checked.
        names: Knowledge table (``gpus``, ``models`` ...) -> the names in it; a table that is
            absent is not checked.
        over: A folder that they are laid over rule by rule (docs/overlays.md).

    Raises:
        RuleFileError: A file is wrong, or there is no rule; several problems, of all files,
            come as ``Problems``. Nothing loads then.
    """
    read = read_folders(folders, over)
    raise_problems(_misnamed(folders))
    key = _key(read, vocabulary, templates, names)
    rules, disabled = compiled(
        "rules",
        key,
        lambda: parse_set(read.contents, vocabulary, templates, names, read.users),
        Parsed,
    )
    return RuleSet(rules, read.sha256, disabled)


class ReadRules(Struct, frozen=True):
    """Rules as far as they can be read."""

    whole: Sequence[Rule]
    """Those in which nothing is wrong by itself."""
    partial: Sequence[Rule]
    """The others, without what could not be read."""
    names: Collection[str]
    """Of all rules, and of those that seem to stand where a file cannot be read."""
    problems: Sequence[UserError]


def read_as_far(
    folders: Stack = None,
    *,
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
    over: Path | None = None,
) -> ReadRules:
    """Read folders of rules as far as it goes: the arguments are those of ``load_rules``."""
    from advisor.rules.language import overlay  # noqa: PLC0415 - a warm start does without the parser

    try:
        files = read_folders(folders, over)
    except UserError as error:
        return ReadRules((), (), (), [error])
    stray = _misnamed(folders)
    drafts, _, problems = overlay.read_layers(
        files.contents, vocabulary, templates, names, files.users
    )
    places = Places.of(folders)
    read = [draft for draft in drafts if draft.rule.id]
    whole = [d.rule for d in read if not d.partial and _within_limits(d.rule)]
    partial = [d.rule for d in read if d.rule not in whole]
    wrong = [places.error(error) for error in (*stray, *problems.errors)]
    return ReadRules(whole, partial, overlay.known_names(drafts), wrong)


def _within_limits(rule: Rule) -> bool:
    try:
        return bool(rule.branches)
    except UserError:
        return False


class RuleFiles(NamedTuple):
    """Files of rules, by the names that messages show."""

    contents: Mapping[str, bytes]
    users: Sequence[Users]
    """Which are the user's, the lowest layer first."""
    sha256: str
    """Of all of them."""


def read_folders(folders: Stack, over: Path | None = None) -> RuleFiles:
    """Read the files of folders of rules and of the one below them, as for ``load_rules``.

    Raises:
        RuleFileError: A folder holds no rule file, or cannot be read.
    """
    first, *others = rule_layers(folders or data_dir("rules"))
    files = _files(first.folder)
    shown = {name: f"{first.label}/{name}" for name in files}
    users: list[Users] = []
    below: Mapping[str, bytes] = {}
    if over is not None and over.resolve() != first.folder.resolve():
        below = _files(over)
        users.append(Users.of(shown, below, _label(over)))
        shown = {name: f"{_label(over)}/{name}" for name in below} | shown
        files = {**below, **files}
    contents = {shown[name]: files[name] for name in sorted(files)}
    named = dict(sorted(files.items()))
    for layer in others:
        read = _files(layer.folder)
        names = {name: f"{layer.label}/{name}" for name in read}
        users.append(Users.of(names, below, _label(over) if over else ""))
        added = {names[name]: content for name, content in read.items()}
        contents |= added
        named |= added
    try:
        return RuleFiles(contents, users, digest(named))
    except UnicodeEncodeError as bad:  # a name is hashed, kept and printed
        said = f"the name of '{str(bad.object).partition(chr(0))[0]}' is not UTF-8."
        raise RuleFileError(said, hint="Rename the file.") from None


def parse_set(
    contents: Mapping[str, bytes],
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
    users: Sequence[Users] = (),
) -> Parsed:
    """Parse and check rule files, a user's laid over the built-in ones, without the cache.

    Args:
        contents: File name, as messages show it -> content.
        vocabulary: As for ``load_rules``, like the rest.
        templates: Names of templates.
        names: Names in knowledge tables.
        users: Which of the files are the user's, the lowest layer first; none: they are all of
            one kind.

    Returns:
        The rules, and those that the user switched off.

    Raises:
        RuleFileError: As for ``load_rules``.
    """
    from advisor.rules.language import overlay  # noqa: PLC0415 - likewise

    drafts, disabled, problems = overlay.read_layers(contents, vocabulary, templates, names, users)
    raise_problems(problems.errors)
    return Parsed(tuple(draft.rule for draft in drafts), tuple(disabled))


def _files(folder: Path) -> Mapping[str, bytes]:
    if not folder.is_dir():
        raise RuleFileError(f"there is no folder '{folder}'.", hint="Name a folder with rules.")
    try:
        found = read_tree(folder, [".yaml"])
        files = {name: text for name, text in found.items() if not name.startswith(SCENARIOS)}
    except OSError as bad:
        raise RuleFileError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    if not files:
        raise_problems(_misnamed(folder))
        hint = "A rule file ends in .yaml."
        raise RuleFileError(f"there is no rule file in '{folder}'.", hint=hint)
    return files


def _misnamed(folders: Stack) -> list[RuleFileError]:
    """Say which files look like rules and are not read; the others are."""
    named = rule_layers(folders or data_dir("rules"))
    names = (
        f"{one.label}/{name}" for one in named for name in sorted(read_tree(one.folder, [".yml"]))
    )
    hint = "Rename it to end in .yaml."
    return [
        RuleFileError(f"'{name}' would not be read.", source=Source(name), hint=hint)
        for name in names
    ]


def _key(
    files: RuleFiles,
    vocabulary: Vocabulary,
    templates: Collection[str] | None,
    names: Names | None,
) -> str:
    tables = {table: sorted(known) for table, known in sorted((names or {}).items())}
    parts = (
        files.sha256,
        repr(list(files.contents)),
        vocabulary.sha256 or repr(vocabulary.facts),
        "-" if templates is None else repr(sorted(templates)),
        "-" if names is None else repr(tables),
        *([names.knowledge.sha256] if isinstance(names, KnownNames) else []),
        *(layer.sha256 for layer in files.users),
    )
    return hashed("\0".join(parts).encode())
