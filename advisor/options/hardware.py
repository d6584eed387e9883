"""What-ifs about cards: more of them, larger or faster ones, rented ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor import support
from advisor.advice import Action, Option
from advisor.knowledge import catalogue
from advisor.knowledge.catalogue import CardRow
from advisor.knowledge.types import Gpu, Knowledge
from advisor.options.base import Base, cards_hold, make_option
from advisor.resolve import default_backend
from advisor.scenario import Scenario, changed

_MOST_CARDS = 8
_PER_SEGMENT = {True: 2, False: 1}
"""What-ifs per market segment, by whether the card is of the same vendor."""
_MUCH_FASTER = 1.3
_FOR_SALE = frozenset({"consumer", "workstation", "datacenter", "apple"})


def more_cards_options(base: Base) -> Iterator[Option]:
    """The fewest equal cards that hold the model, or two where one already does.

    Of unequal cards the largest is taken again, in place of the others.
    """
    scenario = base.scenario
    gpu = _largest(scenario.cards) if scenario.cards else scenario.gpu
    if gpu is None or gpu.unified_memory or gpu.segment == "mobile":
        return
    if not scenario.framework.multi_gpu or scenario.gpu_layers is not None or scenario.cpu_experts:
        return
    if base.card_fits and scenario.framework.multi_gpu[0] != "tensor":
        return
    owned = sum(card.name == gpu.name for card in scenario.cards) or scenario.gpus
    for count in range(max(owned + 1, 2), _MOST_CARDS + 1):
        if scenario.framework.multi_gpu[0] == "tensor" and scenario.model.shape.heads % count:
            continue
        other = changed(scenario, gpu=gpu, gpus=count, cards=())
        if not cards_hold(base, other):
            continue
        price = gpu.launch_price_usd
        cost = price * (count - owned) if price else None
        change: dict[str, object] = {"gpus": count}
        if scenario.cards:
            change["gpu"] = gpu.name
        option = make_option(base, "add-gpus", change, other, "purchase", cost_usd=cost)
        if option.fits:
            yield option
            return


def _largest(cards: Sequence[Gpu]) -> Gpu:
    return max(cards, key=lambda card: (card.vram_bytes or 0, card.bandwidth_bytes_s or 0.0))


def other_card_options(base: Base) -> Iterator[Option]:
    """Cards that hold the request where this one does not, or much faster ones where it does."""
    gpu = base.scenario.gpu
    if gpu is None or gpu.vram_bytes is None:
        return
    found: dict[tuple[str, bool], int] = {}
    for row in _current_cards(base.knowledge):
        slot = (row.segment, row.vendor == gpu.vendor)
        if found.get(slot, 0) < _PER_SEGMENT[slot[1]] and _worth_a_look(base, gpu, row):
            scenario = _on_card(base, base.knowledge.gpus[row.name])
            if scenario and cards_hold(base, scenario):
                option = _card_option(base, scenario)
                if option.fits:
                    found[slot] = found.get(slot, 0) + 1
                    yield option


def _worth_a_look(base: Base, gpu: Gpu, card: CardRow) -> bool:
    """A cheap test before the estimate: is it larger, or as large and much faster?"""
    assert gpu.vram_bytes
    if base.scenario.cards:
        return card.vram_bytes > (_largest(base.scenario.cards).vram_bytes or 0)
    if not base.card_fits:
        return card.vram_bytes > gpu.vram_bytes and (
            card.vram_bytes * base.scenario.gpus >= base.memory.weights_bytes
        )
    if card.vram_bytes < gpu.vram_bytes or not (card.bandwidth_bytes_s and gpu.bandwidth_bytes_s):
        return False
    return card.bandwidth_bytes_s >= gpu.bandwidth_bytes_s * _MUCH_FASTER


def _card_option(base: Base, scenario: Scenario) -> Option:
    card = scenario.gpu
    assert card
    action: Action = "cloud" if card.segment == "datacenter" else "upgrade-gpu"
    cost = card.launch_price_usd
    return make_option(
        base,
        action,
        {"gpu": card.name},
        scenario,
        "purchase",
        cost_usd=cost * scenario.gpus if cost and action == "upgrade-gpu" else None,
    )


def _on_card(base: Base, card: Gpu) -> Scenario | None:
    scenario = base.scenario
    if base.request.backend and default_backend(card) != scenario.backend:
        return None
    framework = scenario.framework
    if not support.runs(framework, scenario.precision, card, scenario.model):
        return None
    return changed(
        scenario,
        gpu=card,
        gpus=1 if scenario.cards else scenario.gpus,
        cards=(),
        backend=scenario.backend if base.request.backend else default_backend(card),
    )


_sorted: dict[int, tuple[Knowledge, Sequence[CardRow]]] = {}


def _current_cards(knowledge: Knowledge) -> Sequence[CardRow]:
    """Cards one could still buy or rent, smallest and cheapest first; sorted once."""
    found = _sorted.get(id(knowledge))
    if found is None or found[0] is not knowledge:
        oldest = knowledge.policy["upgrade_oldest_year"]
        rows = [
            row
            for row in catalogue.cards(knowledge)
            if row.segment in _FOR_SALE and int(row.released[:4]) >= oldest
        ]
        rows.sort(key=_smallest_and_cheapest)
        found = _sorted[id(knowledge)] = (knowledge, rows)
    return found[1]


def _smallest_and_cheapest(row: CardRow) -> tuple[int, bool, float, str]:
    price = row.launch_price_usd
    return (row.vram_bytes, price is None, price or 0.0, row.name)
