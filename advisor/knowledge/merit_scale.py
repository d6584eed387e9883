"""Figures of leaderboards put on one scale for each use, and lent to relatives (docs/merit.md)."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import log2, sqrt
from statistics import median
from typing import Annotated, Final, NamedTuple

from msgspec import Struct, field

from advisor.errors import KnowledgeError, Source, UserError, did_you_mean
from advisor.knowledge.catalogue import family_key, kin_key
from advisor.knowledge.field_kinds import Count, Kind, Text, Texts, is_date, sizes
from advisor.knowledge.merit import USES, Board, Figure, Merit, Merits, purposes
from advisor.knowledge.types import Knowledge, ModelRecord
from advisor.memo import decoded

FILE: Final = "merit.csv"
_NEEDED: Final = ("model", "board", "value", "low", "high", "thinks", "seen")
_EMBEDS: Final = "embedding"
NUMBERS: Final = frozenset(
    {"board_shared_models", "merit_lone_band", "merit_relative_band", "merit_relative_size"}
)
"""The named numbers without which there is no scale."""
Figures = Mapping[str, Sequence[Figure]]


def stored_merits(
    content: bytes | None,
    boards: Mapping[str, Board],
    models: Mapping[str, ModelRecord],
    policy: Mapping[str, float],
    problems: list[UserError],
) -> Merits:
    """Compile the table of figures; gives ``Merits`` as JSON, for the index of the knowledge.

    Without ``content``, CSV in UTF-8, nothing is given; a record without a figure takes a
    relative's.
    """
    if content is None:
        return Merits()
    figures = _read(content, boards, problems)
    uses: dict[str, dict[str, Merit]] = {
        use: _for_use(use, figures, boards, models, policy) for use in USES
    }
    scales: dict[str, str] = {
        use: one.name for use in USES for one in boards.values() if _sets(one, use)
    }
    seen = (one.seen for many in figures.values() for one in many)
    return Merits(uses, figures, boards, scales, max(seen, default=""))


def _read(content: bytes, boards: Mapping[str, Board], problems: list[UserError]) -> Figures:
    found: dict[str, list[Figure]] = {}
    for at, row in _rows(content, problems):
        try:
            found.setdefault(row["model"], []).append(_figure(row, boards))
        except ValueError as bad:
            place = Source(FILE, at)
            problems.append(KnowledgeError(str(bad), source=place, hint="Correct the line."))
    return found


def _rows(content: bytes, problems: list[UserError]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
    except UnicodeDecodeError:
        problems.append(KnowledgeError("the file is not UTF-8", source=Source(FILE)))
        return
    missing = [column for column in _NEEDED if column not in (reader.fieldnames or ())]
    if missing:
        message = f"the table has no column {', '.join(missing)}"
        problems.append(KnowledgeError(message, source=Source(FILE, 1)))
        return
    for row in reader:
        yield reader.line_num, {name: row[name] or "" for name in _NEEDED}


def _figure(row: Mapping[str, str], boards: Mapping[str, Board]) -> Figure:
    """Check a line.

    Raises:
        ValueError: What is wrong with it.
    """
    if row["board"] not in boards:
        hint = did_you_mean(row["board"], boards) or "Known boards stand in boards.yaml."
        raise ValueError(f"unknown board '{row['board']}'. {hint}")
    if not row["model"]:
        raise ValueError("no model is named")
    if len(row["seen"]) != len("2026-01-01") or not is_date(row["seen"]):
        raise ValueError(f"seen is '{row['seen']}', not a day like 2026-08-22")
    low, high = (float(row[name]) if row[name] else None for name in ("low", "high"))
    value = float(row["value"])
    if not (value if low is None else low) <= value <= (value if high is None else high):
        raise ValueError(f"value {value:g} lies outside its interval {low:g} to {high:g}")
    return Figure(row["board"], value, low, high, row["seen"], row["thinks"] == "yes")


def _sets(board: Board, use: str) -> bool:
    return board.sets_scale and use in board.uses


class _Scaled(NamedTuple):
    """A board's figures in points of the scale."""

    weight: float
    points: Mapping[str, float]
    estimated: bool
    off: float | None
    """How far a single figure is off, in points; None where that cannot be seen."""


def _for_use(
    use: str,
    figures: Figures,
    boards: Mapping[str, Board],
    models: Mapping[str, ModelRecord],
    policy: Mapping[str, float],
) -> dict[str, Merit]:
    scaled = list(_scaled(use, figures, boards, policy))
    usual = median([one.off for one in scaled if one.off] or [policy["merit_lone_band"]])
    thinking = {
        name: max(many, key=lambda one: boards[one.board].weight).thinks
        for name, many in (
            (name, [one for one in many if use in boards[one.board].uses])
            for name, many in figures.items()
        )
        if many
    }
    found = {}
    for name, thinks in thinking.items():
        named = [one for one in scaled if name in one.points]
        if total := sum(one.weight for one in named):
            points = sum(one.weight * one.points[name] for one in named) / total
            off = (one.weight * (usual if one.off is None else one.off) for one in named)
            band = sqrt(sum(each**2 for each in off)) / total
            estimated = all(one.estimated for one in named)
            found[name] = Merit(round(points, 2), round(band, 2), thinks, None, estimated)
    return found | dict(_lent(use, found, models, policy))


