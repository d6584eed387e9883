"""What-ifs with another model: of each the most faithful format that fits with some room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimate.memory import free_bytes
from advisor.knowledge import catalogue
from advisor.knowledge.types import Format, Knowledge, ModelRecord
from advisor.models.resolution import model_from_record
from advisor.models.stored_tensors import Model
from advisor.remedies.formats import Sized, faithful_formats
from advisor.remedies.option import Base, Option, Remedy, make_option, stored_bytes
from advisor.scenario import support
from advisor.scenario.choices import runs as can_run
from advisor.scenario.resolve import default_context
from advisor.scenario.scenario import Scenario, can_split, offloads
from advisor.scenario.support import without_lost_drafts

_MOST_MODELS = 5
_FEW_MODELS = 2
_MOST_PEERS, _MOST_PEERS_TRIED = 2, 6
_CLEARLY_SMALLER, _MUCH_SMALLER = 0.85, 0.25
_MOST_TIMES_LARGER, _FEW_ACTIVE = 2.5, 0.35
"""A mixture beside a dense model: its parameters, and those that a token uses, at most."""
_PURPOSES = ("code", "math", "ocr", "guard")
"""Words by which a name says that a model is made for one thing."""
_FOUR_BITS = 4
_FEW_BITS = 3.3
_FEWEST_BITS = 4.25
"""Of the formats a smaller model is offered in, the fewest bits per weight."""


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Smaller relatives of the same kind, the largest that fit first."""
    found = list(islice(_smaller_relatives(base), _MOST_MODELS))
    yield from found
    largest = max((o.scenario.model.parameters for o in found), default=0)
    far_off = largest < base.scenario.model.parameters * _MUCH_SMALLER
    if not base.fits and (len(found) < _FEW_MODELS or far_off):
        yield from _peer_models(base)


def _smaller_relatives(base: Base) -> Iterator[Option]:
    for model in relatives(base.knowledge, base.scenario.model):
        if model.parameters <= base.scenario.model.parameters * _CLEARLY_SMALLER:
            option = _in_best_format(base, model, REMEDY)
            if option:
                yield option


def _in_best_format(base: Base, model: Model, remedy: Remedy) -> Option | None:
    """The request with another model in its best format; None where none of them fits."""
    found = _placed(base, model)
    if found is None:
        return None
    scenario, precision = found
    change: dict[str, object] = {"model": model.name}
    if precision is not base.scenario.precision:
        change["precision"] = precision.name
    if base.request.config:
        change["config"] = None
    other = replace(scenario, precision=precision)
    steps = 1 + ("precision" in change)
    option = make_option(base, remedy, change, other, steps=steps)
    return option if option.fits else None


def _placed(base: Base, model: Model) -> tuple[Scenario, Format] | None:
    """Wholly on the cards where they hold it, else split as was stated; with its format."""
    own = base.scenario
    if offloads(own):
        whole = _with_model(base, replace(own, gpu_layers=None, cpu_experts=0), model)
        precision = _best_format(base, whole) if whole else None
        if whole and precision:
            return whole, precision
    split = _with_model(base, own, model)
    precision = _best_format(base, split) if split else None
    return (split, precision) if split and precision else None


def _best_format(base: Base, scenario: Scenario) -> Format | None:
    """The format asked for if it fits, else the most faithful that loses little and fits."""
    most, spare = _most_stored(base, scenario), _spare(base, scenario)
    for precision, stored in _formats(base, scenario):
        if stored > most:
            continue
        other = replace(scenario, precision=precision)
        free = free_bytes(other, base.knowledge) if can_split(other) else -1
        if free is None or free >= spare:
            return precision
    return None


def _formats(base: Base, scenario: Scenario) -> Iterator[Sized]:
    """Formats to offer a smaller model in, the most faithful first.

    A request that fits in a gentle format keeps it; so does one in 16 bits where they fit. What was
    asked for in fewer bits may come in more of them: the smaller model leaves room for that.
    """
    own, model = base.scenario.precision, scenario.model
    runs = can_run(base.knowledge, scenario.framework, own, scenario.gpu, model)
    kept = base.fits and not _is_harsh(base)
    full = own.family == "unquantized"
    if runs and (kept or full):
        yield own, stored_bytes(base, scenario, own)
    if kept:
        return
    yield from faithful_formats(scenario, base.knowledge)
    if runs and not full and not support.is_published(own, base.scenario.model):
        yield own, stored_bytes(base, scenario, own)


def _is_harsh(base: Base) -> bool:
    """Whether the request's own format loses much, or is unmeasured and of fewer than four bits."""
    own = base.scenario.precision
    loss = support.format_loss(own, base.scenario.model)
    if loss is None:
        return (own.bits_per_weight or _FOUR_BITS) < _FEW_BITS
    return loss > base.knowledge.policy["gentle_up_to_percent"]


def _most_stored(base: Base, scenario: Scenario) -> float:
    """Weights that cards, and RAM where the request has a split, may hold, bytes."""
    usable = base.memory.usable_bytes
    if usable is None or offloads(scenario):
        return float("inf")
    lookup = 2 * scenario.model.shape.vocab * scenario.model.shape.hidden
    return usable + lookup


