"""Why a rule stayed silent: the conditions that failed, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.advice import Advice
from advisor.engine.base import OptionFacts
from advisor.engine.trace import RuleTrace, TestTrace, evaluate
from advisor.facts import option_facts
from advisor.options import Base
from advisor.pipeline import Advisor
from advisor.rulefile.model import Rule
from advisor.vocabulary import Vocabulary, show


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The nearest a rule came to firing."""

    rule: str
    option: str
    """Key of the option that came nearest, empty for scenario rules."""
    trace: RuleTrace


def nearest_miss(advisor: Advisor, advice: Advice, rule: Rule) -> WhyNot:
    """Evaluate a silent rule: for option rules, on the option with the fewest failing tests."""
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


def _misses(trace: RuleTrace) -> int:
    return sum(not result.holds for result in trace.nearest)


def why_not_lines(advisor: Advisor, advice: Advice, rule: Rule) -> tuple[str, ...]:
    """Say which conditions failed and by how much, one line each."""
    miss = nearest_miss(advisor, advice, rule)
    lines = [f"nearest option: {miss.option}"] if miss.option else []
    lines += [_line(advisor.vocabulary, test) for test in miss.trace.nearest if not test.holds]
    return tuple(lines)


def _line(vocabulary: Vocabulary, failed: TestTrace) -> str:
    fact, text = failed.test.fact, failed.test.text
    if failed.actual is None:
        return f"{fact} is unknown here (needed: {text})"
    kind = vocabulary.fact(fact)
    short = f", short by {show(kind, failed.distance)}" if failed.distance else ""
    return f"{fact} is {show(kind, failed.actual)} (needed: {text}{short})"
