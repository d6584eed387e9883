"""How memory grows with context, and which contexts and batches fit: figures for a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.kv_cache import kv_bytes_per_token
from advisor.scenario import Scenario, with_batch

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge

_SHORTEST_TOKENS = 1024
_LONGEST_TOKENS = 131_072
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Growth(Struct, frozen=True):
    """What one context length needs on the cards at the scenario's batch, bytes."""

    context_tokens: int
    """Context of each sequence."""
    weights_bytes: int
    """Weights on the cards."""
    kv_cache_bytes: int
    """Key/value cache on the cards."""
    compute_buffer_bytes: int
    """Work buffers on the cards."""
    overhead_bytes: int
    """The runtime's own memory on the cards."""
    required_bytes: int
    """All of it."""
    fits: bool
    """Whether the cards hold it."""


class MemoryPicture(Struct, frozen=True):
    """What people would rather see than read."""

    growth: tuple[Growth, ...]
    """By context, ascending."""
    contexts: tuple[int, ...]
    """Rows of ``free_bytes``. [tokens]"""
    batches: tuple[int, ...]
    """Columns of ``free_bytes``. [sequences]"""
    free_bytes: tuple[tuple[int | None, ...], ...]
    """What stays free on the fullest card, negative where so many do not fit at once."""
    cache_tokens: int | None
    """Tokens of cache that all sequences together could hold beside the weights, where the
    cache grows with every token; None where it does not."""


def memory_picture(scenario: Scenario, knowledge: Knowledge) -> MemoryPicture:
    """Work out the picture of one scenario.

    Args:
        scenario: With a card.
        knowledge: As for ``estimate_memory``.
    """
    contexts = tuple(_contexts(scenario))
    batches = tuple(sorted({*_BATCHES, scenario.batch}))
    return MemoryPicture(
        growth=tuple(_growth(scenario, knowledge, tokens) for tokens in contexts),
        contexts=contexts,
        batches=batches,
        free_bytes=tuple(
            tuple(_free(scenario, knowledge, tokens, batch) for batch in batches)
            for tokens in contexts
        ),
        cache_tokens=_cache_tokens(scenario, knowledge),
    )


def _growth(scenario: Scenario, knowledge: Knowledge, tokens: int) -> Growth:
    memory = estimate_memory(replace(scenario, context_tokens=tokens), knowledge)
    return Growth(
        tokens,
        memory.weights_bytes,
        memory.kv_cache_bytes,
        memory.compute_buffer_bytes,
        memory.overhead_bytes,
        memory.required_bytes,
        memory.deficit_bytes == 0,
    )


def _contexts(scenario: Scenario) -> Iterator[int]:
    """Doublings up to the trained length, with the context asked for and that length."""
    longest = max(scenario.model.trained_context_tokens or _LONGEST_TOKENS, scenario.context_tokens)
    longest = max(min(longest, _LONGEST_TOKENS), scenario.context_tokens)
    found = {scenario.context_tokens, longest}
    tokens = _SHORTEST_TOKENS
    while tokens < longest:
        found.add(tokens)
        tokens *= 2
    return iter(sorted(found))


def _free(scenario: Scenario, knowledge: Knowledge, tokens: int, batch: int) -> int | None:
    other = replace(with_batch(scenario, batch), context_tokens=tokens)
    return free_bytes(other, knowledge, in_full=True)


def _cache_tokens(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """Count the tokens for which memory is left beside everything that is not cache."""
    memory = estimate_memory(scenario, knowledge)
    if memory.cache_room is not None:
        return memory.cache_room.tokens
    each = kv_bytes_per_token(scenario)
    free = free_bytes(scenario, knowledge)
    if free is None or each <= 0 or scenario.gpus > 1:
        return None
    return max(0, int((free + memory.kv_cache_bytes) // each))
