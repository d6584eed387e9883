"""Limits: equal to trying every size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.advice.preparation import estimate
from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.limits import (
    LONGEST_TOKENS,
    find_limits,
    largest_fitting_context,
    largest_gpu_layers,
    largest_that_fits,
    smallest_cpu_experts,
)
from advisor.knowledge import load_knowledge
from advisor.scenario import Scenario
from advisor.scenario.figures import Limits
from advisor.scenario.settings import request_from
from tests.estimate.builders import FP16, KNOWLEDGE, framework, gguf, on_card, scenario, text_model


def limits(found: Scenario) -> Limits:
    return find_limits(found, KNOWLEDGE, estimate_memory(found, KNOWLEDGE))


def fits(found: Scenario) -> bool:
    free = free_bytes(found, KNOWLEDGE, in_full=True)
    assert free is not None
    return free >= 0


@given(
    st.integers(-(2**40), 2**40),
    st.integers(1, 2**30),
    st.integers(1, 300),
    st.integers(1, 2000),
    st.integers(1, 2100),
)
def test_the_search_equals_trying_every_size(
    start: int, slope: int, step: int, most: int, known: int
) -> None:
    def free(size: int) -> int:
        return start - slope * -(-size // step) - (size > most // 2) * 2**38

    tried = [size for size in range(1, most + 1) if free(size) >= 0]
    expected = max(tried) if tried else None
    assert largest_that_fits(free, most) == expected
    assert largest_that_fits(free, most, (known, free(known))) == expected


def long_context(found: Scenario) -> Scenario:
    model = replace(found.model, trained_context_tokens=None)
    return replace(found, model=model)


@pytest.mark.parametrize(
    "found",
    [
        on_card(8),
        on_card(8, batch=3, logits_rows=3),
        on_card(8, kv_unified=False, batch=4),
        on_card(12, "gemma-3-12b"),
        on_card(24, gpu_layers=20),
        on_card(24, framework=framework("vllm", fraction=0.92), precision=FP16),
        on_card(24, framework=framework("transformers"), precision=FP16),
        on_card(24, framework=framework("mlx"), precision=FP16),
        on_card(6, gpus=2),
    ],
)
def test_one_token_more_than_the_longest_context_does_not_fit(found: Scenario) -> None:
    free = long_context(found)
    longest = largest_fitting_context(free, KNOWLEDGE)
    assert longest is not None
    assert fits(replace(free, context_tokens=longest))
    assert not fits(replace(free, context_tokens=longest + 1))
    assert limits(free).max_context_tokens == longest


def test_the_context_never_exceeds_the_trained_length() -> None:
    assert limits(on_card(80)).max_context_tokens == 8192


def test_a_model_without_a_growing_cache_ends_the_search() -> None:
    found = long_context(on_card(24, "mamba-codestral-7b"))
    assert limits(found).max_context_tokens == LONGEST_TOKENS


def test_nothing_fits_on_a_small_card() -> None:
    assert limits(on_card(2)) == Limits(None, None)


def test_without_a_card_there_are_no_limits() -> None:
    assert limits(scenario()) == Limits(None, None)
    for search in (largest_fitting_context, largest_gpu_layers, smallest_cpu_experts):
        assert search(scenario(), KNOWLEDGE) is None


@pytest.mark.parametrize(
    "found",
    [
        on_card(12),
        on_card(24, framework=framework("vllm"), precision=FP16, context_tokens=2048),
        on_card(16, "gemma-3-12b", kv_unified=False),
    ],
)
def test_one_sequence_more_than_the_largest_batch_does_not_fit(found: Scenario) -> None:
    batch = limits(found).max_batch
    assert batch is not None
    assert fits(replace(found, batch=batch, logits_rows=batch))
    assert not fits(replace(found, batch=batch + 1, logits_rows=batch + 1))


def brute(sizes: range, change: Callable[[int], Scenario]) -> list[int]:
    return [size for size in sizes if fits(change(size))]


@pytest.mark.parametrize("gib", [1, 2, 8, 12, 24, 48, 80])
def test_the_most_gpu_layers_equal_trying_all(gib: float) -> None:
    found = on_card(gib, "llama-3.1-70b")
    tried = brute(range(82), lambda layers: replace(found, gpu_layers=layers))
    assert largest_gpu_layers(found, KNOWLEDGE) == (max(tried) if tried else None)


@pytest.mark.parametrize(
    "asked",
    [
        {"gpu": "8x Radeon PRO W6600", "model": "gemma-3-12b-it", "context": 32768, "batch": 16,
         "kv_cache": "q8_0", "split": "row"},
        {"gpu": "2x Radeon RX 6500 XT", "model": "Qwen3.5-9B", "batch": 4},
    ],
)  # fmt: skip
def test_several_cards_hold_more_layers_where_fewer_do_not_fit(asked: dict[str, object]) -> None:
    """Which card a layer with a whole cache falls to changes with the number of layers."""
    known = load_knowledge()
    given = {"precision": "Q4_K_M", "context": 4096, "ram": 128.0, "framework": "llama.cpp"}
    found = replace(estimate(request_from(given | asked), known).scenario, gpu_layers=None)
    sizes = range(found.model.shape.layers + 2)
    free = [free_bytes(replace(found, gpu_layers=layers), known) for layers in sizes]
    tried = [layers for layers, left in enumerate(free) if (left or 0) >= 0]
    assert len(tried) <= max(tried)
    assert largest_gpu_layers(found, known) == max(tried)


@pytest.mark.parametrize("gib", [1, 4, 8, 16, 24, 80])
def test_the_fewest_cpu_experts_equal_trying_all(gib: float) -> None:
    found = on_card(gib, "gpt-oss-120b", precision=gguf("MXFP4_MOE"))
    tried = brute(range(37), lambda layers: replace(found, cpu_experts=layers))
    assert smallest_cpu_experts(found, KNOWLEDGE) == (min(tried) if tried else None)


def test_a_batch_of_one_token_sequences_ends_at_what_llamacpp_holds() -> None:
    model = replace(text_model("llama-3.2-1b"), modality="embedding")
    assert limits(on_card(80, model, context_tokens=8)).max_batch == 256
