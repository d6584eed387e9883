"""The formats of a report: what they are called, how their files end, and who writes them.

A format is a module with a function that writes, and a ``Format`` handed to ``register``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.report.prose import Length, Report


class Page(Struct, frozen=True):
    """What a format is asked to write."""

    doc: Advice
    length: Length
    templates: Path | None
    """A user's templates in front of the built-in ones."""
    made: Report | None = None
    """Its sentences, where they are written already."""
    width: int = 88
    """Columns of a terminal or pipe."""
    color: bool = False


class Format(Struct, frozen=True):
    """One way to write a report."""

    name: str
    """As typed after ``--format``, and in ``--formats`` of a batch."""
    write: Callable[[Page], str]
    suffix: str = ""
    """Ending of its files in a batch, without the dot; empty: a batch has none."""
    complete: bool = False
    """Whether it holds what cannot run here at every length."""
    continued: bool = False
    """Whether pictures, tables and reasons that are asked for follow its text."""


FORMATS: dict[str, Format] = {}
"""Every format by name, in the order in which they are named."""


def register(made: Format) -> None:
    """Make a format known."""
    FORMATS[made.name] = made


def _text(page: Page) -> str:
    from advisor.report.text import render_text  # noqa: PLC0415 - only the one that is asked for

    return render_text(
        page.doc,
        width=page.width,
        color=page.color,
        length=page.length,
        templates=page.templates,
    )


def _markdown(page: Page) -> str:
    from advisor.report.pages import render_markdown  # noqa: PLC0415 - likewise

    return render_markdown(page.doc, length=page.length, templates=page.templates, made=page.made)


def _html(page: Page) -> str:
    from advisor.report.pages import render_html  # noqa: PLC0415 - likewise

    return render_html(page.doc, length=page.length, templates=page.templates, made=page.made)


def _json(page: Page) -> str:
    from advisor.report.json_view import render_json  # noqa: PLC0415 - likewise

    return render_json(page.doc)


register(Format("text", _text, continued=True))
register(Format("markdown", _markdown, suffix="md", continued=True))
register(Format("html", _html, suffix="html"))
register(Format("json", _json, complete=True))
