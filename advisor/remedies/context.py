"""A shorter context."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.estimate.limits import largest_fitting_context, largest_that_fits
from advisor.estimate.memory import free_bytes
from advisor.estimate.placement import cards_of
from advisor.knowledge.types import Knowledge
from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.remedies.search import Bounds, Degree
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import headroom_percent
from advisor.scenario.scenario import Scenario

_STEP_TOKENS = 256


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The longest context that fits, where the request's does not; with room, where it is tight."""
    if base.card_fits and not _wants_room(base):
        return
    margin = "tight_below_percent" if base.card_fits else "thin_below_percent"
    context = _shorter(base.scenario, base.knowledge, margin)
    if context is None or context <= base.scenario.depth_tokens:
        return
    other = replace(base.scenario, context_tokens=context)
    if can_tell(other, "context"):
        yield make_option(base, REMEDY, {"context": context}, other)


def _wants_room(base: Base) -> bool:
    """Whether it fits so tightly that a shorter context is worth a look."""
    share, least = headroom_percent(base.memory), base.knowledge.policy["tight_below_percent"]
    return share is not None and share < least and base.memory.kv_cache_bytes > 0


def _shorter(scenario: Scenario, knowledge: Knowledge, margin: str) -> int | None:
    """The longest context that leaves a margin, else the longest that fits, in steps of 256 tokens.

    Args:
        scenario: What needs too much.
        knowledge: With the margin and the limits of every card.
        margin: Name in policy.yaml of the share of the usable memory that should stay free.

    Returns:
        None where none fits, or where that is no shorter.
    """
    most_usable = max(card.usable or 0 for card in cards_of(scenario, knowledge))
    least = round(knowledge.policy[margin] / 100 * most_usable)

    def free(tokens: int) -> int:
        shorter = replace(scenario, context_tokens=tokens)
        return (free_bytes(shorter, knowledge, once=True) or 0) - least

    trained = scenario.model.trained_context_tokens
    most = min(scenario.context_tokens - 1, trained or scenario.context_tokens)
    largest = largest_that_fits(free, most) if most > 0 else None
    if largest is None or largest < knowledge.policy["least_context_tokens"]:
        largest = largest_fitting_context(scenario, knowledge)
    if largest is None or largest >= scenario.context_tokens:
        return None
    return largest // _STEP_TOKENS * _STEP_TOKENS or largest


def _exact(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    context = _shorter(scenario, knowledge, "thin_below_percent")
    return context if context is not None and context >= limits.context(scenario) else None


REMEDY = Remedy("shrink-context", frozenset({"context"}), "setting", propose)
DEGREE = Degree(
    "context",
    applies=lambda scenario, limits: limits.context(scenario) < scenario.context_tokens,
    extreme=lambda scenario, limits: limits.context(scenario),
    exact=_exact,
    put=lambda _, scenario, tokens: replace(scenario, context_tokens=tokens),
)
