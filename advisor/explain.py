"""Why a rule fired: its conditions with the values they met."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.advice import Because, FactValue
from advisor.engine.trace import what_held
from advisor.rulefile.model import Rule
from advisor.vocabulary import Vocabulary


def because(
    rule: Rule,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue] | None,
    vocabulary: Vocabulary,
) -> tuple[Because, ...]:
    """List the conditions of the branch that held, in the order of the rule."""
    return tuple(
        [
            Because(test.fact, actual, test.text or test.verb, vocabulary.fact(test.fact))
            for test, actual in what_held(rule, facts, option)
        ]
    )
