"""The formats of a report: what they are called, how their files end, and who writes them.

A format is a module with a function that writes, and a ``Format`` handed to ``register``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.knowledge.layers import Stack
    from advisor.report.prose import Length, Report


class Page(Struct, frozen=True):
    """What a format is asked to write."""

    doc: Advice
    length: Length
    templates: Stack
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


def _paged(name: str, page: Page) -> str:
    from advisor.report import pages  # noqa: PLC0415 - likewise

    written: Callable[..., str] = getattr(pages, name)
    return written(page.doc, length=page.length, templates=page.templates, made=page.made)


register(Format("text", _text, continued=True))
register(Format("markdown", partial(_paged, "render_markdown"), suffix="md", continued=True))
register(Format("html", partial(_paged, "render_html"), suffix="html"))
register(Format("json", lambda page: render_json(page.doc), complete=True))


_TEXT = msgspec.json.Encoder()
_BINARY = msgspec.msgpack.Encoder()
_UNUSUAL = re.compile(
    rb"\xcb(?<=[a-z0-9_.]{2}\xcb)(?!\x00{8})"
    rb"(?:[\x00-\x3e\x80-\xbe]|[\x3f\xbf][\x00-\x1a]|[\x43\xc3][\x41-\xff]|[\x44-\x7f\xc4-\xff])"
)
"""A float behind a key that is not finite, or below 1e-4 or from 1e16 on: those Python writes
``1e-05`` and msgspec ``1e-5``, and what is no number msgspec writes as null. Looked for in the
binary form, where it has its own mark; it may be found where there is none."""


def render_json(doc: object, *, indent: int | None = 2) -> str:
    """Write the document as JSON, keys in document order, with a final newline.

    Args:
        doc: The result document.
        indent: Spaces per level; None for one line without spaces (JSON Lines).

    Raises:
        ValueError: A figure is not a number.
    """
    return json_line(doc).decode() if indent is None else _indented(doc, indent)


def json_line(doc: object) -> bytes:
    """Write the document as a line of JSON Lines.

    Raises:
        ValueError: A figure is not a number.
    """
    try:
        if not _UNUSUAL.search(_BINARY.encode(doc)):
            line = _TEXT.encode(doc)
            if line.isascii() and b"\x7f" not in line:
                return line + b"\n"
            return f"{_shielded(line.decode())}\n".encode()
    except (TypeError, OverflowError, msgspec.MsgspecError):
        pass
    text = json.dumps(
        msgspec.to_builtins(doc), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return f"{_shielded(text)}\n".encode()


def _indented(doc: object, indent: int) -> str:
    plain = msgspec.to_builtins(doc)
    return f"{_shielded(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=indent))}\n"


def _shielded(text: str) -> str:
    """Write what a terminal would obey as JSON's own escapes; the values are the same."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
