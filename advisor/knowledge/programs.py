"""The programs that start frameworks: their lines, and what these may name."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "model": (), "folder": (), "gguf": (), "slug": (), "projector": (), "context": ("context",),
    "context_all": ("context", "batch"), "context_less_one": (), "cache_tokens": (),
    "slots": ("batch",), "batch": ("batch",), "ubatch": ("ubatch",), "logical_batch": (),
    "gpu_layers": ("gpu_layers",), "layers_placed": ("gpu_layers",),
    "layers_share": ("gpu_layers",), "cpu_experts": ("cpu_experts",),
    "kv": ("kv_cache_k", "kv_cache_v"), "kv_k": ("kv_cache_k",), "kv_v": ("kv_cache_v",),
    "gpus": ("gpus",), "tensor_ranks": ("gpus", "split"), "pipeline_ranks": ("gpus", "split"),
    "data_ranks": ("gpus", "split"), "expert_ranks": ("gpus", "split"),
    "replicas": ("gpus", "split"), "slots_of_a_copy": ("batch", "split"),
    "slots_of_a_rank": ("batch",),
    "stated_slots_of_a_rank": ("batch",),
    "split_mode": ("split",), "card_shares": ("gpus",), "cuda_devices": ("gpus",),
    "hip_devices": ("gpus",), "devices_named": ("backend", "gpus"),
    "gguf_seen": (), "gguf_own": (), "ollama_from": (),
    "draft_model": ("draft_model",), "draft_gguf": ("draft_model",),
    "draft_folder": ("draft_model",), "mtp": ("mtp",), "mtp_checked": (), "memory_fraction": (),
    "memory_fraction_lowered": (), "static_fraction": (),
    "batched_tokens": (), "image_limit": (), "image_count": (), "image_tokens": (),
}  # fmt: skip
"""Placeholder -> the settings (keys of ``change``) that a piece with it carries."""

SWITCHES: Mapping[str, tuple[str, ...]] = {
    "shared_cache": ("kv_unified",), "separate_caches": ("kv_unified",),
    "flash_on": ("flash_attention",), "flash_off": ("flash_attention",),
    "full_window_cache": ("swa_full",), "several_cards": (), "not_the_makers": ("backend",),
    "shares_layers": ("split",), "shares_tensors": ("split",), "shares_requests": ("split",),
    "in_file": (),
    "beyond_trained": (), "eager": ("eager",), "text_only": ("text_only",), "kv_set": (),
    "kv_plain": (), "makes_format": (),
    "own_code": (), "reads_text": (), "sees_images": (), "embedding": (), "writes": (),
}  # fmt: skip
"""Switch -> the settings that a piece under it carries."""

_MORE = ("kv_cache", "kv_unified", "flash_attention", "swa_full", "text_only", "images")
SETTINGS = tuple(dict.fromkeys([*(k for keys in PLACEHOLDERS.values() for k in keys), *_MORE]))
"""Settings a command can carry, or say that it cannot."""


class CommandPart(Struct, frozen=True, array_like=True):
    """A stretch of fixed text, then one placeholder (or none)."""

    before: str
    name: str = ""
    mode: str = ""
    """``json`` inside JSON, ``raw`` as it is; empty: quoted for the shell or for Python."""


class CommandPiece(Struct, frozen=True, array_like=True):
    """Words of a command that are left out where their switch is off or a value is missing."""

    when: str
    words: tuple[str | tuple[CommandPart, ...], ...]
    """Each as it is written, or its parts where a placeholder is in it."""
    carries: tuple[str, ...]
    """The settings of a request that they say."""


class Program(Struct, frozen=True):
    """A program that starts a framework (commands.yaml), its lines taken apart."""

    name: str
    what: str
    version: str
    lines: tuple[tuple[CommandPiece, ...], ...]
    interpreter: tuple[CommandPiece, ...]
    """What the lines are handed to where they are Python; else empty."""
    by_format: Mapping[str, Mapping[str, str]]
    """Placeholder -> weight format or family -> this program's word."""
    on_load: Mapping[str, Mapping[str, str]]
    """The same for formats that it makes itself from a 16-bit checkpoint."""
    kv_types: Mapping[str, str]
    """Cache type -> this program's word; empty: the names are its words."""
    kv_equal: bool
    own_code: tuple[str, ...]
    """``model_type`` whose code stands in the model's repository."""
    cannot: Mapping[str, str]
    """Setting -> why it cannot be told."""
    sources: Mapping[str, str]
