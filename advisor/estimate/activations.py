"""Activation memory of the runtimes that publish no allocation report.

Three wide tensors and four hidden states per token of the chunk, plus the logits in float32. Both
counts were read off published peaks of Qwen2.5 at four prompt lengths (docs/memory-accuracy.md),
then found in transformers' ``Qwen2MLP`` and ``Qwen2DecoderLayer``: the activated gate, the up
projection and their product; the embedded input, the layer's input, the residual and the normed
input. An ungated layer holds two wide tensors. Other runtimes were not measured. The lower end
leaves the tensors out, because peaks published for Qwen3 do not show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.estimate.buffers import UNGATED
from advisor.estimate.kv_cache import CacheShape, Cells
from advisor.estimate.overhead import Range
from advisor.models.shape import Shape
from advisor.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Format
    from advisor.scenario.scenario import Scenario

CARD_DEPENDENT = frozenset({"vllm", "sglang"})
"""Memory models whose activations follow from the card's size as well."""
_HALF_BYTES = 2
_FLOAT_BYTES = 4
_LOGIT_BYTES = 4
_HIDDEN_STATES = 4
_GATED_TENSORS = 3
_PLAIN_TENSORS = 2
_HALF_BITS = 16
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
    shape = scenario.model.shape
    encoded = 1 if kind == "vllm" else scenario.batch
    tokens = max(tokens, encoded * (shape.encoder_positions or 0))
    flow = tokens * _live_elements(scenario.model.shape) * _element_bytes(scenario.precision)
    flow += _encoder_scores(scenario) if shape.encoder_positions == 0 else 0
    logits = rows * scenario.model.shape.vocab * _LOGIT_BYTES
    extra = 0
    if kind == "transformers" and cache.window:
        beyond = scenario.batch * scenario.context_tokens - cells.slide
        extra = max(beyond, 0) * cache.slide_sums[-1]
    central = flow + logits + extra
    return Range(central, logits + extra, 2 * (flow + logits) + extra)


def _encoder_scores(scenario: Scenario) -> int:
    """Attention scores of T5's encoder, for every pair of input tokens and head.

    Read in transformers (``modeling_t5.py``): scores and position bias in the model's type, and
    around the softmax two copies in float32.
    """
    pairs = scenario.batch * scenario.model.shape.heads * scenario.context_tokens**2
    return pairs * 2 * (_element_bytes(scenario.precision) + _FLOAT_BYTES)


def capacity_steps(scenario: Scenario, policy: Mapping[str, float]) -> tuple[int, ...]:
    """Give the card sizes in bytes from which the activations follow another rule, ascending."""
    kind = scenario.framework.memory_model
    if kind == "vllm":
        return (_VLLM_LARGE_BYTES, _VLLM_LARGEST_BYTES)
    return (round(policy["sglang_large_card_bytes"]) + 1,) if kind == "sglang" else ()


def _live_elements(shape: Shape) -> int:
    """Count the elements per token that live at once in the widest part of a layer."""
    width = shape.intermediate if "D" in shape.ffn_kinds or not shape.moe else 0
    if shape.moe:
        width = max(width, shape.moe.used * shape.moe.width + shape.moe.shared_width)
    tensors = _PLAIN_TENSORS if shape.model_type in UNGATED else _GATED_TENSORS
    return tensors * width + _HIDDEN_STATES * shape.hidden


def _element_bytes(precision: Format) -> int:
    """Activations are computed in float32 only where the weights are."""
    return _FLOAT_BYTES if (precision.bits_per_weight or 0) > _HALF_BITS else _HALF_BYTES


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
