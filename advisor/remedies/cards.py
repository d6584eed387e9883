"""Other cards: more or fewer of them, other or rented ones, or the requests divided over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import free_bytes
from advisor.estimator.limits import MOST_CARDS, can_double, fewest_gpus
from advisor.knowledge import catalogue
from advisor.knowledge.catalogue import MAKERS, MOSTLY_RENTED, TOGETHER, CardRow, default_backend
from advisor.knowledge.types import Gpu, Knowledge
from advisor.reading import find_cards
from advisor.remedies.format_lists import read_again
from advisor.remedies.option import (
    Base,
    Option,
    Remedy,
    cards_hold,
    make_option,
    stored_bytes,
    whole_if_held,
)
from advisor.remedies.search import held_share
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, is_usual_split, split_of, support
from advisor.scenario.capability import is_obtainable
from advisor.scenario.choices import runs, runs_as_stated
from advisor.scenario.figures import BreakEven
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB

_PER_SEGMENT = {True: 2, False: 1}
"""What-ifs per segment, by whether it is the present vendor's or, of rented cards, the usual."""
_MUCH_FASTER, _MOST_SECOND_CARDS = 1.3, 2
_LEAST_ON_CARDS = 0.75
"""Weights that must lie on two cards: an input embedding may stay in system RAM."""
_FOR_SALE = frozenset({"consumer", "workstation", "datacenter"})
MOST_RENTED, LEAST_RENTED_BANDWIDTH = 8, 300e9
"""As many cards as one rents; slower ones, in bytes per second, are made for video and desktops."""


def _more(base: Base, *_: object) -> Iterator[Option]:
    """The fewest equal cards that hold the model, or two where one already does.

    Of unequal cards the largest is taken again, in place of the others. Where a framework that
    splits every tensor needs more cards than a pipeline of whole layers, both are tried.
    """
    scenario = base.scenario
    gpu = _largest(scenario.cards) if scenario.cards else scenario.gpu
    if gpu is None or not can_grow(base) or _holds_what_was_split(base):
        return
    if base.card_fits and scenario.framework.multi_gpu[0] != "tensor":
        return
    at_hand = sum(card.name == gpu.name for card in scenario.cards) or scenario.gpus
    by_layer = False
    for count in range(max(at_hand + 1, 2), MOST_CARDS + 1):
        other = replace(scenario, gpu=gpu, gpus=count, cards=())
        as_asked = split_of(other) == scenario.split or is_usual_split(other)
        if not (as_asked and cards_hold(base, other)):
            other = replace(other, split="layer")
            no_help = by_layer or base.card_fits or split_of(other) != "layer"
            if no_help or not cards_hold(base, other):
                continue
        option = _with_cards(base, whole_if_held(base, other), count - at_hand)
        if option.fits:
            yield option
            if other.split == scenario.split:
                return
            by_layer = True


def _holds_what_was_split(base: Base) -> bool:
    """Whether the card at hand would hold all of what was split: nothing has to be bought."""
    return whole_if_held(base, base.scenario) is not base.scenario


def _with_cards(base: Base, other: Scenario, bought: int) -> Option:
    price = other.gpu.launch_price_usd if other.gpu else None
    change: dict[str, object] = {"gpus": other.gpus}
    if base.scenario.cards and other.gpu:
        change["gpu"] = other.gpu.name
    if other.split != base.scenario.split:
        change["split"] = other.split
    cost = price * bought if price else None
    return make_option(base, MORE, change, other, cost_usd=cost)


def can_grow(base: Base) -> bool:
    """Whether equal cards can be added: a slot for them, and a framework that splits."""
    cards = base.scenario.cards
    largest = _largest(cards) if cards else base.scenario.gpu
    return can_double(replace(base.scenario, gpu=largest, cards=()))


def _largest(cards: Sequence[Gpu]) -> Gpu:
    return max(cards, key=lambda card: (card.vram_bytes or 0, card.bandwidth_bytes_s or 0.0))


