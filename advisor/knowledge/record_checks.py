"""Checks of cards and models beyond the spelling of each field, and what is worked out from them.

``config`` of a model holds Hugging Face config.json keys and one key of ours: ``layer_pattern``,
one letter per decoder layer in order (F full attention, S sliding window, C chunked or local
attention, L recurrent or linear attention, c short convolution, - feed-forward only, E experts
only, X cross-attention). Runs may be folded: ``(SSSSSF)5 SSSS`` is 34 letters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import cast

from msgspec.structs import replace

from advisor.knowledge.entries import Entry
from advisor.knowledge.types import Gpu, ModelRecord
from advisor.suggest import did_you_mean

_GBIT_PER_PIN: Mapping[str, tuple[float, float]] = {
    "GDDR5": (3, 9.1),
    "GDDR5X": (7, 15),
    "GDDR6": (8, 20.5),
    "GDDR6X": (18, 24),
    "GDDR7": (17.5, 36),
    "HBM2": (1.2, 2.5),
    "HBM2e": (1.2, 3.7),
    "HBM3": (3.5, 6.5),
    "HBM3e": (4.5, 10),
}
"""Memory type -> the slowest and fastest data rate per pin on any board, Gbit/s."""

_GA100 = 8.0
_TENSOR_CORES = 7
"""The first compute capability with tensor cores."""
_DENSE_LIMIT = 6
_DENSE_LIMIT_GA100 = 16.5
"""A dense FP16 matrix peak is about 4 times the shader peak; a sparse one 8 times. Tables give
the GA100 chip's shader peak with or without packed FP16, so 4 or 16 times there."""
_LETTERS = "FSCLc-EX"
_RUN = re.compile(r"\(([^()]+)\)(\d+)")
_EXPERT_KEYS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "moe_num_primary_experts",
)
_USED_KEYS = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
_CONTEXT_KEYS = (
    "max_position_embeddings",
    "max_seq_len",
    "n_positions",
    "max_target_positions",
)
_PLAIN_NUMBERS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def finished_card(card: Gpu, entry: Entry, per_multiprocessor: Mapping[float, int]) -> Gpu:
    """Check a card, and work out its multiprocessors.

    Args:
        card: As its entry states it.
        entry: Takes what is wrong.
        per_multiprocessor: Compute capability -> FP32 cores of one multiprocessor.
    """
    _check_bandwidth(card, entry)
    _check_compute(card, entry)
    each = per_multiprocessor.get(card.compute_capability or 0.0)
    if not card.cores or not each or card.cores % each:
        return card
    return replace(card, multiprocessors=card.cores // each)


def _check_bandwidth(card: Gpu, entry: Entry) -> None:
    limits = _GBIT_PER_PIN.get(card.vram_type or "")
    if card.bandwidth_bytes_s is None or card.bus_width_bits is None or limits is None:
        return
    rate = card.bandwidth_bytes_s * 8 / card.bus_width_bits / 1e9
    if not limits[0] <= rate <= limits[1]:
        entry.problem(
            f"bandwidth over {card.bus_width_bits} bits is {rate:.1f} Gbit/s per pin, "
            f"{card.vram_type} does {limits[0]:g} to {limits[1]:g}",
            at=entry.at("bandwidth"),
            hint="Check bandwidth, bus_width and vram_type.",
        )


def _check_compute(card: Gpu, entry: Entry) -> None:
    capability, peak = card.compute_capability, card.fp16_tensor_tflops
    if re.match(r"GeForce RTX 50\d\d", entry.name) and capability not in (None, 12.0):
        entry.problem(
            f"compute capability {capability} is not that of the RTX 50 series",
            at=entry.at("compute_capability"),
            hint="It is 12.0; 10.0 is B200, 12.1 is GB10.",
        )
    if peak is None:
        return
    shader, accumulate = card.fp16_shader_tflops, card.fp16_tensor_tflops_fp32acc
    limit = _DENSE_LIMIT_GA100 if capability == _GA100 else _DENSE_LIMIT
    if shader and (capability or 0) >= _TENSOR_CORES and peak > limit * shader:
        entry.problem(
            f"fp16_tensor is {peak / shader:.1f} times fp16_shader: a sparse figure",
            at=entry.at("fp16_tensor"),
            hint="Write the dense one, half of it.",
        )
    if accumulate is not None and accumulate > peak:
        message = "fp16_tensor_fp32acc is above fp16_tensor"
        entry.problem(message, at=entry.at("fp16_tensor_fp32acc"))


def finished_model(model: ModelRecord, entry: Entry) -> ModelRecord:
    """Check a model, write its layer pattern out, and take its context from its config."""
    if model.config is None:
        return replace(model, config={})
    if not isinstance(model.config.get("model_type"), str):
        entry.problem("'config' has no 'model_type'", at=entry.at("config"))
    part = _text_part(model.config)
    if isinstance(pattern := part.get("layer_pattern"), str):
        part["layer_pattern"] = unfold(pattern)
    _check_parts(model, entry)
    _check_config(part, entry)
    context = model.trained_context_tokens or _first(part, _CONTEXT_KEYS) or None
    return replace(model, trained_context_tokens=context)


def check_formats(model: ModelRecord, entry: Entry, formats: Collection[str]) -> None:
    """Report published formats that ``formats.yaml`` does not have."""
    for name in model.native_formats:
        if name not in formats:
            message = f"'native_formats' names '{name}', which is no weight format here"
            entry.problem(message, hint=did_you_mean(name, formats) or "See formats.yaml.")


def unfold(pattern: str) -> str:
    """Write a layer pattern out: ``(SSF)2 S`` -> ``SSFSSFS``."""
    flat = _RUN.sub(lambda run: run[1] * int(run[2]), pattern.replace(" ", ""))
    return flat if flat == pattern else unfold(flat)


def _text_part(config: Mapping[str, object]) -> dict[str, object]:
    inner = config.get("text_config", config)
    return inner if isinstance(inner, dict) else cast("dict[str, object]", config)


def _check_parts(model: ModelRecord, entry: Entry) -> None:
    for key in ("active_parameters", "vision_parameters"):
        part = getattr(model, key)
        if part is not None and model.parameters is not None and part > model.parameters:
            entry.problem(f"{key} are more than parameters", at=entry.at(key))


def _check_config(part: Mapping[str, object], entry: Entry) -> None:
    at = entry.at("config")
    for key in _PLAIN_NUMBERS:
        if key in part and not (isinstance(part[key], int) and _number(part, key)):
            entry.problem(f"config: '{key}' must be a positive whole number", at=at)
    heads, kv_heads = _number(part, "num_attention_heads"), _number(part, "num_key_value_heads")
    if heads and kv_heads and heads % kv_heads:
        entry.problem(f"config: {kv_heads} key/value heads do not divide {heads} heads", at=at)
    experts, used = (_first(part, keys) for keys in (_EXPERT_KEYS, _USED_KEYS))
    if experts and used and used > experts:
        entry.problem(f"config: a token uses {used} of {experts} experts", at=at)
    _check_layers(part, entry)


def _check_layers(part: Mapping[str, object], entry: Entry) -> None:
    layers = _number(part, "num_hidden_layers")
    for key in ("layer_pattern", "layer_types"):
        kinds = part.get(key)
        if isinstance(kinds, str | list) and layers and len(kinds) != layers:
            message = f"config: '{key}' has {len(kinds)} layers, num_hidden_layers {layers}"
            entry.problem(message, at=entry.at("config"))
    pattern = part.get("layer_pattern")
    if isinstance(pattern, str) and (bad := sorted(set(pattern) - set(_LETTERS))):
        message = f"config: 'layer_pattern' has the unknown letter '{bad[0]}'"
        entry.problem(message, at=entry.at("config"), hint=f"Known: {' '.join(_LETTERS)}.")


def _first(part: Mapping[str, object], keys: tuple[str, ...]) -> int:
    return next((found for key in keys if (found := _number(part, key))), 0)


def _number(part: Mapping[str, object], key: str) -> int:
    found = part.get(key)
    return found if isinstance(found, int) and found > 0 else 0
