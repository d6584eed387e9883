"""What-ifs are shown the rules that can hold of their kind, and nothing changes by it."""

from __future__ import annotations

from itertools import product

import pytest

from advisor.advice import Advisor
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, When
from advisor.rules.engine.base import OptionFacts, ReferenceEngine
from advisor.rules.engine.compiler import compile_rules
from advisor.rules.engine.durable import DurableEngine, _Stage, available
from advisor.rules.engine.network import (
    EngineRule,
    engine_rules,
    named_values,
    rules_for,
    telling_fact,
)
from advisor.rules.engine.properties import Names
from advisor.rules.language.model import Rule, RuleSet

needs_engine = pytest.mark.skipif(not available(), reason="durable-rules is not installed")
KIND = "option.kind"


def note(name: str, *tests: Test) -> Rule:
    return Rule(name, "", When(tests), note="x")


RULES = (
    note("a", Test(KIND, "is", value="a"), Test("gpu.x", "above", value=5.0)),
    note("a-or-b", Test(KIND, "one of", value=("a", "b"))),
    note("not-b", Test(KIND, "is not", value="b"), Test("option.y", "below", value=2.0)),
    note("known", Test(KIND, "is known"), Test("option.y", "above", value=1.0)),
    note("unknown", Test(KIND, "is unknown"), Test("option.y", "above", value=1.0)),
    note("any", Test("option.y", "is known")),
    note("same", Test(KIND, "is", other="gpu.kind"), Test("option.y", "above", value=0.0)),
)


def prepared(rules: tuple[Rule, ...] = RULES) -> tuple[EngineRule, ...]:
    return engine_rules(compile_rules(RuleSet(rules, "")), Names())


def ids(kind: FactValue | None) -> list[str]:
    return [rule.rule.id for rule in rules_for(prepared(), KIND, kind)]


def test_the_fact_by_which_most_rules_choose_tells_kinds_apart() -> None:
    assert telling_fact(prepared()) == KIND
    assert named_values(prepared(), KIND) == {"a", "b"}


def test_the_built_in_rules_choose_by_the_family_of_change() -> None:
    compiled = compile_rules(Advisor.load().ruleset)
    rules = [rule for rule in engine_rules(compiled, Names()) if rule.rule.per_option]
    assert telling_fact(rules) == "option.family"
    quantize = rules_for(rules, "option.family", "quantize")
    assert 0 < len(quantize) < len(rules) / 2


def test_nothing_tells_them_apart_where_no_two_rules_ask_for_names() -> None:
    numbers = (note("x", Test("option.x", "above", value=1.0)), note("y", *RULES[0].when.tests))
    assert telling_fact(prepared(numbers)) is None


def test_only_rules_that_may_hold_of_a_kind_are_kept_for_it() -> None:
    assert ids("a") == ["a", "a-or-b", "any", "known", "not-b", "same"]
    assert ids("b") == ["a-or-b", "any", "known", "same"]
    assert ids("c") == ["any", "known", "not-b", "same"]
    assert ids(None) == ["any", "same", "unknown"]


@needs_engine
def test_both_engines_agree_on_every_kind() -> None:
    compiled = compile_rules(RuleSet(RULES, ""))
    engine, reference = DurableEngine(compiled), ReferenceEngine(compiled)
    for large, kind, y in product((1.0, 9.0), ("a", "c", None), (0.5, 1.5, None)):
        facts: dict[str, FactValue] = {"gpu.x": large, **({"gpu.kind": kind} if kind else {})}
        given: dict[str, FactValue] = {} if y is None else {"option.y": y}
        options = [OptionFacts(key, {KIND: key, **given}) for key in ("a", "b", "c", "d", "\0")]
        options.append(OptionFacts("none", given))
        assert engine.run(facts, options) == reference.run(facts, options)


@needs_engine
def test_what_other_kinds_read_makes_no_news_of_a_whatif(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = _Stage._run

    def run(self: _Stage, given: tuple[str, ...], texts: list[str]) -> object:
        asked.append(len(texts))
        return real(self, given, texts)

    monkeypatch.setattr(_Stage, "_run", run)
    engine = DurableEngine(compile_rules(RuleSet(RULES[:3], "")))
    options = [OptionFacts(key, {KIND: key, "option.y": 1.0}) for key in ("a", "b")]
    for large in (1.0, 9.0):
        engine.run({"gpu.x": large}, options)
    assert asked == [0, 1, 1, 1], "no rules on the scenario; a, b, and a again"
