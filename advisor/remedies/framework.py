"""Another framework on the same card, another back end, other settings, or no image reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from advisor.estimator.speed_rates import MODELLED_FROM_GPUS
from advisor.knowledge.catalogue import backends_of
from advisor.remedies.format_lists import (
    in_framework,
    in_placing,
    of_usual_bits,
    other_frameworks,
)
from advisor.remedies.option import (
    Base,
    Effort,
    Option,
    Remedy,
    cards_hold,
    make_option,
    may_help,
)
from advisor.remedies.search import that_divide
from advisor.scenario import Scenario, is_usual_split, offloads, split_of, support
from advisor.scenario.asked_format import AT_WORK
from advisor.scenario.capability import by_publisher
from advisor.scenario.choices import Pair, runs
from advisor.scenario.figures import Speed
from advisor.units import steady

_ALONE: Final = {"framework"}
_PLACED: Final = {"gpu_layers", "cpu_experts"}


def _others(base: Base, *_: object) -> Iterator[Option]:
    """Other frameworks that run the same or an equally small format on this card."""
    scenario = base.scenario
    for precision, framework in _pairs(base):
        other = in_framework(base, framework, precision)
        if other and not is_usual_split(other):
            other = that_divide(base, other) or other
        if other and may_help(base, other):
            change: dict[str, object] = {"framework": framework.name}
            if precision is not scenario.precision:
                change["precision"] = precision.name
            if other.gpus != scenario.gpus:
                change["gpus"] = other.gpus
            inside = framework.name in scenario.framework.loads_with
            effort = "download" if inside else FRAMEWORK.effort
            yield make_option(base, FRAMEWORK, change, other, effort=effort)


def _pairs(base: Base) -> Sequence[Pair]:
    """What else runs the request; of servers the one that was stated, where it has a format."""
    pairs = other_frameworks(base.scenario, base.knowledge)
    every = [*pairs, *_of_the_publisher(base, pairs), *_as_released(base)]
    stated = _in_the_stated(base)
    return [*stated, *(p for p in every if not (stated and p[1].serves_batches))]


def _in_the_stated(base: Base) -> Sequence[Pair]:
    """The largest format with room in the server that was stated and could not run its own."""
    stated = base.gave_way
    if stated is None or not stated.serves_batches:
        return []
    formats = of_usual_bits(base.scenario, base.knowledge, stated)
    pairs = [(precision, stated) for precision in formats]
    held = (p for p in pairs if _has_room(base, in_framework(base, p[1], p[0])))
    return [*islice(held, 1)]


def _has_room(base: Base, other: Scenario | None) -> bool:
    return other is not None and cards_hold(base, other, roomy=True)


def in_a_server(base: Base) -> Iterator[Scenario]:
    """The first server that is kept up, where many requests do not fit and none was stated.

    One that was stated and does not run the model goes first.
    """
    own, known = base.scenario, base.knowledge
    few = own.batch < known.policy["server_from_sequences"] or base.request.framework
    if base.fits or few or own.framework.serves_batches or not _is_for_work(own):
        return
    stated = [base.gave_way] if base.gave_way else []
    for framework in (*stated, *known.frameworks.values()):
        if framework.serves_batches and support.upkeep(framework) is None:
            moved = in_framework(base, framework, own.precision)
            yield from [moved] if moved else []
            return


def over_unequal(base: Base) -> Iterator[Scenario]:
    """The request in the program that deals layers out, where a server shares unequal cards.

    So where the server has left the card behind.
    """
    own = base.scenario
    shares = own.cards and split_of(own) == "tensor"
    if not base.fits and (shares or support.never_there(own.framework, own.gpu)):
        yield from filter(None, [in_placing(base)])


def _is_for_work(own: Scenario) -> bool:
    return own.gpus > 1 or (own.gpu is not None and own.gpu.segment in AT_WORK)


def speeds_elsewhere(
    base: Base, options: Sequence[Option]
) -> Iterator[tuple[str, str | float | bool | None]]:
    """Tell how fast the request is in another program, or with a part of it in system RAM."""
    if (other := _timed_elsewhere(base, options)) and other.speed:
        yield "options.timed_framework", other.scenario.framework.name
        yield "options.timed_speed", steady(other.speed.decode_tok_s.estimate)
    if (part := _in_part(base, options)) and part.speed:
        for end in ("estimate", "low", "high"):
            yield f"options.part_{end}", steady(getattr(part.speed.decode_tok_s, end))
        yield "options.part_ram", part.memory.host_weights_bytes + part.memory.host_kv_cache_bytes


def _timed_elsewhere(base: Base, options: Iterable[Option]) -> Option | None:
    """A move that keeps all else to where a speed is known, where none of the request is."""
    if base.speed or not base.fits:
        return None
    serves = base.scenario.framework.serves_batches
    moves = [o for o in options if set(o.change) == _ALONE and o.speed]
    return min(moves, key=lambda o: o.scenario.framework.serves_batches is not serves, default=None)


def _in_part(base: Base, options: Iterable[Option]) -> Option | None:
    """The request itself with a part in system RAM, the fastest way, where cards do not hold it."""
    if base.fits:
        return None
    parts = (o for o in options if o.speed and o.fits and _PLACED.issuperset(o.change))
    held = (o for o in parts if o.alone.get("option.host_ram_ok") is not False)
    return max(held, key=lambda o: o.speed.decode_tok_s.estimate if o.speed else 0.0, default=None)


def _of_the_publisher(base: Base, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """What the model's publisher packed in more bits for these servers, and this card computes in.

    Only where no format was stated.
    """
    own, gpu, known = base.scenario, base.scenario.gpu, base.knowledge
    servers = [one for _, one in pairs if one.serves_batches]
    if gpu is None or base.request.precision:
        return
    for framework in servers:
        for precision in map(known.formats.__getitem__, framework.formats):
            more = (precision.class_bits or 0) > (own.precision.class_bits or 0)
            fast = precision.floats and support.is_native(precision, gpu)
            held = more and fast and by_publisher(own.model, precision)
            if held and runs(known, framework, precision, gpu, own.model):
                yield precision, framework


def _as_released(base: Base) -> Iterator[Pair]:
    """The released format in other servers, where the stated one has to unpack it on this card."""
    own, known = base.scenario, base.knowledge
    released = [known.formats[name] for name in own.model.native_formats]
    if base.request.precision or not released or own.precision in released:
        return
    for framework in known.frameworks.values():
        if framework.serves_batches and not support.stands_back(framework):
            held = (f for f in released if runs(known, framework, f, own.gpu, own.model))
            if (precision := next(held, None)) is not None:
                yield precision, framework


def _flash_attention(base: Base, *_: object) -> Iterator[Option]:
    """Flash attention on, where it was turned off and needs less memory on."""
    scenario = base.scenario
    if scenario.flash_attention or scenario.framework.flash_attention is False:
        return
    other = replace(scenario, flash_attention=True)
    option = make_option(base, FLASH_ATTENTION, {"flash_attention": True}, other)
    if option.memory.required_bytes < base.memory.required_bytes:
        yield option


FRAMEWORK = Remedy(
    "change-framework",
    frozenset({"framework", "precision", "gpus"}),
    "rebuild",
    _others,
    told_by="framework",
)
FLASH_ATTENTION = Remedy(
    FRAMEWORK.action, frozenset({"flash_attention"}), "setting", _flash_attention
)


def _backends(base: Base, *_: object) -> Iterator[Option]:
    """What else the framework computes with on cards of this maker, where all lies on them.

    Both back ends were measured on cards like these, one by one.
    """
    scenario = base.scenario
    effort: Effort = "setting" if scenario.framework.backend_by_setting else BACKEND.effort
    for backend in backends_of(scenario.gpu, scenario.framework):
        other = replace(scenario, backend=backend)
        if backend != scenario.backend and cards_hold(base, other):
            option = make_option(base, BACKEND, {"backend": backend}, other, effort=effort)
            if _is_measured(base.speed) and _is_measured(option.speed):
                yield option


def _is_measured(speed: Speed | None) -> bool:
    """Whether the back end was measured on this card, or on several of its generation."""
    if speed is None:
        return False
    return speed.cards >= MODELLED_FROM_GPUS or speed.decode_tok_s.evidence != "extrapolated"


BACKEND = Remedy("change-backend", frozenset({"backend"}), "rebuild", _backends)


_LARGER = (4096, 2048)
"""Tokens computed at once; 2,048 are four times what llama.cpp takes unless told."""


def larger_steps(base: Base, *_: object) -> Iterator[Option]:
    """The largest steps that the cards hold: each brings the weights in RAM to the card once."""
    scenario = base.scenario
    fixed = any("ubatch" in program.cannot for program in scenario.framework.commands)
    if fixed or not offloads(scenario) or scenario.model.modality == "embedding":
        return
    for step in _LARGER:
        other = replace(scenario, ubatch=step)
        if scenario.ubatch < step <= scenario.context_tokens and cards_hold(base, other):
            yield make_option(base, LARGER_STEPS, {"ubatch": step}, other)
            return


LARGER_STEPS = Remedy("larger-steps", frozenset({"ubatch"}), "setting", larger_steps)
