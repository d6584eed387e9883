"""What a card offers a runtime, and where the weights lie: on which card, and in system RAM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.kv_cache import cache_shape_of
from advisor.estimator.several_cards import holder_of, shares_of, stages
from advisor.estimator.weights import weights_of
from advisor.knowledge.catalogue import BACKENDS
from advisor.memo import by_identity_up_to
from advisor.runtimes import runtime_of
from advisor.runtimes.base import NO_BYTES, CacheShape, CardShare, Placement, Range, Weights
from advisor.runtimes.server import corrected_share, shown_bytes
from advisor.scenario import Scenario, claimed_share, is_pipeline, pipeline_ranks, raised, split_of
from advisor.scenario.asked_format import unified_share
from advisor.scenario.figures import Memory
from advisor.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Framework, Gpu, Knowledge


def place(
    scenario: Scenario, weights: Weights, cache: CacheShape, room: Sequence[int]
) -> Placement:
    """Place the weights of a scenario, by whole layers; a tensor split divides this later.

    Args:
        scenario: Layers asked for on the cards, and how these share them.
        weights: Bytes by layer.
        cache: Cache by layer.
        room: Free bytes of every unequal card before loading.
    """
    if pipeline_ranks(scenario) > 1:
        return _pipeline(scenario, weights)
    layers = len(weights.layer_sums) - 1
    asked = scenario.gpu_layers
    placed = layers + 1 if asked is None else min(asked, layers + 1)
    start = min(layers + 1 - placed, layers)
    shares = shares_of(scenario, weights, cache, room, start)
    cards = _cards(weights, start, placed, shares)
    holder = holder_of(placed, shares)
    host = weights.layer_sums[start]
    host += _move_experts(cards, weights, start, scenario.cpu_experts)
    host += runtime_of(scenario.framework).place_rest(scenario, cards, weights, start, holder)
    if len(cards) > 1 and split_of(scenario) == "row":
        _spread_rows(scenario, cards, weights, holder)
    uneven = scenario.cpu_experts > start and len(shares) > 1 and sum(shares) == placed
    beside = max(start, min(scenario.cpu_experts, layers))
    copied = [max(sizes) for sizes in zip(*weights.widest[:beside], strict=True)]
    return Placement(start, placed, cards, host, shares if uneven else (), copied)


def _pipeline(scenario: Scenario, weights: Weights) -> Placement:
    """Deal out layers as evenly as they go; the first rank embeds, the last one has the output.

    A tied matrix lies on both. Source: ``get_pp_indices`` of vLLM and of SGLang,
    ``Mapping.pp_layers`` of TensorRT-LLM, ``make_layers`` and the ``is_last_rank`` branches of
    vLLM's models.
    """
    sums = weights.layer_sums
    layers = len(sums) - 1
    runtime = runtime_of(scenario.framework)
    edges = (0, *accumulate(stages(runtime, layers, pipeline_ranks(scenario))))
    cards = tuple(CardShare(a, b, sums[b] - sums[a]) for a, b in pairwise(edges))
    host = runtime.place_rest(scenario, cards, weights, 0, len(cards) - 1)
    if weights.profile.tied:
        cards[-1].weights += weights.embedding
    return Placement(0, layers + 1, cards, host)


def _spread_rows(
    scenario: Scenario, cards: tuple[CardShare, ...], weights: Weights, holder: int | None
) -> None:
    """Divide the matrices by rows; experts and the image tower stay where their layer lies.

    Equal cards take equal parts, unequal ones parts by their memory. Source: ``get_row_split``
    and ``supports_op`` of ``ggml-cuda.cu``, which takes no matrix with a third dimension.
    """
    sums, kept = weights.expert_sums, []
    for card in cards:
        moved = min(max(scenario.cpu_experts, card.first), card.last)
        kept.append(sums[card.last] - sums[moved])
    if holder is not None:
        kept[0] += weights.profile.vision_bytes
    rows = sum(card.weights for card in cards) - sum(kept)
    parts = [card.vram_bytes or 1 for card in scenario.cards] or [1] * len(cards)
    edges = [rows * part // sum(parts) for part in (0, *accumulate(parts))]
    for card, own, (first, last) in zip(cards, kept, pairwise(edges), strict=True):
        card.weights = own + last - first


def _cards(
    weights: Weights, start: int, placed: int, shares: tuple[int, ...]
) -> tuple[CardShare, ...]:
    """Deal the placed layers out in order, the output as the last of them."""
    sums = weights.layer_sums
    layers = len(sums) - 1
    if len(shares) == 1:
        return (CardShare(start, layers, sums[layers] - sums[start]),)
    whole = sum(shares)
    edges = [min(start - (-part * placed // whole), layers) for part in (0, *accumulate(shares))]
    return tuple(
        CardShare(first, last, sums[last] - sums[first]) for first, last in pairwise(edges)
    )


def _move_experts(
    cards: tuple[CardShare, ...], weights: Weights, start: int, cpu_experts: int
) -> int:
    """Take the experts of the first layers off the cards; give what the host gets."""
    if cpu_experts <= start:
        return 0
    sums, moved = weights.expert_sums, 0
    for card in cards:
        last = min(card.last, cpu_experts)
        if last > card.first:
            experts = sums[last] - sums[card.first]
            card.weights -= experts
            moved += experts
    return moved


class Fixed(Struct, frozen=True):
    """Weights where they lie, and the cache of one token."""

    weights: Weights
    cache: CacheShape
    placement: Placement
    """To be read only: it is shared."""


def fixed_of(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> Fixed:
    """Size the weights, place them and describe the cache.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    cache = cache_shape_of(scenario)
    unequal = cards if scenario.cards else ()
    room = [(card.usable or 0) - card.overhead.central for card in unequal]
    return Fixed(weights, cache, place(scenario, weights, cache, room))


