"""Plain sentences about the request itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.knowledge import names
from advisor.knowledge.types import Gpu, Knowledge
from advisor.options.base import Base

_SIZED = re.compile(r"\d\s*(GB|GiB)\b", re.IGNORECASE)


def request_warnings(base: Base) -> tuple[str, ...]:
    """Say what the user may not have meant: a sibling card, a context beyond training."""
    return tuple(_warnings(base))


def _warnings(base: Base) -> Iterator[str]:
    scenario = base.scenario
    yield from scenario.model.notes
    own = base.knowledge.own
    if own and scenario.gpu and any(scenario.gpu.name == key.gpu for key in own.factors):
        yield (
            f"Speeds on the {scenario.gpu.name} follow your own measurements; "
            "`--no-measurements` leaves them out."
        )
    trained = scenario.model.trained_context_tokens
    if trained and scenario.context_tokens > trained:
        yield (
            f"{scenario.model.name} was trained for {trained:,} tokens; "
            f"{scenario.context_tokens:,} were asked for."
        )
    if trained is None:
        yield f"The trained context length of {scenario.model.name} is not known."
    if scenario.gpu and not _SIZED.search(base.request.gpu or ""):
        for gpu in {gpu.name: gpu for gpu in scenario.cards or (scenario.gpu,)}.values():
            yield from _siblings(base.knowledge, gpu)


def _siblings(knowledge: Knowledge, gpu: Gpu) -> Iterator[str]:
    """Cards of the same generation that share the name and differ in memory."""
    others = _others(knowledge, gpu)
    if others:
        yield f"Taken as {gpu.name}; there is also {', '.join(others[:3])}."


_kept: dict[tuple[int, str, int | None], tuple[Knowledge, list[str]]] = {}


def _others(knowledge: Knowledge, gpu: Gpu) -> list[str]:
    key = (id(knowledge), gpu.name, gpu.vram_bytes)
    found = _kept.get(key)
    if found is None or found[0] is not knowledge:
        known = (knowledge.gpus[name] for name in names.siblings(knowledge, gpu))
        same = [
            card.name
            for card in known
            if card.architecture == gpu.architecture and card.vram_bytes != gpu.vram_bytes
        ]
        found = _kept[key] = (knowledge, same)
    return found[1]