def _spare(base: Base, scenario: Scenario) -> float:
    """What has to stay free on a card, bytes; nothing where the request itself fits."""
    usable = base.memory.usable_bytes or 0
    share = 0.0 if base.fits else base.knowledge.policy["thin_below_percent"] / 100
    return share * usable / scenario.gpus


def _peer_models(base: Base) -> Iterator[Option]:
    """Recent models of other families and the same kind, the nearest in size that fit."""
    families = {base.scenario.model.family}
    tried = 0
    for name in _peers(base):
        record = base.knowledge.models[name]
        if record.family in families or tried == _MOST_PEERS_TRIED:
            continue
        model = _sized(name, base.knowledge)
        option = _in_best_format(base, model, REMEDY) if model else None
        tried += 1
        if option:
            families.add(record.family)
            yield option
        if len(families) > _MOST_PEERS:
            return


def _peers(base: Base) -> Sequence[str]:
    """Names of smaller recent models of the same kind that the cards may hold, largest first."""
    own, usable = base.scenario.model, base.memory.usable_bytes or 0
    most = min(usable * 8 / _FEWEST_BITS, own.parameters * _CLEARLY_SMALLER)
    return [name for size, name in _recent(base.knowledge, own.modality) if size <= most]


def _recent(knowledge: Knowledge, modality: str) -> Sequence[tuple[int, str]]:
    """Parameters and names of the recent models of a kind, the largest first; sorted once."""
    oldest = knowledge.policy["peer_oldest_year"]
    found = (
        (model.parameters, model.name)
        for model in knowledge.models.values()
        if model.modality == modality and model.parameters
        if model.released and int(model.released[:4]) >= oldest
    )
    return sorted(found, reverse=True)


def _with_model(base: Base, scenario: Scenario, model: Model) -> Scenario | None:
    if not support.supports_model(scenario.framework, model):
        return None
    if support.unsized(scenario.framework, model.shape):
        return None
    trained = model.trained_context_tokens
    context = base.request.context or default_context(model, base.request)
    context = min(context, trained) if trained else context
    if context <= scenario.depth_tokens or (scenario.cpu_experts and not model.shape.moe):
        return None
    layers = scenario.gpu_layers
    if layers is not None and layers > model.shape.layers:
        return None
    if model.shape.mla and scenario.kv_cache_k is not scenario.kv_cache_v:
        return None
    return without_lost_drafts(replace(scenario, model=model, context_tokens=context))


def _mixtures(base: Base, *_: object) -> Iterator[Option]:
    """Mixtures of experts about as large as a dense model that is slow here, the newest first.

    A token reads a small part of them, so they are quick where memory is wide and slow.
    """
    own, slow = base.scenario.model, base.knowledge.policy["mixture_below_tok_s"]
    if own.shape.moe or not (base.fits and base.speed) or base.speed.decode_tok_s.estimate >= slow:
        return
    families = {own.family}
    for record in _of_its_size(base.knowledge, own):
        model = _sized(record.name, base.knowledge) if record.family not in families else None
        if model and model.shape.moe and model.active_parameters <= own.parameters * _FEW_ACTIVE:
            option = _in_best_format(base, model, MIXTURE)
            if option:
                families.add(record.family)
                yield option
        if len(families) > _MOST_PEERS:
            return


def _of_its_size(knowledge: Knowledge, own: Model) -> Sequence[ModelRecord]:
    """Recent models about as large and made for nothing that this one is not, the newest first."""
    least, most = own.parameters * _CLEARLY_SMALLER, own.parameters * _MOST_TIMES_LARGER
    found = (
        (record.released or "", size, record)
        for size, name in _recent(knowledge, own.modality)
        if least <= size <= most and not _purposes(name) - _purposes(own.name)
        for record in (knowledge.models[name],)
    )
    return [record for *_, record in sorted(found, key=lambda row: row[:2], reverse=True)]


def _purposes(name: str) -> set[str]:
    return {word for word in _PURPOSES if word in name.casefold()}


def relatives(knowledge: Knowledge, model: Model) -> Sequence[Model]:
    """Models of the family, or of the publisher with the same vocabulary, largest first.

    Of the same kind of input; those of unknown size are left out.
    """
    names = dict.fromkeys(
        [
            *catalogue.siblings(knowledge, model.family, model.modality),
            *catalogue.siblings(knowledge, f"{model.family} Distill", model.modality),
            *catalogue.kin(knowledge, model.name),
        ]
    )
    sized = (m for name in names if (m := _sized(name, knowledge)) is not None)
    found = (m for m in sized if m.modality == model.modality)
    return sorted(found, key=lambda m: (-m.parameters, m.name))


def _sized(name: str, knowledge: Knowledge) -> Model | None:
    """A model of the knowledge base; None where its weights or its cache cannot be computed."""
    try:
        model = model_from_record(knowledge.models[name], knowledge)
    except UserError:
        return None
    known = model.shape.described and not model.shape.cache_unknown
    return model if known else None


REMEDY = Remedy("smaller-model", frozenset({"model"}), "download", propose, told_by="model")
MIXTURE = Remedy("other-model", frozenset({"model"}), "download", _mixtures, told_by="model")
