"""A log on its way in: bounded, decoded, without the colours of a terminal."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from advisor.errors import RequestError, visible

_BEGIN, _END = 4 * 2**20, 12 * 2**20
"""Bytes that are read of a longer log: of its begin, where programs say what they were asked for,
and of its end, where they fail."""
_MOST_PIPED = 2**30
_CHUNK = 2**20
_LONGEST_LINE = 16_000
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[@-Z\\^_])")
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_SERVICE = re.compile(r"[\w.-]{1,80}[-_]\d{1,3} +\| ")
"""What docker compose writes before each line: ``tabbyapi-1  | ``."""
_MOST_ODD = 0.05
"""Share of characters that are none, above which this is no text."""


class LogText(Struct, frozen=True):
    """The lines of a log."""

    lines: tuple[str, ...]
    left_out_bytes: int = 0
    """Of the middle of a long log."""


def read_log(path: Path | None, stream: BinaryIO) -> LogText:
    """Read a file, or standard input where none is named.

    Args:
        path: The file; None or ``-`` for the stream.
        stream: Standard input.

    Raises:
        RequestError: It cannot be read, is no text, is empty, or never ends.
    """
    if path is None or str(path) == "-":
        return _text(*_of_stream(stream), "standard input")
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode):
                return _text(*_of_file(file), f"'{path}'")
            return _text(*_of_stream(file), f"'{path}'")
    except (OSError, ValueError) as bad:
        reason = getattr(bad, "strerror", None) or bad
        raise RequestError(f"cannot read '{path}': {reason}", hint="Name a log.") from None


def _of_file(file: BinaryIO) -> tuple[bytes, bytes, int]:
    size = os.fstat(file.fileno()).st_size
    if size <= _BEGIN + _END:
        return file.read(_BEGIN + _END), b"", 0
    begin = file.read(_BEGIN)
    file.seek(size - _END)
    return begin, file.read(_END), size - _BEGIN - _END


def _of_stream(stream: BinaryIO) -> tuple[bytes, bytes, int]:
    """Read to the end of a pipe, holding no more than the begin and the end of it."""
    begin, end, size = b"", b"", 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > _MOST_PIPED:
            raise RequestError(
                f"standard input has more than {_MOST_PIPED // 2**30} GiB",
                hint="Send the part with the error: tail -n 2000 LOG | advisor diagnose",
            )
        if len(begin) < _BEGIN:
            begin += chunk
        else:
            end = (end + chunk)[-_END:]
    return begin, end, max(0, size - len(begin) - len(end))


def _text(begin: bytes, end: bytes, left_out: int, shown: str) -> LogText:
    encoding = next((name for bom, name in _BOMS if begin.startswith(bom)), "utf-8")
    parts = [part.decode(encoding, errors="replace") for part in (begin, end) if part]
    if not "".join(parts).strip("\ufeff \t\r\n"):
        raise RequestError(f"{shown} is empty", hint="Give what the program printed.")
    if any(_odd(part[:_CHUNK]) for part in parts):
        raise RequestError(f"{shown} is not a text file", hint="Give what the program printed.")
    if left_out:  # the first and last line here are pieces
        parts = [parts[0].rpartition("\n")[0], parts[1].partition("\n")[2]]
    parts = [part.removeprefix("\ufeff").rstrip("\r\n") for part in parts]
    lines = (line for part in parts for line in _LINE_ENDS.split(part))
    return LogText(tuple(_plain(line) for line in lines), left_out)


def _odd(text: str) -> bool:
    """Whether too much of it is no character that a program prints."""
    odd = sum(text.count(sign) for sign in ("\0", "\ufffd", "\x01", "\x02", "\x03"))
    return odd > len(text) * _MOST_ODD


def _plain(line: str) -> str:
    cut = line[:_LONGEST_LINE]
    if service := _SERVICE.match(cut):
        cut = cut[service.end() :]
    return visible(_ESCAPES.sub("", cut)) if not cut.isascii() or not cut.isprintable() else cut
