"""What the compiler refuses, with what it says, and how it orders rules."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from advisor.errors import EngineError, Problems, RuleFileError, Source
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, Verb, When
from advisor.rules.engine.compiler import CompiledRules, compile_rules
from advisor.rules.engine.properties import Names, fnv1a, number_text
from advisor.rules.language.model import Rule, RuleSet


def rule(name: str, *tests: Test, conclude: Mapping[str, FactValue] | None = None) -> Rule:
    source = Source("rules.yaml", 1, 3)
    note = None if conclude else "so"
    return Rule(name, "", When(tests), conclude=conclude or {}, note=note, source=source)


def built(*rules: Rule) -> CompiledRules:
    return compile_rules(RuleSet(rules, ""))


def refused(*rules: Rule) -> str:
    with pytest.raises((RuleFileError, Problems)) as caught:
        built(*rules)
    return str(caught.value)


def test_concluded_facts_are_ordered_by_what_they_need() -> None:
    third = rule("a", Test("fit.cause", "is", value="weights"), conclude={"fit.gap": "large"})
    second = rule("b", Test("fit.state", "is", value="tight"), conclude={"fit.cause": "weights"})
    first = rule("c", Test("gpu.vram", "above", value=1.0), conclude={"fit.state": "tight"})
    compiled = built(third, second, first)
    assert [rule.id for rule in compiled.rules] == ["c", "b", "a"]
    assert compiled.levels == {"fit.cause": 2, "fit.gap": 3, "fit.state": 1}


def test_rules_in_a_circle_are_refused_and_named() -> None:
    one = rule("a", Test("fit.cause", "is", value="x"), conclude={"fit.state": "x"})
    two = rule("b", Test("fit.state", "is", value="x"), conclude={"fit.cause": "x"})
    message = refused(one, two)
    assert "in a circle: fit.cause <- fit.state <- fit.cause" in message
    assert "rules.yaml:1:3" in message


def test_absence_of_a_concluded_fact_is_refused() -> None:
    made = rule("a", Test("gpu.vram", "above", value=1.0), conclude={"fit.state": "x"})
    asked = rule("b", Test("fit.state", "is unknown"))
    assert "rule 'b', 'fit.state': rules conclude this fact" in refused(made, asked)


def test_one_fact_of_two_kinds_is_refused() -> None:
    one = rule("a", Test("gpu.x", "above", value=1.0))
    two = rule("b", Test("gpu.x", "is", value="fast"))
    assert "'gpu.x' is a number in rule 'a' and a text in rule 'b'." in refused(one, two)


def test_kinds_spread_over_comparisons() -> None:
    one = rule("a", Test("gpu.x", "is", other="gpu.y"), Test("gpu.y", "is", other="gpu.z"))
    two = rule("b", Test("gpu.z", "is", value="fast"))
    assert set(built(one, two).kinds.values()) == {"text"}


@pytest.mark.parametrize("value", [0.00001, 1e16, -1e-5, math.inf, math.nan, 2**53 + 1])
def test_numbers_the_engine_cannot_hold_are_refused_in_rules(value: float) -> None:
    assert "rule 'a', 'gpu.x'" in refused(rule("a", Test("gpu.x", "above", value=value)))
    made = rule("a", Test("gpu.y", "is known"), conclude={"gpu.x": value})
    assert "rule 'a', 'gpu.x'" in refused(made)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (Test("gpu.x", "above", value="a"), "'above' compares numbers"),
        (Test("gpu.x", "is"), "no value to compare with"),
        (Test("gpu.x", "is", value="x" * 1001), "longer than 1000 bytes"),
        (Test("gpu.x", "is", value="é" * 501), "longer than 1000 bytes"),
    ],
)
def test_unsound_conditions_are_refused(test: Test, said: str) -> None:
    assert said in refused(rule("a", test))


def test_all_problems_come_together() -> None:
    message = refused(
        rule("a", Test("gpu.x", "above", value=1e20)),
        rule("a", Test("option.x", "is known"), conclude={"option.y": "z"}),
    )
    assert message.count("\n") == 2
    assert "defined twice" in message
    assert "belongs to a single option" in message


def test_too_many_groups_and_tests_are_refused() -> None:
    many = rule("a", *(Test(f"g{k}.x", "is known") for k in range(9)))
    assert "more than 8 groups" in refused(many)
    deep = rule("a", *(Test("g.x", "below", value=float(k)) for k in range(1, 22)))
    assert "more than 20 tests" in refused(deep)


def test_names_never_share_a_hash() -> None:
    assert fnv1a("declinate") == fnv1a("macallums")
    names = Names()
    made = {names.get("n", k) for k in range(70_000)}
    assert len({fnv1a(name) for name in made}) == len(made) == 70_000
    assert names.get("n", 5) == names.get("n", 5)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001, "0.00001"), (1e16, "10000000000000000.0"), (0.1, "0.1"), (5.0, "5.0")],
)
def test_numbers_are_printed_without_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, 2.0**-1074 * 3, 1e22 + 2e6])
def test_extreme_numbers_are_printed_exactly(value: float) -> None:
    assert "e" not in number_text(value)
    assert float(number_text(value)) == value


@pytest.mark.parametrize("value", [True, "5", None, math.nan, -math.inf, 2**53 + 1, 10**400])
def test_values_of_the_wrong_kind_are_refused(value: object) -> None:
    compiled = built(rule("a", Test("gpu.x", "above", value=1.0)))
    with pytest.raises(EngineError, match=r"gpu\.x"):
        compiled.normal("gpu.x", value)


@pytest.mark.parametrize("verb", ["is", "is not", "above", "at most"])
def test_comparisons_point_at_an_earlier_group(verb: Verb) -> None:
    compiled = built(rule("a", Test("gpu.x", verb, other="option.y")))
    last = compiled.rules[0].branches[0].patterns[-1]
    assert (last.group, last.joins[0].fact, last.joins[0].other) == ("option", "option.y", "gpu.x")
