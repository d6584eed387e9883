"""Why rules fired or stayed silent, in lines: of one every test, of all what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.advice import Advisor
from advisor.advice.conclusions import (
    Conclusions,
    RankedOption,
    ScoreTerm,
    switched_off_rule,
    user_rule,
)
from advisor.advice.facts import option_facts
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue, Vocabulary, show
from advisor.remedies.option import Base
from advisor.rules import Test, holds
from advisor.rules.language.model import Rule
from advisor.units import counted
from advisor.workbench.nearest import RuleTrace, SingleChange, TestTrace, evaluate
from advisor.workbench.scenario_file import request_line


class WhyNot(Struct, frozen=True):
    """The nearest a rule came to firing."""

    option: str
    """Key of the option that came nearest, empty for scenario rules."""
    trace: RuleTrace


def nearest_miss(advisor: Advisor, advice: Conclusions, rule: Rule) -> WhyNot:
    """Evaluate a silent rule: for option rules, on the option with the fewest failing tests.

    An option of the right action comes before any other.
    """
    if not rule.per_option:
        return WhyNot("", evaluate(rule, advice.facts, None))
    values = _option_values(advisor, advice, rule)
    tried = [WhyNot(key, evaluate(rule, advice.facts, facts)) for key, facts in values.items()]
    nowhere = WhyNot("", evaluate(rule, advice.facts, {}))
    return min(tried, key=lambda miss: _misses(miss.trace), default=nowhere)


def _misses(trace: RuleTrace) -> tuple[bool, int]:
    failed = [result.test.fact for result in trace.nearest if not result.holds]
    return (ACTION_FACT in failed, len(failed))


def why_not_lines(advisor: Advisor, advice: Conclusions, rule: Rule) -> tuple[str, ...]:
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


def why_lines(advisor: Advisor, advice: Conclusions, rule: Rule) -> tuple[str, ...]:
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
    advisor: Advisor, advice: Conclusions, rule: Rule
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


_MOST_OPTIONS = 5
_DEPTH = 3
"""So many conclusions are followed back."""
_TAKEN = {"context": "context_tokens", "batch": "batch"}
"""Input -> where the scenario holds the number that is taken when none is stated."""
_MARK = {True: "holds", False: "fails"}


def explanation(
    advisor: Advisor, advice: Conclusions, rule: Rule, changes: Sequence[SingleChange] | None
) -> str:
    """Explain one rule in one situation.

    ``changes`` are the single ones that make a silent rule fire; None: not looked for.
    """
    return "\n".join(_lines(advisor, advice, rule, changes)) + "\n"


def _lines(
    advisor: Advisor, advice: Conclusions, rule: Rule, changes: Sequence[SingleChange] | None
) -> Iterator[str]:
    place = f" ({rule.source})" if rule.source else ""
    yield f"{rule.id}{place}: {rule.why}"
    if rule.overlay:
        yield f"  {user_rule(rule)}"
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
    yield "It stays silent."
    yield from _missed(advisor, advice, rule)
    if changes is not None:
        yield ""
        yield from _changes(advice, changes)


def _missed(advisor: Advisor, advice: Conclusions, rule: Rule) -> Iterator[str]:
    """The nearest it came: on the what-if that misses least, if its action was tried at all."""
    miss = nearest_miss(advisor, advice, rule)
    tests = miss.trace.nearest
    other = next((t.test for t in tests if not t.holds and t.test.fact == ACTION_FACT), None)
    if rule.per_option and (other is not None or not miss.option):
        action = f" whose action {other.text}" if other is not None else ""
        yield f"No what-if was tried{action}. Its other conditions:"
        tests = tuple(t for t in tests if not t.test.fact.startswith("option."))
    elif rule.per_option:
        yield f"Nearest what-if: {miss.option}"
    for test in tests:
        yield f"  {_MARK[test.holds]}  {condition_line(advisor.vocabulary, test)}"
        if not test.holds:
            yield from _cause(advisor, advice, test.test, _DEPTH)


def _cause(advisor: Advisor, advice: Conclusions, test: Test, depth: int) -> Iterator[str]:
    """For a concluded fact: the rule that would have concluded it, and what that one misses."""
    facts = advice.facts
    makers = [
        (evaluate(rule, facts, None), rule)
        for rule in advisor.ruleset.rules
        if test.fact in rule.conclude
        and holds(test, {**facts, test.fact: rule.conclude[test.fact]})
    ]
    if not makers or not depth:
        return
    trace, maker = min(makers, key=lambda made: sum(not t.holds for t in made[0].nearest))
    lead = "  " * (_DEPTH - depth) + "         "
    value = show(advisor.vocabulary.fact(test.fact), maker.conclude[test.fact])
    for failed in (t for t in trace.nearest if not t.holds):
        line = condition_line(advisor.vocabulary, failed)
        yield f"{lead}{value} by {maker.id}, but {line}"
        yield from _cause(advisor, advice, failed.test, depth - 1)


def _fired(advisor: Advisor, advice: Conclusions, rule: Rule, keys: Sequence[str]) -> Iterator[str]:
    if not rule.per_option:
        concluded = ", ".join(f"{fact} is {value}" for fact, value in rule.conclude.items())
        yield f"It fires{': ' + concluded if concluded else ''}."
        yield from _conditions(advisor, evaluate(rule, advice.facts, None))
        return
    yield f"It fires for {counted(len(keys), 'what-if')}."
    values = _option_values(advisor, advice, rule)
    said = next((r for r in advice.recommendations if r.rule == rule.id), None)
    ordered = sorted(keys, key=lambda key: (said is None or key != said.option.key, key))
    for key in ordered[:_MOST_OPTIONS]:
        yield f"  {key}"
        yield from (
            f"  {line}" for line in _conditions(advisor, evaluate(rule, advice.facts, values[key]))
        )
    if len(keys) > _MOST_OPTIONS:
        yield f"  and {len(keys) - _MOST_OPTIONS} more"
    yield from fate(advice, rule)


def fate(advice: Conclusions, rule: Rule) -> Iterator[str]:
    """Say what became of a recommendation: said, superseded, beaten or barred."""
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


def _changes(advice: Conclusions, changes: Sequence[SingleChange]) -> Iterator[str]:
    if not changes:
        yield "No single change of an input that was tried makes it fire."
        return
    yield f"The smallest single change that makes it fire: {_change(advice, changes[0])}"
    if len(changes) > 1:
        yield "Others:"
        yield from (f"  {_change(advice, change)}" for change in changes[1:])


def _change(advice: Conclusions, change: SingleChange) -> str:
    if change.now is not None:
        now = f" instead of {request_line({change.key: change.now})}"
    elif taken := _TAKEN.get(change.key):
        now = f" instead of {getattr(advice.scenario, taken)}, which was taken"
    else:
        now = ""
    return f"{request_line({change.key: change.value})}{now}"


def traced(advisor: Advisor, advice: Conclusions) -> str:
    """Show what fired, how it scored, what was superseded or barred, and what stayed silent."""
    none = ["  nothing"]
    parts = [
        "Why: what fired",
        *_fired_lines(advisor, advice),
        "",
        "Superseded",
        *([f"  {a} ({key}): {by} says it already" for a, key, by in advice.superseded] or none),
        "",
        "Barred",
        *(list(_barred(advice)) or none),
        "",
        *_off(advice),
        "What stayed silent, and the conditions that failed",
        *_silent(advisor, advice),
    ]
    return "\n".join(parts)


def _off(advice: Conclusions) -> Iterator[str]:
    """The rules that the user disabled; nothing without any."""
    if advice.provenance.switched_off:
        yield "Switched off by your rules"
        for item in advice.provenance.switched_off:
            yield f"  {item.name} ({item.at}): {item.reason}"
        yield ""


def _barred(advice: Conclusions) -> Iterator[str]:
    for item in advice.not_recommended:
        yield f"  {item.option.key}: {item.rule}: {item.reason}"
        for why in item.why():
            beyond = f", {why.distance} short" if why.distance and "below" in why.test else ""
            beyond = beyond or (f", {why.distance} beyond" if why.distance else "")
            yield f"      because {why.fact} is {why.shown} ({why.test}{beyond})"


def _fired_lines(advisor: Advisor, advice: Conclusions) -> Iterator[str]:
    by_rule: dict[str, list[str]] = {}
    for rule_id, key in advice.fired:
        by_rule.setdefault(rule_id, []).append(key)
    said = {r.rule: r for r in advice.recommendations}
    for rule in advisor.ruleset.rules:
        if rule.id in by_rule:
            keys = [key for key in by_rule[rule.id] if key]
            count = f" for {len(keys)} option{'s' if len(keys) != 1 else ''}" if keys else ""
            concluded = ", ".join(f"{fact} = {value}" for fact, value in rule.conclude.items())
            whose = _whose(rule)
            yield f"  {rule.id}{count}{': ' + concluded if concluded else ''}{whose}"
            if rule.id in said:
                yield from _score(advisor.vocabulary, said[rule.id])


def _whose(rule: Rule) -> str:
    """Say that a rule is the user's; nothing of a built-in one."""
    if rule.overlay is None:
        return ""
    return f" ({user_rule(rule)})"


def _score(vocabulary: Vocabulary, recommendation: RankedOption) -> Iterator[str]:
    terms = " ".join(
        f"{'-' if t.points < 0 else '+'} {abs(t.points):g} ({_term(vocabulary, t)})"
        for t in recommendation.score_terms
    ).removeprefix("+ ")
    yield f"      said as no. {recommendation.rank}: {recommendation.option.key}"
    yield f"      score {recommendation.score:g} = {terms}"
    for item in recommendation.because:
        yield f"      because {item.fact} is {item.shown} ({item.test})"


def _term(vocabulary: Vocabulary, term: ScoreTerm) -> str:
    if not term.fact or term.value is None:
        return term.text
    return f"{term.fact} {show(vocabulary.fact(term.fact), term.value)}, {term.text}"


def _silent(advisor: Advisor, advice: Conclusions) -> Iterator[str]:
    fired = {rule for rule, _ in advice.fired}

    for rule in advisor.ruleset.rules:
        if rule.id not in fired:
            yield f"  {rule.id}{_whose(rule)}"
            yield from (f"      {line}" for line in why_not_lines(advisor, advice, rule))
