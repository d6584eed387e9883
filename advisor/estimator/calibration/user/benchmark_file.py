"""A benchmark's file, told by its content: JSON, JSON Lines, CSV or a Markdown benchmark."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.errors import Problems, RequestError, Source, UserError
from advisor.estimator.calibration.user import bench_tools, benchmark
from advisor.estimator.calibration.user.benchmark import Fields, Read, Run, Skipped, one_line
from advisor.estimator.calibration.user.plausibility import Checked, Given, check
from advisor.estimator.measured_speed import Measurement
from advisor.knowledge.types import Knowledge

_MOST_BYTES = 64 * 2**20
_NEXT_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_KNOWN = (
    "llama-bench (-o json, jsonl, csv or md), vLLM or SGLang serving benchmarks, "
    "or a CSV with a column tok_s"
)
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))


def read_bytes(path: Path) -> bytes:
    """Read a whole file of at most 64 MiB.

    Raises:
        RequestError: It is missing, a folder, a pipe, unreadable or too large.
    """
    try:
        kind = path.stat()
        if stat.S_ISDIR(kind.st_mode):
            raise RequestError(f"'{path}' is a folder", hint="Name a file in it.")
        if not stat.S_ISREG(kind.st_mode):
            raise RequestError(f"'{path}' is not a regular file", hint="Save it to a file first.")
        if kind.st_size > _MOST_BYTES:
            raise RequestError(
                f"'{path}' has {kind.st_size / 2**20:.0f} MiB, and 64 are read",
                hint="Save results without the details of every request.",
            )
        return path.read_bytes()
    except (OSError, ValueError) as bad:
        reason = getattr(bad, "strerror", None) or bad
        raise RequestError(f"cannot read '{path}': {reason}") from None


def read_measurements(data: bytes, file: str) -> list[Read]:
    """Read every row of a file: figures, rows of no use, and errors, in order.

    The data are UTF-8, or UTF-16 as PowerShell writes it.

    Raises:
        RequestError: The file as a whole is not one of the known kinds.
    """
    text = _decoded(data, file)
    start = text.lstrip()[:1]
    if not start:
        raise _wrong(file, "the file is empty")
    if start in "[{":
        return list(_json(text, file))
    found = list(bench_tools.read_markdown(text, file))
    found = found or list(_csv(text, file))
    if not found:
        raise _wrong(file, "no measurement was recognised")
    return found


def _decoded(data: bytes, file: str) -> str:
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise _wrong(file, "this is not a text file") from None
    if "\0" in text:
        raise _wrong(file, "this is not a text file")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _wrong(file: str, message: str) -> RequestError:
    return RequestError(message, source=Source(file), hint=f"Known: {_KNOWN}.")


def _json(text: str, file: str) -> Iterator[Read]:
    """Read objects, in an array, one per line or one after another."""
    decoder = json.JSONDecoder()
    place = line = 0
    found = False
    while (here := _skipped(text, place)) < len(text):
        line += text.count("\n", place, here)
        number = line + 1
        try:
            values, place = decoder.raw_decode(text, here)
        except (ValueError, RecursionError) as bad:
            yield _not_json(bad, file, number)
            after = _NEXT_OBJECT.search(text, here + 1)
            place = after.start() if after else len(text)
        else:
            yield from _object(values, file, number)
        found = True
        line += text.count("\n", here, place)
    if not found:
        yield _wrong(file, "no measurement was recognised")


def _skipped(text: str, place: int) -> int:
    """Pass over what stands between objects."""
    while place < len(text) and text[place] in " \t\n,[]":
        place += 1
    return place


def _not_json(bad: Exception, file: str, line: int) -> RequestError:
    """Say what is wrong with the object that starts on ``line``."""
    if isinstance(bad, json.JSONDecodeError):
        reason = f"{bad.msg[:1].lower()}{bad.msg[1:]} on line {bad.lineno}"
    else:
        reason = "nested too deeply" if isinstance(bad, RecursionError) else "a number is too long"
    return RequestError(
        f"the object that starts here is not JSON: {reason}",
        source=Source(file, line),
        hint="Was the run cut short?",
    )


def _object(values: object, file: str, line: int) -> Iterator[Read]:
    if not isinstance(values, dict):
        yield Fields({}, file, line).error("this is not a JSON object")
        return
    row = Fields(values, file, line)
    keys = list(values)
    if bench_tools.is_llama_bench(keys):
        yield bench_tools.read_row(row)
    elif bench_tools.is_serving(keys):
        yield from bench_tools.read_serving(row)
    elif bench_tools.is_offline(keys):
        yield bench_tools.read_offline(row)
    elif benchmark.is_table(keys):
        yield from _of_table(row)
    else:
        yield row.error("this object is no known measurement", f"Known: {_KNOWN}.")


def _of_table(row: Fields) -> Iterator[Read]:
    """Read an object with the columns of the simple CSV."""
    problems = list(benchmark.header_problems(list(row.values), row.file, row.line))
    if problems:
        yield from problems
        return
    names = benchmark.columns_of(list(row.values))
    values = dict(zip(names, row.values.values(), strict=True))
    yield benchmark.read_line(Fields(values, row.file, row.line))


def _csv(text: str, file: str) -> Iterator[Read]:
    lines = csv_lines(text, file)
    number, header = next(lines, (0, []))
    if isinstance(header, UserError) or not header:
        return
    names = [cell.strip() for cell in header]
    plain = benchmark.is_table(names)
    if not plain and not bench_tools.is_llama_bench(names):
        return
    problems = list(benchmark.header_problems(names, file, number)) if plain else []
    if problems:
        yield from problems
        return
    names = benchmark.columns_of(names) if plain else names
    read = benchmark.read_line if plain else bench_tools.read_row
    for number, cells in lines:
        yield cells if isinstance(cells, UserError) else _csv_row(names, cells, file, number, read)


def _csv_row(
    names: Sequence[str],
    cells: Sequence[str],
    file: str,
    number: int,
    read: Callable[[Fields], Read],
) -> Read:
    place = Fields({}, file, number)
    if len(cells) != len(names):
        return place.error(f"the line has {len(cells)} cells, the header {len(names)}")
    return read(Fields(dict(zip(names, cells, strict=True)), file, number))


def csv_lines(text: str, file: str) -> Iterator[tuple[int, Sequence[str] | UserError]]:
    """Split CSV into lines with their numbers; empty lines and those after # are passed over.

    The first line settles whether commas, semicolons or tabs part the cells.
    """
    parted = parted_by(text)
    for number, line in enumerate(text.split("\n"), start=1):
        if not _counts(line):
            continue
        try:
            yield number, next(csv.reader(io.StringIO(line), delimiter=parted, strict=True))
        except csv.Error as bad:
            yield number, RequestError(f"not CSV: {bad}", source=Source(file, number))


def parted_by(text: str) -> str:
    """Give what parts the cells of the first line: comma, semicolon or tab."""
    first = next((line for line in text.split("\n") if _counts(line)), "")
    return max(",;\t", key=first.count)


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


class File(Struct, frozen=True):
    """A benchmark's file."""

    shown: str
    """As the user named it."""
    data: bytes

    @property
    def name(self) -> str:
        """Its name without folders, as it is stored."""
        return one_line(self.shown.replace("\\", "/").rpartition("/")[2])


