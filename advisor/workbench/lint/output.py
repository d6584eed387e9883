"""Findings as text, JSON, SARIF 2.1.0 and annotations of GitHub Actions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from advisor.files import __version__
from advisor.workbench.lint.problem import Problem
from advisor.workbench.lint.registry import LINTS, Lint

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
