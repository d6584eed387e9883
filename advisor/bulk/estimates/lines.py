"""Lines of a byte stream, numbered from 1 and of bounded length."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from advisor.errors import RequestError

MOST_BYTES = 65_536
"""Longest line that is read; a request needs a few hundred bytes."""
_TOO_LONG = f"the line is longer than {MOST_BYTES:,} bytes"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Line(Struct, frozen=True):
    """One line without its end; ``problem`` says why it has no text."""

    number: int
    text: str
    problem: str = ""

    @property
    def blank(self) -> bool:
        """Whether nothing at all stands on it."""
        return not self.problem and not self.text.strip()


def read_lines(stream: BinaryIO, name: str) -> Iterator[Line]:
    """Read lines one by one.

    Args:
        stream: Bytes, UTF-8, with or without a byte-order mark.
        name: What messages call it.

    Raises:
        RequestError: The stream cannot be read, or is UTF-16.
    """
    number = 0
    while content := _next(stream, name):
        number += 1
        if number == 1:
            if content.startswith(_UTF16):
                raise RequestError(f"'{name}' is UTF-16 text", hint="Save it as UTF-8.")
            content = content.removeprefix(codecs.BOM_UTF8)
        if len(content) > MOST_BYTES and not content.endswith(b"\n"):
            _skip_rest(stream, name)
            yield Line(number, "", _TOO_LONG)
            continue
        yield _decoded(number, content)


def _next(stream: BinaryIO, name: str) -> bytes:
    try:
        return stream.readline(MOST_BYTES + 1)
    except OSError as bad:
        raise RequestError(f"cannot read '{name}': {bad.strerror}.") from None


def _skip_rest(stream: BinaryIO, name: str) -> None:
    while content := _next(stream, name):
        if content.endswith(b"\n"):
            return


def _decoded(number: int, content: bytes) -> Line:
    try:
        return Line(number, content.decode())
    except UnicodeDecodeError as bad:
        return Line(number, "", f"the line is not UTF-8 text (byte {bad.start + 1})")
