"""What conditions say about each other, whatever the scenario: exclusion and implication.

Only what is certain is found: two conditions on one fact, or on the same two facts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, product

from msgspec import Struct

from advisor.errors import Edit
from advisor.rules import ORDERING, Branch, Test, all_tests, of_option, same_test
from advisor.rules.language.model import Rule, RuleSet, read_facts, scored_tests
from advisor.workbench.lint.problem import Problem, problem

_SIGNS = {"above": {1}, "at least": {0, 1}, "below": {-1}, "at most": {-1, 0}}
"""Verb -> the signs of fact minus other fact that it allows."""


_DENYING = frozenset({"is not", "none of"})


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
    denied = one.verb in _DENYING, two.verb in _DENYING
    if not any(denied):
        return not first & second
    if all(denied):
        return False
    return first <= second if denied[1] else second <= first


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
    names, others = set(_names(own)), set(_names(test))
    if not names or not others:
        return False
    if own.verb in _DENYING:
        return test.verb in _DENYING and others <= names
    return names.isdisjoint(others) if test.verb in _DENYING else names <= others


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


_BRACES = re.compile(r"\{[^{}]*\}")
_NAME = re.compile(r"\{([a-z_.]+)\}")
_SHORT = "short"


def look_at(
    ruleset: RuleSet, rules: Sequence[Rule], read_elsewhere: Collection[str]
) -> Iterator[Problem]:
    """Find what is certain.

    ``read_elsewhere`` are concluded facts that the program or templates read.
    """
    yield from look_at_each(ruleset, rules)
    yield from _never_used(ruleset, rules, read_elsewhere)


def look_at_each(ruleset: RuleSet, rules: Sequence[Rule]) -> Iterator[Problem]:
    """Find what is certain of single rules, even where other rules cannot be read."""
    checks: tuple[Callable[[Rule], Iterator[Problem]], ...] = (
        _placeholders,
        _needless_lists,
        _impossible,
        lambda rule: _never_meets(rule, ruleset),
    )
    for rule in rules:
        for check in checks:
            yield from check(rule)


def look_at_words(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Find what is wrong with the words of rules of which not everything could be read."""
    for rule in rules:
        yield from _note_placeholders(rule)


def _note_placeholders(rule: Rule) -> Iterator[Problem]:
    for text in _BRACES.findall(rule.note or ""):
        name = _NAME.fullmatch(text)
        if name and "." in name[1] and not of_option(name[1]):
            continue
        hint = "Between the braces stands the name of a fact of the request, such as gpu.tdp."
        yield problem("unused-placeholder", f"nothing fills '{text}' in a note.", rule.source, hint)


def _placeholders(rule: Rule) -> Iterator[Problem]:
    yield from _note_placeholders(rule)
    numbers = any(test.verb in ORDERING for test in all_tests(rule.when))
    for text in _BRACES.findall(rule.veto or ""):
        name = _NAME.fullmatch(text)
        if not name:
            hint = "Between the braces stands the name of a fact, or 'short'."
            message = f"nothing fills '{text}' in a veto."
            yield problem("unused-placeholder", message, rule.source, hint)
        elif name[1] == _SHORT and not numbers:
            hint = "Compare a number in 'when', or leave it out."
            message = "'{short}' is empty: no condition compares numbers."
            yield problem("unused-placeholder", message, rule.source, hint)


def _needless_lists(rule: Rule) -> Iterator[Problem]:
    for test in scored_tests(rule):
        if test.verb == "one of" and isinstance(test.value, tuple) and len(test.value) == 1:
            name = test.value[0]
            yield problem(
                "needless-list",
                f"'{test.text}' lists one name.",
                test.source,
                f"Write 'is {name}'.",
                Edit(test.text, f"is {name}"),
            )


def _impossible(rule: Rule) -> Iterator[Problem]:
    pairs = [exclusive(branch) for branch in rule.branches]
    if pairs and all(pairs) and not rule.ladder:
        one, two = pairs[0] or (None, None)
        assert one is not None
        assert two is not None
        message = (
            f"rule '{rule.id}' can never fire: {_said(one)} and {_said(two)} exclude each other."
        )
        yield problem("never-fires", message, two.source or rule.source, "Change one of them.")


def _said(test: Test) -> str:
    return f"'{test.fact}: {test.text}'"


def _never_meets(rule: Rule, ruleset: RuleSet) -> Iterator[Problem]:
    for name in rule.supersedes:
        other = ruleset.by_id.get(name)
        if other is not None and _apart(rule, other):
            message = f"'{rule.id}' supersedes '{name}', and their conditions exclude each other."
            hint = "Take it out of 'supersedes'."
            yield problem("supersedes-never-meets", message, rule.source, hint)


def _apart(rule: Rule, other: Rule) -> bool:
    """Whether no scenario can meet both; options of one scenario differ, so they do not count."""
    pairs = product(rule.branches, other.branches)
    return all(
        exclusive(tuple(t for t in (*one, *two) if "option." not in f"{t.fact} {t.other}"))
        for one, two in pairs
    )


def _never_used(
    ruleset: RuleSet, rules: Sequence[Rule], read_elsewhere: Collection[str]
) -> Iterator[Problem]:
    read = {name for rule in ruleset.rules for name in read_facts(rule)}
    read |= {name for rule in ruleset.rules for name in _NAME.findall(rule.veto or rule.note or "")}
    told: set[str] = set()
    for rule in rules:
        for fact in rule.conclude:
            if fact not in read and fact not in read_elsewhere and fact not in told:
                told.add(fact)
                message = f"{fact} is concluded, and no rule or template reads it."
                hint = "Use it in a 'when', or delete the rules that conclude it."
                yield problem("fact-never-used", message, rule.source, hint)
