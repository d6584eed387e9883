"""Which cards a reader weighs against each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from advisor.bulk.site.catalogue import Subject

_ALL_PAIRS = 12
"""So many cards are compared each with each."""
_NEXT = 2

Couple = tuple[Subject, Subject, str]
"""Two cards and the path of the page that compares them."""


def couples(cards: Sequence[Subject]) -> list[Couple]:
    """Pair cards: all of them, or neighbours in memory of the same vendor and of any."""
    ordered = sorted(cards, key=lambda one: (one.size, one.name.casefold(), one.key))
    if len(ordered) <= _ALL_PAIRS:
        chosen = {(a.key, b.key): (a, b) for a, b in combinations(ordered, 2)}
    else:
        chosen = {}
        groups = [[one for one in ordered if one.group == name] for name in _groups(ordered)]
        for row in (ordered, *groups):
            for step in range(1, _NEXT + 1):
                near = zip(row, row[step:], strict=False)
                chosen |= {(a.key, b.key): (a, b) for a, b in near}
    return [(a, b, f"compare/{a.slug}--{b.slug}.html") for a, b in chosen.values()]


def _groups(cards: Sequence[Subject]) -> list[str]:
    return sorted({one.group for one in cards})


def couples_by_card(cards: Sequence[Subject]) -> dict[str, list[Couple]]:
    """Sort the couples by each of their cards."""
    found: dict[str, list[Couple]] = {}
    for couple in couples(cards):
        for one in couple[:2]:
            found.setdefault(one.key, []).append(couple)
    return found
