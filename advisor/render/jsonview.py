"""The result document as JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.render.contract import Document


def render_json(doc: Document, *, indent: int | None = 2) -> str:
    """Write the document as JSON, keys in document order, with a final newline.

    Args:
        doc: The result document.
        indent: Spaces per level; None for one line without spaces (JSON Lines).
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        doc, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
    )
    return text + "\n"
