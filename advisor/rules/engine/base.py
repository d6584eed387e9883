"""What an engine does: facts and compiled rules in, firings out, or the contradiction found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from advisor.errors import EngineError, RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules.conditions import Check, Facts
from advisor.rules.engine.compiler import OPTION, CompiledBranch, CompiledRule, CompiledRules


class OptionFacts(Struct, frozen=True):
    """The facts of one what-if: ``option.*`` names to values; unknown ones absent."""

    key: str
    values: Mapping[str, FactValue]


class Firing(Struct, frozen=True, order=True):
    """A rule that holds: for option ``option`` or, when it is empty, for the scenario."""

    rule: str
    option: str = ""


class Outcome(Struct, frozen=True):
    """Everything that fired, sorted, and the facts that rules concluded."""

    firings: tuple[Firing, ...]
    concluded: Mapping[str, FactValue]
    supports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Concluded fact -> the rules that fired for it, sorted."""


class Engine(Protocol):
    """Runs a compiled rule set; both implementations give equal outcomes."""

    name: str

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, to a fixed point.

        Args:
            facts: Scenario facts by full name, in base units; unknown ones absent.
            options: What-ifs with unique keys.

        Raises:
            RuleFileError: Two rules conclude different values for one fact.
            EngineError: The engine failed.
        """
        ...


def check_keys(options: Sequence[OptionFacts]) -> None:
    """Refuse options that a firing could not name.

    Raises:
        EngineError: An empty or repeated key.
    """
    keys = {option.key for option in options}
    if len(keys) != len(options) or "" in keys:
        raise EngineError("option keys must be unique and not empty")


def settle(compiled: CompiledRules, fired: Collection[tuple[str, str]]) -> Outcome:
    """Sort the firings and read off what was concluded.

    Args:
        compiled: The rules that ran.
        fired: Rule id and option key ("" for a scenario), each pair once.

    Raises:
        RuleFileError: Rules conclude different values for one fact. The fact lowest in the order
            of dependency is named: whatever else fired wrongly came after it.
    """
    ids = {rule for rule, _ in fired}
    makers: dict[str, list[tuple[CompiledRule, FactValue]]] = defaultdict(list)
    for rule in compiled.rules:
        if rule.conclusions and rule.id in ids:
            for fact, value in rule.conclusions:
                makers[fact].append((rule, value))
    order = sorted(makers, key=lambda fact: (compiled.levels[fact], fact))
    concluded = {fact: _agreed(fact, makers[fact]) for fact in order}
    supports = {fact: tuple(sorted(rule.id for rule, _ in makers[fact])) for fact in order}
    return Outcome(_firings(fired), _by_name(concluded), supports)


def _agreed(fact: str, makers: Sequence[tuple[CompiledRule, FactValue]]) -> FactValue:
    (first, value), *rest = sorted(makers, key=lambda maker: maker[0].id)
    for rule, other in rest:
        if other != value:
            raise RuleFileError(
                f"rules '{first.id}' and '{rule.id}' hold together but conclude different values "
                f"for '{fact}': {value!r} and {other!r}.",
                source=rule.source,
                hint="Make their conditions exclude each other.",
                lint="contradictory-conclude",
            )
    return value


def _firings(fired: Collection[tuple[str, str]]) -> tuple[Firing, ...]:
    return tuple(Firing(rule, option) for rule, option in sorted(fired))


def _by_name(concluded: Mapping[str, FactValue]) -> Mapping[str, FactValue]:
    return {fact: concluded[fact] for fact in sorted(concluded)}


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


def _closures(branch: CompiledBranch) -> _Branch:
    scenario: list[Check] = []
    option: list[Check] = []
    for pattern in branch.patterns:
        checks = option if pattern.group == OPTION else scenario
        checks += [test.check for test in (*pattern.literals, *pattern.joins)]
    return _Branch(tuple(scenario), tuple(option))
