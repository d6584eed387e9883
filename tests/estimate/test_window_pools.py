"""SGLang gives sliding layers of some architectures a pool of their own, of 0.8 of the tokens."""

from __future__ import annotations

import pytest

from advisor.estimator.kv_cache import cache_shape_of
from advisor.runtimes.server import _POOLED
from advisor.scenario import Scenario
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.commands.test_shown import advisor
from tests.estimate.builders import kv_cache_bytes


def scenario(model: str, framework: str = "SGLang") -> Scenario:
    asked = Request(gpu="8x H200", model=model, context=8_192, batch=3, framework=framework)
    return resolve(asked, advisor().knowledge)


@pytest.mark.parametrize("model", ["gpt-oss-20b", "gemma-4-31b-it", "llama-4-scout-17b-16e"])
def test_a_pool_of_its_own_holds_four_fifths(model: str) -> None:
    """``HybridSWAPoolConfigurator``: the cell is that of the other layers and 0.8 of these."""
    one = scenario(model)
    shape = cache_shape_of(one)
    assert one.model.shape.model_type in _POOLED
    assert shape.slide_sums[-1] > 0
    cell = shape.full_sums[-1] + 0.8 * shape.slide_sums[-1]
    assert kv_cache_bytes(one) == pytest.approx(3 * 8_192 * cell, rel=1e-3)


@pytest.mark.parametrize(
    "model", ["gemma-3-27b-it", "c4ai-command-a-03-2025", "olmo-3-7b-instruct"]
)
def test_others_keep_every_token_in_every_layer(model: str) -> None:
    one = scenario(model)
    assert set(one.model.shape.layer_kinds) & set("SC")
    assert cache_shape_of(one).window == 0
