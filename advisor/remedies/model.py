"""What-ifs with another model: of each the most faithful format that fits with some room.

The best by merit come first (docs/merit.md), and none for which a newer one of its class is better.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.estimator.limits import spare_bytes
from advisor.knowledge import catalogue
from advisor.knowledge.catalogue import ModelRow
from advisor.knowledge.merit import purposes
from advisor.knowledge.types import Format
from advisor.models.stored_tensors import Model
from advisor.remedies.assessment import merit_points, outlook_of
from advisor.remedies.format_lists import Sized, faithful_formats, in_placing
from advisor.remedies.framework import in_a_server, over_unequal
from advisor.remedies.kv_cache import is_clearly_faster, is_quick, part_out, where_a_part_moves
from advisor.remedies.levers import small_step_plans, text_alone_plans
from advisor.remedies.option import (
    Base,
    Effort,
    Option,
    Remedy,
    make_option,
    on_the_larger,
    relatives,
    sized_record,
    stored_bytes,
)
from advisor.remedies.search import Plan, held_share, holds_enough
from advisor.scenario import Scenario, can_split, offloads, support
from advisor.scenario.choices import how_had
from advisor.scenario.choices import runs as can_run
from advisor.scenario.resolve import default_context
from advisor.scenario.support import without_lost_drafts

_MOST_MODELS, _MOST_PEERS, _MOST_PEERS_TRIED = 5, 2, 10
_CLEARLY_SMALLER, _LEAST_BESIDE_RAM = 0.85, 0.6
_LEAST_OF_A_STEP, _SMALL, _LARGE = 0.35, 6e9, 5e10
"""Of the next smaller model of a series: its share of the parameters; those that are few, many."""
_MOST_TIMES_LARGER, _FEW_ACTIVE = 2.5, 0.35
"""A mixture beside a dense model: its parameters, and those that a token uses, at most."""
_OF_A_CLASS = 1.25  # how much larger, or slower, a model may be that stands for another
_FOUR_BITS, _EIGHT_BITS, _FEW_BITS, _FEWEST_BITS = 4, 8, 3.3, 4.25
"""The last: of the formats a smaller model is offered in, the fewest bits per weight."""


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Smaller relatives of the same kind and, where it does not fit, recent models of others."""
    own = base.scenario.model
    most = own.parameters * _CLEARLY_SMALLER
    lesser = [model for model in relatives(base.knowledge, own) if model.parameters <= most]
    alike = [model for model in lesser if purposes(model.name) <= purposes(own.name)]
    asked = base.request.context or 0
    smaller = [m for m in alike if (m.trained_context_tokens or asked) >= asked] or alike
    peers = [] if base.fits else _peer_models(base, {model.name for model in smaller})
    best = sorted(smaller, key=lambda model: -_merit(base, model))
    fitting = filter(None, (_not_outdone(base, model, peers) for model in best))
    found = [*islice(fitting, _MOST_MODELS), *peers]
    yield from (one for one in found if not _is_outdone(base, one, found))
    if not base.fits:
        yield from _next_smaller(base, smaller, {one.scenario.model.name for one in found})


def _next_smaller(base: Base, smaller: Sequence[Model], tried: Collection[str]) -> Iterator[Option]:
    """The next smaller of the series that fits, though outdone: prompts and tools carry over."""
    own, oldest = base.scenario.model, base.knowledge.policy["peer_oldest_year"]
    alike = [m for m in smaller if m.family == own.family and _series(m) == _series(own)]
    mixtures = [m.parameters for m in alike if m.shape.moe and own.shape.moe]
    next_one = max(mixtures, default=_LARGE)
    least = max(min(own.parameters * _LEAST_OF_A_STEP, _LARGE, next_one), _SMALL)
    if (own.released or "") < f"{oldest:.0f}":
        least = max(least, _LARGE)
    alike.sort(key=lambda m: (m.parameters, m.released or ""), reverse=True)
    steps = (_in_best_format(base, m, REMEDY) for m in alike if m.parameters >= least)
    found = next(filter(None, steps), None)
    if found and found.scenario.model.name not in tried:
        yield found


def _merit(base: Base, model: Model | ModelRow) -> float:
    return merit_points(base.scenario, model, base.knowledge)


def _series(model: Model) -> str:
    """Give a name up to its first number or its size: ``qwen3``, ``llama-3.1``, ``gpt-oss-``."""
    return re.split(r"(?<=\d)(?![\d.b])|(?<![\d.])(?=[\d.]+b)", model.name.lower(), maxsplit=1)[0]


