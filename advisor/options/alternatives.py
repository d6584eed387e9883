"""What-ifs that keep the card: another model, another framework, a draft model or own head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from advisor import support
from advisor.advice import Effort, Option
from advisor.errors import UserError
from advisor.knowledge import catalogue
from advisor.knowledge.types import Knowledge
from advisor.models import model_from_record
from advisor.options.base import Base, cards_hold, make_option, may_help
from advisor.options.choices import other_frameworks
from advisor.options.formats import in_framework
from advisor.resolve import default_context
from advisor.scenario import Model, Scenario, changed

_MOST_MODELS = 5
_FEW_MODELS = 2
_MOST_PEERS, _MOST_PEERS_TRIED = 2, 6
_CLEARLY_SMALLER, _MUCH_SMALLER = 0.85, 0.25
_DRAFT_SHARE, _LIGHT_DRAFT = 0.2, 0.1
_DRAFT_PADDING = 128
"""Tokens by which llama.cpp lets vocabularies differ: ``SPEC_VOCAB_MAX_SIZE_DIFFERENCE`` in
common/speculative.cpp. Other servers want them equal."""


def smaller_model_options(base: Base) -> Iterator[Option]:
    """Smaller relatives of the same kind, the largest that fit first."""
    found = list(islice(_smaller_relatives(base), _MOST_MODELS))
    yield from found
    largest = max((o.scenario.model.parameters for o in found), default=0)
    far_off = largest < base.scenario.model.parameters * _MUCH_SMALLER
    if not base.card_fits and (len(found) < _FEW_MODELS or far_off):
        yield from peer_options(base)


def _smaller_relatives(base: Base) -> Iterator[Option]:
    for model in relatives(base.knowledge, base.scenario.model):
        if model.parameters <= base.scenario.model.parameters * _CLEARLY_SMALLER:
            option = model_option(base, model)
            if option:
                yield option


def model_option(base: Base, model: Model) -> Option | None:
    """The request with another model; None where that does not fit either."""
    scenario = _with_model(base, model)
    if scenario is None or not cards_hold(base, scenario):
        return None
    change: dict[str, object] = {"model": model.name}
    if base.request.config:
        change["config"] = None
    option = make_option(base, "smaller-model", change, scenario, "download")
    return option if option.fits else None


def peer_options(base: Base) -> Iterator[Option]:
    """Recent models of other families and the same kind, the nearest in size that fit."""
    families = {base.scenario.model.family}
    tried = 0
    for name in _peers(base):
        record = base.knowledge.models[name]
        if record.family in families or tried == _MOST_PEERS_TRIED:
            continue
        model = _sized(name, base.knowledge)
        option = model_option(base, model) if model else None
        tried += 1
        if option:
            families.add(record.family)
            yield option
        if len(families) > _MOST_PEERS:
            return


def _peers(base: Base) -> Sequence[str]:
    """Names of smaller recent models of the same kind that the cards may hold, largest first."""
    own, memory = base.scenario.model, base.memory
    stored = memory.weights_bytes + memory.host_weights_bytes
    room = (memory.usable_bytes or 0) / max(stored, 1) * own.parameters
    most = min(room, own.parameters * _CLEARLY_SMALLER)
    return [name for size, name in _recent(base.knowledge, own.modality) if size <= most]


_recent_models: dict[tuple[int, str], Sequence[tuple[int, str]]] = {}


def _recent(knowledge: Knowledge, modality: str) -> Sequence[tuple[int, str]]:
    """Parameters and names of the recent models of a kind, the largest first; sorted once."""
    key = (id(knowledge), modality)
    if key not in _recent_models:
        oldest = knowledge.policy["peer_oldest_year"]
        found = [
            (model.parameters, model.name)
            for model in knowledge.models.values()
            if model.modality == modality and model.parameters
            if model.released and int(model.released[:4]) >= oldest
        ]
        _recent_models[key] = sorted(found, reverse=True)
    return _recent_models[key]


def _with_model(base: Base, model: Model) -> Scenario | None:
    scenario = base.scenario
    if not support.runs(scenario.framework, scenario.precision, scenario.gpu, model):
        return None
    trained = model.trained_context_tokens
    context = base.request.context or default_context(model)
    context = min(context, trained) if trained else context
    if context <= scenario.depth_tokens or (scenario.cpu_experts and not model.shape.moe):
        return None
    layers = scenario.gpu_layers
    if layers is not None and layers > model.shape.layers:
        return None
    if model.shape.mla and scenario.kv_cache_k is not scenario.kv_cache_v:
        return None
    return changed(scenario, model=model, context_tokens=context)


_relatives: dict[tuple[int, str], Sequence[Model]] = {}


def relatives(knowledge: Knowledge, model: Model) -> Sequence[Model]:
    """Models of the family, or of the publisher with the same vocabulary, largest first.

    Of the same kind of input; those of unknown size are left out.
    """
    key = (id(knowledge), model.name)
    if key not in _relatives:
        names = dict.fromkeys(
            [
                *catalogue.siblings(knowledge, model.family, model.modality),
                *catalogue.siblings(knowledge, f"{model.family} Distill", model.modality),
                *catalogue.kin(knowledge, model.name),
            ]
        )
        sized = (m for name in names if (m := _sized(name, knowledge)) is not None)
        found = [m for m in sized if m.modality == model.modality]
        found.sort(key=lambda m: (-m.parameters, m.name))
        _relatives[key] = found
    return _relatives[key]


def _sized(name: str, knowledge: Knowledge) -> Model | None:
    try:
        return model_from_record(knowledge.models[name], knowledge)
    except UserError:
        return None


def framework_options(base: Base) -> Iterator[Option]:
    """Other frameworks that run the same or an equally small format on this card."""
    scenario = base.scenario
    for precision, framework in other_frameworks(scenario, base.knowledge):
        other = in_framework(base, framework, precision)
        if other and may_help(base, other):
            change: dict[str, object] = {"framework": framework.name}
            if precision is not scenario.precision:
                change["precision"] = precision.name
            yield make_option(base, "change-framework", change, other, "rebuild")


def draft_options(base: Base) -> Iterator[Option]:
    """A relative small enough to draft for this model, where the framework can use one."""
    scenario = base.scenario
    if not (base.card_fits and scenario.framework.speculative and scenario.draft_model is None):
        return
    if scenario.mtp or scenario.model.modality != "text" or scenario.batch > 1:
        return
    others = relatives(base.knowledge, scenario.model)
    padding = _DRAFT_PADDING if scenario.framework.memory_model == "llama.cpp" else 0
    draft = _draft_for(scenario.model, others, padding)
    if draft:
        other = changed(scenario, draft_model=draft)
        yield make_option(base, "speculative", {"draft_model": draft.name}, other, "download")


def own_head_options(base: Base) -> Iterator[Option]:
    """The model's own head drafts (multi-token prediction), where the framework can run it."""
    scenario = base.scenario
    if not base.card_fits or scenario.draft_model or scenario.mtp or scenario.batch > 1:
        return
    if support.no_head(scenario.framework, scenario.model):
        return
    tokens = int(base.knowledge.policy["mtp_tokens"])
    other = changed(scenario, mtp=tokens)
    effort: Effort = "download" if scenario.framework.memory_model == "llama.cpp" else "setting"
    yield make_option(base, "speculative", {"mtp": tokens}, other, effort)


def _draft_for(model: Model, others: Sequence[Model], padding: int) -> Model | None:
    """The largest with a tenth of the active parameters, else the smallest up to a fifth.

    One of the same family goes before the others: a tokenizer may change between families.

    Args:
        model: What the draft is for.
        others: Its relatives, the largest first.
        padding: By how many tokens the vocabularies may differ.
    """
    small = [
        m
        for m in others
        if m.active_parameters <= model.active_parameters * _DRAFT_SHARE
        and abs(m.shape.vocab - model.shape.vocab) <= padding
        and m.shape.moe is None
    ]
    light = [m for m in small if m.active_parameters <= model.active_parameters * _LIGHT_DRAFT]
    for group, choice in ((light, 0), (small, -1)):
        own = [m for m in group if m.family == model.family]
        if own or group:
            return (own or group)[choice]
    return None
