"""A site checked by itself: its files as they were written, its links, the rules of a page."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from advisor.bulk.audit.finding import Finding
from advisor.bulk.audit.links import broken, read_outline
from advisor.bulk.batch.store import WORK, printable

SITE_MANIFEST = "site.jsonl"
"""A line about the site, then one for each of its files."""
MOST_PAGE_BYTES = 100_000
_AGAIN = "make it again: advisor site DIR"


def check_site(root: Path, tell: Callable[[int, int], None]) -> tuple[list[Finding], int]:
    """Find what is wrong with a site; gives the findings and the number of pages.

    Args:
        root: The folder of the site.
        tell: Called with the number of files looked at, and of all.
    """
    found, pages = [*_unfinished(root)], 0
    files = _listed(root, found)
    if files is None:
        return found, pages
    found += _foreign(root, files)
    ids, seen = _anchors(root), files.__contains__
    for done, (path, said) in enumerate(files.items(), start=1):
        content = _read(root, path, said, found)
        if content is not None and path.endswith(".html"):
            pages += 1
            found += _page(path, content, seen, ids)
        tell(done, len(files))
    return found, pages


def _unfinished(root: Path) -> Iterator[Finding]:
    if (root / WORK).exists():
        said = f"left by a run that was stopped, or is running; {_AGAIN}"
        yield Finding("unfinished", f"{WORK}/", said)


def _listed(root: Path, found: list[Finding]) -> Mapping[str, str] | None:
    """Read the site's own list: path -> SHA-256; None where that cannot be done."""
    path = root / SITE_MANIFEST
    try:
        with path.open("rb") as lines:
            next(lines, None)
            listed = (json.loads(line) for line in lines)
            return {str(line["path"]): str(line["sha256"]) for line in listed}
    except FileNotFoundError:
        found.append(Finding("unfinished", SITE_MANIFEST, f"the site is not complete; {_AGAIN}"))
    except (OSError, ValueError, LookupError, TypeError):
        found.append(Finding("damaged", SITE_MANIFEST, f"not the list of a site; {_AGAIN}"))
    return None


def _foreign(root: Path, files: Mapping[str, str]) -> Iterator[Finding]:
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        ours = name == SITE_MANIFEST or name in files or name.startswith(f"{WORK}/")
        if path.is_file() and not ours:
            yield Finding("foreign", printable(name), "the list of the site does not name it")


def _read(root: Path, path: str, said: str, found: list[Finding]) -> bytes | None:
    try:
        content = (root / path).read_bytes()
    except OSError:
        found.append(Finding("missing", path, "the list of the site names it"))
        return None
    if hashlib.sha256(content).hexdigest() != said:
        found.append(Finding("damaged", path, "its content is not what was written"))
    return content


def _anchors(root: Path) -> Callable[[str], frozenset[str]]:
    def ids(path: str) -> frozenset[str]:
        return frozenset(read_outline((root / path).read_text("utf-8", "replace")).ids)

    return ids


def _page(
    path: str, content: bytes, there: Callable[[str], bool], ids: Callable[[str], frozenset[str]]
) -> Iterator[Finding]:
    page = read_outline(content.decode("utf-8", "replace"))
    for problem in broken(path, page.links, there, ids):
        yield Finding("link", path, problem)
    if len(content) > MOST_PAGE_BYTES:
        yield Finding("page", path, f"{len(content):,} bytes, more than {MOST_PAGE_BYTES:,}")
    if not page.title:
        yield Finding("page", path, "has no title")
    if not page.language:
        yield Finding("page", path, "does not say its language")
    for name, count in Counter(page.ids).items():
        if count > 1:
            yield Finding("page", path, f"{count} places are named '{name}'")
