"""Why and why not: every test of a rule with its value and how far it is from holding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from advisor.knowledge.fact_type import FactValue
from advisor.rules.engine.kinds import COMPARE, ORDERING
from advisor.rules.language.model import Rule, Test
from advisor.rules.language.normal_form import Branch, branches

Facts = Mapping[str, FactValue]


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
    traced = tuple(tuple(_trace(test, known) for test in tests) for tests in _branches_of(rule))
    nearest = min(traced, key=_remoteness, default=())
    return RuleTrace(
        rule=rule.id,
        holds=any(all(test.holds for test in branch) for branch in traced),
        branches=traced,
        nearest=nearest,
    )


def holds(test: Test, facts: Facts, option: Facts | None = None) -> bool:
    """Whether one test holds on these facts; see ``evaluate``."""
    actual = _value(test.fact, facts, option)
    if test.verb == "is known":
        return actual is not None
    if test.verb == "is unknown":
        return actual is None
    target = _value(test.other, facts, option) if test.other is not None else test.value
    return actual is not None and target is not None and _holds(test, actual, target)


def _value(fact: str, facts: Facts, option: Facts | None) -> FactValue | None:
    return option.get(fact) if option and fact.startswith("option.") else facts.get(fact)


Check = Callable[[Facts, Facts | None], bool]
"""Whether something holds of a scenario's facts and, in tests of what-ifs, of an option's."""
_conjunctions: dict[int, tuple[Branch, Check]] = {}
_MOST_CONJUNCTIONS = 20_000


def all_hold(tests: Branch) -> Check:
    """Give the check whether all tests hold, made once for the same tuple of tests."""
    found = _conjunctions.get(id(tests))
    if found is None:
        if len(_conjunctions) >= _MOST_CONJUNCTIONS:
            _conjunctions.clear()
        found = _conjunctions[id(tests)] = (tests, _conjunction(tests))
    return found[1]


def _conjunction(tests: Branch) -> Check:
    checks = [_check(test) for test in tests]

    def check(facts: Facts, option: Facts | None) -> bool:
        for one in checks:  # noqa: SIM110 - all() with a generator takes twice as long
            if not one(facts, option):
                return False
        return True

    return checks[0] if len(checks) == 1 else check


def _check(test: Test) -> Check:
    """Make a test quick whose fact is compared with a number, a text or a flag."""
    fact, target = test.fact, test.value
    if test.other is not None or target is None:
        return lambda facts, option: holds(test, facts, option)
    compare = _comparison(test, target)
    if fact.startswith("option."):

        def of_option(facts: Facts, option: Facts | None) -> bool:
            actual = option.get(fact) if option else facts.get(fact)
            return actual is not None and compare(actual)

        return of_option

    def of_scenario(facts: Facts, _: Facts | None) -> bool:
        actual = facts.get(fact)
        return actual is not None and compare(actual)

    return of_scenario


def _comparison(test: Test, target: FactValue | tuple[str, ...]) -> Callable[[FactValue], bool]:
    if test.verb in ORDERING and target.__class__ in _NUMBERS:
        compare = COMPARE[test.verb]
        return lambda actual: actual.__class__ in _NUMBERS and compare(actual, target)
    if test.verb == "is" and isinstance(target, str):
        return lambda actual: actual == target
    return lambda actual: _holds(test, actual, target)


def what_held(
    rule: Rule, facts: Facts, option: Facts | None = None
) -> Iterator[tuple[Test, FactValue | None]]:
    """Give the tests of the first branch that holds, with the values they met."""
    for tests in _branches_of(rule):
        if all_hold(tests)(facts, option):
            yield from ((test, _value(test.fact, facts, option)) for test in tests)
            return


_branches: dict[int, tuple[Rule, tuple[Branch, ...]]] = {}


def _branches_of(rule: Rule) -> tuple[Branch, ...]:
    """The rule's branches, worked out once per rule."""
    found = _branches.get(id(rule))
    if found is None or found[0] is not rule:
        found = _branches[id(rule)] = (rule, branches(rule.when))
    return found[1]


def _trace(test: Test, known: Facts) -> TestTrace:
    actual = known.get(test.fact)
    target = known.get(test.other) if test.other is not None else test.value
    if test.verb == "is known":
        return TestTrace(test, actual is not None, actual, None, None)
    if test.verb == "is unknown":
        return TestTrace(test, actual is None, actual, None, None)
    holds = actual is not None and target is not None and _holds(test, actual, target)
    return TestTrace(test, holds, actual, target, _distance(holds, test, actual, target))


def _holds(test: Test, actual: FactValue, target: FactValue | tuple[str, ...]) -> bool:
    if isinstance(target, tuple):
        return actual in target
    equal = isinstance(actual, bool) is isinstance(target, bool) and actual == target
    if test.verb in {"is", "is not"}:
        return equal is (test.verb == "is")
    if not _numbers(actual, target):
        return False
    assert not isinstance(actual, str)
    assert not isinstance(target, str)
    if test.verb in {"above", "at most"}:
        return (actual > target) is (test.verb == "above")
    return (actual < target) is (test.verb == "below")


def _distance(holds: bool, test: Test, actual: object, target: object) -> float | None:  # noqa: FBT001
    if not _numbers(actual, target):
        return None
    assert isinstance(actual, int | float)
    assert isinstance(target, int | float)
    return 0.0 if holds or test.verb == "is not" else abs(float(actual) - float(target))


_NUMBERS = frozenset({int, float})


def _numbers(one: object, other: object) -> bool:
    return one.__class__ in _NUMBERS and other.__class__ in _NUMBERS


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
