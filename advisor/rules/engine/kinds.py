"""What kinds of values facts hold, and how values of one kind are compared."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from advisor.errors import EngineError, RuleFileError, raise_problems
from advisor.rules.language.model import Rule, Verb
from advisor.rules.language.normal_form import Branch

Kind = Literal["number", "text", "flag", "any"]
"""``any``: rules only ask whether the fact is known, or whether it equals another such fact."""

CLASSES: Mapping[Kind, type] = {"number": float, "text": str, "flag": bool}
ORDERING: tuple[Verb, ...] = ("above", "at least", "below", "at most")
COMPARE: Mapping[Verb, Callable[[Any, Any], bool]] = {
    "above": operator.gt,
    "at least": operator.ge,
    "below": operator.lt,
    "at most": operator.le,
    "is": operator.eq,
    "is not": operator.ne,
}
"""For two values of one kind."""


def of_option(fact: str) -> bool:
    """Whether a fact belongs to a single what-if."""
    return fact.startswith("option.")


def kind_of(value: object) -> Kind | None:
    """Name the kind of a fact value; None for anything that is no fact value."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None


def exact_float(fact: str, value: float) -> float:
    """Give a number as a float without changing it; -0.0 becomes 0.0.

    Raises:
        EngineError: Not finite, or an integer no float holds exactly.
    """
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number != value:
        raise EngineError(f"fact '{fact}' cannot hold {value!r} exactly")
    return number


def infer_kinds(
    rules: Iterable[Rule], flat: Mapping[str, tuple[Branch, ...]]
) -> Mapping[str, Kind]:
    """Find out from the rules what every fact they name is.

    Args:
        rules: The rules.
        flat: Their branches, by rule id.

    Raises:
        RuleFileError: Rules take one fact for different kinds.
    """
    seen: dict[str, dict[Kind, Rule]] = defaultdict(dict)
    equal: set[tuple[str, str]] = set()
    for rule in rules:
        for fact, value in rule.conclude.items():
            _note_kind(seen, fact, kind_of(value), rule)
        for test in (test for branch in flat[rule.id] for test in branch):
            seen.setdefault(test.fact, {})
            if test.other is None:
                listed = test.value if isinstance(test.value, tuple) else (test.value,)
                _note_kind(seen, test.fact, kind_of(next(iter(listed), "")), rule)
                continue
            seen.setdefault(test.other, {})
            if test.verb in ORDERING:
                _note_kind(seen, test.fact, "number", rule)
                _note_kind(seen, test.other, "number", rule)
            else:
                equal |= {(test.fact, test.other), (test.other, test.fact)}
    _spread(seen, equal)
    raise_problems(list(_kind_problems(seen)))
    return {fact: next(iter(seen[fact]), "any") for fact in sorted(seen)}


def _note_kind(seen: dict[str, dict[Kind, Rule]], fact: str, kind: Kind | None, rule: Rule) -> None:
    if kind is not None:
        seen[fact].setdefault(kind, rule)


def _spread(seen: dict[str, dict[Kind, Rule]], equal: set[tuple[str, str]]) -> None:
    changed = True
    while changed:
        changed = False
        for left, right in sorted(equal):
            for kind, rule in seen[left].items():
                if kind not in seen[right]:
                    seen[right][kind] = rule
                    changed = True


def _kind_problems(seen: Mapping[str, Mapping[Kind, Rule]]) -> Iterator[RuleFileError]:
    for fact, users in sorted(seen.items()):
        if len(users) > 1:
            (one, first), (two, second) = sorted(users.items())[:2]
            yield RuleFileError(
                f"'{fact}' is a {one} in rule '{first.id}' and a {two} in rule '{second.id}'.",
                source=second.source,
                hint="A fact has one kind.",
            )
