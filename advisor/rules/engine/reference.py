"""The rule engine in plain Python: the oracle in tests, and the stand-in for the C engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from advisor.knowledge.fact_type import FactValue
from advisor.rules.conditions import Check, Facts
from advisor.rules.engine.base import OptionFacts, Outcome, check_keys, settle
from advisor.rules.engine.compiler import OPTION, Branch, CompiledRule, CompiledRules

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
        checks += [test.check for test in (*pattern.literals, *pattern.joins)]
    return _Branch(tuple(scenario), tuple(option))
