"""The plain Python engine, why-not, and the choice of engine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.errors import EngineError, RequestError, RuleFileError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine import make_engine
from advisor.rules.engine.base import Engine, Firing, OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine, available
from advisor.rules.engine.network import MOST_RULES
from advisor.rules.language.model import Rule, RuleSet
from advisor.workbench.nearest import evaluate

ENGINES = ["reference", *(["durable"] if available() else [])]


def rules(*made: Rule) -> RuleSet:
    return RuleSet(made, "")


def make(name: str, *made: Rule) -> Engine:
    compiled = compile_rules(rules(*made))
    return ReferenceEngine(compiled) if name == "reference" else DurableEngine(compiled)


STATE = Rule(
    "state", "", When((Test("memory.required", "above", other="memory.usable"),)),
    conclude={"fit.state": "too_big"},
)  # fmt: skip
OFFER = Rule(
    "offer", "",
    When((Test("fit.state", "is", value="too_big"), Test("option.fits", "is", value=True))),
    action="quantize",
)  # fmt: skip
OPTIONS = [
    OptionFacts("q4", {"option.fits": True, "option.loss": 3.0}),
    OptionFacts("q8", {"option.fits": False}),
]


@pytest.mark.parametrize("name", ENGINES)
def test_concluded_facts_lead_to_firings_per_option(name: str) -> None:
    outcome = make(name, OFFER, STATE).run({"memory.required": 9, "memory.usable": 8.5}, OPTIONS)
    assert outcome.firings == (Firing("offer", "q4"), Firing("state"))
    assert outcome.concluded == {"fit.state": "too_big"}


@pytest.mark.parametrize("name", ENGINES)
def test_unknown_facts_satisfy_nothing_but_is_unknown(name: str) -> None:
    asked = [
        Rule("not", "", When((Test("gpu.vendor", "is not", value="AMD"),)), note="x"),
        Rule("above", "", When((Test("gpu.tdp", "above", value=1.0),)), note="x"),
        Rule("unknown", "", When((Test("gpu.tdp", "is unknown"),)), note="x"),
        Rule("known", "", When((Test("gpu.tdp", "is known"),)), note="x"),
        Rule("joined", "", When((Test("gpu.tdp", "above", other="host.ram"),)), note="x"),
        Rule(
            "negated", "", When((), none=(When((Test("gpu.tdp", "above", value=1.0),)),)), note="x"
        ),
    ]
    engine = make(name, *asked)
    assert engine.run({"host.ram": 5.0}, []).firings == (Firing("unknown"),)
    fired = engine.run({"host.ram": 5.0, "gpu.tdp": 7.0, "gpu.vendor": "Intel"}, []).firings
    assert [f.rule for f in fired] == ["above", "joined", "known", "not"]


@pytest.mark.parametrize("name", ENGINES)
def test_rules_without_conditions_fire_once(name: str) -> None:
    assert make(name, Rule("always", "", When(()), note="x")).run({}, []).firings == (
        Firing("always"),
    )


@pytest.mark.parametrize("name", ENGINES)
def test_a_branch_without_option_facts_holds_for_every_option(name: str) -> None:
    either = When(
        (), any=((When((Test("option.fits", "is", value=True),)),
                  When((Test("gpu.bf16", "is", value=False),))),)
    )  # fmt: skip
    engine = make(name, Rule("bar", "", either, veto="no"))
    assert engine.run({"gpu.bf16": False}, OPTIONS).firings == (
        Firing("bar", "q4"),
        Firing("bar", "q8"),
    )
    assert engine.run({"gpu.bf16": True}, OPTIONS).firings == (Firing("bar", "q4"),)
    assert engine.run({"gpu.bf16": False}, []).firings == ()


@pytest.mark.parametrize("name", ENGINES)
def test_contradictions_name_the_lowest_fact_and_both_rules(name: str) -> None:
    def conclude(rule_id: str, fact: str, value: str) -> Rule:
        reads = Test("fit.state", "is known") if fact == "a.late" else Test("gpu.x", "is known")
        return Rule(rule_id, "", When((reads,)), conclude={fact: value})

    engine = make(
        name,
        conclude("z-tight", "fit.state", "tight"),
        conclude("a-late", "a.late", "one"),
        conclude("b-late", "a.late", "two"),
        conclude("m-fits", "fit.state", "fits"),
        conclude("n-fits", "fit.state", "fits"),
    )
    with pytest.raises(RuleFileError) as caught:
        engine.run({"gpu.x": 1.0}, [])
    assert caught.value.message == (
        "rules 'm-fits' and 'z-tight' hold together but conclude different values "
        "for 'fit.state': 'fits' and 'tight'."
    )
    assert engine.run({}, []).firings == ()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({"fit.state": "fits"}, []),
        ({"memory.usable": "much"}, []),
        ({"memory.usable": True}, []),
        ({"memory.usable": float("nan")}, []),
        ({}, [OptionFacts("a", {}), OptionFacts("a", {})]),
        ({}, [OptionFacts("", {})]),
        ({}, [OptionFacts("a", {"option.fits": 1.0})]),
    ],
)
def test_facts_no_engine_may_take_are_refused(
    name: str, facts: dict[str, FactValue], options: list[OptionFacts]
) -> None:
    engine = make(name, STATE, OFFER)
    engine.run({"memory.usable": 1.0, "memory.required": 1}, OPTIONS)
    with pytest.raises(EngineError):
        engine.run(facts, options)


def test_why_not_gives_values_and_distances() -> None:
    rule = Rule(
        "r", "",
        When(
            (Test("memory.headroom", "at least", value=4.0),),
            any=((When((Test("gpu.vendor", "is", value="AMD"),
                        Test("gpu.tdp", "below", value=3.0))),
                  When((Test("option.loss", "at most", other="request.most"),))),),
        ),
        note="x",
    )  # fmt: skip
    facts: dict[str, FactValue] = {"memory.headroom": 1.5, "gpu.vendor": "Intel", "gpu.tdp": 9.0}
    trace = evaluate(rule, {**facts, "request.most": 2.0}, {"option.loss": 1.0})
    assert not trace.holds
    assert len(trace.branches) == 2
    assert [(t.holds, t.actual, t.distance) for t in trace.nearest] == [
        (False, 1.5, 2.5),
        (True, 1.0, 0.0),
    ]
    vendor = trace.branches[0][1]
    assert (vendor.holds, vendor.actual, vendor.distance) == (False, "Intel", None)
    assert evaluate(rule, {**facts, "memory.headroom": 4.0}).nearest[-1].actual is None


def test_why_reports_the_branch_that_holds() -> None:
    blocks = (
        When((Test("gpu.x", "above", value=1.0),)),
        When((Test("gpu.x", "below", value=9.0),)),
    )
    trace = evaluate(Rule("r", "", When((), any=(blocks,)), note="x"), {"gpu.x": 0.5})
    assert trace.holds
    assert trace.nearest[0].test.verb == "below"


def test_why_not_knows_unknown_facts_and_lists() -> None:
    tests = (Test("gpu.a", "one of", value=("x", "y")), Test("gpu.b", "is unknown"),
             Test("gpu.c", "is", value=True), Test("gpu.d", "above", value=1.0))  # fmt: skip
    trace = evaluate(Rule("r", "", When(tests), note="x"), {"gpu.a": "y", "gpu.c": False})
    assert [t.holds for t in trace.nearest] == [True, True, False, False]
    assert [t.distance for t in trace.nearest] == [None] * 4


def test_traces_and_engines_agree_on_single_rules() -> None:
    for value in (1.0, 2.0, 3.0):
        for verb in ("above", "at least", "below", "at most", "is", "is not"):
            rule = Rule("r", "", When((Test("gpu.x", verb, value=2.0),)), note="x")
            fired = bool(make("reference", rule).run({"gpu.x": value}, []).firings)
            assert evaluate(rule, {"gpu.x": value}).holds is fired


def test_the_engine_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADVISOR_ENGINE", raising=False)
    assert make_engine(rules(STATE), prefer="reference").name == "reference"
    expected = "durable-rules" if available() else "reference"
    assert make_engine(rules(STATE)).name == expected
    monkeypatch.setenv("ADVISOR_ENGINE", "reference")
    assert make_engine(rules(STATE), prefer="durable").name == "reference"
    monkeypatch.setenv("ADVISOR_ENGINE", "referense")
    with pytest.raises(RequestError, match="Did you mean 'reference'"):
        make_engine(rules(STATE))


@pytest.mark.skipif(not available(), reason="durable-rules is not installed")
def test_more_rules_than_the_c_engine_holds_in_one_set_go_to_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ADVISOR_ENGINE", raising=False)
    many = rules(*(replace(STATE, id=f"r{n}", conclude={}, note="x") for n in range(MOST_RULES)))
    assert make_engine(many).name == "durable-rules"
    more = RuleSet((*many.rules, replace(STATE, id="more")), "")
    assert make_engine(more).name == "reference"
    assert make_engine(more, prefer="durable").name == "durable-rules"


def test_asking_for_an_engine_that_is_missing_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ADVISOR_ENGINE", raising=False)
    monkeypatch.setattr("advisor.rules.engine.available", lambda: False)
    assert make_engine(rules(STATE)).name == "reference"
    with pytest.raises(RequestError, match="ADVISOR_ENGINE=reference"):
        make_engine(rules(STATE), prefer="durable")
