"""Placeholders that are numbers without a unit, and the words that may say what they count.

All others carry their unit with them (``24 GiB``, ``about 61 tok/s``) or are words.
"""

from __future__ import annotations

from collections.abc import Mapping

_TOKENS = ("tokens", "token")
_SEQUENCES = ("sequences", "sequence", "request", "conversation", "stream", "user")
_CARDS = ("cards", "card", "gpu", "of", "x")
_LAYERS = ("layers", "layer")
_EXPERTS = ("experts", "expert")

BARE: Mapping[str, tuple[str, ...]] = {
    "gpu_release_year": ("as the year", "in", "since", "from", "year"),
    "gpu_tensor_cores": ("tensor cores", "tensor"),
    "request_gpus": _CARDS,
    "model_experts": _EXPERTS,
    "model_experts_used": _EXPERTS,
    "model_layers": _LAYERS,
    "model_images_held": ("images", "image", "of"),
    "model_trained_context": _TOKENS,
    "weights_bits": ("bits", "bit"),
    "request_context": _TOKENS,
    "request_batch": _SEQUENCES,
    "cache_tokens": _TOKENS,
    "cache_sequences": _SEQUENCES,
    "server_starts": _SEQUENCES,
    "memory_max_context": _TOKENS,
    "memory_max_batch": _SEQUENCES,
    "memory_high_mib": ("in MiB", "mib"),
    "edge_context": _TOKENS,
    "edge_fewer": _SEQUENCES,
    "edge_batch": _SEQUENCES,
    "edge_gpus": _CARDS,
    "speed_prompt": _TOKENS,
    "speed_depth": _TOKENS,
    "host_cpu_cores": ("cores", "core"),
    "option_context": _TOKENS,
    "option_batch": _SEQUENCES,
    "option_gpus": _CARDS,
    "option_layers": _LAYERS,
    "option_cpu_experts": _LAYERS,
}
"""Placeholder -> what to write behind it, then beginnings of words, one of which has to stand near
it in its sentence."""
