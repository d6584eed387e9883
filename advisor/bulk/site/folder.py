"""The folder of a site: nothing outside it is touched, and nothing in it that no site wrote."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from advisor.bulk.audit.pages import SITE_MANIFEST
from advisor.bulk.batch.store import MANIFEST, SITE, WORK, make_folder, printable, write_one
from advisor.errors import RequestError

_FOLDERS = ("card", "compare", "data", "matrix", "model", "pair", "report")
_FILES = ("site.css", "site.js", "icon.svg", "sitemap.xml", SITE_MANIFEST, WORK)
_PAGES = ("index", "cards", "models", "matrix", "compare", "sitemap")

Written = tuple[str, int, str]
"""Path, bytes and SHA-256 of a file."""


def place_for(batch: Path, asked: Path | None) -> Path:
    """Name the folder of a site: inside the batch, or wherever it was asked for."""
    return Path(os.path.realpath(asked or batch / SITE))


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
