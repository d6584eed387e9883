"""Speculative decoding: which draft model or head of its own can propose tokens for a model."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor import support
from advisor.errors import RequestError
from advisor.knowledge.types import Framework
from advisor.scenario import Model, Scenario

_PADDING = 128
"""Tokens by which llama.cpp lets vocabularies differ: ``SPEC_VOCAB_MAX_SIZE_DIFFERENCE`` in
common/speculative.cpp. Other servers want them equal."""


def same_vocabulary(draft: Model, model: Model, framework: Framework) -> bool:
    """Whether the vocabularies are of one size, or differ by padding that the framework allows."""
    padding = _PADDING if framework.memory_model == "llama.cpp" else 0
    return abs(draft.shape.vocab - model.shape.vocab) <= padding


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


def draft_problems(scenario: Scenario) -> Iterator[RequestError]:
    """Say what keeps the model's own head from drafting as asked."""
    if not scenario.mtp:
        return
    if scenario.draft_model:
        yield RequestError(
            "mtp and a draft model exclude each other", hint="Leave one of them out."
        )
    why = support.no_head(scenario.framework, scenario.model)
    if why:
        yield RequestError(why, hint="Leave mtp out, or name a --draft-model.")
