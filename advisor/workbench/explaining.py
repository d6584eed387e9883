"""Why a rule fired or stayed silent in one situation, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.advice import Advice
from advisor.engine.trace import RuleTrace, evaluate
from advisor.optionfacts import option_facts
from advisor.options import Base
from advisor.ownership import own_rule, switched_off_rule
from advisor.pipeline import Advisor
from advisor.rulefile.model import Rule
from advisor.workbench.nearest import SingleChange
from advisor.workbench.showing import count, request_line
from advisor.workbench.whynot import condition_line, nearest_miss

_MOST_OPTIONS = 5
_MARK = {True: "holds", False: "fails"}


def explanation(
    advisor: Advisor, advice: Advice, rule: Rule, changes: Sequence[SingleChange]
) -> str:
    """Explain one rule in one situation.

    Args:
        advisor: Who gave the advice.
        advice: About the situation.
        rule: The rule.
        changes: For a silent rule, the single changes that make it fire.
    """
    return "\n".join(_lines(advisor, advice, rule, changes)) + "\n"


def _lines(
    advisor: Advisor, advice: Advice, rule: Rule, changes: Sequence[SingleChange]
) -> Iterator[str]:
    place = f" ({rule.source})" if rule.source else ""
    yield f"{rule.id}{place}: {rule.why}"
    if rule.own:
        yield f"  {own_rule(rule)}"
    yield f"  {request_line(advice.request.stated())}"
    yield ""
    off = next((item for item in advisor.ruleset.disabled if item.rule.id == rule.id), None)
    if off is not None:
        yield f"It never fires, {switched_off_rule(off)}"
        yield "Without that, its conditions here would be:"
        yield from _conditions(advisor, nearest_miss(advisor, advice, rule).trace)
        return
    keys = [key for rule_id, key in advice.fired if rule_id == rule.id]
    if keys:
        yield from _fired(advisor, advice, rule, keys)
        return
    miss = nearest_miss(advisor, advice, rule)
    yield "It stays silent."
    if rule.per_option:
        yield f"Nearest what-if: {miss.option or 'none was tried'}"
    yield from _conditions(advisor, miss.trace)
    yield ""
    yield from _changes(changes)


def _fired(advisor: Advisor, advice: Advice, rule: Rule, keys: Sequence[str]) -> Iterator[str]:
    if not rule.per_option:
        concluded = ", ".join(f"{fact} is {value}" for fact, value in rule.conclude.items())
        yield f"It fires{': ' + concluded if concluded else ''}."
        yield from _conditions(advisor, evaluate(rule, advice.facts, None))
        return
    yield f"It fires for {count(len(keys), 'what-if')}."
    base = Base(advice.request, advice.scenario, advice.memory, advice.speed, advisor.knowledge)
    values = {item.key: item.values for item in option_facts(base, advice.options)}
    said = next((r for r in advice.recommendations if r.rule == rule.id), None)
    ordered = sorted(keys, key=lambda key: (said is None or key != said.option.key, key))
    for key in ordered[:_MOST_OPTIONS]:
        yield f"  {key}"
        yield from (
            f"  {line}" for line in _conditions(advisor, evaluate(rule, advice.facts, values[key]))
        )
    if len(keys) > _MOST_OPTIONS:
        yield f"  and {len(keys) - _MOST_OPTIONS} more"
    yield from _fate(advice, rule)


def _fate(advice: Advice, rule: Rule) -> Iterator[str]:
    """What became of it: said, superseded, beaten or barred."""
    for said in advice.recommendations:
        if said.rule == rule.id:
            terms = " ".join(f"{t.points:+g} ({t.text})" for t in said.score_terms)
            yield f"Said as number {said.rank}: {said.option.key}, score {said.score:g} = {terms}"
            return
    for own, key, by in advice.superseded:
        if own == rule.id:
            yield f"Not said: {by} supersedes it ({key})."
            return
    if rule.action:
        other = next((r for r in advice.recommendations if r.option.action == rule.action), None)
        barred = {n.option.key for n in advice.not_recommended}
        keys = {key for rule_id, key in advice.fired if rule_id == rule.id}
        if keys <= barred:
            yield "Not said: every one of them is barred."
        elif other:
            yield f"Not said: {other.rule} has a better {rule.action}, score {other.score:g}."


def _conditions(advisor: Advisor, trace: RuleTrace) -> Iterator[str]:
    for test in trace.nearest:
        yield f"  {_MARK[test.holds]}  {condition_line(advisor.vocabulary, test)}"


def _changes(changes: Sequence[SingleChange]) -> Iterator[str]:
    if not changes:
        yield "No single change of an input that was tried makes it fire."
        return
    yield f"The smallest single change that makes it fire: {_change(changes[0])}"
    if len(changes) > 1:
        yield "Others:"
        yield from (f"  {_change(change)}" for change in changes[1:])


def _change(change: SingleChange) -> str:
    now = f" instead of {request_line({change.key: change.now})}" if change.now is not None else ""
    return f"{request_line({change.key: change.value})}{now}"
