"""What an engine does: facts and compiled rules in, firings out, or the contradiction found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from operator import contains, getitem
from typing import Protocol

from msgspec import Struct

from advisor.errors import EngineError, RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import ORDERING, Check, Facts, Test, of_option
from advisor.rules.engine.compiler import (
    OPTION,
    CompiledBranch,
    CompiledRule,
    CompiledRules,
    group_of,
)
from advisor.rules.engine.network import PRESENT_OPTION, UNIT
from advisor.rules.engine.properties import FactText, Names, fact_texts


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


class Engine(Protocol):
    """Runs a compiled rule set; both implementations give equal outcomes."""

    name: str

    def run(self, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]) -> Outcome:
        """Fire every rule that holds, to a fixed point.

        Facts stand by full name, in base units, unknown ones absent; keys of what-ifs are unique.

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

    ``fired`` has rule id and option key ("" for a scenario), each pair once.

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
    firings = tuple(Firing(rule, option) for rule, option in sorted(fired))
    return Outcome(firings, {fact: concluded[fact] for fact in sorted(concluded)})


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


_PRESENT = f'"{PRESENT_OPTION}":1,'


def option_fact(place: int, text: str) -> str:
    """Write a what-if of these properties as a fact; its id is its place among the others."""
    return f'{{"id":"p{place}","sid":"0",{text}"{UNIT}":1}}'


class Writer:
    """Writes facts as JSON: one per scenario group and one per option, only what rules read."""

    def __init__(self, compiled: CompiledRules, names: Names, tests: Sequence[Test]) -> None:
        texts = fact_texts(compiled, names, tests)
        read = {fact: text for fact, text in texts.items() if fact not in compiled.levels}
        self.texts = texts
        self._normal = compiled.normal
        ours = sorted((group_of(f, ()), f) for f in read if not of_option(f))
        self._scenario = {fact: read[fact] for _, fact in ours}
        self._groups = [
            [place for place, (other, _) in enumerate(ours) if other == group]
            for group in sorted({group for group, _ in ours})
        ]
        joins = [test for test in tests if test.other is not None]
        self._joins = [join for join in joins if self._is_plain(join)]
        exact = {f for join in joins if not self._is_plain(join) for f in (join.fact, join.other)}
        sketches = fact_texts(compiled, names, [test for test in tests if test.other is None])
        compared = {fact for join in self._joins for fact in (join.fact, join.other)}
        self._sketches = {fact: sketches.get(fact) for fact in compared - exact if fact}
        self._whatif = _Properties({f: text for f, text in read.items() if of_option(f)})

    def _is_plain(self, join: Test) -> bool:
        """Whether it compares two numbers of the scenario."""
        return join.verb in ORDERING and {join.fact, join.other} <= self._scenario.keys()

    def scenario(self, facts: Mapping[str, FactValue]) -> tuple[tuple[str, ...], Hashable]:
        """Write every group, also one of which nothing is known.

        Returns:
            The groups, and a key that they share with all that no rule can tell from them: of
            numbers that are compared with each other it has how they compare.
        """
        pieces = [_piece(text, facts.get(name)) for name, text in self._scenario.items()]
        groups = [
            f'{{"id":"g{index}","sid":"0",{"".join([pieces[at] for at in places])}"{UNIT}":1}}'
            for index, places in enumerate(self._groups)
        ]
        if self._sketches:
            pieces = [
                *map(self._told_apart, self._scenario, pieces, map(facts.get, self._scenario))
            ]
        return (*groups,), (*pieces, *[self._compared(join, facts) for join in self._joins])

    def _told_apart(self, name: str, piece: str, value: FactValue | None) -> str:
        """Give what rules tell apart of a fact: of a number compared with others its own tests."""
        if name not in self._sketches:
            return piece
        sketch = self._sketches[name]
        return _piece(sketch, value) if sketch else ""

    def _compared(self, join: Test, facts: Mapping[str, FactValue]) -> bool | None:
        one, two = facts.get(join.fact), facts.get(join.other or "")
        if one is None or two is None:
            return None
        return ORDERING[join.verb](
            self._normal(join.fact, one), self._normal(join.other or "", two)
        )

    def options(self, options: Sequence[OptionFacts]) -> Iterator[str]:
        """Write the properties of every what-if; see ``option_fact``."""
        return (_PRESENT + self._whatif.text(option.values) for option in options)


def _piece(text: FactText, value: FactValue | None) -> str:
    return text.pieces[value] if value.__class__ in text.classes else text.text(value)


class _Properties:
    """Writes certain facts of a what-if."""

    def __init__(self, texts: Mapping[str, FactText]) -> None:
        self._names = (*texts,)
        self._texts = (*texts.values(),)
        self._pieces = [text.pieces for text in self._texts]
        self._classes = [text.classes for text in self._texts]
        self._as_expected: set[tuple[type, ...]] = set()
        """Classes of all values of an option, where each may be looked up."""

    def text(self, facts: Mapping[str, FactValue]) -> str:
        values = [*map(facts.get, self._names)]
        if self._looked_up(values):
            return "".join(map(getitem, self._pieces, values))
        return "".join(map(FactText.text, self._texts, values))

    def _looked_up(self, values: Sequence[FactValue | None]) -> bool:
        """Whether every value is of a class by which the fact's pieces are kept."""
        classes = (*map(type, values),)
        if classes in self._as_expected:
            return True
        expected = all(map(contains, self._classes, classes))
        if expected:
            self._as_expected.add(classes)
        return expected
