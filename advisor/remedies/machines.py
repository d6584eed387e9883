"""Combinations that need other hardware: several larger cards, or cards and a smaller format.

Looked at only where the present machine has no gentle remedy and no single purchase is enough.
Machines are tried from the smallest memory up, those smaller than the weights alone not at all.

Where nothing else fits, the smallest thing on the largest machine stands at the end, or the proof
that none fits: every framework that knows the model in its smallest format and cache, one sequence,
the shortest useful context, on as many of the largest cards of each maker as one machine holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.estimator.limits import MOST_CARDS
from advisor.knowledge.catalogue import MAKERS, MOSTLY_RENTED, CardRow, backend_in
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.remedies.cards import LEAST_RENTED_BANDWIDTH, can_grow, current_cards, on_card
from advisor.remedies.format_lists import (
    families_elsewhere,
    in_framework,
    other_frameworks,
    worth_having,
)
from advisor.remedies.formats import with_format
from advisor.remedies.kv_cache import BATCH, CONTEXT
from advisor.remedies.kv_cache import LAYERS_DEGREE as LAYERS
from advisor.remedies.option import Base, Option, Remedy, cards_hold, stored_bytes
from advisor.remedies.search import (
    Bounds,
    Plan,
    best_of,
    bounds,
    held_share,
    proved,
    smaller_caches,
    solved,
    stretched,
    with_cache,
    within_reach,
)
from advisor.scenario import Scenario, support
from advisor.scenario.choices import runs
from advisor.scenario.support import without_lost_drafts

_RENTED = {"datacenter": (1, 2, 4, 8)}
_BOUGHT = {"workstation": (1, 2, 3, 4), "consumer": (1, 2, 3, 4)}
"""Segment -> numbers of cards that are tried."""
_MOST_OFFERED = 8
_MOST_TRIED = 12
_LEAST_FREE, _MOST_HELD, _MORE_MEMORY = 0.03, 50.0, 1.2
"""The share of a card that stays free; what of the requests is most, %; the next step to that."""
_FP8 = "fp8"


class Machine(NamedTuple):
    """So many equal cards."""

    total_bytes: int
    cards: int
    vram_bytes: int
    card: str


def on_machines(base: Base, remedy: Remedy) -> Iterator[Option]:
    """The smallest machines that hold the model: as it is, barely lossy, with little loss."""
    found = [option for plan in _plans(base) if (option := _proved(base, remedy, plan))]
    yield from best_of(found, _MOST_OFFERED)


def _plans(base: Base) -> Iterator[tuple[Plan, Machine]]:
    kinds = list(_kinds(base))
    policy = base.knowledge.policy
    losses = (None, policy["barely_lossy_percent"], policy["little_loss_percent"])
    ways = [_Way(_within(loss), _floor(base, loss)) for loss in losses]
    if base.scenario.precision.family != _FP8:
        ways.append(_Way(_native_fp8, base.scenario.model.parameters))
    found = [p for machines in kinds for way in ways if (p := _smallest(base, machines, way))]
    if not found:
        worst = bounds(base)[-1].worst_loss_percent
        way = _Way(_within(worst), _floor(base, worst))
        found = [p for machines in kinds if (p := _smallest(base, machines, way))]
    yield from found
    if not base.request.framework and base.scenario.batch >= policy["server_from_sequences"]:
        yield from ((plan, m) for _, m in found if (plan := _as_served(base, m)))


def _floor(base: Base, loss: float | None) -> int:
    """The least that weights within a loss can take, bytes: every weight in the fewest bits.

    ``loss`` is the perplexity increase to stay within, %; None: the format stays.
    """
    if loss is None:
        return stored_bytes(base, base.scenario)
    bits = [
        precision.bits_per_weight
        for precision in base.knowledge.formats.values()
        if precision.bits_per_weight
        and precision.quality_loss_percent is not None
        and precision.quality_loss_percent <= loss
    ]
    return int(base.scenario.model.parameters * min(bits, default=0.0) / 8)


def _kinds(base: Base) -> Iterator[Sequence[Machine]]:
    """More of the same card, cards to buy, cards to rent; a laptop can only rent."""
    gpu = base.scenario.gpu
    if gpu is None or gpu.vram_bytes is None:
        return
    if can_grow(base) and not base.scenario.cards:
        own = gpu.vram_bytes
        yield [Machine(own * n, n, own, gpu.name) for n in range(base.scenario.gpus + 1, 9)]
    if gpu.segment != "mobile" and not gpu.unified_memory:
        yield _machines(base.knowledge, _BOUGHT, gpu.vendor)
    yield _machines(base.knowledge, _RENTED, MOSTLY_RENTED)


def _machines(
    knowledge: Knowledge, counts: Mapping[str, Sequence[int]], vendor: str
) -> Sequence[Machine]:
    """Every number of every card of a vendor that one could buy or rent, smallest first."""
    rows = [row for row in current_cards(knowledge) if _usable(row, counts, vendor)]
    return sorted(
        Machine(row.vram_bytes * count, count, row.vram_bytes, row.name)
        for row in rows
        for count in counts[row.segment]
    )


def _usable(row: CardRow, segments: Collection[str], vendor: str) -> bool:
    fast = row.bandwidth_bytes_s is not None and row.bandwidth_bytes_s >= LEAST_RENTED_BANDWIDTH
    cards = row.segment in segments and not row.unified_memory
    return cards and row.vendor == vendor and fast


class _Way(NamedTuple):
    """How the request is put on a machine, and the least its weights take there, bytes."""

    put: Callable[[Base, Machine], Plan | None]
    floor: int


def _smallest(base: Base, machines: Sequence[Machine], way: _Way) -> tuple[Plan, Machine] | None:
    """The smallest machine that holds the model put there in this way, and most of the requests.

    Where none of those tried holds most, the first that holds the model.
    """
    tried, floor, first = 0, way.floor, None
    for machine in machines[bisect_left(machines, floor, key=itemgetter(0)) :]:
        if machine.total_bytes < floor:
            continue
        plan = way.put(base, machine)
        if plan is None:
            continue
        floor = stored_bytes(base, plan.scenario)
        if machine.total_bytes < floor:
            continue
        free = _free(base, plan.scenario)
        if free >= 0:
            first = first or (plan, machine)
            if held_share(base, plan.scenario) >= _MOST_HELD:
                return plan, machine
            floor = round(machine.total_bytes * _MORE_MEMORY)
        else:
            floor = machine.total_bytes - free * machine.cards // 2
        tried += 1
        if tried == _MOST_TRIED:
            break
    return first


def _within(loss: float | None) -> Callable[[Base, Machine], Plan | None]:
    """In the smallest format of its framework within a loss; None: as it is."""

    def way(base: Base, machine: Machine) -> Plan | None:
        plan = _on(base, machine, any_format=loss is not None)
        if plan is None or not _splits(plan.scenario):
            return None
        if loss is None:
            return plan if plan.steps > 1 else None
        precision = _smallest_within(base, plan.scenario, loss)
        return with_format(plan, precision) if precision else None

    return way


def _native_fp8(base: Base, machine: Machine) -> Plan | None:
    """In FP8, here or in the framework that runs it, where the cards compute in it."""
    plan = _on(base, machine, any_format=True)
    if plan is None or not plan.scenario.gpu:
        return None
    card, there = plan.scenario.gpu, replace(base, scenario=plan.scenario)
    for precision in worth_having(plan.scenario, base.knowledge):
        if precision.family == _FP8 and support.is_native(precision, card):
            return with_format(plan, precision)
    elsewhere = families_elsewhere(plan.scenario, base.knowledge)
    for family in () if base.request.framework else elsewhere:
        precision, framework = family[0]
        if precision.family == _FP8 and support.is_native(precision, card):
            scenario = in_framework(there, framework, precision)
            if scenario is None or not _splits(scenario):
                return None
            change = {"precision": precision.name, "framework": framework.name}
            return plan.then(scenario, change, "rebuild")
    return None


def _as_served(base: Base, machine: Machine) -> Plan | None:
    """In as many bits as was asked, in a server: less than FP8, so its cache holds more."""
    plan = None if base.scenario.framework.serves_batches else _on(base, machine, any_format=True)
    if plan is None:
        return None
    there = replace(base, scenario=plan.scenario)
    for precision, framework in other_frameworks(plan.scenario, base.knowledge):
        scenario = in_framework(there, framework, precision)
        if framework.serves_batches and scenario and _splits(scenario):
            change = {"precision": precision.name, "framework": framework.name}
            return plan.then(scenario, change, "rebuild")
    return None


def _on(base: Base, machine: Machine, *, any_format: bool) -> Plan | None:
    """The request on a machine, wholly on its cards."""
    card = base.knowledge.gpus[machine.card]
    plan = Plan(replace(base.scenario, gpu_layers=None, cpu_experts=0, cards=()))
    if card is not base.scenario.gpu or base.scenario.cards:
        moved = on_card(replace(base, scenario=plan.scenario), card, any_format=any_format)
        if moved is None:
            return None
        plan = plan.then(moved, {"gpu": card.name}, "purchase")
    if machine.cards != base.scenario.gpus:
        scenario = replace(plan.scenario, gpus=machine.cards)
        plan = plan.then(scenario, {"gpus": machine.cards}, "purchase")
    return plan


def _splits(scenario: Scenario) -> bool:
    return support.can_share(scenario.framework, scenario.precision, scenario.model, scenario.gpus)


def _smallest_within(base: Base, scenario: Scenario, loss: float) -> Format | None:
    """The smallest format worth having whose loss is measured and within the bound."""
    own = stored_bytes(base, base.scenario)
    for precision in worth_having(scenario, base.knowledge):
        found = support.format_loss(precision, scenario.model)
        if found is not None and found <= loss:
            smaller = stored_bytes(base, scenario, precision) < own
            return precision if smaller else None
    return None


def _free(base: Base, scenario: Scenario) -> int:
    """What stays free on the fullest card beyond a small margin, bytes."""
    free = free_bytes(scenario, base.knowledge)
    assert free is not None
    assert scenario.gpu
    assert scenario.gpu.vram_bytes
    return free - round(scenario.gpu.vram_bytes * _LEAST_FREE)


def _proved(base: Base, remedy: Remedy, found: tuple[Plan, Machine]) -> Option | None:
    plan, machine = found
    option = proved(base, remedy, plan, _price(base, machine))
    return option if option.fits else None


def _price(base: Base, machine: Machine) -> float | None:
    """Launch prices of what has to be bought; none is carried for rented cards."""
    card = base.knowledge.gpus[machine.card]
    if card.segment == "datacenter" or not card.launch_price_usd:
        return None
    at_hand = base.scenario.gpus if card is base.scenario.gpu else 0
    return card.launch_price_usd * (machine.cards - at_hand)


def _propose(base: Base, _: object, found: Mapping[str, Option]) -> Iterator[Option]:
    """As asked on large cards, else the smallest set-up that fits, where nothing else does."""
    if not base.fits and not any(within_reach(base, option) for option in found.values()):
        yield from islice(chain(as_asked(base), least(base)), 1)


def as_asked(base: Base) -> Iterator[Option]:
    """The request as it stands on the fewest of the largest cards, where that fits."""
    own, limits = base.scenario, bounds(base)[-1]
    there = (
        _moved(base, framework, own.precision, card, count)
        for count in _RENTED["datacenter"]
        for card in _largest_cards(base)
        for framework in _frameworks(base)
        if count <= _cards(framework, own.precision, own.model, card)
        if own.precision in _formats(base, framework, card, limits)
    )
    held = (plan for plan in there if cards_hold(base, plan.scenario))
    options = (proved(base, LAST_RESORT, plan, steps=2) for plan in held)
    yield from islice((option for option in options if within_reach(base, option)), 1)


def least(base: Base) -> Iterator[Option]:
    """The first of the smallest set-ups that fits."""
    limits = bounds(base)[-1]
    for plan in least_set_ups(base, limits):
        held = plan if cards_hold(base, plan.scenario) else None
        if held is None and LAYERS.applies(plan.scenario, limits):
            held = solved(base, plan, LAYERS, limits)
        if held is None:
            continue
        option = proved(base, LAST_RESORT, held, steps=2)
        if within_reach(base, option):
            yield option
            return


def least_set_ups(base: Base, limits: Bounds) -> Iterator[Plan]:
    """Every framework in its smallest format on the largest machine of every maker."""
    for card in _largest_cards(base):
        for framework in _frameworks(base):
            if formats := _formats(base, framework, card, limits):
                scenario = replace(base.scenario, framework=framework)
                precision = min(formats, key=partial(stored_bytes, base, scenario))
                count = _cards(framework, precision, scenario.model, card)
                yield _stripped(base, _moved(base, framework, precision, card, count), limits)


def _frameworks(base: Base) -> Sequence[Framework]:
    own = base.scenario.framework
    others = [f for f in base.knowledge.frameworks.values() if f is not own]
    return [f for f in (own, *others) if f.sized]


def _largest_cards(base: Base) -> Sequence[Gpu]:
    largest: dict[str, Gpu] = {}
    for row in current_cards(base.knowledge):
        largest[row.vendor] = base.knowledge.gpus[row.name]
    asked = base.request.backend
    now = base.scenario.backend
    usable = [g for g in largest.values() if not asked or now in MAKERS[g.vendor].backends]
    return sorted(usable, key=lambda g: (-(g.vram_bytes or 0), g.name))


def _formats(base: Base, framework: Framework, card: Gpu, limits: Bounds) -> Sequence[Format]:
    scenario = base.scenario
    return [
        f
        for name in framework.formats
        if (f := base.knowledge.formats[name]).offered
        and f.bits_per_weight is not None
        and limits.takes(f)
        and runs(base.knowledge, framework, f, card, scenario.model)
        and support.runs_kv(framework, scenario.kv_cache_k, card, scenario.model.shape)
        and support.runs_kv(framework, scenario.kv_cache_v, card, scenario.model.shape)
    ]


def _moved(base: Base, framework: Framework, precision: Format, card: Gpu, count: int) -> Plan:
    own, flash = base.scenario, base.request.flash_attention
    scenario = replace(
        own,
        gpu=card,
        gpus=count,
        framework=framework,
        precision=precision,
        backend=backend_in(framework, card, base.request.backend and own.backend),
        flash_attention=framework.flash_attention is not False if flash is None else flash,
        gpu_layers=None,
        cpu_experts=0,
        cards=(),
    )
    scenario = without_lost_drafts(scenario)
    change: dict[str, object] = {"gpu": card.name, "gpus": count}
    change |= {"precision": precision.name, "framework": framework.name}
    return Plan(scenario, change, 3, "purchase")


def _cards(framework: Framework, precision: Format, model: Model, card: Gpu) -> int:
    if not framework.multi_gpu or card.unified_memory:
        return 1
    counts = range(MOST_CARDS, 0, -1)
    return next(n for n in counts if support.can_share(framework, precision, model, n))


def _stripped(base: Base, plan: Plan, limits: Bounds) -> Plan:
    for degree in (CONTEXT, BATCH):
        if degree.applies(plan.scenario, limits):
            plan = stretched(base, plan, degree, limits)
    kinds = smaller_caches(base, plan.scenario, limits)
    return with_cache(base, plan, kinds[-1]) if kinds else plan


LAST_RESORT = Remedy("combine", frozenset(), "purchase", _propose, joins=True)
