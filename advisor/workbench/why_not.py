"""Why a rule stayed silent: the conditions that failed, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.advice.document import Advice
from advisor.advice.option_facts import option_facts
from advisor.advice.pipeline import Advisor
from advisor.knowledge.fact_type import FactValue
from advisor.knowledge.vocabulary import Vocabulary, show
from advisor.remedies import Base
from advisor.rules.engine.base import OptionFacts
from advisor.rules.engine.trace import RuleTrace, TestTrace, evaluate
from advisor.rules.language.effects import ACTION_FACT
from advisor.rules.language.model import Rule


class WhyNot(Struct, frozen=True):
    """The nearest a rule came to firing."""

    rule: str
    option: str
    """Key of the option that came nearest, empty for scenario rules."""
    trace: RuleTrace


def nearest_miss(advisor: Advisor, advice: Advice, rule: Rule) -> WhyNot:
    """Evaluate a silent rule: for option rules, on the option with the fewest failing tests.

    An option of the right action comes before any other.
    """
    if not rule.per_option:
        return WhyNot(rule.id, "", evaluate(rule, advice.facts, None))
    base = Base(advice.request, advice.scenario, advice.memory, advice.speed, advisor.knowledge)
    best: WhyNot | None = None
    tried = option_facts(base, advice.options)
    if rule.veto:
        tried += [OptionFacts(option.key, option.facts) for option in advisor.expected(advice)]
    for item in tried:
        trace = evaluate(rule, advice.facts, item.values)
        if best is None or _misses(trace) < _misses(best.trace):
            best = WhyNot(rule.id, item.key, trace)
    return best or WhyNot(rule.id, "", evaluate(rule, advice.facts, {}))


def _misses(trace: RuleTrace) -> tuple[bool, int]:
    failed = [result.test.fact for result in trace.nearest if not result.holds]
    return (ACTION_FACT in failed, len(failed))


def why_not_lines(advisor: Advisor, advice: Advice, rule: Rule) -> tuple[str, ...]:
    """Say which conditions failed and by how much, one line each."""
    miss = nearest_miss(advisor, advice, rule)
    failed = [test for test in miss.trace.nearest if not test.holds]
    other = next((test.test for test in failed if test.test.fact == ACTION_FACT), None)
    if other is not None and miss.option:
        lines = [f"no what-if was tried whose action {other.text}"]
        failed = [test for test in failed if not test.test.fact.startswith("option.")]
    else:
        lines = [f"nearest option: {miss.option}"] if miss.option else []
    lines += [condition_line(advisor.vocabulary, test) for test in failed]
    return tuple(lines)


def why_lines(advisor: Advisor, advice: Advice, rule: Rule) -> tuple[str, ...]:
    """Say which conditions let a rule fire, with the values they met, one line each."""
    keys = [key for rule_id, key in advice.fired if rule_id == rule.id and key]
    values = _option_values(advisor, advice, rule) if keys else {}
    shown = keys[0] if keys else ""
    trace = evaluate(rule, advice.facts, values.get(shown))
    lines = [f"it fires for the what-if {shown}"] if shown else []
    if len(keys) > 1:
        lines[0] += f" and {len(keys) - 1} more"
    lines += [condition_line(advisor.vocabulary, test) for test in trace.nearest]
    return tuple(lines)


def _option_values(
    advisor: Advisor, advice: Advice, rule: Rule
) -> dict[str, Mapping[str, FactValue]]:
    base = Base(advice.request, advice.scenario, advice.memory, advice.speed, advisor.knowledge)
    values = {item.key: item.values for item in option_facts(base, advice.options)}
    if rule.veto:
        values |= {option.key: option.facts for option in advisor.expected(advice)}
    return values


def condition_line(vocabulary: Vocabulary, test: TestTrace) -> str:
    """Write one condition with the value it met and, where it failed, by how much."""
    fact, text = test.test.fact, test.test.text
    if test.actual is None:
        if test.holds:
            return f"{fact} is unknown here"
        return f"{fact} is unknown here (needed: {text})"
    kind = vocabulary.fact(fact)
    if (
        test.test.other is not None
        and test.target is not None
        and not isinstance(test.target, tuple)
    ):
        text = f"{text}, {show(kind, test.target)}"
    short = f", short by {show(kind, test.distance)}" if test.distance else ""
    return f"{fact} is {show(kind, test.actual)} (needed: {text}{short})"
