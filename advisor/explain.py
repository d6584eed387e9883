"""Why a rule fired: its conditions with the values they met."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.advice import Because, FactValue
from advisor.engine.trace import evaluate
from advisor.rulefile.model import Rule
from advisor.vocabulary import Vocabulary, show


def because(
    rule: Rule,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue] | None,
    vocabulary: Vocabulary,
) -> tuple[Because, ...]:
    """List the conditions of the branch that held, in the order of the rule."""
    trace = evaluate(rule, facts, option)
    return tuple(
        Because(
            result.test.fact,
            result.actual,
            result.test.text or result.test.verb,
            "unknown"
            if result.actual is None
            else show(vocabulary.fact(result.test.fact), result.actual),
        )
        for result in trace.nearest
    )
