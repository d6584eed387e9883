"""What a cache of few bits costs to unpack: by back end, by heads that share, deep and empty."""

from __future__ import annotations

import pytest

from advisor.estimator import estimate_memory
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import load_knowledge
from advisor.scenario.figures import Figure
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWLEDGE = load_knowledge()
DEEP = 32768


def decode(depth: int = DEEP, **given: object) -> Figure:
    asked = Request(**{"precision": "Q4_K_M", "context": 2 * DEEP, "depth": depth, **given})  # type: ignore[arg-type]
    found = resolve(asked, KNOWLEDGE)
    speed = estimate_speed(found, estimate_memory(found, KNOWLEDGE), KNOWLEDGE)
    assert speed
    return speed.decode_tok_s


def ratio(depth: int = DEEP, kv_cache: str = "q8_0", **given: object) -> float:
    """Give the speed with a cache over that with one of 16 bits."""
    packed = decode(depth, kv_cache=kv_cache, **given).estimate
    return packed / decode(depth, **given).estimate


@pytest.mark.parametrize("card", ["H200 SXM", "RTX 3090", "DGX Spark", "RX 9070 XT", "Arc Pro B70"])
def test_a_cache_of_few_bits_is_slower_deep_and_costs_nothing_empty(card: str) -> None:
    """Measured: 0.69 on an H200, with others 0.66 on a GB10 and 0.64 on an Arc Pro B70."""
    for kv_cache in ("q8_0", "q4_0"):
        assert 0.4 < ratio(gpu=card, model="llama-3.1-8b", kv_cache=kv_cache) < 0.95
        empty = ratio(0, gpu=card, model="llama-3.1-8b", kv_cache=kv_cache)
        assert empty == pytest.approx(1, abs=0.01)


def test_heads_that_share_keys_and_values_pay_for_each_of_them() -> None:
    """Llama 2 has a key for every query; Qwen3-30B-A3B one for eight."""
    alone = ratio(3500, gpu="RTX 5090", model="llama-2-7b", context=4096)
    assert alone > ratio(gpu="RTX 5090", model="qwen3-30b-a3b") + 0.1


def test_programs_that_start_llama_server_unpack_as_it_does() -> None:
    one = ratio(gpu="RTX 3090", model="llama-3.1-8b")
    assert ratio(gpu="RTX 3090", model="llama-3.1-8b", framework="Ollama") == pytest.approx(
        one, abs=0.02
    )


def test_a_server_with_an_fp8_cache_unpacks_nothing() -> None:
    server: dict[str, object] = {"gpu": "H100 SXM", "framework": "vLLM", "precision": "FP8"}
    assert ratio(DEEP, "fp8", model="llama-3.1-8b", **server) > 1


@pytest.mark.parametrize(("card", "backend"), [("M4 Max", None), ("RX 7900 XTX", "Vulkan")])
def test_where_nobody_measured_it_the_range_is_wider(card: str, backend: str | None) -> None:
    given: dict[str, object] = {"gpu": card, "model": "llama-3.1-8b", "backend": backend}
    plain, packed = decode(DEEP, **given), decode(DEEP, kv_cache="q8_0", **given)
    assert packed.high / packed.low > 1.5 * plain.high / plain.low
    known = decode(gpu="RTX 3090", model="llama-3.1-8b", kv_cache="q8_0")
    assert packed.high / packed.low > known.high / known.low
