"""A shorter context, or a longer one."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from advisor.estimator.limits import (
    largest_fitting_context,
    largest_that_fits,
    smallest_cpu_experts,
    spare_bytes,
)
from advisor.estimator.memory import free_bytes
from advisor.estimator.placement import cards_of
from advisor.knowledge.types import Knowledge
from advisor.remedies.offload import moves_experts
from advisor.remedies.option import Base, Option, Remedy, make_option
from advisor.remedies.search import Bounds, Degree
from advisor.runtimes.commands import can_tell
from advisor.scenario.figures import Limits, margin_of
from advisor.scenario.images import least_context
from advisor.scenario.scenario import Scenario

_STEP_TOKENS = 256


def propose(base: Base, *_: object) -> Iterator[Option]:
    """The longest context that fits, where the request's does not; with room, where it is tight."""
    if base.card_fits and not _wants_room(base):
        return
    context = _shorter(base.scenario, base.knowledge, tight=base.card_fits)
    if context is None or context < least_context(base.scenario):
        return
    other = replace(base.scenario, context_tokens=context)
    if can_tell(other, "context"):
        yield make_option(base, REMEDY, {"context": context}, other)


def _wants_room(base: Base) -> bool:
    """Whether it fits so tightly that a shorter context is worth a look."""
    tight = margin_of(base.memory, base.knowledge.policy) in {"thin", "narrow"}
    return tight and base.memory.kv_cache_bytes > 0


def _shorter(scenario: Scenario, knowledge: Knowledge, *, tight: bool = False) -> int | None:
    """The longest context that leaves a margin, else the longest that fits, in steps of 256 tokens.

    Args:
        scenario: What needs too much.
        knowledge: With the margin and the limits of every card.
        tight: Whether it fits tightly, and so much should stay free that it no longer does.

    Returns:
        None where none fits, or where that is no shorter.
    """
    least = _loose_bytes(scenario, knowledge) if tight else spare_bytes(scenario, knowledge)

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


def _loose_bytes(scenario: Scenario, knowledge: Knowledge) -> int:
    """What a card has to leave free so that it is not tight, bytes."""
    most_usable = max(card.usable or 0 for card in cards_of(scenario, knowledge))
    return round(knowledge.policy["tight_below_percent"] / 100 * most_usable)


def _longer(base: Base, limits: Limits, _: object) -> Iterator[Option]:
    """The longest context up to the usual one that leaves room, where none was stated.

    Halved from the usual one down. Where it takes more than the card has, the experts of a few
    layers make way.
    """
    scenario = base.scenario
    if base.request.context is not None or not base.fits or scenario.batch > 1:
        return
    if scenario.model.modality not in {"text", "vision"}:
        return
    tokens = int(base.knowledge.policy["usual_context_tokens"])
    tokens = min(tokens, scenario.model.trained_context_tokens or tokens)
    while tokens >= 2 * scenario.context_tokens:
        for longer in _with_context(base, tokens, limits.max_context_tokens or 0):
            change: dict[str, object] = {"context": tokens}
            if longer.cpu_experts != scenario.cpu_experts:
                change["cpu_experts"] = longer.cpu_experts
            option = make_option(base, LONGER, change, longer)
            if option.fits and (option.margin == "ample" or "cpu_experts" in change):
                yield option
                return
        tokens //= 2


def _with_context(base: Base, tokens: int, most: int) -> Iterator[Scenario]:
    """Whole on the card where it holds that, then with some experts in system RAM, for room."""
    longer = replace(base.scenario, context_tokens=tokens)
    if not can_tell(longer, "context"):
        return
    if tokens <= most:
        yield longer
    if moves_experts(longer):
        whole = replace(longer, cpu_experts=0)
        out = smallest_cpu_experts(whole, base.knowledge, roomy=True)
        if out is not None:
            yield replace(whole, cpu_experts=out)


def _exact(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    context = _shorter(scenario, knowledge)
    return context if context is not None and context >= limits.context(scenario) else None


REMEDY = Remedy("shrink-context", frozenset({"context"}), "setting", propose)
LONGER = Remedy("grow-context", frozenset({"context"}), "setting", _longer)
DEGREE = Degree(
    "context",
    applies=lambda scenario, limits: limits.context(scenario) < scenario.context_tokens,
    extreme=lambda scenario, limits: limits.context(scenario),
    exact=_exact,
    put=lambda _, scenario, tokens: replace(scenario, context_tokens=tokens),
)
