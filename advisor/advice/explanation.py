"""Why a rule fired: its conditions with the values they met."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from advisor.advice.document import Because
from advisor.estimate.margin import certainty_of
from advisor.estimate.memory import partly_guessed
from advisor.knowledge.fact_type import FactValue
from advisor.knowledge.vocabulary import Vocabulary, show, shown_in
from advisor.remedies.option import Option
from advisor.remedies.registry import is_uncertain
from advisor.rules.conditions import ORDERING, Test
from advisor.rules.engine.trace import what_held
from advisor.rules.language.model import Rule

_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")
SHORT = "short"
"""In a veto's text: how far the first number lies beyond its limit."""


def because(
    rule: Rule,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue] | None,
    vocabulary: Vocabulary,
) -> tuple[Because, ...]:
    """List the conditions of the branch that held, in the order of the rule."""
    return tuple(
        [
            Because(
                test.fact,
                actual,
                test.text or test.verb,
                shown_in(vocabulary.fact(test.fact).unit, actual),
            )
            for test, actual in what_held(rule, facts, option)
        ]
    )


def barred_because(
    rule: Rule,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue],
    vocabulary: Vocabulary,
) -> tuple[Because, ...]:
    """List the conditions of a veto, with how far each number lies beyond its limit."""
    return tuple(
        Because(
            test.fact,
            actual,
            test.text or test.verb,
            shown_in(vocabulary.fact(test.fact).unit, actual),
            _distance(test, actual, facts, option, vocabulary),
        )
        for test, actual in what_held(rule, facts, option)
    )


def _distance(
    test: Test,
    actual: FactValue | None,
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue],
    vocabulary: Vocabulary,
) -> str:
    if test.verb not in ORDERING or not isinstance(actual, int | float):
        return ""
    other = test.other
    limit = test.value if other is None else option.get(other, facts.get(other))
    if not isinstance(limit, int | float):
        return ""
    return show(vocabulary.fact(test.fact), round(abs(float(actual) - float(limit)), 6))


def reason(
    rule: Rule,
    conditions: Sequence[Because],
    facts: Mapping[str, FactValue],
    option: Mapping[str, FactValue],
    vocabulary: Vocabulary,
) -> str:
    """Fill a veto's text: ``{fact.name}`` is its value, ``{short}`` the first distance."""
    short = next((item.distance for item in conditions if item.distance), "")

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name == SHORT:
            return short
        known = option.get(name, facts.get(name))
        return "unknown" if known is None else show(vocabulary.fact(name), known)

    return _PLACEHOLDER.sub(value, rule.veto or "")


Confidence = Literal["high", "medium", "low"]


def confidence_of(option: Option) -> Confidence:
    """Grade an option.

    Low: drafts, whose gain hangs on what is written; a rough speed; a fit that the upper end of
    the memory range would undo. High: memory by exact formulas but for the runtime's own, and a
    speed from this card or none needed.
    """
    memory = option.memory
    if is_uncertain(option.action):
        return "low"
    if certainty_of(memory) not in {"sure", None}:
        return "low"
    if option.speed and option.speed.decode_tok_s.evidence == "extrapolated":
        return "low"
    near = option.speed is None or option.speed.decode_tok_s.evidence in {"measured", "near"}
    return "medium" if not near or partly_guessed(memory) else "high"
