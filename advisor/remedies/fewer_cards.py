"""Fewer of the cards that are there, where so many take turns and fewer do as well or better."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.scenario.scenario import is_usual_split, offloads, split_of


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Cards that take turns: the most that share every tensor instead, or the one that holds all.

    Six cards of a server that cannot divide eight heads by six take turns in a pipeline; four of
    them work on each token together. Where layers are dealt out anyway, several cards add memory
    alone, which a model that one of them holds does not need.
    """
    scenario = base.scenario
    if scenario.cards or scenario.split or split_of(scenario) != "layer" or offloads(scenario):
        return
    counts = (1,) if is_usual_split(scenario) else range(scenario.gpus - 1, 1, -1)
    for count in counts:
        other = replace(scenario, gpus=count, idle_cards=scenario.gpus - count)
        if is_usual_split(other) and cards_hold(base, other, roomy=count == 1):
            yield make_option(base, REMEDY, {"gpus": count}, other)
            return


REMEDY = Remedy("fewer-gpus", frozenset({"gpus"}), "setting", propose)
