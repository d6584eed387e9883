"""The memory picture as the result document holds it."""

from __future__ import annotations

from typing_extensions import TypedDict


class GrowthDoc(TypedDict):
    """What one context length needs on the cards."""

    context_tokens: int
    weights_bytes: int
    kv_cache_bytes: int
    compute_buffer_bytes: int
    overhead_bytes: int
    required_bytes: int
    fits: bool


class PictureDoc(TypedDict):
    """How memory grows, and what fits; rows of ``free_bytes`` are contexts, columns batches."""

    growth: list[GrowthDoc]
    contexts: list[int]
    batches: list[int]
    free_bytes: list[list[int | None]]
    cache_tokens: int | None