def _scaled(
    use: str, figures: Figures, boards: Mapping[str, Board], policy: Mapping[str, float]
) -> Iterator[_Scaled]:
    """Give the boards of a use on its scale; those that share too few models are left out."""
    of = {name: _values(name, figures) for name, board in boards.items() if use in board.uses}
    scale = next((name for name in of if _sets(boards[name], use)), None)
    if scale is None:
        return
    told = [name for name in of if name == scale or boards[name].on_scale_of == scale]
    points = {model: value for name in reversed(told) for model, value in of[name].items()}
    for name, values in of.items():
        weight = boards[name].weight
        if name in told:
            yield _Scaled(weight, values, estimated=name != scale, off=None)
            continue
        shared = [(value, points[model]) for model, value in values.items() if model in points]
        if len(shared) >= policy["board_shared_models"]:
            ladder = _ladder(shared)
            misses = [(_on(ladder, value) - known) ** 2 for value, known in shared]
            off = sqrt(sum(misses) / len(misses) / 2)
            read = {model: _on(ladder, value) for model, value in values.items()}
            yield _Scaled(weight, read, estimated=False, off=off)


def _values(board: str, figures: Figures) -> dict[str, float]:
    found = ((model, one) for model, many in figures.items() for one in many)
    return {model: one.value for model, one in found if one.board == board}


def _ladder(shared: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Pair figures of the same rank on two boards, lowest first; equal ones share their mean."""
    ranks: dict[float, list[float]] = {}
    for value, points in zip(*(sorted(side) for side in zip(*shared, strict=True)), strict=True):
        ranks.setdefault(value, []).append(points)
    return [(value, sum(points) / len(points)) for value, points in ranks.items()]


def _on(ladder: Sequence[tuple[float, float]], value: float) -> float:
    """Read a figure between two rungs, or beyond the ends as steeply as the ladder is."""
    (first, low), (last, high) = ladder[0], ladder[-1]
    if len(ladder) == 1:
        return low
    steep = (high - low) / (last - first)
    if value <= first:
        return low + steep * (value - first)
    if value >= last:
        return high + steep * (value - last)
    at = bisect_left(ladder, (value,))
    (below, under), (above, over) = ladder[at - 1], ladder[at]
    return under + (over - under) * (value - below) / (above - below)


def _lent(
    use: str,
    found: Mapping[str, Merit],
    models: Mapping[str, ModelRecord],
    policy: Mapping[str, float],
) -> Iterator[tuple[str, Merit]]:
    """Give models without a figure that of the relative nearest in size, with a wider band."""
    relatives: dict[str, list[ModelRecord]] = {}
    for name in found:
        if (record := models.get(name)) is not None and record.parameters:
            for key in _keys(record):
                relatives.setdefault(key, []).append(record)
    for record in models.values():
        if record.name in found or not record.parameters or not _may_be(use, record):
            continue
        near = min(
            (
                (rank, _doublings(record, other), other.released or "", other.name)
                for rank, key in enumerate(_keys(record))
                for other in relatives.get(key, ())
                if _doublings(record, other) <= log2(policy["merit_relative_size"])
                and purposes(other.name) == purposes(record.name)
            ),
            default=None,
        )
        if near is not None:
            lender = found[near[-1]]
            band = round(policy["merit_relative_band"] * lender.band, 2)
            yield record.name, Merit(lender.points, band, lender.thinks, near[-1])


def _keys(record: ModelRecord) -> Sequence[str]:
    """Name the groups of a record's relatives, the nearest first."""
    return [f"family {family_key(record)}", *([f"kin {kin}"] if (kin := kin_key(record)) else [])]


def _may_be(use: str, record: ModelRecord) -> bool:
    """Whether a model can be of a use at all."""
    name = record.name.casefold()
    if "base" in name.split("-") or record.modality == "audio":
        return False
    if use == "vision":
        return record.modality == "vision"
    return (record.modality == _EMBEDS) == (use == _EMBEDS)


def _doublings(one: ModelRecord, other: ModelRecord) -> float:
    return abs(log2((one.parameters or 1) / (other.parameters or 1)))


class Machine(Struct, frozen=True):
    """A computer or rented instance by its product name, and the cards it is sold with."""

    name: Text = field(name="machine")
    aliases: Texts
    cards: Texts
    """One of these; of several the chip has to be named too."""
    count: Count | None = None
    """How many equal ones it has, where that is fixed."""
    usual: Texts = ()
    """Of several chips those that are meant where none is named, the first that has the memory."""
    sizes: Annotated[tuple[int, ...], Kind(sizes)] = ()
    """Memory it is sold with where that is not what the chip is, the usual one first."""
    sources: Mapping[str, str] = field(default_factory=dict)


class CardNames(Struct, frozen=True):
    """What is known of names of cards beside the catalogue; stored in the index of names."""

    usual: tuple[str, ...] = ()
    """Names of cards that are meant where a name stands for several (usual_cards.yaml)."""
    of_memory: tuple[str, ...] = ()
    """Those that are taken where nothing but their memory is said."""
    words: tuple[str, ...] = ()
    """Words beside a card's name that mean nothing (card_words.yaml)."""
    machines: tuple[Machine, ...] = ()
    """Computers by their product names (computers.yaml)."""


def card_names(knowledge: Knowledge) -> CardNames:
    """Give them; nothing for knowledge that was made by hand."""
    return decoded(knowledge.index.get("card_names"), CardNames) or CardNames()
