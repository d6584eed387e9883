"""How sure a recommendation is, from what its figures rest on."""

from __future__ import annotations

from typing import Literal

from advisor.estimate.certainty import certainty_of
from advisor.estimate.memory import partly_guessed
from advisor.remedies.option import Option
from advisor.remedies.registry import is_uncertain

Confidence = Literal["high", "medium", "low"]


def confidence_of(option: Option) -> Confidence:
    """Grade an option.

    Low: drafts, whose gain hangs on what is written; a rough speed; a fit that the upper end of
    the memory range would undo. High: memory by exact formulas but for the runtime's own, and a
    speed from this card or none needed.
    """
    memory = option.memory
    if is_uncertain(option.action):
        return "low"
    if certainty_of(memory) not in {"sure", None}:
        return "low"
    if option.speed and option.speed.decode_tok_s.evidence == "extrapolated":
        return "low"
    near = option.speed is None or option.speed.decode_tok_s.evidence in {"measured", "near"}
    return "medium" if not near or partly_guessed(memory) else "high"