def _others(base: Base, *_: object) -> Iterator[Option]:
    """Cards that hold the request where this one does not, or much faster ones where it does.

    After one that holds it narrowly, or few of the requests, larger ones are tried as well.
    """
    gpu = base.scenario.gpu
    if gpu is None or gpu.vram_bytes is None or _holds_what_was_split(base):
        return
    found: dict[tuple[str, bool], int] = {}
    most: dict[tuple[str, bool], int] = {}
    for row in _worth_a_look(base, gpu):
        kind = "unified" if row.unified_memory else row.segment
        usual = row.vendor == (MOSTLY_RENTED if row.segment == "datacenter" else gpu.vendor)
        slot = (kind, usual)
        if found.get(slot, 0) < (1 if row.unified_memory else _PER_SEGMENT[usual]):
            scenario = _published_on(base, _sold(row, base.knowledge))
            scenario = scenario and _more_if_rented(base, whole_if_held(base, scenario))
            option = scenario and cards_hold(base, scenario) and _card_option(base, scenario)
            if scenario and option and option.fits:
                enough = option.margin != "thin" and bool(option.alone["option.holds_surely"])
                more = (option.memory.held_sequences or 1) > most.get(slot, 0)
                if enough or more:
                    yield option
                    most[slot] = option.memory.held_sequences or 1
                found[slot] = found.get(slot, 0) + enough


def _worth_a_look(base: Base, gpu: Gpu) -> Sequence[CardRow]:
    """A cheap test before the estimate: cards that are larger, or as large and much faster."""
    rows, least = _with_sizes(base.knowledge, gpu.vendor), gpu.vram_bytes
    assert least
    if base.scenario.cards:
        least = _largest(base.scenario.cards).vram_bytes or 0
        return [row for row in rows if row.vram_bytes > least]
    if not base.fits:
        weights, count = _least_weights(base), base.scenario.gpus
        larger = (row for row in rows if row.vram_bytes > least and not _step_back(gpu, row))
        twice = {"datacenter": 2} if 2 * count == MOST_RENTED else {}
        return [r for r in larger if r.vram_bytes * count * twice.get(r.segment, 1) >= weights]
    fast = (gpu.bandwidth_bytes_s or float("inf")) * _MUCH_FASTER
    large = (row for row in rows if row.vram_bytes >= least)
    return [row for row in large if row.bandwidth_bytes_s and row.bandwidth_bytes_s >= fast]


def _least_weights(base: Base) -> int:
    """The weights as asked, or as the model was released where nobody publishes them so."""
    own, formats = base.scenario, base.knowledge.formats
    released = () if _is_published(own) else own.model.native_formats
    sizes = (stored_bytes(base, own, formats[name]) for name in released)
    return min([base.memory.weights_bytes, *sizes])


def _published_on(base: Base, card: Gpu) -> Scenario | None:
    """The request on a card to buy or rent; of what nobody publishes so the release, if smaller."""
    scenario = on_card(base, card)
    if scenario is None or _is_stopgap(base, scenario):
        return None
    if _is_published(scenario):
        return scenario
    stated = replace(base.first or base.request, precision=None, framework=scenario.framework.name)
    released = _stated_on(base, stated, card, scenario.gpus)
    smaller = released and stored_bytes(base, released) <= stored_bytes(base, scenario)
    return released if released and smaller and _is_published(released) else scenario


def _is_stopgap(base: Base, scenario: Scenario) -> bool:
    """Whether a rented card would run what stands in for the server that was stated."""
    rented = scenario.gpu and scenario.gpu.segment == "datacenter"
    meant = base.gave_way and base.gave_way.serves_batches
    return bool(rented and meant) and not scenario.framework.serves_batches


def _is_published(scenario: Scenario) -> bool:
    """Whether somebody publishes the weights so; of few bits the 16 that they came from do not."""
    precision, model = scenario.precision, scenario.model
    rounded = model.native_formats and precision.family == "unquantized"
    return not rounded and is_obtainable(scenario.framework, precision, model)


def _more_if_rented(base: Base, scenario: Scenario) -> Scenario:
    """Twice as many rented cards where so many hold few of the requests, or half a machine none."""
    gpu, twice = scenario.gpu, replace(scenario, gpus=2 * scenario.gpus)
    if not gpu or gpu.segment != "datacenter" or twice.gpus > MOST_RENTED:
        return scenario
    held, half = cards_hold(base, scenario), twice.gpus == MOST_RENTED
    enough = _holds_most(base, scenario) if held else not half
    return scenario if enough or not cards_hold(base, twice) else twice


def _holds_most(base: Base, scenario: Scenario) -> bool:
    return held_share(base, scenario) >= base.knowledge.policy["few_held_percent"]


