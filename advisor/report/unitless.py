"""Placeholders that are numbers without a unit, and the words that may say what they count.

All others carry their unit with them (``24 GiB``, ``about 61 tok/s``) or are words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.scenario.settings import STATED

_TOKENS = ("tokens", "token")
_SEQUENCES = ("sequences", "sequence", "request", "conversation", "stream", "user")
_CARDS = ("gpu.cards", "card", "gpu", "of", "x")
_LAYERS = ("layers", "layer")
_EXPERTS = ("experts", "expert")

BARE: Mapping[str, Sequence[str]] = {
    "gpu.release_year": ("as the year", "in", "since", "from", "year"),
    "gpu.tensor_cores": ("tensor cores", "tensor"),
    "request.gpus": _CARDS,
    "model.experts": _EXPERTS,
    "model.experts_used": _EXPERTS,
    "model.layers": _LAYERS,
    "model.images_held": ("images", "image", "of"),
    "model.trained_context": _TOKENS,
    "weights.bits_per_weight": ("bits", "bit"),
    "request.context": _TOKENS,
    "request.batch": _SEQUENCES,
    "memory.cache_tokens": _TOKENS,
    "memory.cache_sequences": _SEQUENCES,
    "memory.server_starts": _SEQUENCES,
    "memory.max_context": _TOKENS,
    "memory.max_batch": _SEQUENCES,
    "memory.high_mib": ("in MiB", "mib"),
    "break_even.context": _TOKENS,
    "break_even.fewer": _SEQUENCES,
    "break_even.batch": _SEQUENCES,
    "break_even.gpus": _CARDS,
    "speed.prompt": _TOKENS,
    "speed.depth": _TOKENS,
    **{one.fact: one.counts for one in STATED if one.fact},
    "option.context": _TOKENS,
    "option.batch": _SEQUENCES,
    "option.gpus": _CARDS,
    "option.layers": _LAYERS,
    "option.cpu_experts": _LAYERS,
}
"""Placeholder -> what to write behind it, then beginnings of words, one of which has to stand near
it in its sentence."""
