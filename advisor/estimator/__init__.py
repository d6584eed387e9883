"""What a scenario occupies and how fast it runs: one formula each, fitted to measurements."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.kv_cache import HEAD_GUESSED, cache_room, head_memory, kept_by_shard
from advisor.estimator.placement import Card, Fixed, cards_of, fixed_of, splits_by_layer, traded
from advisor.memo import Kept
from advisor.models import text_alone
from advisor.runtimes import runtime_of
from advisor.runtimes.base import Cells, Compute, Range, Weights
from advisor.scenario import (
    divides_requests,
    holding,
    is_mixed,
    is_pipeline,
    sequences_of_a_rank,
    size_key,
)
from advisor.scenario.figures import UNCHECKED, CardMemory, Memory
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.scenario import Key, Scenario

Placed = tuple[Sequence[Card], Fixed]
"""What a card offers, and what lies on it whatever the context and the batch."""
_OVERHEAD = "overhead: the runtime's own memory, published as a range"
_MIX = "weights: a maker's own mix of types, sized as a listed format"
_SPLIT = "split: unequal cards are taken to share the layers by the memory that is free on them"


class _Share(Struct):
    """One card's bytes before the runtime's overhead."""

    weights: int
    kv_cache: int
    compute: int
    below: int = 0
    """How far the true figure may lie below the sum, bytes."""
    above: int = 0


_Loaded = tuple[Fixed, Cells, Compute, Compute, list[_Share]]
"""What one model takes: what it computes in, what the tower that reads images does, by card."""


class _Demand(Struct):
    """What a model asks for, over all cards and the host."""

    cards: list[_Share]
    host_weights: int
    host_kv_cache: int
    host_compute: int
    approximate: tuple[str, ...]
    fixed: Fixed
    cells: Cells
    layers_by_card: tuple[int, ...] = ()


def estimate_memory(scenario: Scenario, knowledge: Knowledge) -> Memory:
    """Size everything a scenario occupies.

    Without a card only what is needed is computed.

    Gives bytes by part and card, with the verdict arithmetic.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    cards = cards_of(scenario, knowledge)
    held = _held(scenario, knowledge, cards)
    if held is not None:
        scenario = holding(scenario, held)
    return _memory(scenario, _whole_demand(scenario, knowledge, cards), cards, held, knowledge)


