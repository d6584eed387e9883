"""How memory grows with context, and what fits: as text, Markdown and SVG attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.report import figures as f
from advisor.report.charts import cells
from advisor.report.words import counted, say, spoken
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.estimate.picture import Growth, MemoryPicture

_PARTS = (
    ("weights", "weights_bytes", "#"),
    ("kv", "kv_cache_bytes", "="),
    ("compute", "compute_buffer_bytes", "+"),
    ("overhead", "overhead_bytes", "o"),
)
_SVG_WIDTH = 1000.0
_ROW_HEIGHT = 34


def picture_text(doc: Advice, *, width: int = 80, templates: Path | None = None) -> str:
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
    room = max(width - 34, 10)
    for item in picture.growth:
        drawn = _bar(item, most, room).ljust(room)
        size = f.amount(item.required_bytes)
        fits = "" if item.fits else f"  {say('grow.not')}"
        yield f"  {f.count(item.context_tokens):>9}  {drawn}  {size:>9}{fits}".rstrip()
    parts = {name: say(f"part.{name}") for name in ("weights", "kv", "compute", "overhead")}
    yield f"  {say('grow.key', usable=f.amount(usable), **parts)}"


def _bar(item: Growth, most: int, room: int) -> str:
    sizes = [(mark, getattr(item, key)) for _, key, mark in _PARTS]
    present = [(mark, size) for mark, size in sizes if size > 0]
    used = round(room * item.required_bytes / most)
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


def picture_markdown(doc: Advice, *, templates: Path | None = None) -> str:
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


class GrowthRect(Struct, frozen=True):
    """One part of one row, as attribute text."""

    kind: str
    x: str
    y: str
    width: str


class GrowthLabel(Struct, frozen=True):
    """What stands at a row."""

    y: str
    context: str
    size: str


class GrowthSvg(Struct, frozen=True):
    """The growth picture as SVG attributes on a canvas 1000 wide."""

    height: str
    rects: tuple[GrowthRect, ...]
    labels: tuple[GrowthLabel, ...]
    limit: str
    description: str


_LEFT, _RIGHT = 150.0, 820.0


def growth_svg(doc: Advice) -> GrowthSvg | None:
    """Place the growth with context; None when the document holds no picture."""
    picture = doc.memory_picture
    if picture is None:
        return None
    usable = doc.memory.usable_bytes or 0
    most = max([usable, *(item.required_bytes for item in picture.growth)])
    scale = (_RIGHT - _LEFT) / most
    rects = [rect for row, item in enumerate(picture.growth) for rect in _rects(item, row, scale)]
    labels = [
        GrowthLabel(
            str(row * _ROW_HEIGHT + 22),
            f.count(item.context_tokens),
            f.amount(item.required_bytes),
        )
        for row, item in enumerate(picture.growth)
    ]
    limit = f"{_LEFT + usable * scale:.1f}" if usable else ""
    words = [say("grow.row", context=label.context, size=label.size) for label in labels]
    height = str(len(labels) * _ROW_HEIGHT)
    return GrowthSvg(height, tuple(rects), tuple(labels), limit, f.listed(words))


def _rects(item: Growth, row: int, scale: float) -> Iterator[GrowthRect]:
    x = _LEFT
    for kind, key, _ in _PARTS:
        width = getattr(item, key) * scale
        if width > 0:
            yield GrowthRect(kind, f"{x:.1f}", str(row * _ROW_HEIGHT + 4), f"{width:.1f}")
        x += width


class GridRow(Struct, frozen=True):
    """One context length of the grid."""

    context: str
    cells: tuple[str, ...]


class Grid(Struct, frozen=True):
    """What fits, for a table."""

    head: tuple[str, ...]
    rows: tuple[GridRow, ...]


def grid_html(doc: Advice) -> Grid | None:
    """Give the grid for the page; None when the document holds no picture."""
    picture = doc.memory_picture
    if picture is None:
        return None
    head, *body = grid_rows(picture)
    return Grid(tuple(head), tuple(GridRow(row[0], tuple(row[1:])) for row in body))
