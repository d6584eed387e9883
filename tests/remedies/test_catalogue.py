"""Promises that hold for every request, over a sample of the whole catalogue."""

from __future__ import annotations

import random
from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice.conclusions import Conclusions
from advisor.errors import UserError
from advisor.estimator import free_bytes
from advisor.estimator.limits import largest_gpu_layers
from advisor.scenario.resolve import apply_change
from tests.remedies.asking import advisor
from tests.remedies.promises import broken, drawn

SEEDS = range(11, 15)
PER_SEED = 60


@lru_cache(maxsize=8)
def sample(seed: int) -> tuple[Conclusions, ...]:
    rng = random.Random(seed)
    found = []
    for _ in range(PER_SEED):
        request = drawn(advisor(), rng)
        try:
            found.append(advisor().advise(request))
        except UserError:
            continue
    return tuple(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int) -> None:
    assert len(sample(seed)) > PER_SEED // 2
    for advice in sample(seed):
        assert broken(advisor(), advice) == [], advice.request.stated()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_remedy_flips_the_verdict(seed: int) -> None:
    flipped = 0
    for advice in sample(seed):
        if advice.state in {"fits", "tight"} or not advice.recommendations:
            continue
        first = advice.recommendations[0].option
        again = advisor().advise(apply_change(advice.request, dict(first.change)))
        assert again.state in {"fits", "tight"}, (advice.request.stated(), first.key)
        flipped += 1
    assert flipped


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_most_layers_that_fit_are_those_of_trying_them_all(seed: int) -> None:
    known, compared = advisor().knowledge, 0
    for advice in sample(seed):
        scenario = replace(advice.scenario, gpu_layers=None)
        if scenario.framework.memory_model != "llama.cpp" or scenario.model.shape.layers > 70:
            continue
        fitting = [
            layers
            for layers in range(scenario.model.shape.layers + 2)
            if (free := free_bytes(replace(scenario, gpu_layers=layers), known)) is not None
            and free >= 0
        ]
        assert largest_gpu_layers(scenario, known) == max(fitting, default=None)
        compared += 1
    assert compared


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_is_called_dominated_is_shown_nowhere(seed: int) -> None:
    for advice in sample(seed):
        keys = {option.key for option in advice.options}
        assert set(advice.dominated) <= keys
        said = [item.option.key for item in advice.recommendations]
        shown = said + [o.key for item in advice.recommendations for o in item.alternatives]
        assert not set(advice.dominated) & set(shown)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_split_leaves_what_drivers_differ_by(seed: int) -> None:
    seen = 0
    for advice in sample(seed):
        for option in advice.options:
            part = option.change.get("gpu_layers", option.change.get("cpu_experts"))
            split = option.action in {"offload-layers", "offload-experts"}
            if split and option.fits and part not in {0, "all", advice.scenario.model.shape.layers}:
                assert option.margin != "thin", (advice.request.stated(), option.key)
                seen += 1
    assert seen
