"""What both questions answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from advisor.estimate.limits import find_limits
from advisor.estimate.margin import Margin, margin_of
from advisor.knowledge.types import Knowledge
from advisor.reverse.criteria import Wish
from advisor.reverse.search import Answer, Reason
from advisor.scenario.figures import Limits
from advisor.scenario.settings import Request

Cause = Reason | Literal["filtered", "release_unknown", "price_unknown", "power_unknown",
                         "memory_unknown", "short_training", "not_for_sale"]  # fmt: skip
CAUSES: Sequence[Cause] = (
    "does_not_fit",
    "larger_loss_only",
    "too_slow",
    "speed_unknown",
    "cannot_run",
    "short_training",
    "not_sizable",
    "memory_unknown",
    "price_unknown",
    "power_unknown",
    "release_unknown",
    "not_for_sale",
    "filtered",
)
"""In the order they are told."""


class Row(Struct, frozen=True):
    """One line of an answer, with the limits of its scenario."""

    answer: Answer
    limits: Limits
    request: Request
    """Gives the same figures when it is estimated by itself."""
    margin: Margin | None = None
    """How far one may rely on what stays free."""


class Found(Struct, frozen=True):
    """The answer to one question."""

    wish: Wish
    rows: Sequence[Row]
    fitting: int
    """Models or cards that run, shown or not."""
    tried: int
    """All models or cards of the knowledge base."""
    left_out: dict[Cause, int]
    """Why the others are not among them, with how many; every one is counted once."""
    sort: str | None = None
    """What cards are sorted by; models are sorted by what is preferred."""
    best: Mapping[str, Row] = field(default_factory=dict)
    """The first of all cards by each order, where its figure is known."""
    warnings: Sequence[str] = ()
    """Plain sentences about what was asked."""


def row_of(answer: Answer, wish: Wish, gpu: str, model: str, knowledge: Knowledge) -> Row:
    """Complete an answer that is shown.

    Args:
        answer: What was found.
        wish: What was asked.
        gpu: The card, as ``--gpu`` takes it.
        model: The model, as ``--model`` takes it.
        knowledge: The knowledge base.
    """
    limits = find_limits(answer.scenario, knowledge, answer.memory)
    margin = margin_of(answer.memory, knowledge.policy)
    return Row(answer, limits, answer.request(wish, gpu, model), margin)


def counted(causes: Sequence[Cause]) -> dict[Cause, int]:
    """Count causes, in the order they are told."""
    return {cause: causes.count(cause) for cause in CAUSES if cause in causes}


def descending(value: float | None) -> tuple[bool, float]:
    """Sort the largest first and the unknown last."""
    return (value is None, -(value or 0.0))


def ascending(value: float | None) -> tuple[bool, float]:
    """Sort the smallest first and the unknown last."""
    return (value is None, value or 0.0)