def _with_sizes(knowledge: Knowledge, vendor: str) -> Sequence[CardRow]:
    """The cards one could buy, and machines of one memory in the sizes that they are sold with."""
    rows = set(current_cards(knowledge))
    for row in catalogue.cards(knowledge):
        if MAKERS[row.vendor].one_memory:
            own = row.vendor == vendor
            least = 0 if own else knowledge.policy["unified_upgrade_least_bytes"]
            sizes = catalogue.sizes_of(knowledge.gpus[row.name])
            rows.update(row._replace(vram_bytes=size) for size in sizes if size >= least)
    return sorted(rows, key=_smallest_and_cheapest)


def _sold(row: CardRow, knowledge: Knowledge) -> Gpu:
    """The card in the size of the row."""
    card = knowledge.gpus[row.name]
    return card if card.vram_bytes == row.vram_bytes else replace(card, vram_bytes=row.vram_bytes)


def _step_back(gpu: Gpu, row: CardRow) -> bool:
    """Whether it is a machine of the same maker and kind, and reads its memory more slowly."""
    alike = gpu.unified_memory and row.unified_memory and row.vendor == gpu.vendor
    return bool(alike) and (row.bandwidth_bytes_s or 0.0) < (gpu.bandwidth_bytes_s or 0.0)


def _card_option(base: Base, scenario: Scenario) -> Option:
    card = scenario.gpu
    assert card
    remedy, price = RENTED if card.segment == "datacenter" else LARGER, card.launch_price_usd
    cost = price * scenario.gpus if price and remedy is LARGER else None
    usual = base.knowledge.gpus[card.name].vram_bytes == card.vram_bytes
    name = card.name if usual else f"{card.name}:{(card.vram_bytes or 0) / GIB:g}GB"
    change: dict[str, object] = {"gpu": name}
    if scenario.gpus > base.scenario.gpus:
        change["gpus"] = scenario.gpus
    return make_option(base, remedy, change, scenario, cost_usd=cost)


def on_card(base: Base, card: Gpu, *, any_format: bool = False) -> Scenario | None:
    """The request on another card; None where its framework or format does not run there.

    ``any_format``: the format is going to change too, so need not run.
    """
    scenario, known = base.scenario, base.knowledge
    if base.request.backend and default_backend(card) != scenario.backend:
        return None
    gpus = 1 if scenario.cards or card.stands_alone else scenario.gpus
    if base.first and (first := _stated_on(base, base.first, card, gpus)):
        return first
    framework, precision = scenario.framework, read_again(base, card)
    runs_it = any_format or runs_as_stated(known, framework, precision, card, scenario.model)
    if support.never_there(framework, card) or not runs_it:
        return None
    return replace(
        scenario,
        gpu=card,
        precision=precision,
        gpus=gpus,
        cards=(),
        backend=scenario.backend if base.request.backend else default_backend(card),
    )


def _stated_on(base: Base, stated: Request, card: Gpu, gpus: int) -> Scenario | None:
    """What was stated, on a card that runs it as it stands; else None."""
    there = replace(stated, gpu=card.name, gpus=gpus, context=base.scenario.context_tokens)
    with suppress(UserError):
        return replace(resolve(there, base.knowledge), gpu=card)
    return None


def current_cards(knowledge: Knowledge) -> Sequence[CardRow]:
    """Cards and machines one could still buy or rent, smallest and cheapest first."""
    rows = [row for row in catalogue.cards(knowledge) if _is_current(row, knowledge)]
    return sorted(rows, key=_smallest_and_cheapest)


def _is_current(row: CardRow, knowledge: Knowledge) -> bool:
    """Whether it is recent and, if it shares its memory, large enough to be bought for this."""
    policy = knowledge.policy
    recent = row.released is None or int(row.released[:4]) >= policy["upgrade_oldest_year"]
    if row.unified_memory:
        return recent and row.vram_bytes >= policy["unified_upgrade_least_bytes"]
    slow = (row.bandwidth_bytes_s or 0.0) < LEAST_RENTED_BANDWIDTH
    return recent and row.segment in _FOR_SALE and not (slow and row.segment == "datacenter")


def _smallest_and_cheapest(row: CardRow) -> tuple[int, bool, float, str]:
    return (row.vram_bytes, not row.launch_price_usd, row.launch_price_usd or 0.0, row.name)


