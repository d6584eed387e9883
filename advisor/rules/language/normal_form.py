"""Conditions in disjunctive normal form: a rule holds when any one branch holds in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec.structs import replace

from advisor.errors import RuleFileError, Source
from advisor.rules.language.model import Test, Verb, When, all_tests

MAX_BRANCHES = 64

Branch = tuple[Test, ...]

_OPPOSITE: Mapping[Verb, Verb] = {
    "above": "at most",
    "at most": "above",
    "below": "at least",
    "at least": "below",
    "is": "is not",
    "is not": "is",
    "is known": "is unknown",
    "is unknown": "is known",
}


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


def opposite(test: Test) -> Branch:
    """List the tests that a ``not`` turns this one into; all of them must hold."""
    if test.verb == "one of" and isinstance(test.value, tuple):
        return tuple(
            replace(test, verb="is not", value=name, text=f"is not {name}") for name in test.value
        )
    if isinstance(test.value, bool):
        said = "no" if test.value else "yes"
        return (replace(test, value=not test.value, text=f"{test.verb} {said}"),)
    verb = _OPPOSITE[test.verb]
    return (replace(test, verb=verb, text=verb + test.text.removeprefix(test.verb)),)


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
    ways: list[Branch] = [opposite(test) for test in when.tests]
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
        branch for branch, own in zip(found, asked, strict=True) if not any(o < own for o in asked)
    )


def _place(when: When) -> Source | None:
    return next((test.source for test in all_tests(when) if test.source), None)
