"""What can be seen in a rule set that loads, without trying it on anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import product

from advisor.errors import Edit
from advisor.rules.language.model import Rule, RuleSet, Test, all_tests
from advisor.rules.language.normal_form import branches
from advisor.rules.language.rule_places import read_facts, scored_tests
from advisor.workbench.lint.logic import exclusive
from advisor.workbench.lint.problem import Problem, problem

_BRACES = re.compile(r"\{[^{}]*\}")
_NAME = re.compile(r"\{([a-z_.]+)\}")
_SHORT = "short"
_ORDERED = {"above", "at least", "below", "at most"}


def look_at(
    ruleset: RuleSet, rules: Sequence[Rule], read_elsewhere: Collection[str]
) -> Iterator[Problem]:
    """Find what is certain.

    Args:
        ruleset: All rules.
        rules: Those to report on.
        read_elsewhere: Concluded facts that the program or templates read.
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
        hint = "A note is one fixed text: write the words, or name a template."
        yield problem("unused-placeholder", f"nothing fills '{text}' in a note.", rule.source, hint)


def _placeholders(rule: Rule) -> Iterator[Problem]:
    yield from _note_placeholders(rule)
    numbers = any(test.verb in _ORDERED for test in all_tests(rule.when))
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
    pairs = [exclusive(branch) for branch in branches(rule.when)]
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
    pairs = product(branches(rule.when), branches(other.when))
    return all(
        exclusive(tuple(t for t in (*one, *two) if "option." not in f"{t.fact} {t.other}"))
        for one, two in pairs
    )


def _never_used(
    ruleset: RuleSet, rules: Sequence[Rule], read_elsewhere: Collection[str]
) -> Iterator[Problem]:
    read = {name for rule in ruleset.rules for name in read_facts(rule)}
    read |= {name for rule in ruleset.rules for name in _NAME.findall(rule.veto or "")}
    told: set[str] = set()
    for rule in rules:
        for fact in rule.conclude:
            if fact not in read and fact not in read_elsewhere and fact not in told:
                told.add(fact)
                message = f"{fact} is concluded, and no rule or template reads it."
                hint = "Use it in a 'when', or delete the rules that conclude it."
                yield problem("fact-never-used", message, rule.source, hint)
