"""How sure a recommendation is, from what its figures rest on."""

from __future__ import annotations

from typing import Literal

from advisor.advice import Option

Confidence = Literal["high", "medium", "low"]


def confidence_of(option: Option) -> Confidence:
    """High: memory by exact formulas and speed from this card or not needed; low: rough speed
    or a fit that the upper end of the memory range would undo; medium otherwise."""
    memory = option.memory
    usable = memory.usable_bytes
    if usable is not None and memory.high_bytes > usable and option.scenario.gpus == 1:
        return "low"
    if option.speed and option.speed.decode_tok_s.evidence == "extrapolated":
        return "low"
    near = option.speed is None or option.speed.decode_tok_s.evidence in {"measured", "near"}
    return "high" if near and not memory.approximate else "medium"
