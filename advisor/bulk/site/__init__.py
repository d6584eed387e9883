"""A static site made from a batch: pages, charts and data that need no server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast
from xml.sax.saxutils import escape

from msgspec import Struct

from advisor.bulk.batch import check_same, each, mark_of
from advisor.bulk.batch.manifest import Batch
from advisor.bulk.batch.store import (
    MANIFEST,
    SITE,
    SITE_MANIFEST,
    WORK,
    File,
    make_folder,
    prepare,
    printable,
    sees,
    write_files,
    write_one,
)
from advisor.bulk.batch.worker import Cluster, Local
from advisor.bulk.site.catalogue import CARD, MODEL, Catalogue, Shown
from advisor.bulk.site.matrix import matrix_pages, search_entries, start_page
from advisor.bulk.site.pairs import Making, Pair, pair_files, site_of
from advisor.bulk.site.tables import (
    card_data,
    compare_pages,
    list_pages,
    search_data,
    subject_pages,
    versus_pages,
)
from advisor.errors import RequestError, UserError
from advisor.files import __version__, real
from advisor.knowledge.layers import Stack, UserFiles, overlaid, stack
from advisor.report.prose import Length

_FOLDERS = ("card", "compare", "data", "matrix", "model", "pair", "report")
_FILES = ("site.css", "site.js", "icon.svg", "sitemap.xml", SITE_MANIFEST, WORK)
_PAGES = ("index", "cards", "models", "matrix", "compare", "sitemap")

Written = tuple[str, int, str]
"""Path, bytes and SHA-256 of a file."""


def place_for(batch: Path, asked: Path | None) -> Path:
    """Name the folder of a site: inside the batch, or wherever it was asked for."""
    return real(asked or batch / SITE)


def check_place(root: Path, batch: Path) -> None:
    """Make the folder, or see that it may be used.

    Raises:
        RequestError: Something else lies there.
    """
    if root == batch.resolve():
        hint = "Name another folder, or leave --output out."
        raise RequestError(f"'{root.name}' is the folder of the batch itself", hint=hint)
    if batch.resolve() in root.parents and root != batch.resolve() / SITE:
        hint = f"Leave --output out for '{SITE}' in it, or name a folder outside."
        raise RequestError(f"'{root}' is inside the batch", hint=hint)
    make_folder(root, "the site")
    names = {path.name for path in root.iterdir()}
    if MANIFEST in names:
        raise RequestError(f"'{root}' holds a batch", hint="Name another folder for the site.")
    if names and not names & {SITE_MANIFEST, WORK}:
        found = ", ".join(map(printable, sorted(names)[:3]))
        hint = "Name a folder that is empty or does not exist yet."
        raise RequestError(f"'{root}' is not empty and holds no site ({found})", hint=hint)
    if strange := sorted(name for name in names if not _ours(name)):
        hint = "Move it out of the folder."
        shown = printable(strange[0])
        raise RequestError(f"'{root}' holds '{shown}', which no site wrote", hint=hint)
    linked = [path.name for path in root.iterdir() if path.is_symlink()]
    if linked:
        hint = "Remove it: a site is only ever written into its own folder."
        raise RequestError(f"'{root}' holds a link, '{printable(min(linked))}'", hint=hint)
    (root / WORK).mkdir(exist_ok=True)


def _ours(name: str) -> bool:
    stem = name.removesuffix(".html").removesuffix(".xml").partition("-")[0]
    return name in _FOLDERS or name in _FILES or (stem in _PAGES and name != stem)


def finish(root: Path, head: dict[str, object], written: Iterable[Written]) -> int:
    """Write the list of the site and remove what an earlier one left; gives the files kept."""
    listed = sorted(written)
    lines = [head, *({"path": p, "bytes": size, "sha256": mark} for p, size, mark in listed)]
    texts = (json.dumps(line, ensure_ascii=True, separators=(",", ":")) for line in lines)
    write_one(root, SITE_MANIFEST, (f"{text}\n".encode("ascii") for text in texts))
    _sweep(root, {path for path, _, _ in listed} | {SITE_MANIFEST})
    shutil.rmtree(root / WORK, ignore_errors=True)
    return len(listed)


def _sweep(root: Path, keep: set[str]) -> None:
    for path in _left(root, ""):
        if path not in keep:
            (root / path).unlink(missing_ok=True)
    for folder in _FOLDERS:
        for parent, _, _ in os.walk(root / folder, topdown=False):
            if not any(Path(parent).iterdir()):
                Path(parent).rmdir()


def _left(root: Path, folder: str) -> Iterator[str]:
    for entry in sorted(os.scandir(root / folder), key=lambda one: one.name):
        path = f"{folder}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if path != WORK:
                yield from _left(root, f"{path}/")
        else:
            yield path


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
    cluster: Cluster | None = None
    templates: Stack = None


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

    ``tell`` is called with what is done, how much of it, and how much there is.

    Raises:
        UserError: The folder cannot be used, or a template is broken.
        OSError: The folder cannot be written.
    """
    check_place(asked.out, batch.root)
    making = _making(batch, asked, catalogue)
    prepare(asked.out, making.mark)
    site = site_of(making)
    shown = Shown.of(site, catalogue)
    written: list[Written] = []
    total = len(catalogue.cards) + len(catalogue.models)
    for part in _batched(_index_pages(shown, asked), _AT_ONCE):
        written += _written(asked.out, 0, part)
        tell("lists", min(len(written), total), total)
    tasks = _tasks(shown)
    place = asked.cluster or Local(max(min(asked.workers, len(tasks)), 1))
    make = partial(make_pairs, making, str(asked.out))
    for done, found in enumerate(each(place, make, enumerate(tasks)), start=1):
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
        templates=(files := tuple(str(path.resolve()) for path in stack(asked.templates))),
        mark=mark_of(batch.root.resolve(), _user_files(files)) if asked.cluster else "",
    )


def _user_files(templates: tuple[str, ...]) -> UserFiles:
    return UserFiles(templates=tuple(map(Path, templates)))


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


def make_pairs(making: Making, out: str, task: tuple[int, tuple[Pair, ...]]) -> list[Written]:
    """Make and write the pages of some pairs; runs in a process of its own.

    Raises:
        RequestError: A worker elsewhere does not see the batch or the folder of the site.
    """
    number, pairs = task
    if making.mark:
        check_same(Path(making.batch), _user_files(making.templates), making.mark)
        if not sees(Path(out), making.mark):
            raise RequestError(f"a worker does not see '{out}'", hint="Share that folder too.")
    files = [file for pair in pairs for file in pair_files(making, pair)]
    return _written(Path(out), number, files)


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
