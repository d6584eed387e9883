"""What servers printed when they started (knowledge/measurements/server_logs.csv) against ours.

Every row is asked as it was started, in the version it was started in: ``server_versions.csv``
holds what older versions did otherwise. A third of the rows, by a hash of their source, was kept
out when the numbers of policy.yaml were set; docs/memory-accuracy.md says how far that goes.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from advisor.units import GIB
from tests.estimate.published import STEPS

FOLDER = Path(__file__).parents[2] / "knowledge" / "measurements"
ONE_IN = 3
FAR = 0.1
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the cache on the fullest card, and what is usable there, GiB."""

    low: float
    central: float
    high: float
    usable: float

    def said(self, cache: float) -> str:
        """What is said of a cache of so many GiB: see ``certainty_of``."""
        free = self.usable - cache
        if self.high <= free:
            return "sure"
        if self.central <= free:
            return "may_exceed"
        return "may_fit" if self.low <= free else "beyond"


@dataclass(frozen=True, slots=True)
class Start:
    """One printed start and ours: GiB of each card, tokens of all cards together."""

    row: Row
    printed: Mapping[str, float]
    ours: Mapping[str, float]
    why_not: str = ""
    beside: Beside | None = None

    @property
    def held_out(self) -> bool:
        """Whether the row was kept out of the fit."""
        return int(hashlib.sha256(self.row["source"].encode()).hexdigest(), 16) % ONE_IN == 0

    def error(self, part: str) -> float | None:
        """Ours over the printed figure, less one; None where it is not printed."""
        printed, ours = self.printed.get(part), self.ours.get(part)
        return ours / printed - 1 if printed and ours is not None else None

    @property
    def room_error(self) -> float | None:
        """The error of the tokens, of the room where no tokens are printed."""
        tokens = self.error("cache_tokens")
        return self.error("cache_gib") if tokens is None else tokens

    @property
    def printed_room(self) -> float | None:
        """GiB for the cache on each card as printed, by the tokens where only they are."""
        if "cache_gib" in self.printed:
            return self.printed["cache_gib"]
        error = self.error("cache_tokens")
        return None if error is None else self.ours["cache_gib"] / (1 + error)


@cache
def starts() -> tuple[Start, ...]:
    """Give every row with what we say of it."""
    with (FOLDER / "server_logs.csv").open(newline="", encoding="utf-8") as file:
        return tuple(_start(row) for row in csv.DictReader(file))


def compared(runtime: str = "") -> list[Start]:
    """Give those that can be compared."""
    return [one for one in starts() if not one.why_not and one.row["runtime"].startswith(runtime)]


def held_out(items: Iterable[Start]) -> list[Start]:
    """Give those that were kept out of the fit."""
    return [one for one in items if one.held_out]


def others(items: Iterable[Start]) -> list[Start]:
    """Give those of other people than the one project that most rows come from."""
    return [one for one in items if "llm-d" not in one.row["source"]]


def unexplained() -> list[Start]:
    """Give those that are more than a tenth off, with what is known of it in ``why``."""
    return [one for one in compared() if one.room_error and abs(one.room_error) > FAR]


def errors(items: Iterable[Start], part: str = "") -> list[float]:
    """Give their errors of one part, of the room where none is named."""
    found = (one.error(part) if part else one.room_error for one in items)
    return [error for error in found if error is not None]


def certainties(items: Iterable[Start]) -> Counter[tuple[str, bool]]:
    """Count what is said of caches near each printed room, and whether they fit there."""
    return Counter(
        (one.beside.said(one.printed_room / share), share >= 1)
        for one in items
        if one.beside and one.printed_room
        for share in STEPS
    )


def within(found: Iterable[float], part: float = 0.1) -> float:
    """Give the share of errors that are at most so large."""
    sizes = [abs(error) for error in found]
    return sum(size <= part for size in sizes) / len(sizes)


def middle(found: Iterable[float]) -> float:
    """Give the median size of errors."""
    return median(abs(error) for error in found)


def _start(row: Row) -> Start:
    printed = {part: float(row[part]) for part in _PARTS if row[part]}
    try:
        memory = _memory(row)
        return Start(row, printed, _ours(memory, int(row["gpus"])), "", _beside(memory))
    except UserError as error:
        return Start(row, printed, {}, str(error).splitlines()[0])


_PARTS = ("weights_gib", "activations_gib", "cache_gib", "cache_tokens")


def _memory(row: Row) -> Memory:
    knowledge = _as_of(row["runtime"], row["version"])
    return estimate_memory(resolve(_request(row), knowledge), knowledge)


def _ours(memory: Memory, cards: int) -> Mapping[str, float]:
    assert memory.cache_room
    card = memory.per_gpu[0]
    return {
        "weights_gib": card.weights_bytes / GIB,
        "activations_gib": card.compute_buffer_bytes / GIB,
        "cache_gib": memory.cache_room.room_bytes / GIB / cards,
        "cache_tokens": memory.cache_room.tokens or 0,
    }


def _beside(memory: Memory) -> Beside:
    card = memory.per_gpu[0]
    assert card.usable_bytes is not None
    low, central, high = (
        (size - card.kv_cache_bytes) / GIB
        for size in (card.low_bytes, card.required_bytes, card.high_bytes)
    )
    return Beside(low, central, high, card.usable_bytes / GIB)


def _request(row: Row) -> Request:
    def whole(name: str) -> int | None:
        return int(row[name]) if row[name] else None

    return Request(
        gpu=row["gpu"], gpus=int(row["gpus"]), model=row["model"], precision=row["precision"],
        kv_cache=row["kv"] or None, context=int(row["context"]), framework=row["runtime"],
        gpu_memory_utilization=float(row["share"]) if row["share"] else None,
        max_num_batched_tokens=whole("batched_tokens"), batch=whole("slots"),
        eager=bool(row["eager"]) or None, split=row["split"] or None,  # type: ignore[arg-type]
    )  # fmt: skip


@cache
def _as_of(runtime: str, version: str) -> Knowledge:
    """Give the knowledge with the numbers of an older version."""
    known = load_knowledge()
    if runtime != "vLLM":
        return known
    with (FOLDER / "server_versions.csv").open(newline="", encoding="utf-8") as file:
        older = {
            row["policy"]: float(row["value"])
            for row in csv.DictReader(file)
            if _order(version) < _order(row["before"])
        }
    return replace(known, policy={**known.policy, **older})


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
