"""Plain sentences about the request itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.knowledge import names
from advisor.knowledge.types import Gpu, Knowledge
from advisor.knowledge.vendors import MAKERS
from advisor.models.model import Model
from advisor.remedies.baseline import Base
from advisor.scenario import support
from advisor.scenario.scenario import Scenario
from advisor.scenario.settings import Request
from advisor.units import GIB

_SIZED = re.compile(r"\d\s*(GB|GiB)\b", re.IGNORECASE)


def request_warnings(base: Base) -> tuple[str, ...]:
    """Say what the user may not have meant: a sibling card, a context beyond training."""
    scenario = base.scenario
    found = list(model_warnings(scenario.model, scenario.context_tokens))
    found += published_warnings(base.request, scenario)
    own = base.knowledge.user_speeds
    if own and scenario.gpu and any(scenario.gpu.name == key.gpu for key in own.factors):
        found.append(
            f"Speeds on the {scenario.gpu.name} follow your own measurements; "
            "`--no-measurements` leaves them out."
        )
    for gpu in {gpu.name: gpu for gpu in scenario.cards or (scenario.gpu,) if gpu}.values():
        found += card_warnings(base.knowledge, base.request.gpu or "", gpu)
    return tuple(found)


def model_warnings(model: Model, context_tokens: int) -> Iterator[str]:
    """Say what a model's files say about themselves, and what its training says of a context."""
    yield from model.notes
    trained = model.trained_context_tokens
    if trained and context_tokens > trained:
        yield (
            f"{model.name} was trained for {trained:,} tokens; {context_tokens:,} were asked for."
        )
    if trained is None:
        yield f"The trained context length of {model.name} is not known."


def published_warnings(request: Request, scenario: Scenario) -> Iterator[str]:
    """Say that no precision was stated, so that the published one is what is sized."""
    model, precision = scenario.model, scenario.precision
    if request.precision or not model.native_formats or model.stored is not None:
        return
    own = model.native_formats[0].partition("_")[0]
    if support.is_published(precision, model):
        yield f"{model.name} is published in {own}, so that is what is sized."
    else:
        yield (
            f"{model.name} is published in {own}, which does not run here; "
            f"{precision.name} is sized instead."
        )


def card_warnings(knowledge: Knowledge, text: str, gpu: Gpu) -> Iterator[str]:
    """Say which other cards a name may mean, unless it states a size."""
    if not _SIZED.search(text):
        if MAKERS[gpu.vendor].one_memory and gpu.vram_bytes:
            most = f"{gpu.vram_bytes / GIB:g} GB"
            yield f"{gpu.name} is taken with {most}, the most it is sold with. Else give NAME:SIZE."
        yield from _siblings(knowledge, gpu)


def _siblings(knowledge: Knowledge, gpu: Gpu) -> Iterator[str]:
    """Cards of the same generation that share the name and differ in memory."""
    others = _others(knowledge, gpu)
    if others:
        yield f"Taken as {gpu.name}; there is also {', '.join(others[:3])}."


def _others(knowledge: Knowledge, gpu: Gpu) -> list[str]:
    known = (knowledge.gpus[name] for name in names.siblings(knowledge, gpu))
    return [
        card.name
        for card in known
        if card.architecture == gpu.architecture and card.vram_bytes != gpu.vram_bytes
    ]
