"""The pages of some pairs and of their reports; what a process of its own makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.bulk.batch.manifest import line_of, read_document
from advisor.bulk.batch.store import File
from advisor.bulk.site.catalogue import Setup, Subject, best_of
from advisor.bulk.site.matrix import setup_row, setup_text
from advisor.bulk.site.page import Site, in_parts, markup, numbered, pager, part_text
from advisor.errors import RequestError
from advisor.report import figures as f
from advisor.report.charts import memory_bar
from advisor.report.memory_view import sequences_in
from advisor.report.pages import render_html
from advisor.report.prose import Length
from advisor.units import plain, rate, typed

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
            f"{rate(point)} ({rate(low)} to {rate(high)}) tok/s",
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
        several = sequences_in(after, item.setup)
        said.append(f.of_each(f.speed_point(after.decode_tok_s), several, "speed.point.each"))
    return Bar(f"{item.rank}. {plain(item.title)}", "", tuple(parts), ", ".join(said))


_MAIN = re.compile(r"<main[^>]*>(.*)</main>", re.DOTALL)


class Making(Struct, frozen=True):
    """What every process of a run is told."""

    batch: str
    base_url: str
    provenance: str
    length: Length
    templates: tuple[str, ...] = ()
    mark: str = ""
    """By which a worker elsewhere knows that it sees the same; see ``mark_of``."""


class Pair(Struct, frozen=True):
    """A card and a model with all their setups."""

    card: Subject
    model: Subject
    setups: tuple[Setup, ...]

    @property
    def path(self) -> str:
        """The first page of the pair, from the folder of the site."""
        return f"pair/{self.model.slug}/{self.card.slug}.html"

    @property
    def trail(self) -> list[tuple[str, str]]:
        """The pages above the pair."""
        return [("Models", "models.html"), (self.model.name, f"model/{self.model.slug}.html")]


def report_path(setup: Setup) -> str:
    """Name the page of a report, from the folder of the site."""
    return f"report/{setup.id}.html"


@lru_cache(maxsize=2)
def site_of(making: Making) -> Site:
    """Load the templates, once for each process."""
    folder = tuple(map(Path, making.templates))
    return Site.of(folder, making.base_url, making.provenance)


def pair_files(making: Making, pair: Pair) -> Iterator[File]:
    """Make the pages of a pair and of each of its reports.

    Raises:
        RequestError: A document of the batch is missing or damaged.
    """
    site = site_of(making)
    docs = {setup.id: _document(making, setup) for setup in pair.setups}
    for setup in pair.setups:
        yield _report(making, site, pair, setup, docs[setup.id])
    yield from _pair(site, pair, docs)


def _document(making: Making, setup: Setup) -> Advice:
    path, offset, length = setup.place
    try:
        return read_document(line_of(Path(making.batch) / path, offset, length))
    except (OSError, ValueError) as bad:
        hint = "Run 'advisor audit', then make the batch whole with --resume."
        raise RequestError(f"no document of '{setup.id}': {bad}", hint=hint) from None


def _report(making: Making, site: Site, pair: Pair, setup: Setup, doc: Advice) -> File:
    folder = tuple(map(Path, making.templates))
    found = _MAIN.search(render_html(doc, length=making.length, templates=folder))
    body = found[1].strip() if found else ""
    path = report_path(setup)
    context = {
        "title": plain(f"{pair.model.name} on {pair.card.name}: {setup_text(setup)}"),
        "verdict": doc.verdict.sentence,
        "body": markup(body),
        "pair_href": f"../../{pair.path}",
        "card_href": f"../../card/{pair.card.slug}.html",
        "card_name": pair.card.name,
        "model_href": f"../../model/{pair.model.slug}.html",
        "model_name": pair.model.name,
        "option_bars": _option_bars(site, setup, doc),
    }
    trail = [*pair.trail, (pair.card.name, pair.path), (setup_text(setup), "")]
    make = lambda *_: site.page(path, "report_page", context, section="models", trail=trail)  # noqa: E731
    return in_parts([setup], make)[0]


def _option_bars(site: Site, setup: Setup, doc: Advice) -> str:
    rows = option_bars(doc)
    if not rows:
        return ""
    needs = f.amount(doc.memory.required_bytes)
    caption = site.piece("captions", {"kind": "option", "setup": setup_text(setup), "needs": needs})
    return _bars(site, caption, rows, [])


def _bars(site: Site, caption: str, rows: Sequence[object], legend: Sequence[object]) -> str:
    said = markup(caption.strip())
    return site.piece("bars", {"bars": {"caption": said, "rows": rows, "legend": legend}})


def _pair(site: Site, pair: Pair, docs: Mapping[str, Advice]) -> list[File]:
    best = best_of(pair.setups)
    words = site.words[best.state]
    doc = docs[best.id]
    common = {
        "model_name": pair.model.name,
        "card_name": pair.card.name,
        "model_href": f"../../model/{pair.model.slug}.html",
        "card_href": f"../../card/{pair.card.slug}.html",
        "best_href": f"../../{report_path(best)}",
        "best_state": best.state,
        "best_symbol": words.symbol,
        "best_word": words.word.lower(),
        "verdict": doc.verdict.sentence,
        "run": typed(doc.commands[0].text) if doc.commands else "",
        "option_bars": _option_bars(site, best, doc),
    }

    def make(part: Sequence[Setup], number: int, count: int) -> File:
        name = pair.path.rpartition("/")[2]
        return site.page(
            numbered(pair.path, number),
            "pair",
            common
            | _charts(site, part, docs)
            | {
                "rows": [_row(site, setup) for setup in part],
                "part": part_text(number, count),
                "pager": pager(site, name, number, count),
            },
            section="models",
            trail=[*pair.trail, (pair.card.name, "")],
        )

    return in_parts(pair.setups, make)


def _row(site: Site, setup: Setup) -> Mapping[str, object]:
    return setup_row(setup, site.words) | {"href": f"../../{report_path(setup)}"}


def _charts(site: Site, part: Sequence[Setup], docs: Mapping[str, Advice]) -> dict[str, object]:
    hrefs = {setup.id: f"../../{report_path(setup)}" for setup in part}
    rows, legend = memory_bars(part, docs, hrefs)
    speeds = speed_bars(part, hrefs)

    def captioned(kind: str, bars: Sequence[object], key: Sequence[object]) -> str:
        caption = site.piece("captions", {"kind": kind, "setup": "", "needs": ""})
        return _bars(site, caption, bars, key) if bars else ""

    return {
        "memory_bars": captioned("memory", rows, legend),
        "speed_bars": captioned("speed", speeds, []),
    }
