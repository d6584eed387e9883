"""How much stays free on the fullest card, and how certain it is that it fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from advisor.scenario.figures import Memory

Margin = Literal["thin", "narrow", "ample"]


def fullest_usable(memory: Memory) -> int | None:
    """Usable memory of the card that lacks most, or has the least free, bytes."""
    if not memory.per_gpu:
        return memory.usable_bytes
    return max(memory.per_gpu, key=lambda c: c.required_bytes - c.usable_bytes).usable_bytes


def headroom_percent(memory: Memory) -> float | None:
    """Headroom of the fullest card as a share of its usable memory; negative for a deficit."""
    usable = fullest_usable(memory)
    if memory.headroom_bytes is None or memory.deficit_bytes is None or not usable:
        return None
    return round(100.0 * (memory.headroom_bytes - memory.deficit_bytes) / usable, 4) + 0.0


def margin_of(memory: Memory, policy: Mapping[str, float]) -> Margin | None:
    """Say how far one may rely on what fits; None where it does not fit.

    Args:
        memory: What is needed and what is usable.
        policy: The named numbers of knowledge/policy.yaml.
    """
    share = headroom_percent(memory)
    if share is None or share < 0.0:
        return None
    if share < policy["thin_below_percent"]:
        return "thin"
    return "narrow" if share < policy["tight_below_percent"] else "ample"


Certainty = Literal["sure", "may_exceed", "may_fit", "beyond"]


def certainty_of(memory: Memory) -> Certainty | None:
    """Hold the range of every card against its usable memory.

    Returns:
        ``sure`` when even the upper end fits on every card; ``may_exceed`` when the estimate fits
        and the upper end does not; ``may_fit`` when only the lower end fits; ``beyond`` when it
        does not either. None without a card.
    """
    cards = memory.per_gpu
    if not cards:
        return None
    if all(card.high_bytes <= card.usable_bytes for card in cards):
        return "sure"
    if all(card.required_bytes <= card.usable_bytes for card in cards):
        return "may_exceed"
    return "may_fit" if all(card.low_bytes <= card.usable_bytes for card in cards) else "beyond"
