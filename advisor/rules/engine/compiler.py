"""Rules -> the form both engines run: tests by fact group, fact kinds, dependency levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from advisor.errors import EngineError, RuleFileError, Source, raise_problems
from advisor.knowledge.fact_type import FactValue
from advisor.rules.conditions import Kind, Test, Verb, exact_float, kind_of, of_option
from advisor.rules.engine.checks import infer_kinds, repeated_ids, rule_problems
from advisor.rules.language.model import Rule, RuleSet

OPTION = "option"
MAX_GROUPS = 8
MAX_TESTS = 20

_MIRRORED: Mapping[Verb, Verb] = {
    "above": "below",
    "below": "above",
    "at least": "at most",
    "at most": "at least",
    "is": "is",
    "is not": "is not",
}


class Pattern(Struct, frozen=True):
    """Tests on the facts of one group.

    ``joins`` compare a fact of this group with one of this or of an earlier pattern's group.
    """

    group: str
    literals: tuple[Test, ...]
    joins: tuple[Test, ...] = ()


class Branch(Struct, frozen=True):
    """Patterns that must all hold; the option group comes last. Empty: holds always."""

    patterns: tuple[Pattern, ...]


class CompiledRule(Struct, frozen=True):
    """A rule holds where any branch does; ``level`` exceeds that of every fact it reads."""

    id: str
    branches: tuple[Branch, ...]
    conclusions: tuple[tuple[str, FactValue], ...]
    per_option: bool
    level: int
    source: Source | None = None

    @property
    def tests(self) -> Iterator[Test]:
        """Every test, as often as it stands in a branch."""
        for pattern in (pattern for branch in self.branches for pattern in branch.patterns):
            yield from pattern.literals
            yield from pattern.joins


class CompiledRules(Struct, frozen=True):
    """Everything an engine needs to know; ``rules`` by level, then id."""

    rules: tuple[CompiledRule, ...]
    kinds: Mapping[str, Kind]
    """Every fact that a rule reads or concludes; engines look at no other."""
    levels: Mapping[str, int]
    """Concluded facts, with the level of the last rule that may conclude them."""
    scenario_facts: frozenset[str]
    """Facts that a scenario may give."""
    option_facts: frozenset[str]
    """Facts that an option may give."""

    def check_names(self, facts: Mapping[str, FactValue]) -> None:
        """Refuse facts that only rules may conclude.

        Raises:
            EngineError: One of them is among ``facts``.
        """
        if self.levels.keys().isdisjoint(facts):
            return
        names = ", ".join(sorted(self.levels.keys() & facts.keys()))
        raise EngineError(f"facts that rules conclude were given as input: {names}")

    def normal(self, fact: str, value: object) -> FactValue:
        """Bring a value to the one form both engines compare: numbers are floats, never -0.0.

        Raises:
            EngineError: Not of the fact's kind, not finite, or beyond what a float holds exactly.
        """
        kind = self.kinds[fact]
        found = kind_of(value)
        if found is None or kind not in {found, "any"}:
            raise EngineError(f"fact '{fact}' is a {kind} and cannot be {value!r}")
        if isinstance(value, str | bool):
            return value
        assert isinstance(value, int | float)
        return exact_float(fact, value)


def compile_rules(ruleset: RuleSet) -> CompiledRules:
    """Check a rule set as a whole and bring it into the form the engines run.

    Raises:
        RuleFileError: Rules that cannot be run soundly; all problems are raised together.
    """
    problems: list[RuleFileError] = list(repeated_ids(ruleset.rules))
    concluded = {fact for rule in ruleset.rules for fact in rule.conclude}
    flat: dict[str, tuple[tuple[Test, ...], ...]] = {}
    for rule in ruleset.rules:
        try:
            flat[rule.id] = rule.branches
        except RuleFileError as error:
            problems.append(error)
            continue
        problems += rule_problems(rule, flat[rule.id], concluded)
    raise_problems(problems)
    kinds = infer_kinds(ruleset.rules, flat)
    levels = _levels(ruleset.rules, flat, concluded)
    compiled = [_compiled(rule, flat[rule.id], levels) for rule in ruleset.rules]
    raise_problems(list(_oversized(compiled)))
    return CompiledRules(
        rules=tuple(sorted(compiled, key=lambda rule: (rule.level, rule.id))),
        kinds=kinds,
        levels=levels,
        scenario_facts=frozenset(f for f in kinds if not of_option(f) and f not in levels),
        option_facts=frozenset(filter(of_option, kinds)),
    )


def group_of(fact: str, concluded: Iterable[str]) -> str:
    """Name the group a fact is asserted with; a concluded fact is a group of its own."""
    return fact if fact in concluded else fact.partition(".")[0]


def _levels(
    rules: Iterable[Rule],
    flat: Mapping[str, tuple[tuple[Test, ...], ...]],
    concluded: set[str],
) -> Mapping[str, int]:
    """Order the concluded facts so that each comes after those it is concluded from."""
    makers: dict[str, list[Rule]] = defaultdict(list)
    for rule in sorted(rules, key=lambda rule: rule.id):
        for fact in rule.conclude:
            makers[fact].append(rule)
    levels: dict[str, int] = {}

    def visit(fact: str, path: tuple[str, ...]) -> int:
        if fact in path:
            circle = " <- ".join((*path[path.index(fact) :], fact))
            raise RuleFileError(
                f"rules conclude facts in a circle: {circle}.",
                source=makers[fact][0].source,
                hint="Let one of them read other facts.",
                lint="conclusion-cycle",
            )
        if fact not in levels:
            needed = {name for rule in makers[fact] for name in _read(flat[rule.id])} & concluded
            below = [visit(name, (*path, fact)) for name in sorted(needed)]
            levels[fact] = 1 + max(below, default=0)
        return levels[fact]

    for fact in sorted(concluded):
        visit(fact, ())
    return levels


def _read(flat: tuple[tuple[Test, ...], ...]) -> set[str]:
    tests = [test for branch in flat for test in branch]
    return {test.fact for test in tests} | {test.other for test in tests if test.other}


def _compiled(
    rule: Rule, flat: tuple[tuple[Test, ...], ...], levels: Mapping[str, int]
) -> CompiledRule:
    conclusions = tuple(
        (fact, value if isinstance(value, str | bool) else exact_float(fact, value))
        for fact, value in sorted(rule.conclude.items())
    )
    read = [levels.get(fact, 0) for fact in _read(flat)]
    return CompiledRule(
        id=rule.id,
        branches=tuple(_branch(tests, levels, per_option=rule.per_option) for tests in flat),
        conclusions=conclusions,
        per_option=rule.per_option,
        level=1 + max(read, default=0),
        source=rule.source,
    )


def _branch(tests: tuple[Test, ...], levels: Mapping[str, int], *, per_option: bool) -> Branch:
    literals: dict[str, list[Test]] = defaultdict(list)
    joins: dict[str, list[Test]] = defaultdict(list)
    if per_option:
        literals[OPTION] = []
    for test in tests:
        if test.other is None:
            literals[group_of(test.fact, levels)].append(test)
        else:
            later = _oriented(test, levels)
            assert later.other is not None
            joins[group_of(later.fact, levels)].append(later)
            literals.setdefault(group_of(later.other, levels), [])
    groups = sorted(literals.keys() | joins.keys(), key=_place)
    return Branch(tuple(Pattern(g, tuple(literals[g]), tuple(joins[g])) for g in groups))


def _place(group: str) -> tuple[bool, str]:
    return (group == OPTION, group)


def _oriented(test: Test, levels: Mapping[str, int]) -> Test:
    """Turn a comparison so that ``other`` belongs to the same or an earlier pattern."""
    assert test.other is not None
    if _place(group_of(test.fact, levels)) >= _place(group_of(test.other, levels)):
        return test
    return Test(fact=test.other, verb=_MIRRORED[test.verb], other=test.fact, source=test.source)


def _oversized(rules: Iterable[CompiledRule]) -> Iterator[RuleFileError]:
    for rule in rules:
        for branch in rule.branches:
            if len(branch.patterns) > MAX_GROUPS:
                groups = ", ".join(pattern.group for pattern in branch.patterns)
                message = (
                    f"rule '{rule.id}' reads more than {MAX_GROUPS} groups of facts: {groups}."
                )
                hint = "Split it with 'conclude'."
                yield RuleFileError(message, source=rule.source, hint=hint, lint="engine-limits")
                break
            if any(len(p.literals) + len(p.joins) > MAX_TESTS for p in branch.patterns):
                message = f"rule '{rule.id}' puts more than {MAX_TESTS} tests on one group."
                hint = "Split it with 'conclude'."
                yield RuleFileError(message, source=rule.source, hint=hint, lint="engine-limits")
                break
