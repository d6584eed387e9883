"""Whether the range of the memory figure crosses what a card has to offer."""

from __future__ import annotations

from typing import Literal

from advisor.scenario.figures import Memory

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
