"""80 % ranges: quantiles of held-out errors by situation, and how much they cover.

A range is a pair of factors on the figure, [low, high]. It is taken from the predictions of the
other groups when a group's coverage is counted, so that no group vouches for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp

from msgspec import Struct

from advisor.calibration.fits import Material
from advisor.calibration.held_out import Held, situation
from advisor.estimate.speed_tables import Range

LEAST_GROUPS = 15
LEAST_CARDS = 3
"""Fewer groups or cards than these only widen a range, never narrow it."""
_TAIL = 0.1


class Spread(Struct, frozen=True):
    """The range of one situation."""

    low: float
    high: float
    runs: int
    groups: int
    cards: int
    coverage: float
    """Share of runs inside the range that the other groups gave."""


def spreads_by_situation(held: Sequence[Held], material: Material) -> Mapping[str, Spread]:
    """Give the measured 80 % range of every situation."""
    found: dict[str, list[Held]] = defaultdict(list)
    for one in held:
        name = situation(one, material)
        if name is not None:
            found[name].append(one)
    return {name: spread_of(rows) for name, rows in sorted(found.items())}


def spread_of(held: Sequence[Held]) -> Spread:
    """Give the range of one stratum and its coverage out of group.

    Where whole cards were held out a card weighs by the root of its runs, as in the fit, so that
    neither the card with most runs nor the one with a single odd run sets the range alone.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for one in held:
        groups[one.group].append(-one.error)
    by_root = all(one.held_out == "card" for one in held)
    weight = {group: len(rows) ** -0.5 if by_root else 1.0 for group, rows in groups.items()}
    low, high = _range(groups, weight, but="")
    inside = total = 0.0
    for group, rows in sorted(groups.items()):
        least, most = _range(groups, weight, but=group)
        inside += weight[group] * sum(least <= exp(ratio) <= most for ratio in rows)
        total += weight[group] * len(rows)
    cards = len({one.run.card[0] for one in held})
    return Spread(low, high, len(held), len(groups), cards, inside / total)


def _range(groups: Mapping[str, Sequence[float]], weights: Mapping[str, float], but: str) -> Range:
    """Take the conformal tenth and ninetieth percentile of measured over predicted."""
    ordered = sorted(
        (ratio, weights[group]) for group, rows in groups.items() if group != but for ratio in rows
    )
    if not ordered:
        return 1.0, 1.0
    # One more case, of unknown place, belongs to the whole.
    beyond = _TAIL * (sum(weight for _, weight in ordered) + ordered[0][1])
    return exp(_from_end(ordered, beyond)), exp(_from_end(ordered[::-1], beyond))


def _from_end(ordered: Sequence[tuple[float, float]], beyond: float) -> float:
    """Give the value that leaves less than ``beyond`` of the weight before it."""
    passed = 0.0
    for ratio, weight in ordered:
        passed += weight
        if passed >= beyond:
            return ratio
    return ordered[-1][0]


def fitted_ranges(
    spreads: Mapping[str, Spread], policy: Mapping[str, Range]
) -> Mapping[str, Range]:
    """Choose what replaces the ranges by judgement.

    Enough groups on enough cards replace a range; too few widen it at most. A figure always lies
    in its range.
    """
    chosen: dict[str, Range] = {}
    for name, spread in spreads.items():
        low, high = min(spread.low, 0.99), max(spread.high, 1.01)
        stated = policy.get(name)
        if spread.groups < LEAST_GROUPS or spread.cards < LEAST_CARDS:
            if stated is None:
                continue
            low, high = min(low, stated[0]), max(high, stated[1])
            if (low, high) == stated:
                continue
        chosen[name] = low, high
    return chosen
