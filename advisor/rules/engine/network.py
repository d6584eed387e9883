"""Compiled rules -> rule texts for the C engine, kept inside the limits it does not check.

Only constructs that were found sound are written: patterns with a flat ``$and`` of presence and
number tests, comparisons within one fact guarded by presence, joins on facts whose presence an
earlier pattern guarantees, and after every join a comparison that always holds, because the
engine reads past the end of a list of joins whose last one fails.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from advisor.errors import RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import ORDERING, Test, Verb, answer, of_option
from advisor.rules.engine.compiler import (
    CompiledBranch,
    CompiledRule,
    CompiledRules,
    Pattern,
    group_of,
)
from advisor.rules.engine.properties import (
    Names,
    equality_name,
    is_number_test,
    number_name,
    number_text,
    question_name,
)

MOST_PENDING = 60
"""Nodes one fact may hold open at once; the engine's table has 64 places."""
MOST_CHILDREN = 400
"""Distinct tests below one node; its table has 512 places and is never allowed to fill."""
MOST_USERS = 240
"""Patterns that end in the same test; the list has 256 places and no bounds check."""
MOST_RULES = 1000

WARM = "w"
PRESENT_OPTION = "o"
UNIT = "u"
"""A property that is 1 in every fact, for the comparison that ends a list of joins."""

_OPERATORS: Mapping[Verb, str] = {
    "above": "$gt",
    "at least": "$gte",
    "below": "$lt",
    "at most": "$lte",
    "is": "$eq",
    "is not": "$neq",
}
_SELECTIVITY: Mapping[Verb, int] = {
    "is": 0,
    "one of": 1,
    "is unknown": 2,
    "is not": 3,
    "none of": 3,
    "is known": 4,
}


class Condition(Struct, frozen=True):
    """One condition as the engine reads it."""

    text: str
    test: Test | None = None
    """The literal test behind it; None: counted as holding always when limits are checked."""
    shared: bool = True
    """Whether equal texts below one node become one node; the engine never merges comparisons."""


class EngineRule(Struct, frozen=True):
    """One branch of a rule: a pattern per fact group, each a path of conditions."""

    rule: CompiledRule
    patterns: tuple[tuple[str, tuple[Condition, ...]], ...]
    """(alias, conditions)."""

    @property
    def text(self) -> str:
        """The rule as JSON."""
        made = (f'{{"{alias}":{_conjunction(path)}}}' for alias, path in self.patterns)
        return f'{{"all":[{",".join(made)}]}}'


class _Node(Struct):
    children: dict[str, _Node] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    """The literal tests of the children."""
    certain: int = 0
    """Children counted as holding always."""
    users: int = 0


def engine_rules(compiled: CompiledRules, names: Names) -> tuple[EngineRule, ...]:
    """Translate every branch; rules stay in order of dependency."""
    pairs = [(rule, branch) for rule in compiled.rules for branch in rule.branches]
    uses = Counter(
        question_name(names, test)
        for _, branch in pairs
        for pattern in branch.patterns
        for test in pattern.literals
        if not is_number_test(test)
    )
    return tuple(_engine_rule(rule, branch, compiled, names, uses) for rule, branch in pairs)


def chunked(rules: Sequence[EngineRule]) -> tuple[tuple[EngineRule, ...], ...]:
    """Split rules over as few rule sets as the engine's limits need, in order of dependency.

    Raises:
        RuleFileError: One rule alone is beyond the limits.
    """
    if not rules:
        return ()
    if _within_limits(rules):
        return (tuple(rules),)
    if len(rules) == 1:
        rule = rules[0].rule
        message = f"rule '{rule.id}' has more conditions than the engine can hold."
        hint = "Split it with 'conclude'."
        raise RuleFileError(message, source=rule.source, hint=hint, lint="engine-limits")
    middle = len(rules) // 2
    return (*chunked(rules[:middle]), *chunked(rules[middle:]))


