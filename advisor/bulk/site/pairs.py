"""The pages of some pairs and of their reports; what a process of its own makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.bulk.batch.readback import line_of, read_document
from advisor.bulk.batch.shard import File
from advisor.bulk.site.bars import memory_bars, option_bars, speed_bars
from advisor.bulk.site.catalogue import Setup, Subject, best_of
from advisor.bulk.site.page import Site
from advisor.bulk.site.parts import in_parts, numbered, pager, part_text
from advisor.bulk.site.words import markup, setup_row, setup_text
from advisor.errors import RequestError
from advisor.report import figures as f
from advisor.report.pages import render_html
from advisor.report.prose import Length
from advisor.units import plain, typed

if TYPE_CHECKING:
    from advisor.advice.document import Advice

_MAIN = re.compile(r"<main[^>]*>(.*)</main>", re.DOTALL)


class Making(Struct, frozen=True):
    """What every process of a run is told."""

    batch: str
    base_url: str
    provenance: str
    length: Length
    templates: str | None = None


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
    folder = Path(making.templates) if making.templates else None
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
    folder = Path(making.templates) if making.templates else None
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
