"""Text made safe where it is printed: in Markdown and in HTML."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_SPECIAL = re.compile(r"([\\*\[\]<|#]|^>)")
_CODE = re.compile(r"`([^`]*)`")
_KEPT = 4_096
"""Texts made safe that are kept: remarks recur from report to report."""


@lru_cache(maxsize=_KEPT)
def escaped(text: str) -> str:
    """Make text safe inside Markdown; code spans stay code."""
    if ">" not in text and not _SPECIAL.search(text):
        return text
    pieces = _CODE.split(text)
    return "".join(
        f"`{piece}`" if index % 2 else _SPECIAL.sub(r"\\\1", piece)
        for index, piece in enumerate(pieces)
    )


def coded(text: str) -> Markup:
    """Escape text for HTML and turn its code spans into ``code`` elements."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    parts = [
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(_CODE.split(text))
    ]
    return Markup("").join(parts)
