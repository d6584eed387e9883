"""Speculative decoding: a small relative drafts, or the model's own head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from advisor.knowledge.catalogue import kin, siblings
from advisor.knowledge.merit import purposes
from advisor.knowledge.types import Knowledge
from advisor.models.stored_tensors import Model
from advisor.remedies.option import (
    Base,
    Effort,
    Option,
    Remedy,
    make_option,
    sized_record,
    tuned_like,
)
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import can_tell
from advisor.scenario import Scenario, support
from advisor.scenario.capability import asked, holds_head
from advisor.scenario.support import DRAFT_SHARE, same_vocabulary

ASSISTANT: Final = "mtp"
"""Among the companions of a model: a head of its publisher's that drafts for it alone."""
_LIGHT_DRAFT = 1 / 25
_ALIKE = 10**8
"""Parameters within which of two drafts the newer one is taken."""


def _drafts(base: Base, *_: object) -> Iterator[Option]:
    """A relative small enough to draft for this model, where no head was trained for that."""
    scenario = base.scenario
    if not (base.fits and scenario.framework.speculative and scenario.draft_model is None):
        return
    if support.no_drafting(scenario) or ASSISTANT in scenario.model.companions:
        return
    if slow_drafter(scenario) or trained_head(scenario):
        return
    gguf = runtime_of(scenario.framework).gguf_alone
    reads_text = scenario.model.modality == "text" or (gguf and scenario.model.modality == "vision")
    if scenario.mtp or not reads_text or scenario.batch > 1:
        return
    draft = _draft_for(scenario, base.knowledge)
    if draft:
        other = replace(scenario, draft_model=draft)
        if not can_tell(other, "draft_model"):
            return
        yield make_option(base, DRAFT, {"draft_model": draft.name}, other)


def _head_drafts(base: Base, *_: object) -> Iterator[Option]:
    """The model's own head drafts (multi-token prediction), where the framework can run it."""
    scenario = base.scenario
    if not base.fits or scenario.draft_model or scenario.mtp or scenario.batch > 1:
        return
    if support.no_head(scenario.framework, scenario.model) or support.no_drafting(scenario):
        return
    gguf = runtime_of(scenario.framework).gguf_alone
    if gguf and not holds_head(scenario.model, scenario.precision):
        return
    tokens = int(base.knowledge.policy["mtp_tokens"])
    other = replace(scenario, mtp=tokens)
    effort: Effort = "download" if gguf else "setting"
    yield make_option(base, HEAD, {"mtp": tokens}, other, effort=effort)


def slow_drafter(scenario: Scenario) -> str:
    """Say in one clause why a second model drafts too slowly here to gain by; empty: it may."""
    row = asked(scenario.framework, "draft", "model", scenario.gpu, scenario.model.shape)
    return row.why if row and row.answer == "slow" else ""


def _draft_for(scenario: Scenario, knowledge: Knowledge) -> Model | None:
    """The largest of a twenty-fifth of the active parameters, else the smallest up to a fifth.

    Dense, without a recurrent state (drafts that are refused must be taken back), trained for the
    context that is asked for. One of the same family goes before the others: a tokenizer may
    change between families. In the tuning of the model where that is published too.
    """
    model = scenario.model
    small = [one for one in _small(scenario, knowledge) if _may_draft(one, scenario)]
    small.sort(key=lambda m: m.released or "", reverse=True)
    light = [m for m in small if m.active_parameters <= model.active_parameters * _LIGHT_DRAFT]
    for group, choice in ((light, max), (small, min)):
        own = [m for m in group if m.family == model.family]
        if own or group:
            found = choice(own or group, key=lambda m: m.active_parameters // _ALIKE)
            return tuned_like(found, model, knowledge)
    return None


def _small(scenario: Scenario, knowledge: Knowledge) -> Iterator[Model]:
    """Models of the family, or of the publisher with the same vocabulary, that read text.

    A GGUF file of a model that reads images holds its text part alone, and drafts like another.
    """
    model = scenario.model
    kinds = ("text", "vision") if runtime_of(scenario.framework).gguf_alone else ("text",)
    families = (model.family, f"{model.family} Distill")
    found = [n for one in families for kind in kinds for n in siblings(knowledge, one, kind)]
    for name in dict.fromkeys(
        [*found, *kin(knowledge, model.name, model.hf_id, model.shape.vocab)]
    ):
        other = sized_record(name, knowledge)
        if other and other.modality in kinds:
            yield other


def _may_draft(draft: Model, scenario: Scenario) -> bool:
    model, shape = scenario.model, draft.shape
    return (
        draft.active_parameters <= model.active_parameters * DRAFT_SHARE
        and shape.moe is None
        and shape.recurrent is None
        and same_vocabulary(draft, model, scenario.framework)
        and (draft.trained_context_tokens or 0) >= scenario.context_tokens
        and _is_of_its_line(draft, model)
        and purposes(draft.name) <= purposes(model.name)
    )


def _is_of_its_line(draft: Model, model: Model) -> bool:
    """Whether its tokens are likely the model's: of its family, of its generation, or as many.

    Another name's must be as many, padding included, and known to be of no later release: QwQ gave
    tokens of Qwen2.5 another meaning, Ministral 3 those of Devstral.
    """
    own, other = (_GENERATION.match(one.family) for one in (model, draft))
    if all(m.family.split()[0].lower() in m.name.lower() for m in (model, draft)):
        if own and other and own[1] == other[1]:
            return own[2] == other[2]
        if draft.family.startswith(model.family):
            return True
    as_many = draft.shape.vocab == model.shape.vocab
    return as_many and "" < (draft.released or "") <= (model.released or "~")


_GENERATION: Final = re.compile(r"([A-Za-z]+)[ -]?(\d+)")


def trained_head(scenario: Scenario) -> str | None:
    """Give the repository of a head that was trained to draft, where this runtime can use it."""
    heads, framework = scenario.model.companions, scenario.framework
    if support.no_drafting(scenario, head=True):
        return None
    runtime = runtime_of(framework)
    if runtime.gguf_alone:
        return heads.get(ASSISTANT)
    own = heads.get("speculators") or heads.get(ASSISTANT) if runtime.reads_speculators else None
    return heads.get("eagle3") or own


DRAFT = Remedy("speculative", frozenset({"draft_model"}), "download", _drafts, uncertain=True)
HEAD = Remedy(DRAFT.action, frozenset({"mtp"}), "setting", _head_drafts, uncertain=True)
