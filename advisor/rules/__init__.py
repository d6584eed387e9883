"""The rule language and the engines that run it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import EngineError, RuleFileError, Source
from advisor.knowledge.vocabulary import FactValue

Facts = Mapping[str, FactValue]
Check = Callable[[Facts, Facts | None], bool]
"""Whether something holds of a scenario's facts and, in tests of what-ifs, of an option's."""
Verb = Literal[
    "above",
    "at least",
    "below",
    "at most",
    "is",
    "is not",
    "one of",
    "none of",
    "is known",
    "is unknown",
]
"""``between A and B`` is parsed into ``at least A`` and ``at most B``; ``none of`` is what ``not``
makes of ``one of``."""


class Test(Struct, frozen=True, omit_defaults=True, dict=True):
    """One condition, ``fact verb value``.

    Exactly one of ``value`` (literal) and ``other`` (a fact) is set, neither for ``is known``
    and ``is unknown``. A flag always has the verb ``is``.
    """

    __test__: ClassVar[bool] = False
    """Keeps pytest from collecting this class."""
    fact: str
    verb: Verb
    value: float | str | bool | tuple[str, ...] | None = None
    other: str | None = None
    text: str = ""
    """The condition as the expert wrote it, for explanations: ``at most 5 %``."""
    source: Source | None = None

    @cached_property  # 1.05 of reports
    def check(self) -> Check:
        """Whether it holds of facts as in ``value_of``; made once, as every what-if asks."""
        return _check_of(self)


class When(Struct, frozen=True, omit_defaults=True):
    """All of ``tests`` hold, and one block of each ``any``, and not all of each ``not``."""

    tests: tuple[Test, ...]
    any: tuple[tuple[When, ...], ...] = ()
    none: tuple[When, ...] = ()


def all_tests(when: When) -> tuple[Test, ...]:
    """List every test of a block, nested ones included."""
    nested = [*(block for blocks in when.any for block in blocks), *when.none]
    return (*when.tests, *(test for block in nested for test in all_tests(block)))


Kind = Literal["number", "text", "flag", "any"]
"""``any``: rules only ask whether the fact is known, or whether it equals another such fact."""

Branch = tuple[Test, ...]
"""Tests that must all hold."""

MAX_BRANCHES = 64
KNOWING: tuple[Verb, ...] = ("is known", "is unknown")
ORDERING: Mapping[Verb, Callable[[Any, Any], bool]] = {
    "above": operator.gt,
    "at least": operator.ge,
    "below": operator.lt,
    "at most": operator.le,
}
_NUMBERS = frozenset({int, float})
_OPPOSITE: Mapping[Verb, Verb] = {
    "above": "at most",
    "at most": "above",
    "below": "at least",
    "at least": "below",
    "is": "is not",
    "is not": "is",
    "one of": "none of",
    "none of": "one of",
    "is known": "is unknown",
    "is unknown": "is known",
}


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


def compare(verb: Verb, one: FactValue, other: FactValue) -> bool:
    """Compare two known values, of whatever kinds, by a verb that takes two."""
    if verb in ORDERING:
        return are_numbers(one, other) and ORDERING[verb](one, other)
    equal = (one.__class__ is bool) is (other.__class__ is bool) and one == other
    return equal is (verb == "is")


def are_numbers(*values: object) -> bool:
    """Whether all are numbers; a flag is none."""
    return all(value.__class__ in _NUMBERS for value in values)


def answer(test: Test) -> Callable[[FactValue], bool]:
    """Give what a test against a literal says of a known value."""
    verb, target = test.verb, test.value
    if verb in KNOWING:
        return lambda _: verb == "is known"
    assert target is not None
    if isinstance(target, tuple):
        return target.__contains__ if verb == "one of" else lambda actual: actual not in target
    if verb == "is" and isinstance(target, str):
        return lambda actual: actual == target
    if verb in ORDERING and are_numbers(target):
        ordered = ORDERING[verb]
        return lambda actual: actual.__class__ in _NUMBERS and ordered(actual, target)
    return lambda actual: compare(verb, actual, target)


def value_of(fact: str, facts: Facts, option: Facts | None = None) -> FactValue | None:
    """Look up a fact of a scenario or a what-if; None: unknown.

    Without ``option`` the facts of a what-if may be among ``facts``.
    """
    return (option or facts).get(fact) if of_option(fact) else facts.get(fact)


def _check_of(test: Test) -> Check:
    fact, other, verb = test.fact, test.other, test.verb
    if verb in KNOWING:
        known = verb == "is known"
        return lambda facts, option: (value_of(fact, facts, option) is not None) is known
    if other is None:
        return _literal(fact, answer(test))

    def between(facts: Facts, option: Facts | None) -> bool:
        one, two = value_of(fact, facts, option), value_of(other, facts, option)
        return one is not None and two is not None and compare(verb, one, two)

    return between


def _literal(fact: str, says: Callable[[FactValue], bool]) -> Check:
    def of_scenario(facts: Facts, _: Facts | None) -> bool:
        actual = facts.get(fact)
        return actual is not None and says(actual)

    def of_whatif(facts: Facts, option: Facts | None) -> bool:
        actual = (option or facts).get(fact)
        return actual is not None and says(actual)

    return of_whatif if of_option(fact) else of_scenario


def holds(test: Test, facts: Facts, option: Facts | None = None) -> bool:
    """Whether one test holds, of facts as in ``value_of``."""
    return test.check(facts, option)


def all_hold(tests: Branch) -> Check:
    """Give the check whether all tests hold."""
    checks = [test.check for test in tests]

    def check(facts: Facts, option: Facts | None) -> bool:
        for one in checks:  # noqa: SIM110 - all() with a generator takes twice as long
            if not one(facts, option):
                return False
        return True

    return checks[0] if len(checks) == 1 else check


def branches(when: When) -> tuple[Branch, ...]:
    """Expand every ``any`` and flip every ``not``.

    An unknown fact satisfies no comparison, flipped or not; only ``is unknown`` holds for it.

    Returns:
        Branches without repeated tests and without branches that another one implies, in the
        order the expert wrote them. An empty block gives one empty branch.

    Raises:
        RuleFileError: More than 64 branches.
    """
    return _pruned(_expanded(when, _place(when)))


def opposite(test: Test) -> Test:
    """Give the test that a ``not`` turns this one into."""
    if isinstance(test.value, bool):
        said = "no" if test.value else "yes"
        return replace(test, value=not test.value, text=f"{test.verb} {said}")
    verb = _OPPOSITE[test.verb]
    return replace(test, verb=verb, text=verb + test.text.removeprefix(test.verb))


def same_test(test: Test) -> tuple[object, ...]:
    """Identify a test by what it asks, whatever its wording and place."""
    kind = type(test.value).__name__ if isinstance(test.value, bool) else ""
    return (test.fact, test.verb, kind, test.value, test.other)


def _expanded(when: When, place: Source | None) -> tuple[Branch, ...]:
    factors: list[tuple[Branch, ...]] = [(when.tests,)]
    factors.extend(
        tuple(chain.from_iterable(_expanded(block, place) for block in blocks))
        for blocks in when.any
    )
    factors.extend(_negated(block, place) for block in when.none)
    return _product(factors, place)


def _negated(when: When, place: Source | None) -> tuple[Branch, ...]:
    ways: list[Branch] = [(opposite(test),) for test in when.tests]
    for blocks in when.any:
        ways.extend(_product([_negated(block, place) for block in blocks], place))
    for block in when.none:
        ways.extend(_expanded(block, place))
    return tuple(ways)


def _product(factors: Iterable[tuple[Branch, ...]], place: Source | None) -> tuple[Branch, ...]:
    product: tuple[Branch, ...] = ((),)
    for ways in factors:
        product = _distinct(left + right for left in product for right in ways)
        if len(product) > MAX_BRANCHES:
            raise RuleFileError(
                f"'any' and 'not' make more than {MAX_BRANCHES} combinations.",
                source=place,
                hint="Split the rule, or use 'one of' for lists of names.",
                lint="engine-limits",
            )
    return product


def _distinct(found: Iterable[Branch]) -> tuple[Branch, ...]:
    by_tests: dict[frozenset[tuple[object, ...]], Branch] = {}
    for branch in found:
        tests = {same_test(test): test for test in reversed(branch)}
        by_tests.setdefault(frozenset(tests), tuple(reversed(tests.values())))
    return tuple(by_tests.values())


def _pruned(found: tuple[Branch, ...]) -> tuple[Branch, ...]:
    asked = [frozenset(map(same_test, branch)) for branch in found]
    return tuple(
        branch
        for branch, tests in zip(found, asked, strict=True)
        if not any(o < tests for o in asked)
    )


def _place(when: When) -> Source | None:
    return next((test.source for test in all_tests(when) if test.source), None)
