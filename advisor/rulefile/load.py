"""Folders of rule files -> RuleSet: parsed and checked once, then read from the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from advisor.cache import compiled
from advisor.errors import RuleFileError, raise_problems
from advisor.resources import data_dir, digest, read_tree
from advisor.rulefile.model import Rule, RuleSet
from advisor.rulefile.places import short_name as _label
from advisor.rulefile.places import telling_paths
from advisor.rulefile.stored import restored, stored
from advisor.vocabulary import Vocabulary

Names = Mapping[str, Collection[str]]

SCENARIOS = "scenarios/"
"""Files below this folder hold whole situations to test with, and no rules."""


@telling_paths
def load_rules(
    folder: Path | None = None,
    *,
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
    over: Path | None = None,
) -> RuleSet:
    """Read every ``*.yaml`` below a folder but for ``scenarios/``, in sorted order.

    Args:
        folder: Where the rules are; the built-in ones by default.
        vocabulary: The facts that rules may name.
        templates: Names of the templates that exist; None: not checked.
        names: Knowledge table (``gpus``, ``models`` ...) -> the names in it; a table that is
            absent is not checked.
        over: A folder that ``folder`` is laid over: its files count too, except those of
            which ``folder`` has its own.

    Raises:
        RuleFileError: A file is wrong, or there is no rule; several problems, of all files,
            come as ``Problems``. Nothing loads then.
    """
    own = folder or data_dir("rules")
    files = _files(own)
    shown = {name: f"{_label(own)}/{name}" for name in files}
    if over is not None:
        below = _files(over)
        shown = {name: f"{_label(over)}/{name}" for name in below} | shown
        files = {**below, **files}
    contents = {shown[name]: files[name] for name in sorted(files)}
    key = _key(contents, vocabulary, templates, names)
    form = compiled(
        "rules", key, lambda: stored(parse_rules(contents, vocabulary, templates, names))
    )
    return RuleSet(restored(form), digest(dict(sorted(files.items()))))


def parse_rules(
    contents: Mapping[str, bytes],
    vocabulary: Vocabulary,
    templates: Collection[str] | None = None,
    names: Names | None = None,
) -> tuple[Rule, ...]:
    """Parse and check rule files without the cache.

    Args:
        contents: File name, as messages show it -> content.
        vocabulary: As for ``load_rules``, like the rest.
        templates: Names of templates.
        names: Names in knowledge tables.

    Raises:
        RuleFileError: As for ``load_rules``.
    """
    # Imported here because a warm start does without the parser.
    from advisor.rulefile.lint import check  # noqa: PLC0415
    from advisor.rulefile.reading import Reading  # noqa: PLC0415
    from advisor.rulefile.rules import read_rules  # noqa: PLC0415
    from advisor.yamlfields import Collector  # noqa: PLC0415

    problems = Collector(RuleFileError)
    reading = Reading(vocabulary, problems, templates, names)
    drafts = [
        draft
        for shown, content in contents.items()
        for draft in read_rules(content, shown, reading)
    ]
    check(drafts, reading)
    raise_problems(problems.errors)
    return tuple(draft.rule for draft in drafts)


def _files(folder: Path) -> Mapping[str, bytes]:
    if not folder.is_dir():
        raise RuleFileError(f"there is no folder '{folder}'.", hint="Name a folder with rules.")
    try:
        found = read_tree(folder, [".yaml"])
        files = {name: text for name, text in found.items() if not name.startswith(SCENARIOS)}
        misnamed = sorted(read_tree(folder, [".yml"]))
    except OSError as bad:
        raise RuleFileError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    if misnamed:
        name = f"{_label(folder)}/{misnamed[0]}"
        raise RuleFileError(f"'{name}' would not be read.", hint="Rename it to end in .yaml.")
    if not files:
        hint = "A rule file ends in .yaml."
        raise RuleFileError(f"there is no rule file in '{folder}'.", hint=hint)
    return files


def _key(
    contents: Mapping[str, bytes],
    vocabulary: Vocabulary,
    templates: Collection[str] | None,
    names: Names | None,
) -> str:
    tables = {table: sorted(known) for table, known in sorted((names or {}).items())}
    parts = (
        digest(contents),
        vocabulary.sha256 or repr(vocabulary.facts),
        "-" if templates is None else repr(sorted(templates)),
        "-" if names is None else repr(tables),
        _parser_digest(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _parser_digest() -> str:
    """Tell parsers apart, so that an edited parser never trusts what an older one compiled."""
    return digest(read_tree(Path(__file__).parent, [".py"]))
