"""Data parallel: every card has requests of its own; experts are divided, dense models copied."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.scenario.scenario import split_of, split_ways


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The same cards and requests, where a latent cache is copied or one card holds the model."""
    scenario = base.scenario
    if scenario.split or not scenario.batch >= scenario.gpus > 1:
        return
    copied = scenario.model.shape.mla is not None and split_of(scenario) == "tensor"
    ways = split_ways(scenario)
    for way in (*(["dp-attention"] if copied else []), "data"):
        if way in ways:
            other = replace(scenario, split=way)
            yield make_option(base, REMEDY, {"split": way}, other)


REMEDY = Remedy("split-requests", frozenset({"split"}), "setting", propose)
