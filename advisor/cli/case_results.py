"""Results of cases and scenario files as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from advisor.rules.language.file_places import Places
    from advisor.workbench.cases import CaseResult

_MOST_ALIKE = 3
"""Cases without an answer that are listed one by one, where one contradiction fails many."""


def placed(results: Iterable[CaseResult], places: Places) -> list[CaseResult]:
    """Give results with paths that can be opened."""
    return [
        replace(
            result,
            source=places.source(result.source) if result.source else None,
            problem=places.text(result.problem),
            details=tuple(places.text(line) for line in result.details),
        )
        for result in results
    ]


def text_of(results: Sequence[CaseResult]) -> str:
    """Write the failures and how many tests hold."""
    lines: list[str] = []
    alike: dict[str, int] = {}
    for result in results:
        if result.unanswered and result.rule:
            alike[result.problem] = alike.get(result.problem, 0) + 1
        if not result.ok and not (result.rule and alike.get(result.problem, 0) > _MOST_ALIKE):
            lines.append(f"FAILED {result.source}: {result.title}: {result.problem}")
            lines += [f"    {line}" for line in result.details]
    for problem, number in alike.items():
        if number > _MOST_ALIKE:
            lines.append(f"FAILED {number - _MOST_ALIKE} more in the same way: {problem}")
    lines.append(_summary(results))
    return "\n".join(lines) + "\n"


def _summary(results: Sequence[CaseResult]) -> str:
    parts = [
        f"{sum(r.ok for r in own)} of {len(own)} {what} hold"
        for what, own in (
            ("cases", [r for r in results if r.rule]),
            ("scenarios", [r for r in results if not r.rule]),
        )
        if own
    ]
    return ", ".join(parts) or "nothing to run again"


def json_of(results: Sequence[CaseResult]) -> str:
    """Write every result."""
    made = {
        "schema_version": 1,
        "run": len(results),
        "failed": sum(not result.ok for result in results),
        "results": [
            {
                "rule": result.rule or None,
                "name": result.name,
                "at": str(result.source) if result.source else None,
                "ok": result.ok,
                "problem": result.problem or None,
                "details": list(result.details),
            }
            for result in results
        ],
    }
    return json.dumps(made, indent=2) + "\n"