def _second(base: Base, *_: object) -> Iterator[Option]:
    """Common second cards with which the request fits, the smallest first.

    Only where the framework deals out layers: one that splits every tensor uses no more of the
    larger card than the smaller one has.
    """
    scenario, gpu, found = base.scenario, base.scenario.gpu, 0
    if gpu is None or gpu.segment == "mobile" or base.knowledge.gpus.get(gpu.name) is not gpu:
        return
    by_layer = can_grow(base) and scenario.framework.multi_gpu[0] == "layer"
    if base.fits or scenario.gpus > 1 or scenario.cards or not by_layer:
        return
    for name in base.knowledge.second_cards:
        second = base.knowledge.gpus[name]
        both = _beside(base, gpu, second)
        if both is None or (free_bytes(both, base.knowledge) or 0) < 0:
            continue
        change: dict[str, object] = {"gpu": f"{gpu.name}{TOGETHER}{second.name}"}
        if base.request.gpus:
            change["gpus"] = both.gpus
        option = make_option(base, SECOND, change, both, cost_usd=second.launch_price_usd)
        if option.fits:
            yield option
            found += option.margin != "thin"
        if found == _MOST_SECOND_CARDS:
            return


def _beside(base: Base, gpu: Gpu, second: Gpu) -> Scenario | None:
    """The request on both; None where the second is no other or would do, or both are too small."""
    if second.vendor != gpu.vendor or second is gpu:
        return None
    alone = on_card(base, second)
    if alone is not None and cards_hold(base, alone):
        return None
    together = (gpu.vram_bytes or 0) + (second.vram_bytes or 0)
    if together < stored_bytes(base, base.scenario) * _LEAST_ON_CARDS:
        return None
    now = base.scenario
    with suppress(UserError):
        cards = find_cards(base.knowledge, f"{gpu.name}{TOGETHER}{second.name}")
        if cards.each and runs(base.knowledge, now.framework, now.precision, cards.gpu, now.model):
            return replace(now, gpu=cards.gpu, gpus=cards.count, cards=cards.each)
    return None


def fewest_cards(base: Base, options: Sequence[Option]) -> int | None:
    """The fewest equal cards that hold the request; those that were tried are not sized again."""
    scenario = base.scenario
    if not base.card_fits:
        usual_first = sorted(_tried(base, options), key=lambda o: (not is_usual_split(o), o.gpus))
        return usual_first[0].gpus if usual_first else None
    if scenario.gpus == 1 or not can_double(scenario):
        return scenario.gpus
    return min(fewest_gpus(scenario, base.knowledge) or scenario.gpus, scenario.gpus)


def fewest_in_turns(base: Base, options: Sequence[Option]) -> int | None:
    """Fewer cards than those that split every tensor, where whole layers are dealt out to them."""
    tried = [] if base.card_fits else list(_tried(base, options))
    usual = [one.gpus for one in tried if is_usual_split(one)]
    turns = [one.gpus for one in tried if not is_usual_split(one)]
    return min(turns) if usual and turns and min(turns) < min(usual) else None


def with_smaller_card(base: Base, options: Sequence[Option], found: BreakEven) -> BreakEven:
    """Name a card below the smallest memory that holds it, and why: defaults go by the card."""
    least, gpu = found.smallest_capacity_bytes, base.scenario.gpu
    if base.card_fits or not least or gpu is None:
        return found
    below = [
        option.scenario
        for option in options
        if option.fits and option.change.keys() == {"gpu"} and not option.scenario.cards
        if _size(option.scenario) < least
    ]
    if not below:
        return found
    other = min(below, key=_size)
    usual = replace(base.scenario, gpu=replace(gpu, vram_bytes=least))
    runtime, policy = runtime_of(usual.framework), base.knowledge.policy
    steps = [runtime.tokens_at_once(one, policy) for one in (other, usual)]
    named = replace(found, smaller_card=other.gpu and other.gpu.name)
    fewer = steps[0] < steps[1]
    return replace(named, smaller_card_tokens=steps[0], step_tokens=steps[1]) if fewer else named


def _size(scenario: Scenario) -> float:
    return (scenario.gpu and scenario.gpu.vram_bytes) or math.inf


def _tried(base: Base, options: Sequence[Option]) -> Iterator[Scenario]:
    """List what was tried with more equal cards because these are too few, and fits."""
    for option in options:
        after = option.scenario
        fits = option.action == MORE.action and option.memory.deficit_bytes == 0
        if fits and after == replace(base.scenario, gpus=after.gpus, split=after.split):
            yield after


MORE = Remedy("add-gpus", frozenset({"gpus"}), "purchase", _more)
SECOND = Remedy(MORE.action, frozenset({"gpu", "gpus"}), "purchase", _second)
LARGER = Remedy("upgrade-gpu", frozenset({"gpu", "gpus"}), "purchase", _others, told_by="gpu")
RENTED = Remedy("cloud", frozenset({"gpu", "gpus"}), "purchase", told_by="gpu")
