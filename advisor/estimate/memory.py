"""The estimator: what a scenario occupies, on the cards and in system RAM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.estimate.activations import CARD_DEPENDENT, activation_bytes
from advisor.estimate.buffers import cuda_cache_copies, graph_shape, llamacpp_buffers
from advisor.estimate.kv_cache import CacheShape, Cells, cache_shape_of, cells_of
from advisor.estimate.overhead import Card, card_of
from advisor.estimate.placement import Placement, place, splits_by_layer
from advisor.estimate.result import CardMemory, Memory
from advisor.estimate.weights import Weights, weights_of
from advisor.scenario import size_key

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.scenario import Key, Scenario

_COMPUTE = "compute buffer: fitted to llama.cpp's own reports"
_ACTIVATIONS = "activations: a rough formula, nobody has published them"
_OVERHEAD = "overhead: the runtime's own memory, published as a range"
_PIPELINE = "compute buffer: copies for several cards taken from one published log"
_TENSOR = "shards: norms and other small tensors are taken as split too"
_RULES = "KV cache: this runtime's rules were read, not measured"
_CHECKED_CACHES = frozenset({"llama.cpp", "transformers"})


@dataclass(slots=True)
class _Share:
    """One card's bytes before the runtime's overhead."""

    weights: int
    kv_cache: int
    compute: int


@dataclass(slots=True)
class _Demand:
    """What a model asks for, over all cards and the host."""

    cards: list[_Share]
    host_weights: int
    host_kv_cache: int
    host_compute: int
    below: int
    """How far the true figure may lie below the sum, bytes."""
    above: int
    approximate: tuple[str, ...]
    nominal_gb: float | None
    bits_per_weight: float | None

    def fullest(self) -> int:
        """Bytes of the card that holds the most."""
        return max([share.weights + share.kv_cache + share.compute for share in self.cards])


def estimate_memory(scenario: Scenario, knowledge: Knowledge) -> Memory:
    """Size everything a scenario occupies.

    Args:
        scenario: The situation; without a card only what is needed is computed.
        knowledge: Block sizes and policy numbers.

    Returns:
        Bytes by part and card, with the verdict arithmetic.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    card = card_of(scenario.gpu, scenario.backend, scenario.framework, knowledge)
    return _memory(_demand_of(scenario, knowledge), card)


