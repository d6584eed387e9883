"""How a page is put together: title, description and body from a template, then the frame."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from advisor.bulk.batch.store import MOST_PAGE_BYTES, File
from advisor.errors import RequestError, TemplateError
from advisor.knowledge.layers import Stack
from advisor.report.figures import say
from advisor.report.templates import Templates, templates_for

if TYPE_CHECKING:
    from markupsafe import Markup

STATES = ("fits", "tight", "needs_offload", "too_big")
"""Verdicts, the best first."""


class State(Struct, frozen=True):
    """A verdict in words."""

    state: str
    symbol: str
    word: str
    help: str
    rank: int


def states(templates: Templates) -> Mapping[str, State]:
    """Read the words of the four verdicts from their template."""
    found: dict[str, State] = {}
    for rank, state in enumerate(STATES):
        symbol, word, said = templates.page("site/state.html.j2", {"state": state}).split("\n")[:3]
        found[state] = State(state, symbol, word, said, rank)
    return found


def markup(text: str) -> Markup:
    """Mark text as HTML that a template has made."""
    from markupsafe import Markup  # noqa: PLC0415  start-up of other commands

    return Markup(text)  # noqa: S704  only ever what an autoescaping template gave


_MOST_DESCRIBED = 300
_GAPS = re.compile(r"\n\s*\n+")
ROOM_BYTES = MOST_PAGE_BYTES - 4_000
"""What a page may have, with some room for longer names."""

Step = tuple[str, str]
"""Name and path of a page above; no path for the page itself."""


class Site(Struct, frozen=True):
    """What all pages share."""

    templates: Templates
    base_url: str
    provenance: str
    words: Mapping[str, State]

    @classmethod
    def of(cls, folders: Stack, base_url: str, provenance: str) -> Site:
        """Load the templates, with the user's folders in front."""
        templates = templates_for(folders)
        return cls(templates, base_url, provenance, states(templates))

    def piece(self, name: str, context: Mapping[str, object]) -> Markup:
        """Render a template that is part of a page."""
        return markup(_GAPS.sub("\n", self.templates.page(f"site/{name}.html.j2", context)))

    def legend(self) -> Markup:
        """Say what the marks mean."""
        return self.piece("legend", {"states": list(self.words.values())})

    def page(
        self,
        path: str,
        name: str,
        context: Mapping[str, object],
        *,
        section: str = "",
        trail: Sequence[Step] = (),
        scripts: Sequence[str] = (),
    ) -> File:
        """Make a page; its template starts with a line of title and one of description.

        Args:
            path: Of the page, from the folder of the site.
            name: Of the template.
            context: Its placeholders.
            section: The entry of the menu that it belongs to.
            trail: The pages above it, the site's start left out.
            scripts: Data it needs, from the folder of the site.

        Raises:
            TemplateError: A template is broken.
        """
        title, _, rest = self.piece(name, context).lstrip().partition("\n")
        description, _, body = rest.partition("\n")
        if not title.strip() or not description.strip():
            raise TemplateError(
                f"templates/site/{name}.html.j2 starts with a title and a description",
                hint="Write one line for each before the page.",
            )
        root = "../" * path.count("/")
        frame = {
            "language": say("language.code"),
            "page_title": markup(title.strip()),
            "page_description": markup(_cut(description.strip())),
            "canonical": f"{self.base_url}{'' if path == 'index.html' else path}"
            if self.base_url
            else "",
            "root": root,
            "section": section,
            "scripts": list(scripts),
            "trail": _trail(root, trail),
            "body": markup(body.strip()),
            "provenance": self.provenance,
        }
        return File(path, f"{self.piece('layout', frame).strip()}\n".encode())


def _cut(text: str) -> str:
    """Keep a description to a length that search engines show; an entity is never cut."""
    if len(text) <= _MOST_DESCRIBED:
        return text
    return f"{text[:_MOST_DESCRIBED].rsplit(' ', 1)[0]} …"


def _trail(root: str, steps: Sequence[Step]) -> list[Mapping[str, str]]:
    if not steps:
        return []
    whole = [("Start", "index.html"), *steps]
    return [{"name": name, "href": f"{root}{path}" if path else ""} for name, path in whole]


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


def pager(site: Site, path: str, number: int, count: int) -> str:
    """Link the parts of a list; empty where there is only one.

    ``path`` is that of the first, as seen from this page's folder.
    """
    if count == 1:
        return ""
    items: list[Mapping[str, str]] = [
        {"name": str(at), "href": "" if at == number else numbered(path, at)}
        for at in range(1, count + 1)
    ]
    return site.piece("pager", {"items": items})


def part_text(number: int, count: int) -> str:
    """Tell the title of a part from those of the others."""
    return "" if count == 1 else f" ({number} of {count})"
