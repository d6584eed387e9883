"""Plain sentences about the request itself."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.knowledge import names
from advisor.options.base import Base


def request_warnings(base: Base) -> tuple[str, ...]:
    """Say what the user may not have meant: a sibling card, a context beyond training."""
    return tuple(_warnings(base))


def _warnings(base: Base) -> Iterator[str]:
    scenario = base.scenario
    trained = scenario.model.trained_context_tokens
    if trained and scenario.context_tokens > trained:
        yield (
            f"{scenario.model.name} was trained for {trained:,} tokens; "
            f"{scenario.context_tokens:,} were asked for."
        )
    if trained is None:
        yield f"The trained context length of {scenario.model.name} is not known."
    if scenario.gpu:
        siblings = names.siblings(base.knowledge, scenario.gpu)
        if siblings:
            yield f"Taken as {scenario.gpu.name}; there is also {', '.join(siblings[:3])}."