def _not_outdone(base: Base, model: Model, options: Sequence[Option]) -> Option | None:
    """Give the request with another model, if that fits and no option outdoes it.

    Nothing is worked out for one that a quick better one outdoes, however quick it is itself.
    """
    enough = base.knowledge.policy["quick_tok_s"]
    better = (new for new in _better(base, model, options) if holds_enough(base, new.scenario))
    if any(new.speed and new.speed.decode_tok_s.estimate >= enough for new in better):
        return None
    option = _in_best_format(base, model, REMEDY)
    return None if option and _is_outdone(base, option, options) else option


def _is_outdone(base: Base, old: Option, options: Sequence[Option]) -> bool:
    """Whether a better model fits too, about as large and fast, with as many of the requests."""
    held = held_share(base, old.scenario)
    fair = [x for x in options if holds_enough(base, x.scenario, held)]
    return any(_is_as_quick(base, new, old) for new in _better(base, old.scenario.model, fair))


def _better(base: Base, old: Model, options: Sequence[Option]) -> Iterator[Option]:
    """Give those with a better model, not much smaller, at most a year older; newer if unrated.

    A recent one of the family gives way to its equals alone.
    """
    merit, released = _merit(base, old), old.released
    recent = (released or "") >= f"{base.knowledge.policy['peer_oldest_year']:.0f}"
    alike = recent and old.family == base.scenario.model.family
    most = _OF_A_CLASS if alike else _MOST_TIMES_LARGER
    earliest = f"{int(released[:4]) - 1}{released[4:]}" if merit and released else released or ""
    for new in options:
        model = new.scenario.model
        newer = (model.released or "") > earliest and _merit(base, model) > merit
        if newer and old.parameters <= model.parameters * most:
            yield new


def _is_as_quick(base: Base, new: Option, old: Option) -> bool:
    """Whether one writes about as fast as another, or fast enough; by size where unknown."""
    if new.speed is None or old.speed is None:
        return new.scenario.model.parameters <= old.scenario.model.parameters * _OF_A_CLASS
    enough, slower = base.knowledge.policy["quick_tok_s"], old.speed.decode_tok_s.estimate
    return new.speed.decode_tok_s.estimate >= min(enough, slower / _OF_A_CLASS)


def _in_best_format(base: Base, model: Model, remedy: Remedy) -> Option | None:
    """The request with another model in its best format; None where none of them fits."""
    found = _placed(base, model)
    if found is None:
        return None
    plan, precision = found
    change: dict[str, object] = {"model": model.name, **plan.change}
    if precision is not base.scenario.precision:
        change["precision"] = precision.name
    if base.request.config:
        change["config"] = None
    other = on_the_larger(base, replace(plan.scenario, precision=precision))
    effort: Effort = "rebuild" if other.framework is not base.scenario.framework else remedy.effort
    option = make_option(base, remedy, change, other, effort=effort, steps=len(change))
    return option if option.fits else None


def _placed(base: Base, model: Model) -> tuple[Plan, Format] | None:
    """Wholly on the cards where they hold it, else split as was stated; with its format.

    The first that holds enough of the requests, else the one that holds the most.
    """
    own, placed = base.scenario, list[tuple[float, Plan, Format]]()
    whole = [replace(own, gpu_layers=None, cpu_experts=0)] if offloads(own) else []
    for start in (*in_a_server(base), *whole, own, *over_unequal(base)):
        scenario = None if placed and offloads(start) else _with_model(base, start, model)
        for plan in _ways(base, scenario) if scenario else ():
            if precision := _best_format(base, plan.scenario):
                there = replace(plan.scenario, precision=precision)
                placed.append((held_share(base, there), plan, precision))
                if holds_enough(base, there):
                    return plan, precision
                break
    return max(placed, key=lambda one: one[0])[1:] if placed else None


def _ways(base: Base, scenario: Scenario) -> Iterator[Plan]:
    """As it is; in a server, which keeps much for both, else without images or in small steps."""
    there, images = replace(base, scenario=scenario), base.scenario.model.vision_parameters
    yield Plan(scenario)
    if scenario.framework.serves_batches:
        others = (*text_alone_plans(there), *small_step_plans(there))
        yield from (plan for plan in others if not (images and plan.scenario.text_only))


def _best_format(base: Base, scenario: Scenario) -> Format | None:
    """The format asked for if it fits, else the most faithful that loses little and is quick.

    Where a server then holds few requests, the first that holds more, else half as many as any.
    """
    found: list[tuple[float, Format]] = []
    known, most = base.knowledge, _most_stored(base, scenario)
    policy, spare = known.policy, spare_bytes(scenario, known)
    for precision, stored in _formats(base, scenario):
        other = replace(scenario, precision=precision)
        free = free_bytes(other, known) if stored <= most and can_split(other) else -1
        if free is None or free >= spare:
            speed = outlook_of(other, known).speed if other.batch == 1 else None
            slow = speed and speed.decode_tok_s.estimate < policy["thinking_speed"]
            found.append((0.0 if slow else held_share(base, other), precision))
            if found[-1][0] > policy["few_held_percent"]:
                break
    best = max((share for share, _ in found), default=0.0)
    least = best if best > policy["few_held_percent"] else best / 2
    return next((precision for share, precision in found if share >= least), None)


