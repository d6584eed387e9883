"""An option is pointless when another is as good in everything and better in something."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.knowledge import load_knowledge
from advisor.remedies.option import Option
from advisor.remedies.search import dominated, dominators_in_kind
from tests.remedies.asking import advised

BASE = {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "FP16"}


def option() -> Option:
    options = advised(**BASE).options
    return next(o for o in options if o.change == {"precision": "Q6_K"})


def worse(**values: object) -> Option:
    return replace(option(), key="worse", **values)


@pytest.mark.parametrize(
    "values",
    [{"quality_loss_percent": 5.0}, {"steps": 2}, {"effort": "rebuild"}, {"speed": None}],
    ids=str,
)
def test_what_is_worse_in_one_respect_is_dominated(values: dict[str, object]) -> None:
    pointless = dominated([option(), worse(**values)])
    assert pointless == ({"worse"} if values != {"speed": None} else set())


def test_equal_options_both_stay() -> None:
    assert dominated([option(), worse()]) == set()


def test_better_in_one_and_worse_in_another_both_stay() -> None:
    other = worse(quality_loss_percent=0.0, steps=2)
    assert dominated([option(), other]) == set()


def test_an_unknown_loss_is_neither_better_nor_worse() -> None:
    assert dominated([option(), worse(quality_loss_percent=None, steps=3)]) == set()


def test_of_a_loss_nobody_measured_the_cache_of_more_bits_is_better() -> None:
    own = replace(option(), quality_loss_percent=None)
    eight = load_knowledge().kv_types["q8_0"]
    small = replace(own.scenario, kv_cache_k=eight, kv_cache_v=eight)
    smaller = worse(quality_loss_percent=None, scenario=small)
    assert dominated([own, smaller]) == {"worse"}
    assert dominated([option(), smaller]) == set()


def test_an_unknown_price_is_neither_better_nor_worse() -> None:
    own = option()
    assert own.scenario.gpu
    dearer = replace(own.scenario, gpu=replace(own.scenario.gpu, name="Other"))
    bought = worse(effort="purchase", steps=2, scenario=dearer)
    assert "worse" not in dominated([replace(own, effort="purchase"), bought])


def test_what_does_not_fit_dominates_nothing() -> None:
    assert dominated([replace(option(), fits=False), worse(steps=2)]) == set()


def test_other_models_are_not_compared() -> None:
    own = option()
    model = replace(own.scenario.model, name="other")
    other = worse(steps=2, scenario=replace(own.scenario, model=model))
    assert dominated([own, other]) == set()


def test_only_options_of_one_action_count_in_the_list() -> None:
    other = worse(steps=2, action="quantize-kv")
    assert dominated([option(), other]) == {"worse"}
    assert dominators_in_kind((option(), other)) == {}
