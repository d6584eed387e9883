"""What several cards of one machine do together: who takes which layers, and what they exchange.

Where every layer is split, it sums its results over the cards twice, after attention and after its
feed-forward part. One sum of ``n`` tokens takes

    start + per byte x (n x hidden width x 2 bytes)

with both figures by number of cards and by what joins them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from advisor.estimator.speed_fields import Curve, Fields
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, split_of
from advisor.units import MIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu
    from advisor.models.shape import Shape
    from advisor.runtimes.base import CacheShape, Runtime, Weights

_SUMS: Final = 2
_BYTES: Final = 2
_LANES: Final = 16
FITTED_WIDTH: Final = 5120
"""Hidden width of the models whose exchange was fitted."""


class Link(Struct, frozen=True):
    """What joins the cards of a machine, as a line of ``multi_gpu.links`` tells it."""

    fabric: bool
    """Whether it is for cards whose entry states a link of their own."""
    architectures: frozenset[str]
    """Empty: of any."""
    pcie_gen: int
    """0: of any."""
    segments: frozenset[str]
    start_s: Curve
    byte_s: Curve | None
    """None: fitted, as ``Exchange.fitted_s``."""
    prompt_gain: Curve | None
    """Prompts over one card's, measured; None: arithmetic shared out, and the exchange."""

    def joins(self, gpu: Gpu) -> bool:
        """Whether cards of this kind are joined so."""
        return (
            (not self.fabric or gpu.nvlink_bytes_s is not None)
            and (not self.architectures or gpu.architecture in self.architectures)
            and (not self.pcie_gen or gpu.pcie_gen == self.pcie_gen)
            and (not self.segments or gpu.segment in self.segments)
        )


class Exchange(Struct, frozen=True):
    """The links in their order, and what was fitted for those without a measured time."""

    links: tuple[Link, ...]
    fitted_s: Mapping[int, float]
    """Seconds of a further token per layer of ``FITTED_WIDTH``, by cards."""

    def link(self, gpu: Gpu) -> Link:
        """Give the first line that fits; the last fits all."""
        return next(one for one in self.links if one.joins(gpu))

    def start_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time the exchange of one pass of all layers, without what it moves."""
        return self.link(gpu).start_s.at(cards) * _SUMS * shape.layers

    def token_s(self, gpu: Gpu, shape: Shape, cards: int) -> float:
        """Time what each token of a pass adds."""
        per_byte = self.link(gpu).byte_s
        if per_byte is None:
            known = [n for n in self.fitted_s if n <= cards]
            fitted = self.fitted_s[max(known)] if known else 0.0
            return fitted * shape.layers * shape.hidden / FITTED_WIDTH
        narrow = _LANES / gpu.pcie_lanes if self.link(gpu).pcie_gen and gpu.pcie_lanes else 1.0
        moved = _SUMS * shape.layers * shape.hidden * _BYTES
        return per_byte.at(cards) * moved * narrow


def read_links(cards: Fields) -> tuple[Link, ...]:
    """Read ``multi_gpu.links``.

    Raises:
        KnowledgeError: A figure is missing or of the wrong kind.
    """
    return tuple(
        Link(
            fabric=line.flag("fabric"),
            architectures=frozenset(line.texts("architectures")),
            pcie_gen=int(line.number("pcie_gen")) if "pcie_gen" in line.found else 0,
            segments=frozenset(line.texts("segments")),
            start_s=line.curve("start_us", 1e-6),
            byte_s=line.curve("us_per_mib", 1e-6 / MIB) if "us_per_mib" in line.found else None,
            prompt_gain=line.curve("prompt_gain") if "prompt_gain" in line.found else None,
        )
        for line in cards.lines("links")
    )


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
    if scenario.gpus == 1 or not runtime.splits_by_layer(scenario):
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
    cells = runtime.cells(scenario, cache.window, scenario.context_tokens, scenario.batch)
    found = []
    for layer in range(start, len(layers) - 1):
        size = layers[layer + 1] - layers[layer] + cells.bytes_of(cache, layer, layer + 1)
        moved = experts[layer + 1] - experts[layer] if layer < scenario.cpu_experts else 0
        found.append(size - moved)
    return [*found, weights.output]