def host_fits(scenario: Scenario, memory: Memory) -> bool:
    """Whether system RAM holds what lies there; unknown RAM counts as said to be needed.

    Without layers or experts there, too: tables of 50 GiB may be looked up in RAM.
    """
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    return scenario.ram_bytes is None or needed <= scenario.ram_bytes


def host_bytes_needed(scenario: Scenario, memory: Memory) -> int:
    """System RAM needed if all that does not fit on the cards moved there, bytes."""
    held = memory.host_weights_bytes + memory.host_kv_cache_bytes
    if scenario.cards:
        return held + sum(max(c.required_bytes - c.usable_bytes, 0) for c in memory.per_gpu)
    return held + (memory.deficit_bytes or 0) * scenario.gpus


_TENSOR = "shards: norms and other small tensors are taken as split too"
_ATTENTION = "shards: all but the routed experts is taken to lie on every card"
_DIVIDED: Mapping[str | None, tuple[str, ...]] = {"dp-attention": (_ATTENTION,), "data": ()}
_COMMUNICATION = "overhead: with the buffers between cards, a wide range from few published logs"
_COMMUNICATION_UNKNOWN = (
    "overhead: without the buffers between cards, for which no figure is held here"
)
_PERCENT = 100
_MOST_CARDS = 16_384
"""Room for every card of a catalogue in every framework. Without what is kept a plan takes
1.02 times as long, lines of ``estimate`` too."""


class Claim(Struct, frozen=True):
    """What a framework is told to claim of a card, and what it finds taken."""

    fraction: float | None
    """Share of the card, or of what is free beside the weights; None: what it needs."""
    others: int = 0
    """Bytes that other programs hold."""
    raised: float | None = None
    """Share of its one memory that a machine is told to let the GPU use."""


class Card(Struct, frozen=True):
    """What one card offers and what the runtime takes of it, bytes."""

    name: str
    capacity: int | None
    usable: int | None
    overhead: Range
    cache_share: float = 1.0
    """Part of what is free beside weights and buffers that the cache may take."""
    share_binds: bool = False
    """What is usable is the share that the framework claims, less than the system leaves."""

    def offers(self, beside_cache: int) -> int:
        """Say how much is usable in all when so many bytes are taken by all but the cache."""
        usable = self.usable or 0
        if self.cache_share == 1.0:
            return usable
        return usable - round((1 - self.cache_share) * max(usable - beside_cache, 0))


