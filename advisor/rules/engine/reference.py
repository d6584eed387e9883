"""The rule engine in plain Python: the oracle in tests, and the stand-in for the C engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from advisor.knowledge.fact_type import FactValue
from advisor.rules.engine.base import OptionFacts, Outcome
from advisor.rules.engine.compiler import OPTION, Branch, CompiledRule, CompiledRules
from advisor.rules.engine.kinds import COMPARE, ORDERING, of_option
from advisor.rules.engine.outcome import check_keys, settle
from advisor.rules.engine.trace import RuleTrace, TestTrace, evaluate
from advisor.rules.language.model import Test, Verb

__all__ = ["ReferenceEngine", "RuleTrace", "TestTrace", "evaluate"]

Facts = Mapping[str, FactValue]
Check = Callable[[Facts, Facts], bool]
"""Scenario facts and one option's facts -> whether a test holds."""

_NO_OPTION: Facts = {}


class _Branch(Struct, frozen=True):
    scenario: tuple[Check, ...]
    option: tuple[Check, ...]


class _Rule(Struct, frozen=True):
    rule: CompiledRule
    branches: tuple[_Branch, ...]


class ReferenceEngine:
    """Tries every rule once, in order of dependency; see ``base.Engine``."""

    name = "reference"

    def __init__(self, compiled: CompiledRules) -> None:
        self._compiled = compiled
        self._rules = tuple(
            _Rule(rule, tuple(_closures(branch) for branch in rule.branches))
            for rule in compiled.rules
        )

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, see ``base.Engine``."""
        compiled = self._compiled
        compiled.check_names(facts)
        check_keys(options)
        scenario = _read(compiled, facts, compiled.scenario_facts)
        whatifs = [(o.key, _read(compiled, o.values, compiled.option_facts)) for o in options]
        fired: list[tuple[str, str]] = []
        for rule in self._rules:
            keys = _fire(rule, scenario, whatifs)
            fired += [(rule.rule.id, key) for key in keys]
            if keys:
                for fact, value in rule.rule.conclusions:
                    scenario.setdefault(fact, value)
        return settle(compiled, fired)


def _read(compiled: CompiledRules, facts: Facts, names: frozenset[str]) -> dict[str, FactValue]:
    normal = compiled.normal
    return {name: normal(name, value) for name, value in facts.items() if name in names}


def _fire(rule: _Rule, scenario: Facts, whatifs: Sequence[tuple[str, Facts]]) -> list[str]:
    """Give the keys of the options the rule holds for; ``[""]`` when it holds for the scenario."""
    open_ = [b for b in rule.branches if all(check(scenario, _NO_OPTION) for check in b.scenario)]
    if not rule.rule.per_option:
        return [""] if open_ else []
    keys = []
    for key, facts in whatifs if open_ else ():
        for branch in open_:
            for check in branch.option:
                if not check(scenario, facts):
                    break
            else:
                keys.append(key)
                break
    return keys


def _closures(branch: Branch) -> _Branch:
    scenario: list[Check] = []
    option: list[Check] = []
    for pattern in branch.patterns:
        checks = option if pattern.group == OPTION else scenario
        checks += [_literal(test) for test in pattern.literals]
        checks += [_join(test) for test in pattern.joins]
    return _Branch(tuple(scenario), tuple(option))


def _literal(test: Test) -> Check:
    value = test.value
    if test.verb in {"is known", "is unknown"}:
        return _presence(test.fact, known=test.verb == "is known")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = float(value) + 0.0
    if isinstance(value, tuple):
        return _comparison(test.fact, lambda found, names: found in names, frozenset(value))
    return _comparison(test.fact, COMPARE[test.verb], value)


def _presence(fact: str, *, known: bool) -> Check:
    if of_option(fact):
        return lambda _, option: (fact in option) is known
    return lambda scenario, _: (fact in scenario) is known


def _comparison(fact: str, compare: Callable[..., bool], value: object) -> Check:
    if of_option(fact):

        def check_option(_: Facts, option: Facts) -> bool:
            found = option.get(fact)
            return found is not None and compare(found, value)

        return check_option

    def check_scenario(scenario: Facts, _: Facts) -> bool:
        found = scenario.get(fact)
        return found is not None and compare(found, value)

    return check_scenario


def _join(test: Test) -> Check:
    compare = COMPARE[test.verb] if test.verb in ORDERING else _EQUAL[test.verb]
    left, right = test.fact, test.other
    assert right is not None
    left_option, right_option = of_option(left), of_option(right)

    def check(scenario: Facts, option: Facts) -> bool:
        one = (option if left_option else scenario).get(left)
        two = (option if right_option else scenario).get(right)
        return one is not None and two is not None and compare(one, two)

    return check


def _same(left: object, right: object) -> bool:
    return left.__class__ is right.__class__ and left == right


_EQUAL: Mapping[Verb, Callable[[object, object], bool]] = {
    "is": _same,
    "is not": lambda left, right: not _same(left, right),
}
