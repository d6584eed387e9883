"""Combinations that need other hardware: several larger cards, or cards and a smaller format.

Looked at only where the present machine has no gentle remedy and no single purchase is enough.
Machines are tried from the smallest memory up, those smaller than the weights alone not at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.knowledge.catalogue import MOSTLY_RENTED, CardRow
from advisor.knowledge.types import Format, Knowledge
from advisor.remedies.cards import LEAST_RENTED_BANDWIDTH, can_grow, current_cards, on_card
from advisor.remedies.formats import (
    families_elsewhere,
    in_framework,
    other_frameworks,
    with_format,
    worth_having,
)
from advisor.remedies.option import Base, Option, Remedy, stored_bytes
from advisor.remedies.search import Plan, best_of, bounds, proved
from advisor.scenario import Scenario, support

_RENTED = {"datacenter": (1, 2, 4, 8)}
_BOUGHT = {"workstation": (1, 2, 3, 4), "consumer": (1, 2, 3, 4)}
"""Segment -> numbers of cards that are tried."""
_MOST_OFFERED = 8
_MOST_TRIED = 12
_LEAST_FREE = 0.03
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
    if not base.request.framework and base.scenario.precision.family != _FP8:
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

    Args:
        base: The request.
        loss: Perplexity increase to stay within, %; None: the format stays.
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
    """The smallest machine that holds the model put there in this way."""
    tried, floor = 0, way.floor
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
            return plan, machine
        floor = machine.total_bytes - free * machine.cards // 2
        tried += 1
        if tried == _MOST_TRIED:
            break
    return None


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
    """In FP8, in the framework that runs it, where the cards compute in it."""
    plan = _on(base, machine, any_format=True)
    if plan is None:
        return None
    card, there = plan.scenario.gpu, replace(base, scenario=plan.scenario)
    for family in families_elsewhere(plan.scenario, base.knowledge):
        precision, framework = family[0]
        if precision.family == _FP8 and card and support.is_native(precision, card):
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
    owned = base.scenario.gpus if card is base.scenario.gpu else 0
    return card.launch_price_usd * (machine.cards - owned)
