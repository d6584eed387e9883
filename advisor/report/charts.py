"""Geometry of the memory bar and the speed range, for text cells and for SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.report import figures as f
from advisor.report.memory_view import deficit, fullest_card, headroom, share_binds
from advisor.report.words import say

if TYPE_CHECKING:
    from advisor.advice.document import Advice, MemoryDoc
    from advisor.scenario.figures import Figure

_SVG_WIDTH = 1000.0


class Segment(Struct, frozen=True):
    """A stretch of the memory bar."""

    kind: str
    label: str
    size: str
    share: float
    """Of the whole bar, 0 to 1."""


class Bar(Struct, frozen=True):
    """The memory bar of the fullest card; ``limit`` is where usable memory ends, 0 to 1."""

    segments: tuple[Segment, ...]
    limit: float | None
    over: str
    """What is missing; empty when it fits."""
    several: bool
    """Whether the bar is one card of several."""


def memory_bar(doc: Advice) -> Bar:
    """Lay out weights, KV cache, buffers, overhead and what is left or missing.

    Of a reserve that the model would reach into, only the rest is drawn; its figure is that of all.
    """
    memory = doc.memory
    card = fullest_card(doc)
    sizes = _sizes(memory) if card is None else {
        "weights": card.weights_bytes, "kv": card.kv_cache_bytes,
        "compute": card.compute_buffer_bytes, "overhead": card.overhead_bytes,
    }  # fmt: skip
    used = sum(sizes.values())
    usable = card.usable_bytes if card else memory.usable_bytes
    capacity = card.capacity_bytes if card else memory.capacity_bytes
    told = dict[str, str]()
    if usable is not None and capacity is not None:
        sizes |= {"free": max(0, usable - used), "reserve": max(0, capacity - max(usable, used))}
        told = {"free": headroom(doc), "reserve": f.amount(capacity - usable)}
    whole = sum(sizes.values()) or 1
    return Bar(
        tuple(
            Segment(kind, _label(doc, kind), told.get(kind) or f.amount(size), size / whole)
            for kind, size in sizes.items()
            if size > 0
        ),
        usable / whole if usable is not None else None,
        deficit(doc) if usable is not None and used > usable else "",
        doc.scenario.gpus > 1,
    )


def _label(doc: Advice, kind: str) -> str:
    if kind == "reserve" and share_binds(doc):
        return say("part.share", framework=doc.scenario.framework)
    return say(f"part.{kind}")


def _sizes(memory: MemoryDoc) -> dict[str, int]:
    return {
        "weights": memory.weights_bytes,
        "kv": memory.kv_cache_bytes,
        "compute": memory.compute_buffer_bytes,
        "overhead": memory.overhead_bytes,
    }


def cells(shares: Sequence[float], width: int) -> list[int]:
    """Give each share whole cells, at least one, ``width`` in all (largest remainder)."""
    if not shares:
        return []
    spare = max(0, width - len(shares))
    exact = [share * spare for share in shares]
    given = [int(part) for part in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (given[i] - exact[i], i))
    for index in by_remainder[: max(0, round(sum(exact)) - sum(given))]:
        given[index] += 1
    return [1 + part for part in given]


class Rect(Struct, frozen=True):
    """A rectangle of an SVG as attribute text."""

    kind: str
    label: str
    size: str
    x: str
    width: str


class BarSvg(Struct, frozen=True):
    """The memory bar as SVG attributes."""

    rects: tuple[Rect, ...]
    limit: str
    over: str
    description: str
    whose: str
    several: bool


def bar_svg(doc: Advice) -> BarSvg:
    """Place the memory bar on a canvas 1000 wide."""
    bar = memory_bar(doc)
    rects, x = [], 0.0
    for segment in bar.segments:
        width = segment.share * _SVG_WIDTH
        rects.append(Rect(segment.kind, segment.label, segment.size, _xy(x), _xy(width)))
        x += width
    listed = f.listed([f"{segment.label} {segment.size}" for segment in bar.segments])
    over = say("bar.over", size=bar.over) if bar.over else ""
    limit = _xy(bar.limit * _SVG_WIDTH) if bar.limit is not None and bar.limit < 1 else ""
    whose = say("bar.whose.some" if bar.several else "bar.whose")
    return BarSvg(tuple(rects), limit, bar.over, listed + over, whose, bar.several)


class DialSvg(Struct, frozen=True):
    """A speed range as SVG attributes, on an axis from 0."""

    low_x: str
    span: str
    point_x: str
    text: str
    axis_end: str


def speed_svg(figure: Figure | None) -> DialSvg | None:
    """Place a speed and its range on a canvas 1000 wide; None without a figure."""
    if figure is None:
        return None
    end = _round_up(max(figure.high, figure.estimate) * 1.1)
    scale = _SVG_WIDTH / end
    low, high = figure.low * scale, figure.high * scale
    point = figure.estimate * scale
    text = f"{f.speed_range(figure)}, {f.evidence(figure)}"
    return DialSvg(_xy(low), _xy(max(high - low, 2.0)), _xy(point), text, f.rate(end))


def _round_up(value: float) -> float:
    step = 1.0
    while step * 10 < value:
        step *= 10
    while step > value > 0:
        step /= 10
    return next((m * step for m in (1, 2, 3, 4, 5, 6, 8, 10) if m * step >= value), 10 * step)


def _xy(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
