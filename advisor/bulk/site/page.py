"""How a page is put together: title, description and body from a template, then the frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.bulk.audit.pages import MOST_PAGE_BYTES
from advisor.bulk.batch.shard import File
from advisor.bulk.site.words import State, markup, states
from advisor.errors import TemplateError
from advisor.report.templates import Templates, templates_for

if TYPE_CHECKING:
    from markupsafe import Markup

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
    def of(cls, folder: Path | None, base_url: str, provenance: str) -> Site:
        """Load the templates, with the user's folder in front."""
        templates = templates_for(folder)
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
