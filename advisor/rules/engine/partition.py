"""Rules on what-ifs, apart by the kind of what-if they can hold of.

Most rules on what-ifs begin with "is quantize" or the like. A what-if of another kind need not be
shown to them, and what such rules read of the scenario need not be told apart for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor.knowledge.fact_type import FactValue
from advisor.rules.conditions import Test, answer, of_option
from advisor.rules.engine.network import EngineRule

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