def free_bytes(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """Say what stays free on the fullest card, bytes, negative when it does not fit.

    The same arithmetic as ``estimate_memory`` without its details; None without a card.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    card = card_of(scenario.gpu, scenario.backend, scenario.framework, knowledge)
    if card.usable is None:
        return None
    return card.usable - _demand_of(scenario, knowledge).fullest() - card.overhead.central


_kept: dict[Key, tuple[Knowledge, Key, _Demand]] = {}
_MOST_DEMANDS = 16_384


def _demand_of(scenario: Scenario, knowledge: Knowledge) -> _Demand:
    """Give the demand, kept: on every card of a catalogue it is the same.

    An entry holds the records whose identity is in its key, so that none can be taken for another.
    """
    sees_card = scenario.framework.memory_model in CARD_DEPENDENT
    key, records = size_key(scenario, scenario.gpu if sees_card else None)
    found = _kept.get(key)
    if found is None or found[0] is not knowledge:
        if len(_kept) >= _MOST_DEMANDS:
            _kept.clear()
        demand = _demand(scenario, knowledge)
        if scenario.draft_model is not None:
            _add_draft(demand, scenario, knowledge)
        found = _kept[key] = (knowledge, records, demand)
    return found[2]


def _demand(scenario: Scenario, knowledge: Knowledge) -> _Demand:
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    cache = cache_shape_of(scenario)
    cells = cells_of(scenario, cache)
    placement = place(scenario, weights)
    shares = _shares(scenario, cache, cells, placement)
    demand = _Demand(
        cards=shares,
        host_weights=placement.host,
        host_kv_cache=cells.bytes_of(cache, 0, placement.start) if placement.start else 0,
        host_compute=0,
        below=0,
        above=0,
        approximate=weights.approximate + cache.approximate,
        nominal_gb=_nominal_gb(scenario),
        bits_per_weight=_bits_per_weight(scenario, weights),
    )
    if scenario.framework.memory_model == "llama.cpp":
        _add_llamacpp_compute(demand, scenario, cache, cells, placement)
    else:
        _add_activations(demand, scenario, cache, cells, knowledge)
    if weights.spread:
        spread = round(weights.spread * sum(share.weights for share in shares))
        demand.below += spread
        demand.above += spread
    return demand


def _shares(
    scenario: Scenario, cache: CacheShape, cells: Cells, placement: Placement
) -> list[_Share]:
    shares = [
        _Share(card.weights, cells.bytes_of(cache, card.first, card.last), 0)
        for card in placement.cards
    ]
    cards = scenario.gpus
    if len(shares) == cards:
        return shares
    whole = shares[0]
    kv_cache = -(-whole.kv_cache * _kept_heads(scenario) // max(scenario.model.shape.kv_heads, 1))
    return [_Share(-(-whole.weights // cards), kv_cache, 0) for _ in range(cards)]


def _kept_heads(scenario: Scenario) -> int:
    """Key/value heads of every shard; a latent cache is kept whole by each."""
    shape = scenario.model.shape
    heads = max(shape.kv_heads, 1)
    return heads if shape.mla else -(-heads // scenario.gpus)


def _add_llamacpp_compute(
    demand: _Demand, scenario: Scenario, cache: CacheShape, cells: Cells, placement: Placement
) -> None:
    graph = graph_shape(scenario.model)
    found = llamacpp_buffers(scenario, graph, cache, cells, placement.placed)
    demand.host_compute = found.host
    if not placement.placed:
        return
    compute = found.device + cuda_cache_copies(scenario, graph, cells)
    cards = len(demand.cards)
    if cards > 1:
        compute += found.pipeline
        demand.below += cards * found.pipeline
        demand.approximate += (_PIPELINE,)
    elif not found.exact:
        demand.approximate += (_COMPUTE,)
    for share in demand.cards:
        share.compute = compute
    demand.below += cards * (found.device - found.device_low)
    demand.above += cards * (found.device_high - found.device)


def _add_activations(
    demand: _Demand, scenario: Scenario, cache: CacheShape, cells: Cells, knowledge: Knowledge
) -> None:
    cards = demand.cards
    found = activation_bytes(scenario, cache, cells, knowledge.policy)
    for share in cards:
        share.compute = found.central
    demand.below += len(cards) * (found.central - found.low)
    demand.above += len(cards) * (found.high - found.central)
    demand.approximate += (_ACTIVATIONS,)
    if scenario.framework.memory_model not in _CHECKED_CACHES:
        demand.approximate += (_RULES,)
    if scenario.gpus > 1 and not splits_by_layer(scenario):
        demand.approximate += (_TENSOR,)


def _add_draft(demand: _Demand, scenario: Scenario, knowledge: Knowledge) -> None:
    """Add a draft model in the same format, context and split, wholly on the cards."""
    assert scenario.draft_model is not None
    draft = _demand(
        replace(
            scenario,
            model=scenario.draft_model,
            draft_model=None,
            gpu_layers=None,
            cpu_experts=0,
        ),
        knowledge,
    )
    for share, added in zip(demand.cards, draft.cards, strict=True):
        share.weights += added.weights
        share.kv_cache += added.kv_cache
        share.compute += added.compute
    demand.host_weights += draft.host_weights
    demand.host_compute += draft.host_compute
    demand.below += draft.below
    demand.above += draft.above
    extra = tuple(phrase for phrase in draft.approximate if phrase not in demand.approximate)
    demand.approximate += extra


def _memory(demand: _Demand, card: Card) -> Memory:
    shares, overhead = demand.cards, card.overhead
    cards = len(shares)
    weights = kv_cache = compute = 0
    for share in shares:
        weights += share.weights
        kv_cache += share.kv_cache
        compute += share.compute
    required = weights + kv_cache + compute + cards * overhead.central
    capacity, usable = card.capacity, card.usable
    free = None if usable is None else usable - demand.fullest() - overhead.central
    approximate = demand.approximate
    if overhead.central:
        approximate += (_OVERHEAD,)
    return Memory(
        capacity_bytes=None if capacity is None else cards * capacity,
        usable_bytes=None if usable is None else cards * usable,
        required_bytes=required,
        deficit_bytes=None if free is None else max(-free, 0),
        headroom_bytes=None if free is None else max(free, 0),
        weights_bytes=weights,
        kv_cache_bytes=kv_cache,
        compute_buffer_bytes=compute,
        overhead_bytes=cards * overhead.central,
        host_weights_bytes=demand.host_weights,
        host_kv_cache_bytes=demand.host_kv_cache,
        host_compute_bytes=demand.host_compute,
        nominal_weights_gb=demand.nominal_gb,
        per_gpu=_per_gpu(shares, card),
        low_bytes=required - demand.below - cards * (overhead.central - overhead.low),
        high_bytes=required + demand.above + cards * (overhead.high - overhead.central),
        approximate=approximate,
        bits_per_weight=demand.bits_per_weight,
    )


def _per_gpu(shares: list[_Share], card: Card) -> tuple[CardMemory, ...]:
    if card.capacity is None or card.usable is None:
        return ()
    overhead = card.overhead.central
    return tuple(
        [
            CardMemory(
                capacity_bytes=card.capacity,
                usable_bytes=card.usable,
                required_bytes=share.weights + share.kv_cache + share.compute + overhead,
                weights_bytes=share.weights,
                kv_cache_bytes=share.kv_cache,
                compute_buffer_bytes=share.compute,
                overhead_bytes=overhead,
            )
            for share in shares
        ]
    )


def _nominal_gb(scenario: Scenario) -> float | None:
    """The well-known rule of thumb: label parameters x bytes per weight, decimal GB."""
    label, size = scenario.model.label_parameters_b, scenario.precision.nominal_bytes_per_weight
    return None if label is None or size is None else round(label * size, 6)


def _bits_per_weight(scenario: Scenario, weights: Weights) -> float | None:
    parameters = scenario.model.parameters
    return 8 * weights.profile.total_bytes / parameters if parameters else None


def partly_guessed(memory: Memory) -> bool:
    """Whether more than the runtime's own overhead, which is always a range, is an estimate."""
    return any(not part.startswith("overhead") for part in memory.approximate)
