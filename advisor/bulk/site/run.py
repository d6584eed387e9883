"""A whole site: the pages of the index here, the pages of pairs in processes of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from pathlib import Path
from typing import cast
from xml.sax.saxutils import escape

from msgspec import Struct

from advisor.bulk.batch.executors import Local
from advisor.bulk.batch.readback import Batch
from advisor.bulk.batch.shard import File
from advisor.bulk.batch.store import write_files
from advisor.bulk.site.catalogue import Catalogue
from advisor.bulk.site.folder import Written, check_place, finish
from advisor.bulk.site.matrix import matrix_pages, search_entries, start_page
from advisor.bulk.site.pairs import Making, Pair, pair_files, site_of
from advisor.bulk.site.tables import CARD, MODEL, Shown, list_pages, subject_pages
from advisor.bulk.site.versus import card_data, compare_pages, search_data, versus_pages
from advisor.errors import UserError
from advisor.files import __version__, overlaid
from advisor.report.prose import Length

_TOGETHER = 64
"""Reports whose pages one task makes, at least."""
_AT_ONCE = 64
"""Pages of the index written together."""
_MOST_URLS = 40_000
"""Addresses in one sitemap; the protocol allows 50,000."""
_ASSETS = ("site.css", "site.js", "icon.svg")


class Asked(Struct, frozen=True):
    """How a site is to be made."""

    out: Path
    base_url: str
    workers: int
    templates: Path | None = None


class Made(Struct, frozen=True):
    """What came of it."""

    files: int
    pages: int
    reports: int
    largest_page_bytes: int


def make_site(
    batch: Batch, catalogue: Catalogue, asked: Asked, tell: Callable[[str, int, int], None]
) -> Made:
    """Make the site of a batch.

    Args:
        batch: A finished batch with result documents.
        catalogue: What stands in it.
        asked: Where and how.
        tell: Called with what is done, how much of it, and how much there is.

    Raises:
        UserError: The folder cannot be used, or a template is broken.
        OSError: The folder cannot be written.
    """
    check_place(asked.out, batch.root)
    making = _making(batch, asked, catalogue)
    site = site_of(making)
    shown = Shown.of(site, catalogue)
    written: list[Written] = []
    total = len(catalogue.cards) + len(catalogue.models)
    for part in _batched(_index_pages(shown, asked), _AT_ONCE):
        written += _written(asked.out, 0, part)
        tell("lists", min(len(written), total), total)
    tasks = _tasks(shown)
    for done, found in enumerate(_pairs(making, asked, tasks), start=1):
        written += found
        tell("pairs", done, len(tasks))
    if asked.base_url:
        written += _written(asked.out, 0, [*_sitemap(asked.base_url, written)])
    pages = [one for one in written if one[0].endswith(".html")]
    head: dict[str, object] = {
        "site": 1, "advisor": __version__, "pages": len(pages), "reports": catalogue.reports,
        "base_url": asked.base_url or None, "plan_sha256": batch.manifest.get("plan_sha256"),
    }  # fmt: skip
    files = finish(asked.out, head, written)
    largest = max(size for _, size, _ in pages)
    return Made(files, len(pages), catalogue.reports, largest)


def _making(batch: Batch, asked: Asked, catalogue: Catalogue) -> Making:
    manifest = batch.manifest
    marks = {name: str(manifest.get(f"{name}_sha256"))[:12] for name in ("rules", "knowledge")}
    said = ", ".join(f"{name} {mark}" for name, mark in marks.items())
    return Making(
        batch=str(batch.root.resolve()),
        base_url=asked.base_url,
        provenance=f"advisor {manifest.get('advisor')}, {said}.",
        length=cast("Length", catalogue.length),
        templates=str(asked.templates.resolve()) if asked.templates else None,
    )


def _index_pages(shown: Shown, asked: Asked) -> Iterator[File]:
    """Everything but the pages of pairs and reports."""
    search = search_data([*search_entries(shown)])
    yield from search
    yield start_page(shown, [file.path for file in search])
    yield from matrix_pages(shown)
    for kind in (CARD, MODEL):
        yield from list_pages(shown, kind)
        yield from subject_pages(shown, kind)
    yield from compare_pages(shown)
    yield from versus_pages(shown)
    yield from card_data(shown)
    assets = overlaid("templates", asked.templates, (".css", ".js", ".svg"))
    for name in _ASSETS:
        content = assets.get(f"site/{name}")
        if content is None:
            raise UserError(f"templates/site/{name} is missing.", hint="Install advisor again.")
        yield File(name, content)


def _batched(files: Iterable[File], size: int) -> Iterator[list[File]]:
    waiting = iter(files)
    while part := [*islice(waiting, size)]:
        yield part


def _written(root: Path, number: int, files: list[File]) -> list[Written]:
    """Write files, each whole or not at all; gives what was written."""
    write_files(root, number, files)
    return [
        (file.path, len(file.content), hashlib.sha256(file.content).hexdigest()) for file in files
    ]


def _tasks(shown: Shown) -> list[tuple[Pair, ...]]:
    """Gather neighbouring pairs until they hold enough reports."""
    tasks: list[tuple[Pair, ...]] = []
    some: list[Pair] = []
    for (card, model), setups in shown.catalogue.pairs.items():
        some.append(Pair(shown.cards[card], shown.models[model], tuple(setups)))
        if sum(len(pair.setups) for pair in some) >= _TOGETHER:
            tasks.append(tuple(some))
            some = []
    return [*tasks, tuple(some)] if some else tasks


def make_pairs(making: Making, out: str, number: int, pairs: tuple[Pair, ...]) -> list[Written]:
    """Make and write the pages of some pairs; runs in a process of its own."""
    files = [file for pair in pairs for file in pair_files(making, pair)]
    return _written(Path(out), number, files)


def _pairs(making: Making, asked: Asked, tasks: list[tuple[Pair, ...]]) -> Iterator[list[Written]]:
    place = Local(max(min(asked.workers, len(tasks)), 1))
    executor, waiting = place.open(), iter(enumerate(tasks))
    flying: set[Future[list[Written]]] = set()
    drop = True
    try:
        while True:
            for number, pairs in islice(waiting, max(place.room() - len(flying), 0)):
                flying.add(executor.submit(make_pairs, making, str(asked.out), number, pairs))
            if not flying:
                break
            ready, flying = wait(flying, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()
        drop = False
    finally:
        place.close(executor, drop=drop)


def _sitemap(base_url: str, written: Iterable[Written]) -> Iterator[File]:
    """List the addresses of all pages; several files below an index where one is too large."""
    paths = sorted(path for path, _, _ in written if path.endswith(".html"))
    blocks = [paths[start : start + _MOST_URLS] for start in range(0, len(paths), _MOST_URLS)]
    if len(blocks) == 1:
        yield _urls("sitemap.xml", base_url, blocks[0])
        return
    names = [f"sitemap-{at}.xml" for at in range(1, len(blocks) + 1)]
    for name, block in zip(names, blocks, strict=True):
        yield _urls(name, base_url, block)
    lines = "".join(f"<sitemap><loc>{escape(base_url + name)}</loc></sitemap>\n" for name in names)
    yield _xml("sitemap.xml", "sitemapindex", lines)


def _urls(name: str, base_url: str, paths: list[str]) -> File:
    addresses = (base_url + ("" if path == "index.html" else path) for path in paths)
    lines = "".join(f"<url><loc>{escape(one)}</loc></url>\n" for one in addresses)
    return _xml(name, "urlset", lines)


def _xml(name: str, kind: str, lines: str) -> File:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} xmlns="{space}">\n{lines}</{kind}>\n'
    return File(name, text.encode())
