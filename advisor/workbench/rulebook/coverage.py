"""What ``advisor rules cover`` measured, read back for the rulebook."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from advisor.errors import RequestError


class Condition(Struct, frozen=True):
    """How often a numeric condition passes and decides."""

    text: str
    passes: int
    fails: int
    decides: int
    of: str
    """``scenarios`` or ``options``."""


class RuleShare(Struct, frozen=True):
    """How often one rule counts."""

    fires: int
    said: int
    first: int
    by_verdict: Mapping[str, float]
    """Verdict -> share of its scenarios in which the rule fires."""
    conditions: Sequence[Condition]


class Measured(Struct, frozen=True):
    """Coverage of a rule set over a sample."""

    scenarios: int
    options: int
    rules: Mapping[str, RuleShare]
    """By rule; rules that were added since are missing."""


def read_cover_file(path: Path) -> Measured:
    """Read a file that ``advisor rules cover --format json`` wrote.

    Raises:
        RequestError: It cannot be read, or is something else.
    """
    try:
        return read_cover(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as bad:
        why = bad.strerror if isinstance(bad, OSError) else "it is not UTF-8"
        raise RequestError(f"{path} cannot be read: {why}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = "Write one with 'advisor rules cover --format json -o cover.json'."
        raise RequestError(f"{path} is no coverage", hint=hint) from None


def read_cover(text: str) -> Measured:
    """Read coverage from JSON.

    Raises:
        ValueError: It is no JSON; KeyError and TypeError where a part is missing.
    """
    made: dict[str, Any] = json.loads(text)
    conditions: dict[str, list[Condition]] = {}
    for found in made["thresholds"]:
        shown = f"{found['fact']} {found['condition']}"
        counts = (int(found["passes"]), int(found["fails"]), int(found["decides"]))
        condition = Condition(shown, *counts, str(found["of"]))
        conditions.setdefault(str(found["rule"]), []).append(condition)
    rules = {
        str(rule["rule"]): RuleShare(
            int(rule["fires"]),
            int(rule["said"]),
            int(rule["first"]),
            {str(name): float(value) for name, value in rule["by"].get("verdict", {}).items()},
            conditions.get(str(rule["rule"]), ()),
        )
        for rule in made["rules"]
    }
    return Measured(int(made["scenarios"]), int(made["options"]), rules)
