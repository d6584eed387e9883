"""Break-even points of a request; what the what-ifs have sized already is not sized again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.estimate.break_even import (
    can_double,
    fewest_gpus,
    first_batch_too_large,
    smallest_capacity_bytes,
)
from advisor.knowledge.types import Format
from advisor.remedies.baseline import Base
from advisor.remedies.cards import MORE
from advisor.remedies.option import Option
from advisor.remedies.quantize import REMEDY as QUANTIZE
from advisor.scenario.figures import BreakEven, Limits, Memory


def break_even(base: Base, limits: Limits, options: Sequence[Option]) -> BreakEven:
    """Say where a request tips over, all else as it is.

    Args:
        base: The request, estimated.
        limits: Its longest context and largest batch.
        options: Every what-if of the request.
    """
    scenario, knowledge = base.scenario, base.knowledge
    if base.memory.usable_bytes is None:
        return BreakEven()
    largest = _largest_format(base, options)
    return BreakEven(
        too_large_batch=first_batch_too_large(scenario, limits, base.memory),
        largest_format=largest[0].name if largest else None,
        largest_format_bits=largest[1].bits_per_weight if largest else None,
        fewest_gpus=_fewest_gpus(base, options),
        smallest_capacity_bytes=smallest_capacity_bytes(scenario, knowledge, base.memory),
    )


def _largest_format(base: Base, options: Sequence[Option]) -> tuple[Format, Memory] | None:
    """Take the largest of the request's own format, if it fits, and those tried that fit."""
    fitting = [
        option
        for option in options
        if option.action == QUANTIZE.action
        and option.memory.deficit_bytes == 0
        and option.scenario.framework is base.scenario.framework
    ]
    own = _weights(base.memory) if base.card_fits else -1
    for option in sorted(fitting, key=lambda option: -_weights(option.memory)):
        if _weights(option.memory) <= own:
            break
        after = option.scenario
        same = {"gpu_layers": base.scenario.gpu_layers, "cpu_experts": base.scenario.cpu_experts}
        if replace(after, **same) == replace(base.scenario, precision=after.precision):
            return after.precision, option.memory
    return (base.scenario.precision, base.memory) if base.card_fits else None


def _weights(memory: Memory) -> int:
    return memory.weights_bytes + memory.host_weights_bytes


def _fewest_gpus(base: Base, options: Sequence[Option]) -> int | None:
    scenario = base.scenario
    if not base.card_fits:
        return min(_more_cards(base, options), default=None)
    if scenario.gpus == 1 or not can_double(scenario):
        return scenario.gpus
    return min(fewest_gpus(scenario, base.knowledge) or scenario.gpus, scenario.gpus)


def _more_cards(base: Base, options: Sequence[Option]) -> Iterator[int]:
    """List the numbers of equal cards that were tried because these are too few, and that fit."""
    for option in options:
        gpus = option.scenario.gpus
        fits = option.action == MORE.action and option.memory.deficit_bytes == 0
        if fits and option.scenario == replace(base.scenario, gpus=gpus):
            yield gpus