def free_bytes(
    scenario: Scenario,
    knowledge: Knowledge,
    *,
    once: bool = False,
    in_full: bool = False,
    placed: Placed | None = None,
) -> int | None:
    """Say what stays free on the fullest card, bytes, negative when it does not run.

    The same arithmetic as ``estimate_memory`` without its details; None without a card. A server
    must hold one sequence of its batch; the others may wait.

    ``once`` keeps nothing, as a search passes sizes that nobody will ask for again; ``in_full``
    asks for the whole batch at once of a server too; ``placed`` is what lies on its card, where
    that is known already.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    cards, fixed = placed or (cards_of(scenario, knowledge), None)
    if cards[0].usable is None:
        return None
    if not in_full and runtime_of(scenario.framework).claims_memory:
        scenario = holding(scenario, 1)
    if once and scenario.draft_model is None and not scenario.mtp:
        return _least_free(_loaded(scenario, knowledge, cards, fixed=fixed)[-1], cards)
    demand_of = _fresh_demand if once else _whole_demand
    return _least_free(demand_of(scenario, knowledge, cards).cards, cards)


def _least_free(shares: list[_Share], cards: Sequence[Card]) -> int:
    """What stays free on the fullest card, bytes."""
    least = []
    for share, card in zip(shares, cards, strict=True):
        others = share.weights + share.compute + card.overhead.central
        usable = card.offers(others) if card.cache_share < 1 else card.usable or 0
        least.append(usable - others - share.kv_cache)
    return min(least)


def _held(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> int | None:
    """Count the sequences of its batch that a server holds at once, one at least.

    It lets the others wait. None for runtimes that set the whole batch aside.
    """
    if not runtime_of(scenario.framework).claims_memory or cards[0].usable is None:
        return None

    def lacks(batch: int) -> bool:
        demand = _fresh_demand(holding(scenario, batch), knowledge, cards)
        return _least_free(demand.cards, cards) < 0

    whole = _whole_demand(scenario, knowledge, cards)
    if scenario.batch == 1 or _least_free(whole.cards, cards) >= 0:
        return scenario.batch
    return bisect_left(range(2, scenario.batch), True, key=lacks) + 1


_kept: Kept[Key, tuple[Knowledge, Key, _Demand]] = Kept(2_048)
"""Without it a plan takes 1.06 times as long, lines of ``estimate`` 1.04."""


def _whole_demand(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> _Demand:
    """Give the demand, kept: with any number of equal cards it is the same on all of a catalogue.

    An entry holds the records whose identity is in its key, so that none can be taken for another.
    """
    if scenario.cards:
        return _fresh_demand(scenario, knowledge, cards)
    sees_card = runtime_of(scenario.framework).sees_card
    key, records = size_key(scenario, scenario.gpu if sees_card else None)
    found = _kept.get(key)
    if found is None or found[0] is not knowledge:
        found = (knowledge, records, _fresh_demand(scenario, knowledge, cards))
        _kept.put(key, found)
    return found[2]


def placed_of(scenario: Scenario, knowledge: Knowledge) -> Placed:
    """Say what lies on one card whatever the context and the batch, as the scenario was sized."""
    cards = cards_of(scenario, knowledge)
    return cards, _whole_demand(scenario, knowledge, cards).fixed


def _fresh_demand(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> _Demand:
    demand = _demand(scenario, knowledge, cards)
    if scenario.draft_model is not None:
        _add_draft(demand, scenario, knowledge, cards)
    if scenario.mtp:
        _add_head(demand, scenario, knowledge.policy)
    return demand


def _demand(
    scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card], *, beside: bool = False
) -> _Demand:
    """Size what one model takes; ``beside`` another that the runtime has on these cards."""
    fixed, cells, found, seen, shares = _loaded(scenario, knowledge, cards, beside=beside)
    weights, cache, placement = fixed.weights, fixed.cache, fixed.placement
    demand = _Demand(
        cards=shares,
        host_weights=placement.host,
        host_kv_cache=cells.bytes_of(cache, 0, placement.start) if placement.start else 0,
        host_compute=found.host,
        approximate=weights.approximate + cache.approximate + found.approximate + seen.approximate,
        fixed=fixed,
        cells=cells,
        layers_by_card=placement.layers_by_card,
    )
    runtime, beyond = scenario.framework, scenario.framework.beyond
    chip = scenario.gpu.architecture if scenario.gpu else ""
    unread = {scenario.precision.name, chip}.intersection(beyond)
    if scenario.stands_in or not runtime.memory_checked or unread:
        demand.approximate += (UNCHECKED,)
    demand.approximate += traded(scenario, knowledge)
    if scenario.cards and len(placement.cards) > 1 and not is_pipeline(scenario):
        demand.approximate += (_SPLIT,)
    unsure = weights.spread
    if is_mixed(scenario):
        unsure = max(unsure, knowledge.policy["mixed_format_percent"] / 100)
        demand.approximate += (_MIX,)
    for share in shares:
        spread = round(unsure * share.weights)
        fewer = round(weights.lean * share.weights)
        share.below += max(spread, fewer) + round(cache.loose * share.kv_cache)
        share.above += spread
    return demand


def _loaded(
    scenario: Scenario,
    knowledge: Knowledge,
    cards: Sequence[Card],
    *,
    beside: bool = False,
    fixed: Fixed | None = None,
) -> _Loaded:
    """Size what a search asks for again and again; nothing is told of it."""
    fixed = fixed or fixed_of(scenario, knowledge, cards)
    cache, runtime = fixed.cache, runtime_of(scenario.framework)
    each, batch = scenario, sequences_of_a_rank(scenario)
    if batch < scenario.batch:
        slots = -(-scenario.slots * batch // scenario.batch)
        each = replace(scenario, batch=batch, slots=slots)
    cells = runtime.cells(each, cache.window, knowledge.policy)
    size = runtime.compute_beside if beside else runtime.compute
    found = size(each, cache, cells, fixed.placement, knowledge.policy)
    shares = _shares(scenario, fixed, cells)
    if runtime.lays_sixteen(scenario):
        _lay_first(shares, scenario, knowledge, cards, cells)
    for share in shares:
        _hold(share, found.device)
    if found.sent.high:
        _hold(shares[0], found.sent)
    seen = runtime.image_compute(each, knowledge.policy)
    if seen.device.high:
        for share in shares[: 1 if splits_by_layer(scenario) else None]:
            _hold(share, seen.device)
    return fixed, cells, found, seen, shares


def _shares(scenario: Scenario, fixed: Fixed, cells: Cells) -> list[_Share]:
    shares = [
        _Share(card.weights, cells.bytes_of(fixed.cache, card.first, card.last), 0)
        for card in fixed.placement.cards
    ]
    cards = scenario.gpus
    if len(shares) == cards:
        return shares
    whole = shares[0]
    if divides_requests(scenario):
        routed = fixed.weights.expert_sums[-1]
        each = whole.weights - routed + -(-routed // cards)
        return [_Share(each, whole.kv_cache, 0) for _ in range(cards)]
    ranks, found = cards // len(shares), list[_Share]()
    for share, on_cards in zip(shares, fixed.placement.cards, strict=True):
        kept = kept_by_shard(scenario, fixed.cache, cells, on_cards.first, on_cards.last)
        found += [_Share(-(-share.weights // ranks), kept, 0) for _ in range(ranks)]
    return found


def _lay_first(
    shares: list[_Share],
    scenario: Scenario,
    knowledge: Knowledge,
    cards: Sequence[Card],
    cells: Cells,
) -> None:
    """Count the 16 bits that lie on a card before they are packed, where it cannot hold them."""
    laid = replace(scenario, precision=knowledge.formats["FP16"])
    whole = _shares(laid, fixed_of(laid, knowledge, cards), cells)
    for share, first, card in zip(shares, whole, cards, strict=True):
        if card.usable is not None and first.weights + card.overhead.central > card.usable:
            share.weights = first.weights


def _hold(share: _Share, found: Range) -> None:
    share.compute += found.central
    share.below += found.central - found.low
    share.above += found.high - found.central


def _add_draft(
    demand: _Demand, scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]
) -> None:
    """Add a draft model in the same format, context and split, wholly on the cards."""
    assert scenario.draft_model is not None
    small = text_alone(scenario.draft_model)
    alone = replace(scenario, model=small, draft_model=None, gpu_layers=None, cpu_experts=0)
    draft = _demand(alone, knowledge, cards, beside=True)
    for share, added in zip(demand.cards, draft.cards, strict=True):
        share.weights += added.weights
        share.kv_cache += added.kv_cache
        share.compute += added.compute
        share.below += added.below
        share.above += added.above
    demand.host_weights += draft.host_weights
    demand.host_compute += draft.host_compute
    extra = tuple(phrase for phrase in draft.approximate if phrase not in demand.approximate)
    demand.approximate += extra


def _add_head(demand: _Demand, scenario: Scenario, policy: Mapping[str, float]) -> None:
    """Add the model's own draft head: the last card has it, or every one a shard."""
    bits = _bits_per_weight(scenario, demand.fixed.weights) or 16
    head = head_memory(scenario, bits, policy)
    holders = demand.cards[-1:] if splits_by_layer(scenario) else demand.cards
    for share in holders:
        share.weights += -(-head.weights // len(holders))
        share.kv_cache += -(-head.kv_cache // len(holders))
        share.compute += head.compute
        share.below += -(-head.below // len(holders))
        share.above += -(-head.above // len(holders))
    demand.approximate += (HEAD_GUESSED,)


def _memory(
    scenario: Scenario,
    demand: _Demand,
    cards: Sequence[Card],
    held: int | None,
    knowledge: Knowledge,
) -> Memory:
    shares, each = demand.cards, tuple(map(_card, demand.cards, cards))
    weights = kv_cache = compute = below = above = overhead = 0
    for share, card in zip(shares, cards, strict=True):
        weights += share.weights
        kv_cache += share.kv_cache
        compute += share.compute
        overhead += card.overhead.central
        below += share.below + card.overhead.central - card.overhead.low
        above += share.above + card.overhead.high - card.overhead.central
    required = weights + kv_cache + compute + overhead
    known = cards[0].usable is not None
    free = _least_free(shares, cards) if known else None
    approximate = demand.approximate
    if overhead:
        approximate += (_OVERHEAD,)
    return Memory(
        capacity_bytes=sum(card.capacity or 0 for card in cards) if known else None,
        usable_bytes=sum(card.usable_bytes for card in each) if known else None,
        required_bytes=required,
        deficit_bytes=None if free is None else max(-free, 0),
        headroom_bytes=None if free is None else max(free, 0),
        weights_bytes=weights,
        kv_cache_bytes=kv_cache,
        compute_buffer_bytes=compute,
        overhead_bytes=overhead,
        host_weights_bytes=demand.host_weights,
        host_kv_cache_bytes=demand.host_kv_cache,
        host_compute_bytes=demand.host_compute,
        nominal_weights_gb=_nominal_gb(scenario),
        per_gpu=each if known else (),
        low_bytes=required - below,
        high_bytes=required + above,
        approximate=approximate,
        bits_per_weight=_bits_per_weight(scenario, demand.fixed.weights),
        layers_by_card=demand.layers_by_card,
        cache_room=cache_room(scenario, demand.fixed.cache, demand.cells, each, knowledge.policy)
        if held
        else None,
        held_sequences=held,
    )


def _card(share: _Share, card: Card) -> CardMemory:
    overhead = card.overhead
    others = share.weights + share.compute + overhead.central
    required = others + share.kv_cache
    return CardMemory(
        name=plain(card.name),
        capacity_bytes=card.capacity or 0,
        usable_bytes=card.offers(others),
        required_bytes=required,
        weights_bytes=share.weights,
        kv_cache_bytes=share.kv_cache,
        compute_buffer_bytes=share.compute,
        overhead_bytes=overhead.central,
        low_bytes=required - share.below - (overhead.central - overhead.low),
        high_bytes=required + share.above + (overhead.high - overhead.central),
        share_binds=card.share_binds,
    )


def _nominal_gb(scenario: Scenario) -> float | None:
    """The well-known rule of thumb: label parameters x bytes per weight, decimal GB."""
    label, size = scenario.model.label_parameters_b, scenario.precision.nominal_bytes_per_weight
    return None if label is None or size is None else round(label * size, 6)


def _bits_per_weight(scenario: Scenario, weights: Weights) -> float | None:
    parameters = scenario.model.parameters
    return 8 * weights.profile.total_bytes / parameters if parameters else None
