"""What drafting did to one stream: pairs of runs with and without it, as factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from advisor.calibration.dataset import Row, speculation_rows, speed_rows
from advisor.errors import KnowledgeError, Source

SITUATIONS = ("draft_model", "mtp", "mtp_small")


class Pairs(Struct, frozen=True):
    """The pairs of one situation."""

    factors: Sequence[float]
    """Speed with drafts over the plain speed, every pair."""
    cards: int
    """Cards behind the carried rows among them."""
    elsewhere: int
    """Pairs that are quoted with a source of their own."""

    @property
    def low(self) -> float:
        """The slowest."""
        return min(self.factors)

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.factors)

    @property
    def high(self) -> float:
        """The fastest."""
        return max(self.factors)


def pairs_of_situations() -> Mapping[str, Pairs]:
    """Read the pairs of every situation.

    Raises:
        KnowledgeError: A line names a row that is not carried, or nothing with a source.
    """
    rows = {row["id"]: row for row in speed_rows()}
    found: dict[str, list[tuple[float, str]]] = {name: [] for name in SITUATIONS}
    for number, line in enumerate(speculation_rows(), start=2):
        at = Source("speculation.csv", number)
        if line["situation"] not in found:
            raise KnowledgeError(f"there is no situation '{line['situation']}'", source=at)
        plain, card = _speed(line, "plain", rows, at)
        drafting, _ = _speed(line, "drafting", rows, at)
        found[line["situation"]].append((drafting / plain, card))
    return {name: _pairs(listed) for name, listed in found.items() if listed}


def _pairs(listed: Sequence[tuple[float, str]]) -> Pairs:
    cards = {card for _, card in listed if card}
    elsewhere = sum(not card for _, card in listed)
    return Pairs([factor for factor, _ in listed], len(cards), elsewhere)


def _speed(line: Row, key: str, rows: Mapping[str, Row], at: Source) -> tuple[float, str]:
    """Give the tokens/s and the card: of a carried row, or as quoted with a source."""
    stated = line[key]
    row = rows.get(stated)
    if row is not None:
        return float(row["value"]), row["gpu"]
    try:
        speed = float(stated)
    except ValueError:
        raise KnowledgeError(f"there is no row '{stated}' in speed.csv.gz", source=at) from None
    if speed <= 0 or not line["source"]:
        raise KnowledgeError(f"'{key}' needs a speed above 0 and a source", source=at)
    return speed, ""
