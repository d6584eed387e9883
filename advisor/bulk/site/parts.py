"""Long lists cut into pages that stay below the largest size of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from advisor.bulk.batch.shard import File
from advisor.bulk.site.page import ROOM_BYTES, Site
from advisor.errors import RequestError

T = TypeVar("T")
Make = Callable[[Sequence[T], int, int], File]
"""Makes the page of some items; it is told its number, from 1, and how many pages there are."""


def numbered(path: str, number: int) -> str:
    """Name a part: ``cards.html``, ``cards-2.html``."""
    stem = path.removesuffix(".html")
    return path if number == 1 else f"{stem}-{number}.html"


def in_parts(items: Sequence[T], make: Make[T]) -> list[File]:
    """Make as few pages as keep below the largest size; no item is on two pages.

    Raises:
        RequestError: One item alone is too large for a page.
    """
    count = 1
    while True:
        size = -(-len(items) // count) or 1
        chunks = [items[start : start + size] for start in range(0, len(items), size)] or [items]
        pages = [make(chunk, at, len(chunks)) for at, chunk in enumerate(chunks, start=1)]
        largest = max(len(page.content) for page in pages)
        if largest <= ROOM_BYTES:
            return pages
        if size == 1:
            raise RequestError(f"a page of the site is larger than {ROOM_BYTES:,} bytes")
        count = max(len(chunks) + 1, -(-len(chunks) * largest // ROOM_BYTES))


def pager(site: Site, path: str, number: int, count: int, names: Sequence[str] = ()) -> str:
    """Link the parts of a list; empty where there is only one.

    Args:
        site: What all pages share.
        path: Of the first part, as seen from this page's folder.
        number: This part, from 1.
        count: How many there are.
        names: What to call them; their numbers if left out.
    """
    if count == 1:
        return ""
    items: list[Mapping[str, str]] = [
        {
            "name": names[at - 1] if names else str(at),
            "href": "" if at == number else numbered(path, at),
        }
        for at in range(1, count + 1)
    ]
    return site.piece("pager", {"items": items})


def part_text(number: int, count: int) -> str:
    """Tell the title of a part from those of the others."""
    return "" if count == 1 else f" ({number} of {count})"
