"""Which option stands first, in what order, and which stand beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.advice.conclusions import Ranking
from advisor.advice.ranking import rank
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import When
from advisor.rules.engine.base import Firing, OptionFacts
from advisor.rules.language.model import Rule, RuleSet, Score


def recommends(id_: str, points: float, supersedes: tuple[str, ...] = ()) -> Rule:
    return Rule(id_, "", When(()), action="x", score=Score(points), supersedes=supersedes)


def option(key: str, **facts: FactValue) -> OptionFacts:
    values: Mapping[str, FactValue] = {"option.family": key.split(maxsplit=1)[0]}
    return OptionFacts(key, {**values, **{f"option.{k}": v for k, v in facts.items()}})


def ranked(
    rules: Sequence[Rule], fired: Sequence[tuple[str, str]], options: Sequence[OptionFacts]
) -> Ranking:
    firings = [Firing(rule, key) for rule, key in fired]
    return rank(RuleSet(tuple(rules), ""), firings, {"fit.state": "too_big"}, options)


def order(found: Ranking) -> list[tuple[str, str]]:
    return [(item.rule.id, item.option) for item in found.recommended]


def test_equal_scores_go_by_the_name_of_the_rule_then_of_the_option() -> None:
    rules = [recommends("b", 5), recommends("a", 5)]
    options = [option("move z"), option("quantize y"), option("offload x")]
    fired = [("b", "move z"), ("a", "quantize y"), ("a", "offload x")]
    assert order(ranked(rules, fired, options)) == [
        ("a", "offload x"), ("a", "quantize y"), ("b", "move z"),
    ]  # fmt: skip
    assert order(ranked(rules, fired[::-1], options[::-1])) == order(ranked(rules, fired, options))


def test_the_best_of_an_action_stands_for_it_and_the_next_stand_beside_it() -> None:
    rules = [recommends("low", 3), recommends("mid", 4), recommends("high", 5)]
    options = [option(f"quantize {name}", framework="llama.cpp") for name in "abcde"]
    fired = [
        ("low", "quantize a"), ("high", "quantize b"), ("mid", "quantize c"),
        ("low", "quantize d"), ("low", "quantize e"), ("low", "quantize b"),
    ]  # fmt: skip
    (first,) = ranked(rules, fired, options).recommended
    assert (first.option, first.score) == ("quantize b", 5)
    assert first.alternatives == ("quantize c", "quantize a", "quantize d")


def test_what_scores_far_less_does_not_stand_beside_the_best() -> None:
    rules = [recommends("far", 2.9), recommends("near", 3), recommends("high", 5)]
    options = [option(f"quantize {name}", framework="llama.cpp") for name in "abc"]
    fired = [("high", "quantize a"), ("far", "quantize b"), ("near", "quantize c")]
    (first,) = ranked(rules, fired, options).recommended
    assert first.alternatives == ("quantize c",)


def test_one_of_those_beside_it_is_of_another_framework() -> None:
    rules = [recommends("r", 1)]
    options = [option(f"quantize {name}", framework="llama.cpp") for name in "abcde"]
    options.append(option("quantize f", framework="vLLM"))
    fired = [("r", of.key) for of in options]
    (first,) = ranked(rules, fired, options).recommended
    assert first.alternatives == ("quantize b", "quantize c", "quantize f")


def test_one_of_another_framework_that_stands_there_already_stands_there_once() -> None:
    rules = [recommends("r", 1)]
    options = [option(f"quantize {name}", framework="llama.cpp") for name in "acde"]
    options.append(option("quantize b", framework="vLLM"))
    (first,) = ranked(rules, [("r", of.key) for of in options], options).recommended
    assert first.alternatives == ("quantize b", "quantize c", "quantize d")


def test_one_change_is_said_once_by_the_action_that_scores_best() -> None:
    rules = [recommends("a", 2), recommends("b", 1)]
    options = [option("quantize precision=X"), option("framework precision=X")]
    fired = [("a", "quantize precision=X"), ("b", "framework precision=X")]
    assert order(ranked(rules, fired, options)) == [("a", "quantize precision=X")]


def test_what_scores_nothing_is_said_only_where_nothing_else_is() -> None:
    rules = [recommends("a", 0), recommends("b", -3), recommends("c", 1)]
    options = [option("move x"), option("quantize y"), option("offload z")]
    nothing = [("b", "quantize y"), ("a", "move x")]
    assert order(ranked(rules, nothing, options)) == [("a", "move x")]
    assert order(ranked(rules, [*nothing, ("c", "offload z")], options)) == [("c", "offload z")]


def said(*options: OptionFacts) -> list[str]:
    """The order of options that one rule recommends, the first given scored best."""
    rules = [recommends(f"r{n}", 9.0 - n) for n in range(len(options))]
    fired = [(f"r{n}", of.key) for n, of in enumerate(options)]
    return [key for _, key in order(ranked(rules, fired, options))]


def figures(key: str, **others: FactValue) -> OptionFacts:
    usual: dict[str, FactValue] = {
        "framework": "vLLM", "effort": "setting", "decode_speed": 20.0, "format_bits": 4.0,
        "kv_bits": 16.0, "context": 4096.0, "batch": 8.0, "held_share": 75.0, "gpus": 2.0,
        "steps": 1.0, "margin": "ample", "required": 9.0, "quality_loss": 0.0,
    }  # fmt: skip
    return option(key, **{**usual, **others})


def test_what_another_beats_in_every_figure_stands_behind_it() -> None:
    slow = figures("larger-share x=1")
    assert said(slow, figures("fewer-gpus x=2", decode_speed=30.0)) == [
        "fewer-gpus x=2", "larger-share x=1",
    ]  # fmt: skip
    worse_in: Sequence[Mapping[str, FactValue]] = (
        {"effort": "download"}, {"kv_bits": 8.0}, {"context": 2048.0}, {"batch": 4.0},
        {"gpus": 3.0}, {"held_share": 50.0}, {"margin": "thin"}, {"host_ram": 9.0},
        {"framework": "SGLang"}, {"quality_loss": 1.0}, {"effort": "purchase"},
    )  # fmt: skip
    for worse in worse_in:
        faster: dict[str, FactValue] = {"decode_speed": 30.0, **worse}
        fast = figures("fewer-gpus x=2", **faster)
        assert said(slow, fast) == ["larger-share x=1", "fewer-gpus x=2"], worse


def test_what_gives_up_pictures_or_drafts_beats_nothing() -> None:
    slow = figures("larger-share x=1")
    for action in ("text-only", "speculative"):
        fast = figures(f"{action} x=2", decode_speed=30.0)
        assert said(slow, fast) == [slow.key, fast.key]


def test_several_changes_that_do_no_more_than_one_are_not_told() -> None:
    one, both = figures("offload-experts x=35"), figures("combine x=34", steps=2.0)
    assert said(both, one) == [one.key]
    fast = figures("combine x=34", steps=2.0, decode_speed=22.0)
    assert said(fast, one) == [fast.key, one.key]


def test_of_two_formats_alike_in_every_figure_the_one_at_hand_is_told() -> None:
    other = figures("quantize x=1", effort="download", format="GPTQ 4-bit", gpus=1.0)
    assert said(other, figures("fewer-gpus x=2", format="AWQ 4-bit", gpus=1.0)) == [
        "fewer-gpus x=2"
    ]
