"""What-ifs with a second card of another kind, from the list in knowledge/second_cards.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimate.memory import free_bytes
from advisor.knowledge.cards import TOGETHER, Cards, find_cards
from advisor.knowledge.types import Gpu, Knowledge
from advisor.memo import by_identity
from advisor.remedies.baseline import Base, cards_hold, make_option
from advisor.remedies.cards import can_grow, on_card
from advisor.remedies.changes import stored_bytes
from advisor.remedies.option import Option
from advisor.scenario.scenario import Scenario

_MOST_OFFERED = 2


def second_card_options(base: Base) -> Iterator[Option]:
    """Common second cards with which the request fits, the smallest first.

    Only where the framework deals out layers: one that splits every tensor uses no more of the
    larger card than the smaller one has.
    """
    gpu, found = base.scenario.gpu, 0
    if gpu is None or base.card_fits or not _takes_another(base, gpu):
        return
    for name in base.knowledge.second_cards:
        second = base.knowledge.gpus[name]
        scenario = _beside(base, gpu, second)
        if scenario is None or (free_bytes(scenario, base.knowledge) or 0) < 0:
            continue
        change: dict[str, object] = {"gpu": f"{gpu.name}{TOGETHER}{second.name}"}
        if base.request.gpus:
            change["gpus"] = scenario.gpus
        price = second.launch_price_usd
        option = make_option(base, "add-gpus", change, scenario, "purchase", cost_usd=price)
        if option.fits:
            yield option
            found += option.margin != "thin"
        if found == _MOST_OFFERED:
            return


def _takes_another(base: Base, gpu: Gpu) -> bool:
    scenario = base.scenario
    alone = scenario.gpus == 1 and not scenario.cards and gpu.segment != "mobile"
    known = base.knowledge.gpus.get(gpu.name) is gpu
    return alone and known and can_grow(base) and scenario.framework.multi_gpu[0] == "layer"


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
    cards = _found(base.knowledge, gpu, second)
    if cards is None or not cards.each:
        return None
    return replace(base.scenario, gpu=cards.gpu, gpus=cards.count, cards=cards.each)


_LEAST_ON_CARDS = 0.75
"""Weights that must lie on the cards: an input embedding may stay in system RAM."""


@by_identity
def _found(knowledge: Knowledge, gpu: Gpu, second: Gpu) -> Cards | None:
    try:
        return find_cards(knowledge, f"{gpu.name}{TOGETHER}{second.name}")
    except UserError:
        return None
