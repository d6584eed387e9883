"""Bar charts as rows of text and a stretch of SVG: memory, speed ranges, changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.bulk.site.catalogue import Setup
from advisor.bulk.site.words import setup_text
from advisor.report import figures as f
from advisor.report.charts import memory_bar
from advisor.units import plain

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Recommendation

_WIDTH = 1000.0
_LINE = 3.0
_SHOWN = ("weights", "kv", "compute", "overhead")
_MOST_CHANGES = 8


class Part(Struct, frozen=True):
    """A stretch of a bar, as attribute text."""

    kind: str
    x: str
    width: str


class Bar(Struct, frozen=True):
    """One row of a chart."""

    label: str
    href: str
    parts: tuple[Part, ...]
    value: str


def _part(kind: str, start: float, end: float, scale: float) -> Part:
    first, last = start * scale, end * scale
    return Part(kind, _short(first), _short(max(last - first, 0)))


def _line(at: float, scale: float, kind: str = "line") -> Part:
    x = min(max(at * scale - _LINE / 2, 0), _WIDTH - _LINE)
    return Part(kind, _short(x), _short(_LINE))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def memory_bars(
    setups: Sequence[Setup], docs: Mapping[str, Advice], hrefs: Mapping[str, str]
) -> tuple[list[Bar], list[Mapping[str, str]]]:
    """Stack what each setup needs; gives the rows and the legend."""
    sizes = {one.id: _sizes(docs[one.id]) for one in setups}
    most = max([1.0, *(max(sum(parts.values()), usable) for parts, usable in sizes.values())])
    scale = _WIDTH / most / 1.02
    rows, kinds = [], dict[str, str]()
    for setup in setups:
        parts, usable = sizes[setup.id]
        placed, at = [], 0.0
        for kind, size in parts.items():
            placed.append(_part(kind, at, at + size, scale))
            at += size
        if usable:
            placed.append(_line(usable, scale))
        rows.append(Bar(setup_text(setup), hrefs[setup.id], tuple(placed), f.amount(at)))
        kinds |= {s.kind: s.label for s in memory_bar(docs[setup.id]).segments}
    return rows, [{"kind": kind, "label": kinds[kind]} for kind in _SHOWN if kind in kinds]


def _sizes(doc: Advice) -> tuple[dict[str, float], float]:
    """The parts on the fullest card, or of the whole, and what is usable there."""
    cards = doc.memory.per_gpu
    if cards:
        card = max(cards, key=lambda c: c.required_bytes - c.usable_bytes)
        parts = (card.weights_bytes, card.kv_cache_bytes,
                 card.compute_buffer_bytes, card.overhead_bytes)  # fmt: skip
        return {k: float(v) for k, v in zip(_SHOWN, parts, strict=True) if v}, card.usable_bytes
    memory = doc.memory
    parts = (memory.weights_bytes, memory.kv_cache_bytes,
             memory.compute_buffer_bytes, memory.overhead_bytes)  # fmt: skip
    found = {kind: float(size) for kind, size in zip(_SHOWN, parts, strict=True) if size}
    return found, float(memory.usable_bytes or 0)


def speed_bars(setups: Sequence[Setup], hrefs: Mapping[str, str]) -> list[Bar]:
    """Show the speed of each setup that has one, with its range."""
    known = [(setup, setup.speed) for setup in setups if setup.speed]
    if not known:
        return []
    scale = _WIDTH / max(high for _, (_, _, high) in known) / 1.02
    return [
        Bar(
            setup_text(setup),
            hrefs[setup.id],
            (_part("span", low, high, scale), _line(point, scale, "point")),
            f"{f.rate(point)} ({f.rate(low)} to {f.rate(high)}) tok/s",
        )
        for setup, (point, low, high) in known
    ]


def option_bars(doc: Advice) -> list[Bar]:
    """Show what each recommended change needs, against what is usable then."""
    items = doc.recommendations[:_MOST_CHANGES]
    if not items:
        return []
    sizes = [item.after.required_bytes for item in items]
    sizes += [item.after.usable_bytes or 0 for item in items]
    scale = _WIDTH / max([1, *sizes]) / 1.02
    return [_option(item, scale) for item in items]


def _option(item: Recommendation, scale: float) -> Bar:
    after = item.after
    parts = [_part("after" if after.fits else "over", 0, after.required_bytes, scale)]
    if after.usable_bytes:
        parts.append(_line(after.usable_bytes, scale))
    said = [f.amount(after.required_bytes)]
    if after.decode_tok_s:
        said.append(f.speed_point(after.decode_tok_s))
    return Bar(f"{item.rank}. {plain(item.title)}", "", tuple(parts), ", ".join(said))