@by_identity_up_to(_MOST_CARDS)  # 1.10 of reports, 1.03 of lines
def card_of(
    gpu: Gpu | None, backend: str | None, framework: Framework, knowledge: Knowledge
) -> Card:
    """Say what one card offers to a framework.

    Without a card and a back end the overhead is 0: the figures are those of llama.cpp's
    back-end-neutral buffers.
    """
    overhead = _overhead(gpu, backend, framework, knowledge.policy)
    if gpu is None or gpu.vram_bytes is None:
        return Card(gpu.name if gpu else "", None, None, overhead)
    capacity = gpu.vram_bytes
    claim = Claim(framework.memory_fraction)
    usable, binds = _claimed(gpu, capacity, framework, knowledge.policy, claim)
    return Card(gpu.name, capacity, usable, overhead, _cache_share(framework, claim), binds)


def _claimed(
    gpu: Gpu, capacity: int, framework: Framework, policy: Mapping[str, float], claim: Claim
) -> tuple[int, bool]:
    """Say what is usable, and whether the claimed share says so."""
    usable = usable_bytes(gpu, capacity, framework, policy, claim)
    alone = replace(claim, fraction=None)
    return usable, usable < usable_bytes(gpu, capacity, framework, policy, alone)


def _told(card: Card, gpu: Gpu | None, scenario: Scenario, knowledge: Knowledge) -> Card:
    """Give the card as a scenario's framework is told to use it, where it is told."""
    claim = claim_of(scenario)
    if gpu is None or card.capacity is None or claim == Claim(scenario.framework.memory_fraction):
        return card
    framework = scenario.framework
    usable, binds = _claimed(gpu, card.capacity, framework, knowledge.policy, claim)
    share = _cache_share(framework, claim)
    return replace(card, usable=usable, cache_share=share, share_binds=binds)


def claim_of(scenario: Scenario) -> Claim:
    """Say what of a card is claimed, and what other programs keep."""
    others = round((scenario.reserve_gib or 0) * GIB)
    return Claim(claimed_share(scenario), others, raised(scenario))


def _cache_share(framework: Framework, claim: Claim) -> float:
    return _share(claim.fraction or 1.0) if _shares_what_is_free(framework) else 1.0


def usable_bytes(
    gpu: Gpu, capacity: int, framework: Framework, policy: Mapping[str, float], claim: Claim
) -> int:
    """Say what a framework may use of a card like this one with ``capacity`` bytes."""
    usable = capacity - _kept(gpu, capacity, policy, claim) - claim.others
    if runtime_of(framework).context_outside_share and not gpu.unified_memory:
        usable -= _context(gpu, policy).central
    if claim.fraction is not None and not _shares_what_is_free(framework):
        usable = min(usable, int(shown_bytes(gpu, capacity, policy) * _share(claim.fraction)))
    return max(usable, 0)


def largest_share(
    gpu: Gpu, framework: Framework, policy: Mapping[str, float], claim: Claim
) -> float:
    """Give a share of the capacity that ``usable_bytes`` never exceeds, 0 to 1."""
    kept = policy[unified_share(gpu, policy)] / _PERCENT if gpu.unified_memory else 0.0
    claims = claim.fraction is not None and not _shares_what_is_free(framework)
    claimed = _share(claim.fraction or 0.0) if claims else 1.0
    return min(claim.raised or 1.0 - kept, claimed)


def _shares_what_is_free(framework: Framework) -> bool:
    known = framework.memory_fraction is not None
    return known and runtime_of(framework).shares_what_is_free


def cards_of(scenario: Scenario, knowledge: Knowledge) -> tuple[Card, ...]:
    """Say what every card of a scenario offers, in their order."""
    backend, framework = scenario.backend, scenario.framework
    if scenario.gpus == 1:
        card = card_of(scenario.gpu, backend, framework, knowledge)
        return (_told(card, scenario.gpu, scenario, knowledge),)
    found = tuple(
        _told(card_of(gpu, backend, framework, knowledge), gpu, scenario, knowledge)
        for gpu in scenario.cards or (scenario.gpu,)
    )
    if trades(scenario):
        library = communication(backend, knowledge.policy)
        traded = runtime_of(framework).communication(scenario, knowledge.policy, library)
        found = tuple(replace(card, overhead=card.overhead + traded) for card in found)
    return found if scenario.cards else found * scenario.gpus