def _formats(base: Base, scenario: Scenario) -> Iterator[Sized]:
    """Formats to offer a smaller model in: what was released, and others of fewer bytes."""
    known, framework = base.knowledge, scenario.framework
    held = (known.formats[name] for name in scenario.model.native_formats)
    taken = (f for f in held if can_run(known, framework, f, scenario.gpu, scenario.model))
    released = [(f, stored_bytes(base, scenario, f)) for f in taken]
    yield from released
    least = min((stored for _, stored in released), default=None)
    yield from (s for s in _unreleased(base, scenario) if least is None or s[1] < least)


def _unreleased(base: Base, scenario: Scenario) -> Iterator[Sized]:
    """Formats to offer a smaller model in that can be had, the most faithful first.

    A request that fits in a gentle format keeps it, 16 bits where a card computes in no fewer.
    """
    own, model = base.scenario.precision, scenario.model
    runs = can_run(base.knowledge, scenario.framework, own, scenario.gpu, model)
    kept = base.fits and not _is_harsh(base)
    every = faithful_formats(scenario, base.knowledge)
    had = [how_had(one, scenario.framework, model) for one, _ in every]
    faithful = [one for one, how in zip(every, had, strict=True) if how == max(had)]
    full = own.family == "unquantized"
    first = kept or (full and not _has_eight_bits(scenario, faithful))
    if runs and first:
        yield own, stored_bytes(base, scenario, own)
    if kept:
        return
    yield from faithful
    if runs and not first and (full or not support.is_published(own, base.scenario.model)):
        yield own, stored_bytes(base, scenario, own)


def _has_eight_bits(scenario: Scenario, formats: Sequence[Sized]) -> bool:
    """Whether eight bits cost nothing that anybody measured, or are what the card computes in."""
    alone, gpu = not scenario.framework.serves_batches, scenario.gpu
    eight = [precision for precision, _ in formats if (precision.class_bits or 0) >= _EIGHT_BITS]
    return any(alone or (gpu and support.is_native(precision, gpu)) for precision in eight)


def _is_harsh(base: Base) -> bool:
    """Whether the request's own format loses much, or is unmeasured and of fewer than four bits."""
    own = base.scenario.precision
    loss = support.format_loss(own, base.scenario.model)
    few = (own.bits_per_weight or _FOUR_BITS) < _FEW_BITS
    return few if loss is None else loss > base.knowledge.policy["gentle_up_to_percent"]


def _most_stored(base: Base, scenario: Scenario) -> float:
    """Weights that cards, and RAM where the request has a split, may hold, bytes."""
    usable = base.memory.usable_bytes
    if usable is None or offloads(scenario):
        return float("inf")
    return usable + 2 * scenario.model.shape.vocab * scenario.model.shape.hidden


def _peer_models(base: Base, related: Collection[str]) -> Sequence[Option]:
    """Recent models of other families and the same kind, the best that fit.

    Those with which a server holds only some of the requests come besides.
    """
    kinds = {(base.scenario.model.family, moe) for moe in (False, True)}
    found, few = list[Option](), list[Option]()
    unrelated = (row for row in _peers(base) if row.name not in related)
    for row in islice(unrelated, _MOST_PEERS_TRIED):
        model = sized_record(row.name, base.knowledge)
        kind = (row.family, bool(model and model.shape.moe))
        option = _not_outdone(base, model, [*found, *few]) if model and kind not in kinds else None
        if option:
            kinds.add(kind)
            (found if holds_enough(base, option.scenario) else few).append(option)
        if len(found) == _MOST_PEERS:
            break
    return [*found, *few[:_MOST_PEERS]]


def _peers(base: Base) -> Sequence[ModelRow]:
    """List smaller recent models that the cards may hold, the best first."""
    own = base.scenario.model
    return _recent(base, own, 0.0, min(_most_held(base), own.parameters * _CLEARLY_SMALLER))


def _held_with_ram(base: Base) -> Sequence[ModelRow]:
    """List models of a dense one's size; what stated RAM holds where it does not hold a mixture."""
    own, ram = base.scenario.model, base.scenario.ram_bytes
    if not own.shape.moe:
        return _of_its_size(base, own, _LEAST_BESIDE_RAM)
    most = _most_held(base, ram or 0)
    return _recent(base, own, 0.0, most) if ram and own.parameters > most else ()


