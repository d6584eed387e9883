"""Unequal cards in one machine: who holds what, and which card decides."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.speed import speed_of_unequal
from advisor.knowledge.types import Gpu
from advisor.scenario import Scenario
from advisor.scenario.figures import Figure, Memory, Speed
from tests.estimate.builders import FP16, GIB, KNOWLEDGE, framework, gpu, on_card, scenario

LARGE = replace(gpu(24), name="large")
SMALL = replace(gpu(12), name="small")


def machine(*cards: Gpu, **changes: object) -> Scenario:
    least = min(cards, key=lambda card: card.vram_bytes or 0)
    several = {"gpu": least, "gpus": len(cards), "cards": cards, "backend": "CUDA"}
    return scenario(**{**several, **changes})


def memory(found: Scenario) -> Memory:
    return estimate_memory(found, KNOWLEDGE)


def test_llama_cpp_deals_layers_by_free_memory() -> None:
    """33 layers with the output; free is 24 - 0.75 - 0.445 and 12 - 0.75 - 0.445 GiB."""
    large, small = memory(machine(LARGE, SMALL)).per_gpu
    assert (large.name, small.name) == ("large", "small")
    layer = 33_554_432
    assert large.kv_cache_bytes == 23 * layer
    assert small.kv_cache_bytes == 9 * layer


def test_the_order_of_the_cards_counts() -> None:
    first, last = memory(machine(SMALL, LARGE)).per_gpu
    assert (first.name, last.name) == ("small", "large")
    assert first.kv_cache_bytes < last.kv_cache_bytes


def test_nothing_is_lost_between_the_cards() -> None:
    one, both = memory(on_card(24)), memory(machine(LARGE, SMALL))
    assert both.weights_bytes == one.weights_bytes
    assert both.kv_cache_bytes == one.kv_cache_bytes
    assert both.capacity_bytes == 36 * GIB
    assert both.usable_bytes == sum(card.usable_bytes for card in both.per_gpu)
    assert both.required_bytes == sum(card.required_bytes for card in both.per_gpu)


def test_the_fullest_card_decides_and_not_the_sum() -> None:
    found = memory(machine(LARGE, replace(gpu(3), name="tiny"), framework=framework("vllm"),
                           precision=FP16))  # fmt: skip
    tiny = found.per_gpu[1]
    assert found.usable_bytes is not None
    assert found.usable_bytes > found.required_bytes
    assert found.deficit_bytes == tiny.required_bytes - tiny.usable_bytes > 0


def test_tensor_parallel_shares_are_equal() -> None:
    found = memory(machine(LARGE, SMALL, framework=framework("vllm"), precision=FP16))
    large, small = found.per_gpu
    assert large.weights_bytes == small.weights_bytes
    assert large.kv_cache_bytes == small.kv_cache_bytes
    assert found.headroom_bytes == small.usable_bytes - small.required_bytes


def test_transformers_gives_even_shares_as_far_as_they_fit() -> None:
    base = {"framework": framework("transformers"), "precision": FP16}
    even = memory(machine(SMALL, LARGE, **base)).per_gpu
    assert even[0].weights_bytes == pytest.approx(even[1].weights_bytes, rel=0.15)
    tiny = replace(gpu(4), name="tiny")
    first, last = memory(machine(tiny, LARGE, **base)).per_gpu
    assert first.weights_bytes < 4 * GIB < last.weights_bytes


def test_the_overhead_is_that_of_each_card() -> None:
    wide = replace(LARGE, multiprocessors=188)
    large, small = memory(machine(wide, SMALL)).per_gpu
    assert large.overhead_bytes > small.overhead_bytes


def test_equal_cards_given_one_by_one_are_as_several_equal_ones() -> None:
    apart = memory(machine(LARGE, LARGE, LARGE))
    together = memory(scenario(gpu=LARGE, gpus=3, backend="CUDA"))
    assert apart.per_gpu == together.per_gpu


CARDS = st.lists(st.sampled_from([2, 6, 8, 11, 12, 16, 24, 48, 80]), min_size=2, max_size=5)
RUNTIMES = st.sampled_from(("llama.cpp", "transformers", "exllama", "vllm", "sglang"))


@given(CARDS, RUNTIMES, st.integers(0, 40), st.integers(512, 40_000))
@settings(deadline=None)
def test_sums_ranges_and_the_fullest_card(
    sizes: list[int], runtime: str, layers: int, context: int
) -> None:
    cards = [replace(gpu(size), name=f"{size} GB") for size in sizes]
    llama = runtime == "llama.cpp"
    found = machine(*cards, context_tokens=context, framework=framework(runtime))
    found = replace(found, gpu_layers=layers) if llama else replace(found, precision=FP16)
    sized = memory(found)
    assert [card.name for card in sized.per_gpu] == [card.name for card in cards]
    assert sized.required_bytes == sum(card.required_bytes for card in sized.per_gpu)
    assert sized.low_bytes == sum(card.low_bytes for card in sized.per_gpu)
    assert sized.high_bytes == sum(card.high_bytes for card in sized.per_gpu)
    least = min(card.usable_bytes - card.required_bytes for card in sized.per_gpu)
    assert free_bytes(found, KNOWLEDGE) == least
    assert sized.deficit_bytes == max(-least, 0)
    assert sized.headroom_bytes == max(least, 0)
    once = sized.weights_bytes + sized.host_weights_bytes
    alone = memory(replace(found, cards=(), gpus=1))
    assert 0 <= once - alone.weights_bytes - alone.host_weights_bytes <= len(cards)


@given(CARDS, st.integers(0, 40))
@settings(deadline=None)
def test_layers_lie_where_llama_cpp_would_put_them(sizes: list[int], layers: int) -> None:
    """The rule as its source has it: the first card whose part of the sum exceeds the layer's."""
    cards = [replace(gpu(size), name=f"{size} GB") for size in sizes]
    found = memory(machine(*cards, gpu_layers=layers))
    free = [card.usable_bytes - card.overhead_bytes for card in found.per_gpu]
    placed = min(layers, 33)
    start = max(33 - placed, 0)
    held = [0] * len(cards)
    for layer in range(start, 32):
        part, before = (layer - start) * sum(free), 0
        for index, size in enumerate(free):
            before += size
            if before * placed > part:
                held[index] += 1
                break
    assert [card.kv_cache_bytes // 33_554_432 for card in found.per_gpu] == held


def _speed(tok_s: float) -> Speed:
    figure = Figure(tok_s, tok_s / 2, tok_s * 2, "near")
    return Speed(0, figure, figure, None, "bandwidth", None, 0, 0)


def test_a_layer_split_adds_up_the_time_of_the_shares() -> None:
    found = machine(LARGE, SMALL)
    sized = memory(found)
    pace = {"large": 100.0, "small": 40.0}
    speed = speed_of_unequal(
        found, sized, lambda one: _speed(pace[one.gpu.name if one.gpu else ""])
    )
    share = sized.per_gpu[0].weights_bytes / sized.weights_bytes
    wanted = 1 / (share / 100 + (1 - share) / 40)
    assert speed is not None
    assert speed.decode_tok_s.estimate == pytest.approx(wanted)
    assert speed.decode_tok_s.evidence == "extrapolated"


def test_a_tensor_split_waits_for_the_slowest_card() -> None:
    found = machine(LARGE, SMALL, framework=framework("vllm"), precision=FP16)
    pace = {"large": 100.0, "small": 40.0}
    speed = speed_of_unequal(
        found, memory(found), lambda one: _speed(pace[one.gpu.name if one.gpu else ""])
    )
    assert speed is not None
    assert speed.decode_tok_s.estimate == 40
    assert speed.decode_tok_s.evidence == "extrapolated"


def test_a_card_of_unknown_speed_leaves_the_whole_unknown() -> None:
    found = machine(LARGE, SMALL)
    assert speed_of_unequal(
        found, memory(found), lambda one: _speed(9) if one.gpu is LARGE else None
    ) is None  # fmt: skip
