"""Weights in another format: of this framework, or of another that has formats of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.types import Format
from advisor.remedies.formats import families_elsewhere, in_framework, worth_having
from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option, whole_if_held
from advisor.scenario.choices import Pair
from advisor.scenario.figures import Memory
from advisor.scenario.scenario import Scenario


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Other weight formats: of the present framework all worth having, the best of others.

    Both directions: a smaller format to fit, a larger one where there is room for quality.
    """
    yield from _own_formats(base)
    if not base.request.framework:
        yield from _other_families(base)


def _own_formats(base: Base) -> Iterator[Option]:
    """From the largest down; desperate formats are left out once a gentle one fits."""
    scenario, policy = base.scenario, base.knowledge.policy
    gentle_fits = False
    for precision in _candidates(base):
        loss = precision.quality_loss_percent
        if gentle_fits and loss is not None and loss > policy["desperate_above_percent"]:
            continue
        other = whole_if_held(base, replace(scenario, precision=precision))
        option = make_option(base, REMEDY, {"precision": precision.name}, other)
        gentle = loss is not None and loss <= policy["gentle_up_to_percent"]
        gentle_fits = gentle_fits or (option.fits and gentle)
        yield option


def _candidates(base: Base) -> Sequence[Format]:
    """Other formats, the largest first; none larger where the present one does not fit."""
    formats = worth_having(base.scenario, base.knowledge)
    present = base.scenario.precision
    if not base.card_fits and present in formats:
        formats = formats[: formats.index(present)]
    return [f for f in reversed(formats) if f is not present]


def _other_families(base: Base) -> Iterator[Option]:
    """Of each format family that another framework runs: its largest format that fits."""
    for family in families_elsewhere(base.scenario, base.knowledge):
        option = _first_fitting(base, family)
        if option:
            yield option


def _first_fitting(base: Base, family: Sequence[Pair]) -> Option | None:
    smallest = None
    for precision, framework in family:
        other = in_framework(base, framework, precision)
        if other is None:
            continue
        smallest = other
        if cards_hold(base, other):
            option = _elsewhere(base, other)
            if option.fits:
                return option
    return _elsewhere(base, smallest) if smallest else None


def _elsewhere(base: Base, other: Scenario) -> Option:
    change = {"precision": other.precision.name, "framework": other.framework.name}
    return make_option(base, REMEDY, change, other, effort="rebuild")


def largest_format(base: Base, options: Sequence[Option]) -> tuple[Format, Memory] | None:
    """Take the largest of the request's own format, if it fits, and those tried that fit."""
    fitting = [
        option
        for option in options
        if option.action == REMEDY.action
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


REMEDY = Remedy("quantize", frozenset({"precision"}), "download", propose, told_by="precision")
