"""Rules -> the form both engines run: tests by fact group, fact kinds, dependency levels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from advisor.errors import EngineError, RuleFileError, Source, raise_problems
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import (
    KNOWING,
    ORDERING,
    Branch,
    Kind,
    Test,
    Verb,
    exact_float,
    kind_of,
    of_option,
)
from advisor.rules.language.model import Rule, RuleSet

MAX_TEXT_BYTES = 1000
SMALLEST_LITERAL = 1e-4
LARGEST_LITERAL = 1e16


def repeated_ids(rules: Iterable[Rule]) -> Iterator[RuleFileError]:
    """Find rules that share an id."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in seen:
            first = seen[rule.id].source
            where = f" (first at {first})" if first else ""
            yield RuleFileError(
                f"rule '{rule.id}' is defined twice{where}.",
                source=rule.source,
                hint="Give one of them another id.",
                lint="duplicate-rule",
            )
        seen.setdefault(rule.id, rule)


def rule_problems(
    rule: Rule, flat: tuple[Branch, ...], concluded: Collection[str]
) -> Iterator[RuleFileError]:
    """Find conditions and conclusions that no engine can run soundly.

    ``concluded`` is every fact that any rule concludes.
    """
    for fact, value in rule.conclude.items():
        if of_option(fact):
            message = f"rule '{rule.id}' concludes '{fact}', which belongs to a single option."
            yield RuleFileError(message, source=rule.source, hint="Conclude a scenario fact.")
        yield from _value_problems(f"rule '{rule.id}', '{fact}'", value, rule.source)
    seen: set[int] = set()
    for test in (test for branch in flat for test in branch):
        if id(test) not in seen:
            seen.add(id(test))
            yield from _test_problems(rule, test, concluded)


def _test_problems(rule: Rule, test: Test, concluded: Collection[str]) -> Iterator[RuleFileError]:
    source = test.source or rule.source
    where = f"rule '{rule.id}', '{test.fact}'"
    if test.verb == "is unknown" and test.fact in concluded:
        yield RuleFileError(
            f"{where}: rules conclude this fact, so nothing may depend on its absence.",
            source=source,
            hint="Test the facts it is concluded from.",
        )
    if test.verb in KNOWING or test.other is not None:
        return
    values = test.value if isinstance(test.value, tuple) else (test.value,)
    for value in values:
        yield from _value_problems(where, value, source)
    if test.verb in ORDERING and kind_of(test.value) != "number":
        message = f"{where}: '{test.verb}' compares numbers, not {test.value!r}."
        yield RuleFileError(message, source=source, hint="Write 'is' or 'one of'.")


def _value_problems(where: str, value: object, source: Source | None) -> Iterator[RuleFileError]:
    if kind_of(value) is None:
        yield RuleFileError(f"{where} has no value to compare with.", source=source)
    elif isinstance(value, str):
        if len(value.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
            message = f"{where}: the text is longer than {MAX_TEXT_BYTES} bytes."
            yield RuleFileError(message, source=source, hint="Write the name alone.")
    elif not isinstance(value, bool):
        yield from _number_problems(where, value, source)


def _number_problems(where: str, value: object, source: Source | None) -> Iterator[RuleFileError]:
    assert isinstance(value, int | float)
    size = abs(value)
    if size != 0 and not SMALLEST_LITERAL <= size < LARGEST_LITERAL:
        message = (
            f"{where}: {value!r} (in base units) is outside "
            f"{SMALLEST_LITERAL:g} to {LARGEST_LITERAL:g}."
        )
        yield RuleFileError(message, source=source, hint="Check the unit.")
    elif float(value) != value:
        message = f"{where}: {value!r} has more digits than can be compared exactly."
        yield RuleFileError(message, source=source, hint="Write fewer digits.")


def infer_kinds(
    rules: Iterable[Rule], flat: Mapping[str, tuple[Branch, ...]]
) -> Mapping[str, Kind]:
    """Find out from the rules what every fact they name is.

    Raises:
        RuleFileError: Rules take one fact for different kinds.
    """
    seen: dict[str, dict[Kind, Rule]] = defaultdict(dict)
    equal: set[tuple[str, str]] = set()
    for rule in rules:
        for fact, value in rule.conclude.items():
            _note_kind(seen, fact, kind_of(value), rule)
        for test in (test for branch in flat[rule.id] for test in branch):
            seen.setdefault(test.fact, {})
            if test.other is None:
                listed = test.value if isinstance(test.value, tuple) else (test.value,)
                _note_kind(seen, test.fact, kind_of(next(iter(listed), "")), rule)
                continue
            seen.setdefault(test.other, {})
            if test.verb in ORDERING:
                _note_kind(seen, test.fact, "number", rule)
                _note_kind(seen, test.other, "number", rule)
            else:
                equal |= {(test.fact, test.other), (test.other, test.fact)}
    _spread(seen, equal)
    raise_problems(list(_kind_problems(seen)))
    return {fact: next(iter(seen[fact]), "any") for fact in sorted(seen)}


def _note_kind(seen: dict[str, dict[Kind, Rule]], fact: str, kind: Kind | None, rule: Rule) -> None:
    if kind is not None:
        seen[fact].setdefault(kind, rule)


def _spread(seen: dict[str, dict[Kind, Rule]], equal: set[tuple[str, str]]) -> None:
    changed = True
    while changed:
        changed = False
        for left, right in sorted(equal):
            for kind, rule in seen[left].items():
                if kind not in seen[right]:
                    seen[right][kind] = rule
                    changed = True


def _kind_problems(seen: Mapping[str, Mapping[Kind, Rule]]) -> Iterator[RuleFileError]:
    for fact, users in sorted(seen.items()):
        if len(users) > 1:
            (one, first), (two, second) = sorted(users.items())[:2]
            yield RuleFileError(
                f"'{fact}' is a {one} in rule '{first.id}' and a {two} in rule '{second.id}'.",
                source=second.source,
                hint="A fact has one kind.",
            )


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


class CompiledBranch(Struct, frozen=True):
    """Patterns that must all hold; the option group comes last. Empty: holds always."""

    patterns: tuple[Pattern, ...]


class CompiledRule(Struct, frozen=True):
    """A rule holds where any branch does; ``level`` exceeds that of every fact it reads."""

    id: str
    branches: tuple[CompiledBranch, ...]
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


def _branch(
    tests: tuple[Test, ...], levels: Mapping[str, int], *, per_option: bool
) -> CompiledBranch:
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
    return CompiledBranch(tuple(Pattern(g, tuple(literals[g]), tuple(joins[g])) for g in groups))


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
