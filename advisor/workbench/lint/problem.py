"""One thing that is wrong with a file: its kinds, its form, and how it is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from advisor.errors import Edit, Problems, RequestError, Source, UserError, did_you_mean
from advisor.files import __version__, packaged
from advisor.units import counted

Severity = Literal["error", "warning"]

FALLBACK = "cannot-load"
"""For an error without a kind of its own: a folder that cannot be read, broken knowledge."""


class Lint(Struct, frozen=True):
    """One kind of problem.

    An error keeps rules from loading, contradicts a case or another rule, or shows readers a gap;
    a warning is a rule that runs and is probably not what its author meant.
    """

    id: str
    severity: Severity
    title: str


def pages_dir() -> Path:
    """Find the pages: in the wheel or, from a checkout, in ``docs/lints``."""
    return packaged("lints", "docs/lints")


_ROW = re.compile(r"^\| \[(.+)\]\(\1\.md\) \| (error|warning) \| (.+) \|$", re.MULTILINE)


def _listed() -> Mapping[str, Lint]:
    rows = _ROW.findall((pages_dir() / "README.md").read_text(encoding="utf-8"))
    return {name: Lint(name, severity, title) for name, severity, title in rows}


LINTS = _listed()
"""Every kind of problem by its id, as the index of the pages lists them."""


def page(lint: str) -> str:
    """Give the page of one kind.

    Raises:
        RequestError: There is no such kind.
    """
    if lint not in LINTS:
        hint = did_you_mean(lint, LINTS) or f"Known: {', '.join(LINTS)}."
        raise RequestError(f"no kind of problem is called '{lint}'", hint=hint)
    return (pages_dir() / f"{lint}.md").read_text(encoding="utf-8")


class Problem(Struct, frozen=True):
    """One finding of a check."""

    lint: Lint
    message: str
    source: Source
    """Where; the file as the user would name it, line and column 0 where there is none."""
    hint: str = ""
    edit: Edit | None = None
    """The correction to write at ``source``, where only one is possible."""

    @property
    def text(self) -> str:
        """The message and what to do, without the place."""
        stop = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{stop} {self.hint}" if self.hint else self.message

    @property
    def is_error(self) -> bool:
        """Whether rules with this problem do not load or contradict themselves."""
        return self.lint.severity == "error"


def problem(
    lint: str, message: str, source: Source | None, hint: str = "", edit: Edit | None = None
) -> Problem:
    """Make a finding of a known kind.

    ``lint`` is a name in ``LINTS``; the message ends with a full stop.
    """
    return Problem(LINTS[lint], message, source or Source(""), hint, edit)


def problems_of(error: UserError) -> Sequence[Problem]:
    """Turn what a loader raised into findings."""
    errors = error.errors if isinstance(error, Problems) else [error]
    return [
        problem(e.lint or FALLBACK, e.message, e.source, e.hint, e.edit)
        for e in errors
        if isinstance(e, UserError)
    ]


def in_order(found: Iterable[Problem]) -> Sequence[Problem]:
    """Sort by place, then kind, then wording; the same finding is said once."""
    return sorted(set(found), key=lambda p: (p.source, p.lint.id, p.message, p.hint))


SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
"""The official schema, as its users name it; nothing fetches it."""


def as_text(found: Sequence[Problem]) -> str:
    """Write one line for each finding: place, what is wrong, what to do, and its kind."""
    return "".join(f"{_line(p)}\n" for p in found)


def _line(found: Problem) -> str:
    place = f"{found.source}: " if found.source.file else ""
    weight = "" if found.is_error else "warning: "
    return f"{place}{weight}{found.text} [{found.lint.id}]"


def as_json(found: Sequence[Problem]) -> str:
    """Write one object that programs read."""
    made = {
        "schema_version": 1,
        "errors": sum(p.is_error for p in found),
        "warnings": sum(not p.is_error for p in found),
        "problems": [
            {
                "lint": p.lint.id,
                "severity": p.lint.severity,
                "file": p.source.file or None,
                "line": p.source.line or None,
                "column": p.source.column or None,
                "message": p.message,
                "hint": p.hint or None,
                "fix": {"old": p.edit.old, "new": p.edit.new} if p.edit else None,
            }
            for p in found
        ],
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def as_sarif(found: Sequence[Problem]) -> str:
    """Write a SARIF 2.1.0 log, as code-scanning services take it.

    Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, 2020.
    """
    used = sorted({p.lint.id for p in found})
    driver = {
        "name": "advisor",
        "version": __version__,
        "rules": [_sarif_rule(LINTS[name]) for name in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(p, used.index(p.lint.id)) for p in found],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _sarif_rule(lint: Lint) -> dict[str, object]:
    return {
        "id": lint.id,
        "shortDescription": {"text": f"{lint.title}."},
        "help": {"text": f"advisor rules check --explain {lint.id}"},
        "defaultConfiguration": {"level": lint.severity},
    }


def _sarif_result(found: Problem, index: int) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": found.lint.id,
        "ruleIndex": index,
        "level": found.lint.severity,
        "message": {"text": found.text},
    }
    if found.source.file:
        result["locations"] = [{"physicalLocation": _sarif_place(found)}]
    return result


def _sarif_place(found: Problem) -> dict[str, object]:
    from urllib.parse import quote  # noqa: PLC0415 - only here

    place: dict[str, object] = {"artifactLocation": {"uri": quote(found.source.file)}}
    if found.source.line:
        region = {"startLine": found.source.line}
        if found.source.column:
            region["startColumn"] = found.source.column
        place["region"] = region
    return place


def totals(found: Sequence[Problem]) -> str:
    """Count errors and warnings in words."""
    errors = sum(one.is_error for one in found)
    counts = ((errors, "error"), (len(found) - errors, "warning"))
    return " and ".join(counted(n, word) for n, word in counts if n) or "no problem found"


def as_github(found: Sequence[Problem]) -> str:
    """Write workflow commands, which GitHub Actions shows beside the lines of a pull request.

    Source: GitHub Docs, "Workflow commands for GitHub Actions".
    """
    return "".join(_annotation(p) for p in found)


def _annotation(found: Problem) -> str:
    source = found.source
    parts = {"file": source.file, "line": source.line, "col": source.column, "title": found.lint.id}
    said = ",".join(f"{key}={_property(str(value))}" for key, value in parts.items() if value)
    return f"::{found.lint.severity} {said}::{_data(found.text)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


WRITERS = {"text": as_text, "json": as_json, "sarif": as_sarif, "github": as_github}
"""How problems are written, by name."""


class Edited(Struct, frozen=True):
    """A file with another content."""

    path: Path
    shown: str
    """The path as a user would type it."""
    before: str
    after: str


def decoded(content: bytes) -> str | None:
    """Give the text of a file; None where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
