"""Fewer of the cards that are there, where so many do not divide a model's heads."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.scenario.scenario import is_usual_split, split_of


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The most cards below those at hand that share every tensor, as the server prefers.

    Six cards of a server that cannot divide eight heads by six take turns in a pipeline; four of
    them work on each token together.
    """
    scenario = base.scenario
    turns = split_of(scenario) == "layer" and not is_usual_split(scenario)
    if scenario.cards or scenario.split or not turns:
        return
    for count in range(scenario.gpus - 1, 1, -1):
        other = replace(scenario, gpus=count)
        if is_usual_split(other) and cards_hold(base, other):
            yield make_option(base, REMEDY, {"gpus": count}, other)
            return


REMEDY = Remedy("fewer-gpus", frozenset({"gpus"}), "setting", propose)
