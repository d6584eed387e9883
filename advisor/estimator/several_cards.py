"""Who takes which layers where several cards of one machine share a model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, split_of

if TYPE_CHECKING:
    from advisor.runtimes.base import CacheShape, Runtime, Weights


def shares_of(
    scenario: Scenario, weights: Weights, cache: CacheShape, room: Sequence[int], start: int
) -> tuple[int, ...]:
    """Say in which proportion the cards take layers; one share where they shard every tensor.

    Args:
        scenario: Its split, and whose experts stay in system RAM.
        weights: Bytes by layer.
        cache: Cache by layer.
        room: Free bytes of every unequal card before loading; empty where cards are equal.
        start: Layers before this one stay in system RAM.
    """
    runtime = runtime_of(scenario.framework)
    if scenario.gpus == 1 or not runtime.splits_by_layer(split_of(scenario)):
        return (1,)
    if scenario.cpu_experts > start and split_of(scenario) == "layer":
        sizes = _sizes(scenario, weights, cache, start)
        return filled(sizes, room or (0,) * scenario.gpus, weights.profile.vision_bytes)
    return runtime.shares(weights, room) if scenario.cards else (1,) * scenario.gpus


def stages(runtime: Runtime, layers: int, ranks: int) -> list[int]:
    """Count the layers of every rank: where they do not divide, who takes one more differs."""
    each, rest = divmod(layers, ranks)
    first = runtime.first_long_rank(ranks, rest)
    return [each + (first <= rank < first + rest) for rank in range(ranks)]


def holder_of(placed: int, shares: tuple[int, ...]) -> int | None:
    """Say which card holds the output, the last of the placed layers; None: the host."""
    if not placed:
        return None
    if len(shares) == 1:
        return 0
    before = (placed - 1) * sum(shares)
    return next(i for i, part in enumerate(accumulate(shares)) if part * placed > before)


def filled(sizes: Sequence[int], room: Sequence[int], first: int = 0) -> tuple[int, ...]:
    """Deal layers out in order so that the fullest card has as much left as can be.

    Without their experts the first layers are small: cards that take as many of them as of the
    others are empty while the last one is full. llama.cpp's own ``--fit`` deals out this way
    (``common_params_fit_impl`` in ``common/fit.cpp``, 08033df): ``tensor_split`` then holds layers.

    Args:
        sizes: Bytes of every layer in order, the output last.
        room: Free bytes of every card; only their differences count.
        first: Bytes beside layers on the first card.

    Returns:
        Layers of every card, the output counted as one.
    """
    sums = (0, *accumulate(sizes))
    low, high = min(room) - first - sums[-1], max(room)
    while low < high:
        left = (low + high + 1) // 2
        if _edges(sums, room, first, left)[-1] == len(sizes):
            low = left
        else:
            high = left - 1
    edges = _edges(sums, room, first, low)
    return tuple(b - a for a, b in pairwise(edges))


def _edges(sums: Sequence[int], room: Sequence[int], first: int, left: int) -> list[int]:
    """Fill one card after the other, leaving so much free on each; the last edge says how far."""
    edges, beside = [0], first
    for each in room:
        most = sums[edges[-1]] + max(each - left - beside, 0)
        edges.append(bisect_right(sums, most) - 1)
        beside = 0
    return edges


def _sizes(scenario: Scenario, weights: Weights, cache: CacheShape, start: int) -> list[int]:
    """Give the bytes that every placed layer puts on its card, the output as the last."""
    layers, experts = weights.layer_sums, weights.expert_sums
    runtime = runtime_of(scenario.framework)
    cells = runtime.cells(scenario, cache.window, {})  # llama.cpp's: by no number of the policy
    found = []
    for layer in range(start, len(layers) - 1):
        size = layers[layer + 1] - layers[layer] + cells.bytes_of(cache, layer, layer + 1)
        moved = experts[layer + 1] - experts[layer] if layer < scenario.cpu_experts else 0
        found.append(size - moved)
    return [*found, weights.output]
