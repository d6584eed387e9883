"""Activation memory of the runtimes whose own figure nobody has established.

An approximation: the hidden states and feed-forward tensors that live at once while a chunk
of the prompt is computed, plus the logits in float32. The range says how little that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.estimate.kv_cache import CacheShape, Cells
from advisor.estimate.overhead import Range
from advisor.sources.shape import Shape
from advisor.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.scenario import Scenario

_ELEMENT_BYTES = 2
_LOGIT_BYTES = 4
_LIVE = 2
_CHUNK_TOKENS = 2048
_TENSORRT_CHUNK_TOKENS = 8192
_VLLM_LARGE_BYTES = 70 * GIB
_VLLM_LARGEST_BYTES = 160 * GIB


def activation_bytes(
    scenario: Scenario, cache: CacheShape, cells: Cells, policy: Mapping[str, float]
) -> Range:
    """Approximate what one card holds while it computes, bytes.

    Args:
        scenario: Model, batch, context and framework.
        cache: Its cache per layer.
        cells: Cells the scenario allocates.
        policy: Named numbers of knowledge/policy.yaml.
    """
    kind = scenario.framework.memory_model
    if kind == "sglang":
        return _sglang(scenario, policy)
    tokens = _chunk_tokens(scenario, kind, policy)
    rows = 0 if scenario.model.modality == "embedding" else scenario.batch
    flow = _live_bytes(scenario.model.shape, tokens)
    logits = rows * scenario.model.shape.vocab * _LOGIT_BYTES
    extra = 0
    if kind == "transformers" and cache.window:
        beyond = scenario.batch * scenario.context_tokens - cells.slide
        extra = max(beyond, 0) * cache.slide_sums[-1]
    central = flow + logits + extra
    return Range(central, logits + flow // 4 + extra, 2 * (flow + logits) + extra)


def _live_bytes(shape: Shape, tokens: int) -> int:
    width = shape.intermediate if "D" in shape.ffn_kinds or not shape.moe else 0
    if shape.moe:
        width = max(width, shape.moe.used * shape.moe.width + shape.moe.shared_width)
    return _LIVE * tokens * (shape.hidden + width) * _ELEMENT_BYTES


def _chunk_tokens(scenario: Scenario, kind: str, policy: Mapping[str, float]) -> int:
    held = scenario.context_tokens * scenario.batch
    if kind in {"transformers", "tgi"}:
        return held
    if kind == "vllm":
        return round(_vllm_tokens(scenario, policy))
    return min(held, _TENSORRT_CHUNK_TOKENS if kind == "tensorrt-llm" else _CHUNK_TOKENS)


def _vllm_tokens(scenario: Scenario, policy: Mapping[str, float]) -> float:
    gpu = scenario.gpu
    capacity = (gpu.vram_bytes or 0) if gpu else 0
    if capacity >= _VLLM_LARGEST_BYTES:
        return policy["vllm_profile_tokens_largest"]
    if gpu and capacity >= _VLLM_LARGE_BYTES and "A100" not in gpu.name:
        return policy["vllm_profile_tokens_large"]
    return policy["vllm_profile_tokens_small"]


def _sglang(scenario: Scenario, policy: Mapping[str, float]) -> Range:
    """What SGLang keeps out of its static share by default."""
    reserve = (
        policy["sglang_reserve_base_bytes"]
        + policy["sglang_reserve_per_prefill_token_bytes"] * policy["sglang_prefill_min_tokens"]
        + policy["sglang_reserve_per_rank_bytes"] * scenario.gpus
        + policy["sglang_reserve_per_decode_sequence_bytes"] * scenario.batch
    )
    low = reserve
    capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
    if capacity > policy["sglang_large_card_bytes"]:
        reserve = max(reserve, policy["sglang_large_card_reserve_bytes"])
    return Range(round(reserve), round(low) // 2, round(reserve))