class Taken(Struct):
    """What came of the files."""

    good: list[tuple[File, Checked]] = field(default_factory=list)
    skipped: list[tuple[File, Skipped]] = field(default_factory=list)
    problems: list[UserError] = field(default_factory=list)
    wrong: int = 0
    """Rows that are wrong, and files that cannot be read at all."""

    def refuse(self, error: UserError) -> None:
        """Note all that is wrong with one row or file."""
        self.wrong += 1
        self.problems += error.errors if isinstance(error, Problems) else [error]

    @property
    def measurements(self) -> list[Measurement]:
        """The figures that may be stored."""
        return [checked.measurement for _, checked in self.good]


def take(files: Sequence[File], given: Given, knowledge: Knowledge) -> Taken:
    """Read and check every row of every file."""
    taken = Taken()
    for file in files:
        try:
            rows = read_measurements(file.data, file.shown)
        except UserError as error:
            taken.refuse(error)
            continue
        for row in rows:
            _take(row, file, given, knowledge, taken)
    taken.problems = list({str(error): error for error in taken.problems}.values())
    return taken


def _take(
    row: Run | Skipped | UserError, file: File, given: Given, knowledge: Knowledge, taken: Taken
) -> None:
    if isinstance(row, UserError):
        taken.refuse(row)
        return
    if isinstance(row, Skipped):
        taken.skipped.append((file, row))
        return
    try:
        found = check(row, given, knowledge, file=file.shown, name=file.name)
    except UserError as error:
        taken.refuse(error)
        return
    if isinstance(found, Skipped):
        taken.skipped.append((file, found))
    else:
        taken.good.append((file, found))
