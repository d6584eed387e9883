"""Pictures of memory and speed, and of what fits: text cells, Markdown and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.knowledge.layers import Stack
from advisor.report import figures as f
from advisor.report.figures import counted, say, spoken
from advisor.report.memory_view import deficit, fullest_card, headroom, share_binds
from advisor.units import GIB, rate

if TYPE_CHECKING:
    from advisor.advice.configuration import Growth, MemoryDoc, MemoryPicture
    from advisor.advice.document import Advice
    from advisor.scenario.figures import CardMemory, Figure


Drawing = Mapping[str, object]
"""What a template draws from, numbers as text."""
_SVG_WIDTH = 1000.0
_PARTS = (
    ("weights", "weights_bytes", "#"),
    ("kv", "kv_cache_bytes", "="),
    ("compute", "compute_buffer_bytes", "+"),
    ("overhead", "overhead_bytes", "o"),
)
"""Kind, key in the document and mark of each part of what is needed."""


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
    sizes = _sizes(memory if card is None else card)
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


def _sizes(holder: MemoryDoc | CardMemory | Growth) -> dict[str, int]:
    return {kind: getattr(holder, key) for kind, key, _ in _PARTS}


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


def bar_svg(doc: Advice) -> Drawing:
    """Place the memory bar on a canvas 1000 wide: attributes of an SVG as text."""
    bar = memory_bar(doc)
    rects, x = [], 0.0
    for segment in bar.segments:
        width = segment.share * _SVG_WIDTH
        named = {"kind": segment.kind, "label": segment.label, "size": segment.size}
        rects.append({**named, "x": _xy(x), "width": _xy(width)})
        x += width
    listed = f.listed([f"{segment.label} {segment.size}" for segment in bar.segments])
    over = say("bar.over", size=bar.over) if bar.over else ""
    limit = _xy(bar.limit * _SVG_WIDTH) if bar.limit is not None and bar.limit < 1 else ""
    whose = say("bar.whose.some" if bar.several else "bar.whose")
    told = {"over": bar.over, "description": listed + over, "whose": whose, "several": bar.several}
    return {"rects": rects, "limit": limit, **told}


def speed_svg(figure: Figure | None) -> Drawing | None:
    """Place a speed and its range on an axis from 0, 1000 wide; None without a figure."""
    if figure is None:
        return None
    end = _round_up(max(figure.high, figure.estimate) * 1.1)
    scale = _SVG_WIDTH / end
    low, high = figure.low * scale, figure.high * scale
    point = figure.estimate * scale
    text = f"{f.speed_range(figure)}, {f.evidence(figure)}"
    span = {"low_x": _xy(low), "span": _xy(max(high - low, 2.0)), "point_x": _xy(point)}
    return {**span, "text": text, "axis_end": rate(end)}


def _round_up(value: float) -> float:
    step = 1.0
    while step * 10 < value:
        step *= 10
    while step > value > 0:
        step /= 10
    return next((m * step for m in (1, 2, 3, 4, 5, 6, 8, 10) if m * step >= value), 10 * step)


def _xy(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_ROW_HEIGHT = 34


def picture_text(doc: Advice, *, width: int = 80, templates: Stack = None) -> str:
    """Draw the picture for a terminal; empty when the document holds none."""
    picture = doc.memory_picture
    if picture is None:
        return ""
    with spoken(templates):
        lines = [*_growth_lines(doc, picture, width), "", *_grid_lines(picture)]
    return "\n".join(lines)


def _growth_lines(doc: Advice, picture: MemoryPicture, width: int) -> Iterator[str]:
    batch = doc.scenario.batch
    yield say("grow.title", sequences=counted("grow.sequences", batch))
    yield ""
    usable = doc.memory.usable_bytes or 0
    most = max([usable, *(item.required_bytes for item in picture.growth)])
    columns = max(width - 34, 10)
    for item in picture.growth:
        drawn = _growth_bar(item, most, columns).ljust(columns)
        size = f.amount(item.required_bytes)
        fits = "" if item.fits else f"  {say('grow.not')}"
        yield f"  {f.count(item.context_tokens):>9}  {drawn}  {size:>9}{fits}".rstrip()
    parts = {name: say(f"part.{name}") for name in ("weights", "kv", "compute", "overhead")}
    yield f"  {say('grow.key', usable=f.amount(usable), **parts)}"


def _growth_bar(item: Growth, most: int, columns: int) -> str:
    marks = (mark for _, _, mark in _PARTS)
    sizes = zip(marks, _sizes(item).values(), strict=True)
    present = [(mark, size) for mark, size in sizes if size > 0]
    used = round(columns * item.required_bytes / most)
    widths = cells([size / item.required_bytes for _, size in present], max(used, len(present)))
    return "".join(mark * size for (mark, _), size in zip(present, widths, strict=True))


def _grid_lines(picture: MemoryPicture) -> Iterator[str]:
    yield say("grid.title")
    yield ""
    rows = grid_rows(picture)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
    if picture.cache_tokens:
        yield ""
        yield f"  {say('grid.cache', n=f.count(picture.cache_tokens))}"


def grid_rows(picture: MemoryPicture) -> list[list[str]]:
    """Lay the grid out as text, heading first; ``-`` where it does not fit."""
    head = [say("grid.context"), *(str(batch) for batch in picture.batches)]
    body = [
        [f.count(tokens), *(_cell(free) for free in row)]
        for tokens, row in zip(picture.contexts, picture.free_bytes, strict=True)
    ]
    return [head, *body]


def _cell(free: int | None) -> str:
    return "-" if free is None or free < 0 else f"{free / GIB:.1f}"


def picture_markdown(doc: Advice, *, templates: Stack = None) -> str:
    """Write the grid as a Markdown table; empty when the document holds none."""
    picture = doc.memory_picture
    if picture is None:
        return ""
    with spoken(templates):
        title, (head, *body) = say("grid.title"), grid_rows(picture)
    lines = [
        f"## {title}",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---:|" * len(head),
        *("| " + " | ".join(row) + " |" for row in body),
    ]
    return "\n".join(lines)


_LEFT, _RIGHT = 150.0, 820.0


def growth_svg(doc: Advice) -> Drawing | None:
    """Place the growth with context on a canvas 1000 wide; None where no picture is held."""
    picture = doc.memory_picture
    if picture is None:
        return None
    usable = doc.memory.usable_bytes or 0
    most = max([usable, *(item.required_bytes for item in picture.growth)])
    scale = (_RIGHT - _LEFT) / most
    rects = [rect for row, item in enumerate(picture.growth) for rect in _rects(item, row, scale)]
    labels = [
        {
            "y": str(row * _ROW_HEIGHT + 22),
            "context": f.count(item.context_tokens),
            "size": f.amount(item.required_bytes),
        }
        for row, item in enumerate(picture.growth)
    ]
    limit = f"{_LEFT + usable * scale:.1f}" if usable else ""
    words = [say("grow.row", context=label["context"], size=label["size"]) for label in labels]
    height = str(len(labels) * _ROW_HEIGHT)
    named = {"limit": limit, "description": f.listed(words)}
    return {"height": height, "rects": rects, "labels": labels, **named}


def _rects(item: Growth, row: int, scale: float) -> Iterator[Drawing]:
    x = _LEFT
    for kind, size in _sizes(item).items():
        width = size * scale
        if width > 0:
            at = {"x": f"{x:.1f}", "y": str(row * _ROW_HEIGHT + 4)}
            yield {"kind": kind, **at, "width": f"{width:.1f}"}
        x += width


def grid_html(doc: Advice) -> Drawing | None:
    """Give the grid for the page; None when the document holds no picture."""
    picture = doc.memory_picture
    if picture is None:
        return None
    head, *body = grid_rows(picture)
    return {"head": head, "rows": [{"context": row[0], "cells": row[1:]} for row in body]}
