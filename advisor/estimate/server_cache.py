"""What a server that claims memory in advance has left for its cache.

vLLM, SGLang, TGI and TensorRT-LLM fill their share of each card at start-up: what is left beside
weights, buffers and the runtime becomes cache, whatever the request needs. The sources are those of
``kv_cache`` and ``overhead``; a block is counted whole, as vLLM does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes import runtime_of
from advisor.scenario.figures import CacheRoom, Limits, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.runtimes.base import CacheShape, Cells
    from advisor.scenario.scenario import Scenario


def sequences_at_once(memory: Memory, limits: Limits) -> int | None:
    """Count the sequences that a server can hold at once, their own buffers included."""
    if memory.cache_room is None:
        return None
    most = memory.cache_room.sequences
    return min(most, limits.max_batch) if limits.max_batch else 0


def cache_room(
    scenario: Scenario, shape: CacheShape, cells: Cells, cards: Sequence[tuple[int, int]]
) -> CacheRoom | None:
    """Count what fits into the memory that is left.

    Args:
        scenario: Its context says how long a sequence is.
        shape: Its cache per layer.
        cells: Cells it allocates for its batch.
        cards: For each card, in bytes, what is left for the cache and what its batch takes of it.

    Returns:
        None where the model keeps no cache.
    """
    if any(taken <= 0 for _, taken in cards):
        return None
    batch = scenario.batch
    shares = [(max(room, 0) * batch, taken) for room, taken in cards]
    room, taken = min(shares, key=lambda share: share[0] / share[1])
    tokens = None
    if cells.full and (shape.full_sums[-1] or shape.window):
        block = runtime_of(scenario.framework).page_tokens
        tokens = room * cells.stream_full // taken // block * block
    whole = sum(taken for _, taken in cards)
    return CacheRoom(whole * room // (batch * taken), tokens, room // taken)
