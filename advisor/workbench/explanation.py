"""Why a rule fired or stayed silent: every test, how far it is from holding, and that in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions, switched_off_rule, user_rule
from advisor.advice.facts import option_facts
from advisor.knowledge.vocabulary import ACTION_FACT, FactValue, Vocabulary, show
from advisor.remedies.option import Base
from advisor.rules import KNOWING, Facts, Test, are_numbers, holds
from advisor.rules.language.model import Rule
from advisor.units import counted
from advisor.workbench.cover_views import request_line
from advisor.workbench.nearest import SingleChange


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

    Args:
        advisor: Who gave the advice.
        advice: About the situation.
        rule: The rule.
        changes: For a silent rule, the single changes that make it fire; None: not looked for.
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


class TestTrace(Struct, frozen=True):
    """One test on the facts of one situation."""

    __test__ = False

    test: Test
    holds: bool
    actual: FactValue | None
    """The fact's value; None where it is unknown."""
    target: FactValue | tuple[str, ...] | None
    """What it was compared with: the literal, or the other fact's value (None: unknown)."""
    distance: float | None
    """How far a number is from holding, in base units: 0 when it holds, and when it lies on a
    limit that must be passed. None for anything but a comparison of known numbers."""


class RuleTrace(Struct, frozen=True):
    """A rule on the facts of one situation."""

    rule: str
    holds: bool
    branches: tuple[tuple[TestTrace, ...], ...]
    """Every branch in full; a rule holds when all tests of any one branch do."""
    nearest: tuple[TestTrace, ...]
    """The branch that holds or, when none does, the one that is nearest to holding."""


def evaluate(rule: Rule, facts: Facts, option: Facts | None = None) -> RuleTrace:
    """Try one rule outside any engine and keep every comparison.

    Args:
        rule: Any rule.
        facts: Scenario facts in base units, concluded ones included; unknown ones absent.
        option: The ``option.*`` facts of one what-if.
    """
    known = {**facts, **option} if option else facts
    traced = tuple(tuple(_trace(test, known) for test in tests) for tests in rule.branches)
    nearest = min(traced, key=_remoteness, default=())
    return RuleTrace(
        rule=rule.id,
        holds=any(all(test.holds for test in branch) for branch in traced),
        branches=traced,
        nearest=nearest,
    )


def _trace(test: Test, known: Facts) -> TestTrace:
    actual, held = known.get(test.fact), holds(test, known)
    if test.verb in KNOWING:
        return TestTrace(test, held, actual, None, None)
    target = known.get(test.other) if test.other is not None else test.value
    return TestTrace(test, held, actual, target, _distance(held, test, actual, target))


def _distance(held: bool, test: Test, actual: object, target: object) -> float | None:  # noqa: FBT001
    if not are_numbers(actual, target):
        return None
    assert isinstance(actual, int | float)
    assert isinstance(target, int | float)
    return 0.0 if held or test.verb == "is not" else abs(float(actual) - float(target))


def _remoteness(branch: tuple[TestTrace, ...]) -> tuple[int, float]:
    failed = [test for test in branch if not test.holds]
    return (len(failed), sum(map(_relative, failed)))


def _relative(test: TestTrace) -> float:
    """Give a failed test's distance as a share of the larger number, 1 where there is none."""
    if test.distance is None:
        return 1.0
    assert isinstance(test.actual, int | float)
    assert isinstance(test.target, int | float)
    return test.distance / (max(abs(test.actual), abs(test.target)) or 1.0)
