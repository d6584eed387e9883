"""Many requests at once: estimates, batches of reports, their audit and site, reverse questions.

Here: requests as they stand in a file, JSON Lines or CSV.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import BinaryIO, Literal, NoReturn

from msgspec import Struct

from advisor.errors import RequestError, Source, UserError, did_you_mean, raise_problems
from advisor.scenario.settings import KEYS, SETTINGS

MOST_BYTES = 65_536
"""Longest line that is read; a request needs a few hundred bytes."""
_MOST_SKIPPED = 64_000_000
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

    The stream is UTF-8, with or without a byte-order mark.

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
    skipped = 0
    while content := _next(stream, name):
        skipped += len(content)
        if content.endswith(b"\n"):
            return
        if skipped > _MOST_SKIPPED:
            message = f"'{name}' has no end of a line in {_MOST_SKIPPED // 10**6} MB"
            raise RequestError(message, hint="Write one request per line.")


def _decoded(number: int, content: bytes) -> Line:
    try:
        return Line(number, content.decode())
    except UnicodeDecodeError as bad:
        return Line(number, "", f"the line is not UTF-8 text (byte {bad.start + 1})")


Kind = Literal["json", "csv"]
_KNOWN = ("id", *KEYS)
_SUFFIXES: Mapping[str, Kind] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_SWITCH = {
    **dict.fromkeys(("true", "1", "on", "yes"), True),
    **dict.fromkeys(("false", "0", "off", "no"), False),
}


class Row(Struct, frozen=True):
    """One request as written; ``problem`` says why it could not be read."""

    number: int
    """Line of the file, from 1."""
    given: Mapping[str, object]
    problem: str = ""


def read_rows(stream: BinaryIO, name: str) -> Iterator[Row]:
    """Read requests one by one; blank lines are left out.

    The end of the name says what the file is (``.csv``, ``.jsonl``); otherwise its first line
    does.

    Raises:
        RequestError: Nothing in it can be read: it is empty, or a CSV header is wrong.
    """
    lines = (line for line in read_lines(stream, name) if not line.blank)
    first = next(lines, None)
    if first is None:
        raise RequestError(f"'{name}' is empty", hint="Write one request per line.")
    every = chain([first], lines)
    return _csv_rows(every, name) if _kind(name, first) == "csv" else map(_json_row, every)


def _kind(name: str, first: Line) -> Kind:
    for suffix, kind in _SUFFIXES.items():
        if name.casefold().endswith(suffix):
            return kind
    cells = {cell.strip().strip('"') for cell in first.text.split(",")}
    return "csv" if cells & {"gpu", "model", "config"} else "json"


class _JsonError(ValueError):
    """JSON that the standard library takes and a request must not hold."""


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _JsonError(f"'{twice}' stands twice")
    return found


def _constant(text: str) -> NoReturn:
    raise _JsonError(f"{text} is not a number in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)


def _json_row(line: Line) -> Row:
    if line.problem:
        return Row(line.number, {}, line.problem)
    try:
        found = _DECODER.decode(line.text)
    except json.JSONDecodeError as bad:
        return Row(line.number, {}, f"the line is not JSON: {bad.msg} (column {bad.colno})")
    except RecursionError:
        return Row(line.number, {}, "the line is nested too deeply")
    except _JsonError as bad:
        return Row(line.number, {}, f"the line cannot be read: {bad}")
    except ValueError:  # of Python, which reads no integer of more digits
        return Row(line.number, {}, "the line cannot be read: a number has thousands of digits")
    if not isinstance(found, dict):
        shown = "a list" if isinstance(found, list) else "a single value"
        return Row(line.number, {}, f"the line holds {shown}, not an object; write one per line")
    return Row(line.number, found)


class _Texts:
    """Feeds the CSV reader; a class because a generator could not go on after an error."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number = line.number
        if line.problem:
            raise csv.Error(line.problem)
        return line.text


def _csv_rows(lines: Iterator[Line], name: str) -> Iterator[Row]:
    texts = _Texts(lines)
    reader = csv.reader(texts, strict=True, skipinitialspace=True)
    try:
        header = [cell.strip() for cell in next(reader)]
    except csv.Error as bad:
        raise RequestError(str(bad), source=Source(name, texts.number)) from None
    _check_header(header, Source(name, texts.number))
    return _table(reader, texts, header)


def _table(reader: Iterator[list[str]], texts: _Texts, header: Sequence[str]) -> Iterator[Row]:
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as bad:
            yield Row(texts.number, {}, f"the line is not CSV: {bad}")
            continue
        if len(cells) == len(header):
            yield Row(texts.number, _given(header, cells))
        else:
            message = f"the line has {len(cells)} cells, the header {len(header)}"
            yield Row(texts.number, {}, message)


def _given(header: Sequence[str], cells: Sequence[str]) -> Mapping[str, object]:
    stripped = ((name, cell.strip()) for name, cell in zip(header, cells, strict=True))
    return {name: _value(name, cell) for name, cell in stripped if cell}


def _value(name: str, cell: str) -> object:
    switch = name in SETTINGS and SETTINGS[name].kind == "switch"
    return _SWITCH.get(cell.casefold(), cell) if switch else cell


def _check_header(header: Sequence[str], source: Source) -> None:
    problems: list[UserError] = [
        RequestError(
            f"unknown column '{name}'",
            source=source,
            hint=did_you_mean(name, _KNOWN) or f"Known: {', '.join(_KNOWN)}.",
        )
        for name in dict.fromkeys(header)
        if name not in _KNOWN
    ]
    problems += [
        RequestError(f"column '{name}' stands twice", source=source)
        for name in dict.fromkeys(header)
        if header.count(name) > 1
    ]
    raise_problems(problems)
