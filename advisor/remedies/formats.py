"""What-ifs with other weight formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.types import Format
from advisor.remedies.format_lists import (
    can_share,
    families_elsewhere,
    has_quick_kernels,
    in_framework,
    sized_formats,
    worth_having,
)
from advisor.remedies.option import (
    Base,
    Option,
    Remedy,
    cards_hold,
    effort_of,
    make_option,
    on_the_larger,
    stored_bytes,
    whole_if_held,
)
from advisor.remedies.search import Bounds, Plan
from advisor.scenario import Scenario, support
from advisor.scenario.capability import is_likely_had
from advisor.scenario.choices import Pair, obtainable
from advisor.scenario.figures import Memory


def smaller_formats(base: Base, scenario: Scenario, limits: Bounds) -> list[Format]:
    """Formats of the scenario's framework that are smaller than its own, the largest first."""
    own = stored_bytes(base, scenario)
    return [
        precision
        for precision, stored in sized_formats(scenario, base.knowledge)
        if stored < own
        and limits.takes(precision)
        and (limits.slow or has_quick_kernels(scenario, precision))
        and can_share(scenario, precision)
        and not support.is_unpacked(precision, scenario.model, scenario.gpu)
    ]


def had_formats(scenario: Scenario, formats: Sequence[Format]) -> list[Format]:
    """Leave out what repositories lack that hold a smaller one of as many bits."""
    had = [is_likely_had(scenario.framework, one, scenario.model) for one in formats]
    bits = [one.class_bits if held else 0 for one, held in zip(formats, had, strict=True)]
    return [f for n, f in enumerate(formats) if had[n] or f.class_bits not in bits[n:]]


def with_format(plan: Plan, precision: Format) -> Plan:
    """Store the weights in another format of the same framework."""
    scenario = replace(plan.scenario, precision=precision)
    effort = effort_of(plan.scenario, precision)
    return plan.then(scenario, {"precision": precision.name}, effort)


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
        other = on_the_larger(base, other)
        effort = effort_of(scenario, precision)
        option = make_option(base, REMEDY, {"precision": precision.name}, other, effort=effort)
        gentle = loss is not None and loss <= policy["gentle_up_to_percent"]
        gentle_fits = gentle_fits or (option.fits and gentle)
        yield option


def _candidates(base: Base) -> Sequence[Format]:
    """Other formats, the largest first; none larger where the present one does not fit."""
    present, full = base.scenario.precision, "unquantized"
    listed = worth_having(base.scenario, base.knowledge)
    formats = [present if f.family == present.family == full else f for f in listed]
    if not base.card_fits and present in formats:
        formats = formats[: formats.index(present)]
    return [f for f in reversed(formats) if f is not present]


def _other_families(base: Base) -> Iterator[Option]:
    """Of each format family that another framework runs: its largest format that fits."""
    own, known = base.scenario, base.knowledge
    families = families_elsewhere(own, known)
    every = (pair for family in families for pair in family)
    held = {precision.name for precision, _ in obtainable(every, own.model, own.gpu, known)}
    for family in families:
        option = _first_fitting(base, [pair for pair in family if pair[0].name in held])
        if option:
            yield option


def _first_fitting(base: Base, family: Sequence[Pair]) -> Option | None:
    smallest = None
    for precision, framework in family:
        if other := in_framework(base, framework, precision):
            smallest = other
            if cards_hold(base, other) and (option := _elsewhere(base, other)).fits:
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
        and _is_larger(base, option)
    ]
    own = _weights(base.memory) if base.card_fits else -1
    for option in sorted(fitting, key=lambda option: -_weights(option.memory)):
        if _weights(option.memory) <= own:
            break
        after = option.scenario
        if replace(base.scenario, **{name: getattr(after, name) for name in _PLACED}) == after:
            return after.precision, option.memory
    return (base.scenario.precision, base.memory) if base.card_fits else None


_PLACED = (
    "precision", "gpu_layers", "cpu_experts", "stages", "gpu", "gpus", "cards", "idle_cards",
    "read_as",
)  # fmt: skip
"""In what a format that fits may differ: where it lies on the cards at hand is no matter."""


def _is_larger(base: Base, option: Option) -> bool:
    """Whether a larger file of it holds more, and a server does not hold fewer requests for it.

    Not of as many bits, nor what was rounded to MXFP4: the rest of such a file makes it larger.
    """
    own, other = base.scenario.precision, option.scenario.precision
    rounded = support.is_rounded(other, option.scenario.model)
    if rounded or not base.card_fits:
        return not rounded
    batch, more = base.scenario.batch, other.bits_per_weight != own.bits_per_weight
    held = option.memory.held_sequences or batch
    return more and held >= (base.memory.held_sequences or batch)


def least_cost(singles: Sequence[Option]) -> float:
    """What the most faithful of other formats with room adds to the loss, %; 0: none known."""
    roomy = (o for o in singles if o.fits and o.margin != "thin")
    costs = (o.quality_cost_percent for o in roomy if o.action == REMEDY.action)
    return min((cost for cost in costs if cost is not None), default=0.0)


def _weights(memory: Memory) -> int:
    return memory.weights_bytes + memory.host_weights_bytes


REMEDY = Remedy("quantize", frozenset({"precision"}), "download", propose, told_by="precision")
