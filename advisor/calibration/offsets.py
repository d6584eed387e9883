"""How far one card, or one person's machine, runs from what the model says of its kind.

A card's offset is estimated from the log ratios of measured over modelled speed. They are taken
as the card's own offset plus what each source (a machine, a build, a person) adds to all of its
rows plus what each configuration adds; the offset is shrunk toward 0 by what these three spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import exp, sqrt
from operator import attrgetter
from statistics import median

from msgspec import Struct

_Z_80 = 1.2816
"""Normal quantile of an 80 % interval."""

_FAR = 3.0
"""A source this many standard deviations off counts half: weights in system RAM, a wrong label."""


class Spreads(Struct, frozen=True):
    """Standard deviations of natural logarithms."""

    cards: float
    """Between cards of one architecture."""
    sources: float
    """Between sources on one card."""
    configurations: float
    """Between models and formats on one machine."""


class Residual(Struct, frozen=True):
    """One configuration's measured speed over the model's without card factor, logarithm."""

    source: str
    log_ratio: float


class Offset(Struct, frozen=True):
    """A factor on the model's speed, with the 80 % interval of the factor itself."""

    factor: float
    low: float
    high: float
    configurations: int
    sources: int


def card_offset(
    configurations: Iterable[Residual], spreads: Spreads, *, own_machine: bool = False
) -> Offset:
    """Estimate the factor of one card from its configurations.

    Args:
        configurations: One residual per configuration and source.
        spreads: What the calibration found to vary.
        own_machine: All residuals come from the very machine the factor is for, so that what a
            source adds is part of the factor and not noise.

    Returns:
        The shrunk factor; 1 without configurations.
    """
    rows = sorted(configurations, key=attrgetter("source"))
    groups = [list(group) for _, group in groupby(rows, key=attrgetter("source"))]
    prior = spreads.cards**2 + (spreads.sources**2 if own_machine else 0.0)
    added = 0.0 if own_machine else spreads.sources**2
    precision, pulled = 1 / prior, 0.0
    usual = sqrt(spreads.cards**2 + spreads.sources**2 + spreads.configurations**2)
    for group in groups:
        middle = _middle(group)
        weight = 1 / (added + spreads.configurations**2 / len(group))
        if not own_machine:
            weight /= 1 + (middle / (_FAR * usual)) ** 2
        precision += weight
        pulled += weight * middle
    log_factor, spread = pulled / precision, _Z_80 * sqrt(1 / precision)
    return Offset(
        factor=exp(log_factor),
        low=exp(log_factor - spread),
        high=exp(log_factor + spread),
        configurations=len(rows),
        sources=len(groups),
    )


def _middle(group: Sequence[Residual]) -> float:
    return median(row.log_ratio for row in group)