def ruleset_text(rules: Mapping[str, EngineRule]) -> str:
    """Write a rule set; ``w`` fires last in every run and shows that every fact was read."""
    made = [f'"{name}":{rule.text}' for name, rule in rules.items()]
    warm = f'"{WARM}":{{"all":[{{"m":{{"{WARM}":1}}}}],"pri":65535}}'
    return f"{{{','.join([*made, warm])}}}"


def _engine_rule(
    rule: CompiledRule,
    branch: CompiledBranch,
    compiled: CompiledRules,
    names: Names,
    uses: Counter[str],
) -> EngineRule:
    first = names.get("a", branch.patterns[0].group) if branch.patterns else ""
    guards: dict[str, dict[str, None]] = defaultdict(dict)
    for join in (join for pattern in branch.patterns for join in pattern.joins):
        assert join.other is not None
        group = group_of(join.other, compiled.levels)
        guards[group][_compared(names, join, join.other)] = None
    patterns = []
    for pattern in branch.patterns:
        present = [_present(name) for name in guards[pattern.group]]
        path = [*_literals(pattern, names, uses), *present]
        path += _comparisons(pattern, compiled, names, first)
        always = WARM if not pattern.group else PRESENT_OPTION
        patterns.append((names.get("a", pattern.group), tuple(path) or (_present(always),)))
    return EngineRule(rule, tuple(patterns) or (("m", (_present(WARM),)),))


def _literals(pattern: Pattern, names: Names, uses: Counter[str]) -> list[Condition]:
    """Write literal tests, the most selective first, then the most used: paths share nodes."""
    questions = [test for test in pattern.literals if not is_number_test(test)]
    numbers = [test for test in pattern.literals if is_number_test(test)]
    questions.sort(
        key=lambda test: (
            _SELECTIVITY[test.verb],
            isinstance(test.value, bool),
            -uses[question_name(names, test)],
            question_name(names, test),
        )
    )
    found = [Condition(_exists(question_name(names, test)), test) for test in questions]
    return found + [_number_condition(names, test) for test in numbers]


def _number_condition(names: Names, test: Test) -> Condition:
    assert isinstance(test.value, int | float)
    limit = number_text(float(test.value) + 0.0)
    return Condition(_compare(test.verb, number_name(names, test.fact), limit), test)


def _comparisons(
    pattern: Pattern, compiled: CompiledRules, names: Names, first: str
) -> list[Condition]:
    """Write comparisons between facts: those within the group, then joins and their end."""
    inner: list[Condition] = []
    outer: list[Condition] = []
    for join in pattern.joins:
        assert join.other is not None
        left, right = _compared(names, join, join.fact), _compared(names, join, join.other)
        group = group_of(join.other, compiled.levels)
        here = group == pattern.group
        alias = "$m" if here else names.get("a", group)
        text = _compare(join.verb, left, f'{{"{alias}":"{right}"}}')
        (inner if here else outer).append(Condition(text, shared=False))
    if outer:
        outer.append(Condition(_compare("is", UNIT, f'{{"{first}":"{UNIT}"}}'), shared=False))
    return inner + outer


def _compared(names: Names, join: Test, fact: str) -> str:
    name = number_name if join.verb in ORDERING else equality_name
    return name(names, fact)


def _present(name: str) -> Condition:
    return Condition(_exists(name))


def _exists(name: str) -> str:
    return f'{{"$ex":{{"{name}":1}}}}'


def _compare(verb: Verb, name: str, right: str) -> str:
    sign = _OPERATORS[verb]
    return f'{{"{name}":{right}}}' if sign == "$eq" else f'{{"{sign}":{{"{name}":{right}}}}}'


def _conjunction(path: tuple[Condition, ...]) -> str:
    if len(path) == 1:
        return path[0].text
    return f'{{"$and":[{",".join(condition.text for condition in path)}]}}'


