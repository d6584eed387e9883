"""Rules tried on a whole store fire exactly where the engines fire, and rank the same."""

from __future__ import annotations

import random

import pytest

from advisor.advice import Advisor
from advisor.errors import RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine import make_engine
from advisor.rules.engine.base import OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import available
from advisor.rules.language.model import Rule, RuleSet
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, evaluate_all, with_rule
from advisor.workbench.cover import standings
from advisor.workbench.fact_store import FactStore, Part, joined
from tests.engine.random_rules import rule_set, situation


def stored(situations: list[tuple[dict[str, FactValue], list[OptionFacts]]]) -> FactStore:
    parts = []
    for chunk in (situations[:3], situations[3:]):
        part = Part()
        for facts, options in chunk:
            cleaned = [OptionFacts(o.key, clean(o.values)) for o in options]
            part.take({"gpu": "x", "model": "y"}, clean(facts), cleaned)
        parts.append(part)
    return joined(parts)


def clean(facts: object) -> dict[str, FactValue]:
    assert isinstance(facts, dict)
    return {
        name: value if isinstance(value, bool | str) else float(value) + 0.0
        for name, value in facts.items()
    }


def fired_in(evaluation: Evaluation, number: int) -> list[tuple[str, str]]:
    store = evaluation.store
    found = []
    for rule_id, fired in evaluation.fired.items():
        if fired.per_option:
            rows = range(store.starts[number], store.starts[number + 1])
            found += [(rule_id, store.key(r)) for r in rows if fired.mask >> (8 * r) & 1]
        elif fired.mask >> (8 * number) & 1:
            found.append((rule_id, ""))
    return sorted(found)


@pytest.mark.parametrize("seed", range(60))
def test_random_rules_fire_where_the_reference_engine_fires(seed: int) -> None:
    rng = random.Random(seed)
    try:
        rules = rule_set(rng)
        engine = ReferenceEngine(compile_rules(rules))
    except RuleFileError:
        return
    situations = [situation(rng) for _ in range(12)]
    outcomes = []
    for facts, options in situations:
        try:
            outcomes.append(
                engine.run(clean(facts), [OptionFacts(o.key, clean(o.values)) for o in options])
            )
        except RuleFileError:
            with pytest.raises(RuleFileError):
                evaluate_all(stored(situations), rules)
            return
    evaluation = evaluate_all(stored(situations), rules)
    for number, outcome in enumerate(outcomes):
        assert fired_in(evaluation, number) == [(f.rule, f.option) for f in outcome.firings]
        for fact, value in outcome.concluded.items():
            assert evaluation.conclusion(fact, number) == value


@pytest.mark.parametrize("engine", ["reference", "durable"])
def test_the_real_rules_give_the_reports_of_the_pipeline(
    engine: str, advisor: Advisor, evaluation: Evaluation
) -> None:
    if engine == "durable" and not available():
        pytest.skip("durable-rules is not installed")
    other = Advisor.load(engine=engine)
    store = evaluation.store
    numbers = range(0, len(store), 4)
    reports = standings(evaluation, numbers)
    for number in numbers:
        advice = other.advise(request_from(store.requests[number]))
        report = reports[number]
        tried = {"", *(option.key for option in advice.options)}
        fired = [pair for pair in fired_in(evaluation, number) if pair[1] in tried]
        assert fired == list(advice.fired)
        assert report.verdict == advice.state
        said = [(r.rule, r.option.key, r.score) for r in advice.recommendations]
        assert [(s.rule, s.option, s.score) for s in report.recommended] == said
        assert list(report.notes) == [note.rule for note in advice.notes]
        whole = {(n.rule, n.option.key) for n in other.with_expected(advice).not_recommended}
        assert whole <= set(report.barred)
        assert {key for _, key in report.barred} == {key for _, key in whole}
        assert list(report.superseded) == [rule for rule, _, _ in advice.superseded]


def test_stored_facts_are_those_of_the_pipeline(advisor: Advisor, store: FactStore) -> None:
    advice = advisor.advise(request_from(store.requests[7]))
    concluded = {fact for rule in advisor.ruleset.rules for fact in rule.conclude}
    facts = {name: value for name, value in advice.facts.items() if name not in concluded}
    assert store.facts(7) == facts


def test_an_edited_rule_changes_what_hangs_on_it(evaluation: Evaluation) -> None:
    """The verdict decides which recommendations are tried at all."""
    tight = evaluation.ruleset.by_id["verdict-tight"]
    never = Rule(tight.id, tight.why, When((Test("request.gpus", "below", 0.0),)), tight.conclude)
    after = with_rule(evaluation, never)
    assert "tight" not in after.concluded["fit.state"]
    assert not after.fired["fit-is-tight"].mask
    assert evaluation.fired["fit-is-tight"].mask
    again = evaluate_all(evaluation.store, after.ruleset)
    assert {k: v.mask for k, v in again.fired.items()} == {
        k: v.mask for k, v in after.fired.items()
    }


def test_what_did_not_change_is_taken_over(evaluation: Evaluation, advisor: Advisor) -> None:
    again = evaluate_all(evaluation.store, advisor.ruleset, evaluation)
    assert all(again.fired[r].mask is evaluation.fired[r].mask for r in again.fired)


def test_contradicting_rules_are_named_with_a_request(evaluation: Evaluation) -> None:
    fits = evaluation.ruleset.by_id["verdict-fits"]
    always = Rule(fits.id, fits.why, When((Test("gpu.name", "is known"),)), fits.conclude)
    with pytest.raises(RuleFileError, match=r"where '[a-z-]+' \(at .*\) concludes .*gpu "):
        with_rule(evaluation, always)


def test_rules_that_cannot_run_are_refused(store: FactStore) -> None:
    circle = [
        Rule(f"r{i}", "", When((Test(f"level0.c{i}", "is", "a"),)), {f"level0.c{1 - i}": "a"})
        for i in range(2)
    ]
    with pytest.raises(RuleFileError, match="circle"):
        evaluate_all(store, RuleSet(tuple(circle), ""))
    assert make_engine(RuleSet((), ""), prefer="reference")
