"""What held of a scenario or what-if is kept, and answers only for what no rule tells apart."""

from __future__ import annotations

import math
import random

import pytest

from advisor.errors import EngineError
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine.base import OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine, _Stage, available
from advisor.rules.language.model import Rule, RuleSet
from tests.engine import random_rules

pytestmark = pytest.mark.skipif(not available(), reason="durable-rules is not installed")

LIMIT = 0.3
AROUND = (LIMIT, math.nextafter(LIMIT, 0), math.nextafter(LIMIT, 1), 0.0, -0.0, 1e22, -7.0)


def offer(*tests: Test) -> Rule:
    return Rule("offer", "", When(tests), note="x")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many what-ifs the C engine was asked about, call by call."""
    seen: list[int] = []
    real = _Stage._run

    def run(self: _Stage, given: tuple[str, ...], texts: list[str]) -> object:
        seen.append(len(texts))
        return real(self, given, texts)

    monkeypatch.setattr(_Stage, "_run", run)
    return seen


def engines(*rules: Rule) -> tuple[DurableEngine, ReferenceEngine]:
    compiled = compile_rules(RuleSet(rules, ""))
    return DurableEngine(compiled), ReferenceEngine(compiled)


def whatif(key: str, **values: FactValue) -> OptionFacts:
    return OptionFacts(key, {f"option.{name}": value for name, value in values.items()})


def test_whatifs_that_no_rule_tells_apart_are_asked_once(runs: list[int]) -> None:
    engine, reference = engines(offer(Test("option.x", "above", value=5.0)))
    alike = [whatif(f"o{k}", x=6.0 + k, unread=float(k)) for k in range(9)]
    for options in (alike, [whatif("again", x=99.0)], [*alike, whatif("low", x=5.0)]):
        assert engine.run({}, options) == reference.run({}, options)
    assert runs == [0, 1, 1]


@pytest.mark.parametrize("fact", ["gpu.x", "option.x"])
def test_neighbouring_floats_on_both_sides_of_a_limit_differ(fact: str) -> None:
    tests = (Test("option.here", "is", value=True), Test(fact, "at least", value=LIMIT))
    engine, reference = engines(offer(*tests))
    for value in (*AROUND, *reversed(AROUND)):
        given = {"gpu.x": value}
        options = [whatif("o", x=value, here=True), whatif("p", here=True)]
        assert engine.run(given, options) == reference.run(given, options)


def test_a_number_that_is_compared_with_another_keeps_its_value() -> None:
    engine, reference = engines(
        offer(Test("option.x", "above", other="gpu.x"), Test("option.x", "above", value=0.0))
    )
    for mine in (1.0, 2.0, 3.0):
        options = [whatif(f"o{k}", x=float(k)) for k in range(5)]
        assert engine.run({"gpu.x": mine}, options) == reference.run({"gpu.x": mine}, options)


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**60 + 1])
def test_what_is_no_number_is_refused_after_others_were_kept(value: float) -> None:
    engine, _ = engines(offer(Test("option.x", "above", value=5.0)))
    for good in (1.0, 9.0):
        engine.run({}, [whatif("o", x=good)])
    with pytest.raises(EngineError, match=r"option\.x"):
        engine.run({}, [whatif("o", x=value)])


def test_of_compared_numbers_only_how_they_compare_is_kept(runs: list[int]) -> None:
    larger = Rule("larger", "", When((Test("memory.x", "above", other="gpu.x"),)), note="x")
    engine, reference = engines(larger)
    for mine, other in ((1.0, 2.0), (3.0, 4.0), (4.0, 4.0), (5.0, 4.0), (7.5, 4.0)):
        facts: dict[str, FactValue] = {"memory.x": mine, "gpu.x": other}
        assert engine.run(facts, []) == reference.run(facts, [])
    assert engine.run({"gpu.x": 1.0}, []) == reference.run({"gpu.x": 1.0}, [])
    assert runs == [0, 0, 0, 0], "nothing to ask of what-ifs; below, above, unknown"


def test_what_rules_conclude_is_part_of_what_is_kept(runs: list[int]) -> None:
    state = Rule(
        "s", "", When((Test("gpu.x", "above", value=1.0),)), conclude={"fit.state": "large"}
    )
    engine, reference = engines(
        state, offer(Test("fit.state", "is", value="large"), Test("option.fits", "is", value=True))
    )
    options = [whatif("o", fits=True)]
    for mine in (0.0, 2.0, 3.0, 0.5):
        assert engine.run({"gpu.x": mine}, options) == reference.run({"gpu.x": mine}, options)
    assert runs == [0, 1, 0, 1], "3.0 is no news after 2.0, nor is 0.5 after 0.0"


def test_rules_that_conclude_from_whatifs_run_every_time(runs: list[int]) -> None:
    any_fits = Rule(
        "s", "", When((Test("option.fits", "is", value=True),)), conclude={"fit.state": "some"}
    )
    after = offer(Test("fit.state", "is", value="some"), Test("option.x", "above", value=1.0))
    engine, reference = engines(any_fits, after)
    for fits in (True, False, True):
        options = [whatif("a", fits=fits, x=0.0), whatif("b", fits=False, x=2.0)]
        assert engine.run({}, options) == reference.run({}, options)
    assert len(runs) == 4, "once for no scenario rules, then every time"


def test_the_oldest_go_when_the_room_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.rules.engine.durable.MOST_KEPT", 20)
    engine, reference = engines(offer(Test("option.x", "above", other="gpu.x")))
    for k in range(200):
        facts, options = {"gpu.x": float(k % 7)}, [whatif("o", x=float(k))]
        assert engine.run(facts, options) == reference.run(facts, options)
    assert [stage._size <= 22 for stage in engine._whatifs.stages.values()] == [True]


@pytest.mark.parametrize("seed", range(40))
def test_one_engine_agrees_over_many_neighbouring_situations(seed: int) -> None:
    rng = random.Random(seed)
    made = random_rules.rule_set(rng, most=10).rules
    rules = RuleSet(tuple(r for r in made if not (r.per_option and r.conclude)), "")
    compiled = compile_rules(rules)
    engine, reference = DurableEngine(compiled), ReferenceEngine(compiled)
    facts, options = random_rules.situation(rng)
    for _ in range(25):
        other, others = random_rules.situation(rng)
        name = rng.choice([*other, ""])
        facts = {**facts, **({name: other[name]} if name else {})}
        options = others if rng.random() < 0.3 else options
        expected = random_rules.answer(reference, facts, options)
        assert random_rules.answer(engine, facts, options) == expected