def _within_limits(rules: Sequence[EngineRule]) -> bool:
    if len(rules) > MOST_RULES:
        return False
    roots = _trees(rules).values()
    if sum(len(root.children) for root in roots) > MOST_CHILDREN:
        return False
    nodes = [node for root in roots for node in _nodes(root)]
    if any(len(n.children) > MOST_CHILDREN or n.users > MOST_USERS for n in nodes):
        return False
    return all(_pending(root) <= MOST_PENDING for root in roots)


def _trees(rules: Sequence[EngineRule]) -> Mapping[str, _Node]:
    """Build the engine's tree of conditions, one node where it shares one.

    The engine has a single root; here each fact group has one, as no fact has properties of two.
    """
    roots: dict[str, _Node] = defaultdict(_Node)
    for rule in rules:
        for alias, path in rule.patterns:
            node = roots[alias]
            for condition in path:
                key = condition.text if condition.shared else f"{len(node.children)}: unshared"
                if key not in node.children:
                    node.children[key] = _Node()
                    if condition.test is None:
                        node.certain += 1
                    else:
                        node.tests.append(condition.test)
                node = node.children[key]
            node.users += 1
    return roots


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children.values():
        yield from _nodes(child)


def _pending(node: _Node) -> int:
    """Bound how many nodes one fact can hold open while the engine works below ``node``."""
    by_fact: dict[str, list[Test]] = defaultdict(list)
    for test in node.tests:
        by_fact[test.fact].append(test)
    passing = node.certain + sum(map(_most_passing, by_fact.values()))
    deepest = max(map(_pending, node.children.values()), default=0)
    return max(passing, passing - 1 + deepest, 1)


def _most_passing(tests: Sequence[Test]) -> int:
    """Count how many tests of one fact a single value, or its absence, can pass at most."""
    unknown = sum(test.verb == "is unknown" for test in tests)
    says = [*map(answer, tests)]
    return max(unknown, *(sum(one(value) for one in says) for value in _candidates(tests)))


def _candidates(tests: Sequence[Test]) -> list[FactValue]:
    numbers = sorted({float(t.value) for t in tests if is_number_test(t)})  # type: ignore[arg-type]
    if numbers:
        between = ((a + b) / 2 for a, b in pairwise(numbers))
        return [*numbers, *between, numbers[0] - 1, numbers[-1] + 1]
    names: list[FactValue] = ["\0", True, False]
    for test in tests:
        names += test.value if isinstance(test.value, tuple) else [test.value or "\0"]
    return names


_NAMING = frozenset({"is", "one of"})


def telling_fact(rules: Sequence[EngineRule]) -> str | None:
    """The fact of what-ifs by whose name most rules choose; None where fewer than two do."""
    named = Counter(fact for rule in rules for fact in {test.fact for test in _naming(rule)})
    (fact, times), *_ = [*sorted(named.items(), key=lambda pair: (-pair[1], pair[0])), ("", 0)]
    return fact if times > 1 else None


def named_values(rules: Sequence[EngineRule], fact: str) -> frozenset[FactValue]:
    """Every value by which some rule asks for it; no rule tells the others apart."""
    asked = (test.value for rule in rules for test in _tests(rule) if test.fact == fact)
    each = (value if isinstance(value, tuple) else (value,) for value in asked)
    return frozenset(value for values in each for value in values if isinstance(value, str))


def rules_for(
    rules: Sequence[EngineRule], fact: str, value: FactValue | None
) -> Sequence[EngineRule]:
    """Those that may hold of what-ifs with this value of the fact; None: unknown."""
    return [
        rule
        for rule in rules
        if all(_passes(test, value) for test in _tests(rule) if test.fact == fact)
    ]


def _tests(rule: EngineRule) -> Iterator[Test]:
    for _, path in rule.patterns:
        yield from (condition.test for condition in path if condition.test)


def _naming(rule: EngineRule) -> Iterator[Test]:
    for test in _tests(rule):
        by_name = isinstance(test.value, str | tuple) and test.verb in _NAMING
        if by_name and of_option(test.fact):
            yield test


def _passes(test: Test, value: FactValue | None) -> bool:
    return test.verb == "is unknown" if value is None else answer(test)(value)
