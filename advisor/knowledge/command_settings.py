"""What a command template may name: placeholders and switches, with the settings they carry."""

from __future__ import annotations

from collections.abc import Mapping

PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "model": (),
    "folder": (),
    "gguf": (),
    "slug": (),
    "projector": (),
    "context": ("context",),
    "context_all": ("context", "batch"),
    "context_less_one": (),
    "cache_tokens": (),
    "slots": ("batch",),
    "batch": ("batch",),
    "ubatch": ("ubatch",),
    "logical_batch": (),
    "gpu_layers": ("gpu_layers",),
    "layers_placed": ("gpu_layers",),
    "layers_share": ("gpu_layers",),
    "cpu_experts": ("cpu_experts",),
    "kv": ("kv_cache_k", "kv_cache_v"),
    "kv_k": ("kv_cache_k",),
    "kv_v": ("kv_cache_v",),
    "gpus": ("gpus",),
    "tensor_ranks": ("gpus", "split"),
    "pipeline_ranks": ("gpus", "split"),
    "split_mode": ("split",),
    "equal_shares": ("gpus",),
    "cuda_devices": ("gpus",),
    "hip_devices": ("gpus",),
    "devices_named": ("backend", "gpus"),
    "draft_model": ("draft_model",),
    "draft_gguf": ("draft_model",),
    "draft_folder": ("draft_model",),
    "mtp": ("mtp",),
    "mtp_checked": (),
    "memory_fraction": (),
    "memory_fraction_lowered": (),
    "static_fraction": (),
}
"""Placeholder -> the settings (keys of ``change``) that a piece with it carries."""

SWITCHES: Mapping[str, tuple[str, ...]] = {
    "shared_cache": ("kv_unified",),
    "separate_caches": ("kv_unified",),
    "flash_on": ("flash_attention",),
    "flash_off": ("flash_attention",),
    "full_window_cache": ("swa_full",),
    "several_cards": (),
    "shares_layers": ("split",),
    "shares_tensors": ("split",),
    "kv_set": (),
    "kv_plain": (),
    "makes_format": (),
    "own_code": (),
    "reads_text": (),
    "sees_images": (),
    "embedding": (),
    "writes": (),
}
"""Switch -> the settings that a piece under it carries."""

_MORE = ("kv_cache", "kv_unified", "flash_attention", "swa_full", "images")
SETTINGS = tuple(dict.fromkeys([*(k for keys in PLACEHOLDERS.values() for k in keys), *_MORE]))
"""Settings a command can carry, or say that it cannot."""
