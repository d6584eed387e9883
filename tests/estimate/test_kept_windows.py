"""What runtimes keep of a sliding window, architecture by architecture."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from tests.remedies.asking import advised


def cache(model: str, context: int, **given: object) -> int:
    asked = {"gpu": "8x B200", "model": model, "context": context, **given}
    return advised(**asked).memory.kv_cache_bytes


@pytest.mark.parametrize(
    ("framework", "model", "ring"),
    [
        ("ExLlamaV3", "gemma-4-31b-it", 50 * 16 * 256 * 4 * 1536),
        ("ExLlamaV3", "gpt-oss-20b", 12 * 8 * 64 * 4 * 768),
        ("ExLlamaV3", "gemma-3-27b-it", None),
        ("TensorRT-LLM", "gemma-4-31b-it", 50 * 16 * 256 * 4 * 1024),
        ("TensorRT-LLM", "gemma-3-27b-it", None),
    ],
)
def test_layers_that_slide_keep_a_window_where_the_source_says_so(
    framework: str, model: str, ring: int | None
) -> None:
    held = [cache(model, size, framework=framework) for size in (16384, 32768)]
    assert held[1] - held[0] == (held[0] if ring is None else held[0] - ring)


@pytest.mark.parametrize(
    ("model", "kv_cache", "each"),
    [
        ("GLM-4.7-Flash", "exl-q8", 47 * 672),
        ("GLM-5.2", "f16", 78 * 1152 + 21 * 256),
        ("GLM-5.2", "exl-q8", 78 * 672 + 21 * 256),
        ("GLM-5.3-Flash", "f16", 11 * (1024 + 2 * (128 + 128 + 8))),
        ("GLM-5.3-Flash", "exl-q8", 11 * (544 + 2 * (128 + 128 + 8))),
    ],
)
def test_what_exllama_caches_of_a_latent(model: str, kv_cache: str, each: int) -> None:
    """Its ``cache/mla.py``: keys of position and of an index stay in 16 bits in any cache."""
    few = {"framework": "ExLlamaV3", "precision": "EXL3 4.0bpw", "kv_cache": kv_cache}
    assert cache(model, 32768, **few) - cache(model, 16384, **few) == 16384 * each


def test_a_ring_of_exllama_stays_in_16_bits() -> None:
    """Its quantised cache is for layers that see all tokens alone."""
    ring, few = 12 * 8 * 64 * 4 * 768, {"framework": "ExLlamaV3", "precision": "EXL3 4.0bpw"}
    bits = load_knowledge().kv_types["exl-q4"].bits
    whole = cache("gpt-oss-20b", 32768, **few) - ring
    small = cache("gpt-oss-20b", 32768, kv_cache="exl-q4", **few)
    assert small == pytest.approx(ring + whole * bits / 16, rel=0.001)