def splits_by_layer(scenario: Scenario) -> bool:
    """Whether several cards take whole layers each, not a shard of every tensor."""
    return runtime_of(scenario.framework).splits_by_layer(split_of(scenario))


def trades(scenario: Scenario) -> bool:
    """Whether the cards pass on results through a library with buffers of its own."""
    shared = is_pipeline(scenario) or not splits_by_layer(scenario)
    return scenario.gpus > 1 and shared and split_of(scenario) != "data"


def traded(scenario: Scenario, knowledge: Knowledge) -> tuple[str, ...]:
    """Say what is approximate where cards share every tensor, or pass on results."""
    if scenario.gpus == 1:
        return ()
    shared = () if splits_by_layer(scenario) else _DIVIDED.get(split_of(scenario), (_TENSOR,))
    if not trades(scenario):
        return shared
    known = communication(scenario.backend, knowledge.policy).central
    return (*shared, _COMMUNICATION if known else _COMMUNICATION_UNKNOWN)


def communication(backend: str | None, policy: Mapping[str, float]) -> Range:
    """Size the buffers through which a card of a tensor split or a pipeline passes on results.

    Nothing where no figure is published: ``Memory.approximate`` then says that it is left out.
    """
    known = BACKENDS.get(backend or "")
    return _named(f"{known.library}_communication", policy) if known and known.library else NO_BYTES


def _share(fraction: float) -> float:
    """Read a share that may be written 0.92 or 92 (%)."""
    return fraction / _PERCENT if fraction > 1 else fraction


def _kept(gpu: Gpu, capacity: int, policy: Mapping[str, float], claim: Claim) -> int:
    if claim.raised is not None:
        return round(capacity * (1 - claim.raised))
    if gpu.unified_memory:
        small = capacity <= policy.get(f"reserve_{gpu.segment}_small_bytes", 0.0)
        kept = f"reserve_{gpu.segment}_small_share" if small else unified_share(gpu, policy)
        return round(capacity * policy[kept] / _PERCENT)
    checked = capacity * corrected_share(gpu, policy) / _PERCENT
    return round(policy[f"reserve_{gpu.segment}_bytes"] + checked)


def _overhead(
    gpu: Gpu | None, backend: str | None, framework: Framework, policy: Mapping[str, float]
) -> Range:
    if backend is None or backend == "CPU":
        return NO_BYTES
    runtime = runtime_of(framework)
    total = NO_BYTES if runtime.context_outside_share else _driver(gpu, backend, policy)
    for name in runtime.overheads:
        total += _named(name, policy)
    return total


def _driver(gpu: Gpu | None, backend: str, policy: Mapping[str, float]) -> Range:
    """Size what the driver keeps for a program: its context and the libraries' kernels."""
    known = BACKENDS.get(backend)
    return _cuda(gpu, policy) if known and known.sized else _named("other_backend_overhead", policy)


def _context(gpu: Gpu, policy: Mapping[str, float]) -> Range:
    """Size the like with the back end that a server has on such a card."""
    sized = gpu.compute_capability is not None
    return _cuda(gpu, policy) if sized else _named("other_backend_overhead", policy)


def _cuda(gpu: Gpu | None, policy: Mapping[str, float]) -> Range:
    if gpu is None or gpu.multiprocessors is None:
        context = policy["cuda_context_unknown_bytes"]
    else:
        own = f"cuda_context_{gpu.architecture.casefold()}_bytes_per_multiprocessor"
        usual = policy["cuda_context_bytes_per_multiprocessor"]
        context = gpu.multiprocessors * policy.get(own, usual)
    central = context + policy["cuda_libraries_bytes"]
    return Range(
        round(central),
        round(central * policy["cuda_overhead_low_share"] / _PERCENT),
        round(central * policy["cuda_overhead_high_share"] / _PERCENT),
    )


def _named(name: str, policy: Mapping[str, float]) -> Range:
    return Range(
        round(policy[f"{name}_bytes"]),
        round(policy[f"{name}_low_bytes"]),
        round(policy[f"{name}_high_bytes"]),
    )
