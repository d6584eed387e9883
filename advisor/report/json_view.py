"""The result document as JSON text."""

from __future__ import annotations

import json
import re

import msgspec

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
            return _TEXT.encode(doc) + b"\n"
    except (TypeError, OverflowError, msgspec.MsgspecError):
        pass
    text = json.dumps(
        msgspec.to_builtins(doc), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return f"{text}\n".encode()


def _indented(doc: object, indent: int) -> str:
    return (
        json.dumps(msgspec.to_builtins(doc), ensure_ascii=False, allow_nan=False, indent=indent)
        + "\n"
    )
