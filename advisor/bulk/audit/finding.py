"""What an audit finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

Kind = Literal[
    "unfinished", "missing", "damaged", "foreign", "stale", "outdated", "wrong", "contradiction",
    "duplicate", "link", "page",
]  # fmt: skip

HEADINGS: Mapping[Kind, str] = {
    "unfinished": "not finished",
    "missing": "files that are missing",
    "damaged": "files that are not as they were written",
    "foreign": "files that no batch wrote",
    "stale": "made from something else than there is now",
    "outdated": "reports that would read differently now",
    "wrong": "reports that a fresh computation does not confirm",
    "contradiction": "contradictions",
    "duplicate": "different scenarios with the same text",
    "link": "broken links",
    "page": "pages that do not keep the rules of a page",
}
"""In the order in which findings are told."""

_MOST_KEPT = 1000


class Finding(Struct, frozen=True, order=True):
    """One thing that is wrong."""

    kind: Kind
    where: str
    """A path in the folder, or the name of a report."""
    message: str


class Findings(Struct):
    """All findings counted; of each kind the first thousand kept."""

    counts: Counter[Kind] = field(default_factory=Counter)
    kept: dict[Kind, list[Finding]] = field(default_factory=dict)

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings."""
        for one in found:
            self.counts[one.kind] += 1
            kept = self.kept.setdefault(one.kind, [])
            if len(kept) < _MOST_KEPT:
                kept.append(one)

    def of(self, kind: Kind) -> list[Finding]:
        """Give the kept findings of a kind, in order of places."""
        return sorted(self.kept.get(kind, ()))
