"""Why and why not: every test of a rule with its value and how far it is from holding."""

from __future__ import annotations

from msgspec import Struct

from advisor.knowledge.vocabulary import FactValue
from advisor.rules.conditions import (
    KNOWING,
    Facts,
    Test,
    are_numbers,
    holds,
)
from advisor.rules.language.model import Rule


class TestTrace(Struct, frozen=True):
    """One test on the facts of one situation."""

    __test__ = False

    test: Test
    holds: bool
    actual: FactValue | None
    """The fact's value; None where it is unknown."""
    target: FactValue | tuple[str, ...] | None
    """What it was compared with: the literal, or the other fact's value (None: unknown)."""
    distance: float | None
    """How far a number is from holding, in base units: 0 when it holds, and when it lies on a
    limit that must be passed. None for anything but a comparison of known numbers."""


class RuleTrace(Struct, frozen=True):
    """A rule on the facts of one situation."""

    rule: str
    holds: bool
    branches: tuple[tuple[TestTrace, ...], ...]
    """Every branch in full; a rule holds when all tests of any one branch do."""
    nearest: tuple[TestTrace, ...]
    """The branch that holds or, when none does, the one that is nearest to holding."""


def evaluate(rule: Rule, facts: Facts, option: Facts | None = None) -> RuleTrace:
    """Try one rule outside any engine and keep every comparison.

    Args:
        rule: Any rule.
        facts: Scenario facts in base units, concluded ones included; unknown ones absent.
        option: The ``option.*`` facts of one what-if.
    """
    known = {**facts, **option} if option else facts
    traced = tuple(tuple(_trace(test, known) for test in tests) for tests in rule.branches)
    nearest = min(traced, key=_remoteness, default=())
    return RuleTrace(
        rule=rule.id,
        holds=any(all(test.holds for test in branch) for branch in traced),
        branches=traced,
        nearest=nearest,
    )


def _trace(test: Test, known: Facts) -> TestTrace:
    actual, held = known.get(test.fact), holds(test, known)
    if test.verb in KNOWING:
        return TestTrace(test, held, actual, None, None)
    target = known.get(test.other) if test.other is not None else test.value
    return TestTrace(test, held, actual, target, _distance(held, test, actual, target))


def _distance(held: bool, test: Test, actual: object, target: object) -> float | None:  # noqa: FBT001
    if not are_numbers(actual, target):
        return None
    assert isinstance(actual, int | float)
    assert isinstance(target, int | float)
    return 0.0 if held or test.verb == "is not" else abs(float(actual) - float(target))


def _remoteness(branch: tuple[TestTrace, ...]) -> tuple[int, float]:
    failed = [test for test in branch if not test.holds]
    return (len(failed), sum(map(_relative, failed)))


def _relative(test: TestTrace) -> float:
    """Give a failed test's distance as a share of the larger number, 1 where there is none."""
    if test.distance is None:
        return 1.0
    assert isinstance(test.actual, int | float)
    assert isinstance(test.target, int | float)
    return test.distance / (max(abs(test.actual), abs(test.target)) or 1.0)
