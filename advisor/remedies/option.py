"""A what-if: the change, and the changed scenario estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from advisor.knowledge.fact_type import FactValue

if TYPE_CHECKING:
    from advisor.estimate.margin import Margin
    from advisor.scenario.figures import Memory, Speed
    from advisor.scenario.scenario import Scenario

Effort = Literal["setting", "download", "rebuild", "purchase"]
EFFORTS: Sequence[Effort] = get_args(Effort)
"""The least first."""


class Option(Struct, frozen=True):
    """One what-if: a change in ``estimate`` keys, and the changed scenario estimated."""

    key: str
    """Unique and stable within a scenario, for ordering and tracing."""
    action: str
    change: Mapping[str, object]
    scenario: Scenario
    memory: Memory
    speed: Speed | None
    fits: bool
    steps: int
    quality_loss_percent: float | None
    quality_cost_percent: float | None
    cost_usd: float | None
    effort: Effort
    margin: Margin | None = None
    """How far one may rely on what stays free; None where it does not fit."""
    alone: Mapping[str, FactValue] = {}
    """The ``option.*`` facts that follow from the changed scenario, whatever was asked."""


class Expected(Struct, frozen=True):
    """A what-if that people look for and that cannot run here, so nothing is estimated."""

    key: str
    action: str
    change: Mapping[str, object]
    facts: Mapping[str, FactValue]
    """Its ``option.*`` facts, for the rules that bar it."""