def _most_held(base: Base, ram: int = 0) -> float:
    """Most parameters that the cards, and RAM beside them, may hold."""
    return (ram + (base.memory.usable_bytes or 0)) * 8 / _FEWEST_BITS


def _recent(base: Base, own: Model, least: float, most: float) -> Sequence[ModelRow]:
    """List recent models of a size, a kind (or images too) and no other purpose, best first."""
    oldest = base.knowledge.policy["peer_oldest_year"]
    kinds = {own.modality, "vision"} if own.modality == "text" else {own.modality}
    found = (
        row
        for row in catalogue.sized(base.knowledge)
        if least <= row.parameters <= most and row.modality in kinds
        if int(row.released[:4]) >= oldest
        if purposes(row.name) <= purposes(own.name)
    )
    return sorted(sorted(found, reverse=True), key=lambda row: -_merit(base, row))


def _with_model(base: Base, scenario: Scenario, model: Model) -> Scenario | None:
    framework, shape = scenario.framework, model.shape
    if not support.may_advise(framework, model) or support.unsized(framework, shape):
        return None
    trained = model.trained_context_tokens
    context = base.request.context or default_context(model, base.request)
    context = min(context, trained) if trained else context
    if context <= scenario.depth_tokens or (scenario.cpu_experts and not model.shape.moe):
        return None
    if (scenario.gpu_layers or 0) > model.shape.layers:
        return None
    if model.shape.mla and scenario.kv_cache_k is not scenario.kv_cache_v:
        return None
    return without_lost_drafts(replace(scenario, model=model, context_tokens=context))


def _mixtures(base: Base, *_: object) -> Iterator[Option]:
    """Mixtures about as large as a dense model that is slow here: a token reads a part of them."""
    own, slow = base.scenario.model, base.knowledge.policy["mixture_below_tok_s"]
    if not base.fits:
        yield from _beside_ram(base)
    if own.shape.moe or not (base.fits and base.speed) or base.speed.decode_tok_s.estimate >= slow:
        return
    families, most = set[str](), own.parameters * _FEW_ACTIVE
    for record in _of_its_size(base, own):
        model = sized_record(record.name, base.knowledge) if record.family not in families else None
        light = model and model.shape.moe and model.active_parameters <= most
        if model and light and (option := _in_best_format(base, model, MIXTURE)):
            families.add(record.family)
            yield option
        if len(families) == _MOST_PEERS:
            return


def _beside_ram(base: Base) -> Iterator[Option]:
    """Mixtures that run with a part in RAM, in a program that moves experts where that pays."""
    own, families, part = base.scenario, set[str](), where_a_part_moves(base)
    alone = in_placing(base) if part and not part.framework.expert_offload else None
    starts = [replace(one, gpu_layers=None, cpu_experts=0) for one in (part, alone) if one]
    for record in _held_with_ram(base) if starts else ():
        model = sized_record(record.name, base.knowledge) if record.family not in families else None
        light = model and model.shape.moe and model.active_parameters <= own.model.parameters / 2
        tried = [_with_part_out(base, one, model) for one in starts if model and light]
        if options := [one for one in tried if one and one.fits]:
            families.add(record.family)
            faster = is_clearly_faster(base, options[-1], options[:1])
            yield options[-1] if faster and not is_quick(base, options[0]) else options[0]
        if len(families) == _MOST_PEERS:
            return


def _with_part_out(base: Base, whole: Scenario, model: Model) -> Option | None:
    other, formats = _with_model(base, whole, model), base.knowledge.formats
    if other is None:
        return None
    for name in (*model.native_formats, *other.framework.usual_formats):
        if can_run(base.knowledge, other.framework, formats[name], other.gpu, model):
            other = replace(other, precision=formats[name])
            break
    moved = part_out(other, base.knowledge)
    if not moved:
        return None
    change: dict[str, object] = {"model": model.name, **moved}
    if other.framework is not base.scenario.framework:
        change["framework"] = other.framework.name
    if other.precision is not base.scenario.precision:
        change["precision"] = other.precision.name
    other = replace(other, **moved)
    effort: Effort = "rebuild" if "framework" in change else MIXTURE.effort
    return make_option(base, MIXTURE, change, other, effort=effort, steps=len(change))


def _of_its_size(base: Base, own: Model, least: float = _CLEARLY_SMALLER) -> Sequence[ModelRow]:
    """List recent models about as large, or half as large of the own family; the best first."""
    found = _recent(base, own, own.parameters / 2, own.parameters * _MOST_TIMES_LARGER)
    return [r for r in found if r.parameters >= own.parameters * least or r.family == own.family]


REMEDY = Remedy("smaller-model", frozenset({"model"}), "download", propose, told_by="model")
MIXTURE = Remedy("other-model", frozenset({"model"}), "download", _mixtures, told_by="model")
