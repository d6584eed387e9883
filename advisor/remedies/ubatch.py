"""Larger steps of a prompt, where part of the model waits in system RAM."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.scenario.scenario import offloads

_STEPS = (4096, 2048)
"""Tokens computed at once; 2,048 are four times what llama.cpp takes unless told."""


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The largest steps that the cards hold: each brings the weights in RAM to the card once."""
    scenario = base.scenario
    fixed = any("ubatch" in program.cannot for program in scenario.framework.commands)
    if fixed or not offloads(scenario) or scenario.model.modality == "embedding":
        return
    for step in _STEPS:
        other = replace(scenario, ubatch=step)
        if scenario.ubatch < step <= scenario.context_tokens and cards_hold(base, other):
            yield make_option(base, REMEDY, {"ubatch": step}, other)
            return


REMEDY = Remedy("larger-steps", frozenset({"ubatch"}), "setting", propose)
