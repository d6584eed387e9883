"""Speculative decoding: a small relative drafts, or the model's own head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.types import Framework
from advisor.models.stored_tensors import Model
from advisor.remedies.model import relatives
from advisor.remedies.option import Base, Effort, Option, Remedy, make_option
from advisor.runtimes import runtime_of
from advisor.scenario import support
from advisor.scenario.support import DRAFT_SHARE, same_vocabulary

_LIGHT_DRAFT = 0.1


def _drafts(base: Base, *_: object) -> Iterator[Option]:
    """A relative small enough to draft for this model, where the framework can use one."""
    scenario = base.scenario
    if not (base.fits and scenario.framework.speculative and scenario.draft_model is None):
        return
    if support.no_drafting(scenario):
        return
    if scenario.mtp or scenario.model.modality != "text" or scenario.batch > 1:
        return
    others = relatives(base.knowledge, scenario.model)
    draft = _draft_for(scenario.model, others, scenario.framework)
    if draft:
        other = replace(scenario, draft_model=draft)
        yield make_option(base, DRAFT, {"draft_model": draft.name}, other)


def _head_drafts(base: Base, *_: object) -> Iterator[Option]:
    """The model's own head drafts (multi-token prediction), where the framework can run it."""
    scenario = base.scenario
    if not base.fits or scenario.draft_model or scenario.mtp or scenario.batch > 1:
        return
    if support.no_head(scenario.framework, scenario.model) or support.no_drafting(scenario):
        return
    tokens = int(base.knowledge.policy["mtp_tokens"])
    other = replace(scenario, mtp=tokens)
    effort: Effort = "download" if runtime_of(scenario.framework).gguf_alone else "setting"
    yield make_option(base, HEAD, {"mtp": tokens}, other, effort=effort)


def _draft_for(model: Model, others: Sequence[Model], framework: Framework) -> Model | None:
    """The largest with a tenth of the active parameters, else the smallest up to a fifth.

    One of the same family goes before the others: a tokenizer may change between families.

    Args:
        model: What the draft is for.
        others: Its relatives, the largest first.
        framework: Says by how many tokens the vocabularies may differ.
    """
    small = [
        m
        for m in others
        if m.active_parameters <= model.active_parameters * DRAFT_SHARE
        and same_vocabulary(m, model, framework)
        and m.shape.moe is None
    ]
    light = [m for m in small if m.active_parameters <= model.active_parameters * _LIGHT_DRAFT]
    for group, choice in ((light, 0), (small, -1)):
        own = [m for m in group if m.family == model.family]
        if own or group:
            return (own or group)[choice]
    return None


DRAFT = Remedy("speculative", frozenset({"draft_model"}), "download", _drafts, uncertain=True)
HEAD = Remedy(DRAFT.action, frozenset({"mtp"}), "setting", _head_drafts, uncertain=True)
