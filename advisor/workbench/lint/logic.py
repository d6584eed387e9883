"""What conditions say about each other, whatever the scenario: exclusion and implication.

Only what is certain is found: two conditions on one fact, or on the same two facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from advisor.rules.language.model import Test
from advisor.rules.language.normal_form import Branch, same_test

_SIGNS = {"above": {1}, "at least": {0, 1}, "below": {-1}, "at most": {-1, 0}}
"""Verb -> the signs of fact minus other fact that it allows."""


class _Range(Struct, frozen=True):
    """The numbers that a condition allows."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no number is allowed."""
        edge = self.low == self.high and (self.low_open or self.high_open)
        return self.low > self.high or edge

    def cut(self, other: _Range) -> _Range:
        """Give the numbers that both allow."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return _Range(low, high, low_open, not closed)

    def within(self, other: _Range) -> bool:
        """Whether every number allowed here is allowed there."""
        return self.cut(other) == self


def exclusive(branch: Branch) -> tuple[Test, Test] | None:
    """Find two tests of which at most one can hold."""
    return next((pair for pair in combinations(branch, 2) if _exclude(*pair)), None)


def implies(branch: Branch, other: Branch) -> bool:
    """Whether a scenario that meets all of one branch certainly meets all of another."""
    return all(any(_implies(own, test) for own in branch) for test in other)


def all_imply(branches: Sequence[Branch], others: Sequence[Branch]) -> bool:
    """Whether every branch certainly meets one of some others."""
    return all(any(implies(own, other) for other in others) for own in branches)


def _exclude(one: Test, two: Test) -> bool:
    if one.fact == two.fact and "is unknown" in {one.verb, two.verb}:
        return one.verb != two.verb
    if one.other is not None or two.other is not None:
        return _signs_exclude(one, two)
    if one.fact != two.fact:
        return False
    first, second = _range(one), _range(two)
    if first and second:
        return first.cut(second).is_empty
    return _names_exclude(one, two)


def _names_exclude(one: Test, two: Test) -> bool:
    first, second = set(_names(one)), set(_names(two))
    if not first or not second:
        return False
    if "is not" not in {one.verb, two.verb}:
        return not first & second
    if one.verb == two.verb:
        return False
    return first <= second if two.verb == "is not" else second <= first


def _signs_exclude(one: Test, two: Test) -> bool:
    signs = _sign(one, (one.fact, one.other)), _sign(two, (one.fact, one.other))
    return None not in signs and not (signs[0] or set()) & (signs[1] or set())


def _sign(test: Test, facts: tuple[str, str | None]) -> set[int] | None:
    """The signs of first minus second fact that a comparison of these two allows."""
    found = _SIGNS.get(test.verb)
    if found is None or test.other is None:
        return None
    if (test.fact, test.other) == facts:
        return found
    return {-sign for sign in found} if (test.other, test.fact) == facts else None


def _implies(own: Test, test: Test) -> bool:
    if same_test(own) == same_test(test):
        return True
    if test.verb == "is known":
        return own.verb != "is unknown" and test.fact in {own.fact, own.other}
    if own.fact != test.fact or own.other is not None or test.other is not None:
        return False
    first, second = _range(own), _range(test)
    if first and second:
        return first.within(second)
    names = set(_names(own))
    if not names or own.verb == "is not":
        return False
    others = set(_names(test))
    return bool(others) and (names.isdisjoint(others) if test.verb == "is not" else names <= others)


def _range(test: Test) -> _Range | None:
    value = test.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    ranges = {
        "above": _Range(low=number, low_open=True),
        "at least": _Range(low=number),
        "below": _Range(high=number, high_open=True),
        "at most": _Range(high=number),
        "is": _Range(number, number),
    }
    return ranges.get(test.verb)


def _names(test: Test) -> Iterator[object]:
    """The names or the flag that a condition speaks of; none for a number."""
    if isinstance(test.value, tuple):
        yield from test.value
    elif isinstance(test.value, bool | str):
        yield test.value
