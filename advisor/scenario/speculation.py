"""Speculative decoding: which draft model or head of its own can propose tokens for a model."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Framework, Knowledge
from advisor.models.resolution import model_from_record
from advisor.models.stored_tensors import Model
from advisor.scenario import support
from advisor.scenario.scenario import Scenario

DRAFT_SHARE = 0.2
"""Share of the model's active parameters that a draft has at most."""
_MOST_NAMED = 3


def same_vocabulary(draft: Model, model: Model, framework: Framework) -> bool:
    """Whether the vocabularies are of one size, or differ by padding that the framework allows."""
    return abs(draft.shape.vocab - model.shape.vocab) <= framework.draft_padding


def without_lost_drafts(scenario: Scenario) -> Scenario:
    """Leave out what no longer drafts, after a change of the model or the framework."""
    draft = scenario.draft_model
    if scenario.mtp and support.no_head(scenario.framework, scenario.model):
        scenario = replace(scenario, mtp=0)
    if draft is None or _drafts(draft, scenario):
        return scenario
    return replace(scenario, draft_model=None)


def _drafts(draft: Model, scenario: Scenario) -> bool:
    """Whether a draft has the vocabulary of the model and is smaller than it."""
    model = scenario.model
    smaller = draft.active_parameters < model.active_parameters
    return smaller and same_vocabulary(draft, model, scenario.framework)


def _usable_drafts(scenario: Scenario, knowledge: Knowledge) -> str:
    """Name the smallest models of the family that could draft."""
    model, found = scenario.model, list[Model]()
    for record in knowledge.models.values():
        if record.family != model.family or record.modality != model.modality:
            continue
        try:
            other = model_from_record(record, knowledge)
        except RequestError:
            continue
        fits = same_vocabulary(other, model, scenario.framework)
        if fits and other.active_parameters <= model.active_parameters * DRAFT_SHARE:
            found.append(other)
    found.sort(key=lambda other: (other.parameters, other.name))
    if not found:
        return "No small model of its family has the same vocabulary: leave the draft out."
    return f"Of its family these can: {', '.join(other.name for other in found[:_MOST_NAMED])}."


def draft_problems(scenario: Scenario, knowledge: Knowledge) -> Iterator[RequestError]:
    """Say what keeps a draft model, or the model's own head, from drafting as asked."""
    draft, model = scenario.draft_model, scenario.model
    if draft and not same_vocabulary(draft, model, scenario.framework):
        yield RequestError(
            f"{draft.name} cannot draft for {model.name}: its vocabulary has "
            f"{draft.shape.vocab:,} tokens, not {model.shape.vocab:,}",
            hint=_usable_drafts(scenario, knowledge),
        )
    if not scenario.mtp:
        return
    if scenario.draft_model:
        yield RequestError(
            "mtp and a draft model exclude each other", hint="Leave one of them out."
        )
    why = support.no_head(scenario.framework, scenario.model)
    if why:
        yield RequestError(why, hint="Leave mtp out, or name a --draft-model.")
