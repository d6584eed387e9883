"""DeepSeek V4: exact parameters, and a cache that is compressed behind a short window."""

from __future__ import annotations

import pytest

from advisor.errors import NotDescribedError
from advisor.estimator.kv_cache import cache_shape_of
from advisor.knowledge import load_knowledge
from advisor.models.config import read_config
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.builders import kv_cache_bytes

CONFIG: dict[str, object] = {"model_type": "deepseek_v4", "num_hidden_layers": 8}


def test_class_defaults_are_what_transformers_builds() -> None:
    counts = read_config(CONFIG, "c").counts
    assert counts
    assert counts.total == 53_749_190_965


@pytest.mark.parametrize(
    ("name", "total"),
    [("DeepSeek-V4-Flash", 284_332_230_231), ("DeepSeek-V4-Pro", 1_572_997_179_491)],
)
def test_released_sizes_have_their_published_parameters(name: str, total: int) -> None:
    counts = read_config(load_knowledge().models[name].config, name, whole=False).counts
    assert counts
    assert counts.total == total


def test_layers_are_as_listed_by_name_or_by_ratio_or_alternate() -> None:
    csa, hca = (160, 512), (4, 3 * 512)
    plain = read_config(CONFIG, "c")
    assert plain.cells == (hca, hca, hca, csa, hca, csa, hca, csa)
    ratios = read_config({**CONFIG, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 0]}, "c")
    assert ratios.cells == ((0, 512), (0, 512), csa, hca, csa, hca, csa, hca)
    with pytest.raises(NotDescribedError, match="'compression by 16'"):
        read_config({**CONFIG, "compress_ratios": [16] * 8}, "c")


def test_the_cache_is_a_window_and_a_fraction_of_every_token() -> None:
    known = load_knowledge()
    asked = Request(
        model="deepseek-ai/DeepSeek-V4-Flash", precision="FP8", framework="vLLM", context=65_536
    )
    scenario = resolve(asked, known)
    shape = scenario.model.shape
    assert shape.cells
    every, window = (sum(cell[i] for cell in shape.cells) for i in (0, 1))
    held = cache_shape_of(scenario)
    assert (held.full_sums[-1], held.slide_sums[-1]) == (2 * every, 2 * window)
    in_flight = 2 * 2048
    assert kv_cache_bytes(scenario) < 1.1 * 2 * (65_536 * every + (128 + in_flight) * window)


def test_what_one_layer_merges_many_read() -> None:
    """DeepSeek V4.1: four caches for forty layers, a window in each, tables of n-grams."""
    record = load_knowledge().models["DeepSeek-V4.1-Flash"]
    shape = read_config(record.config, "c", whole=False)
    counts, cells = shape.counts, shape.cells
    assert counts
    assert cells
    assert counts.total - shape.lookup == pytest.approx(552e9, rel=0.001)
    assert shape.lookup == pytest.approx(196.6e9, rel=0.001)
    assert {n: every for n, (every, _) in enumerate(cells) if every} == {
        2: 320, 8: 320, 14: 320, 20: 640
    }  # fmt: skip
    assert {window for _, window in cells} == {512}
    bare = {key: value for key, value in record.config.items() if key != "kv_source_layer_ids"}
    with pytest.raises(NotDescribedError, match="kv_source_layer_ids"):
        read_config(bare, "c")
