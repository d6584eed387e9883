"""The user's own measurements: read, checked, stored, and laid over the calibration."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, astuple

from advisor.disk import alone, flush, flush_folder
from advisor.errors import RequestError, Source, UserError, raise_problems
from advisor.estimator.calibration.user.benchmark import COLUMNS, Fields, day, metric_of
from advisor.estimator.calibration.user.benchmark_file import csv_lines, parted_by
from advisor.estimator.measured_speed import Measurement

ID_LENGTH = 8
_LOCK = ".measurements.csv.lock"
_NEEDED = ("gpu", "model", "precision", "framework", "backend")
_UNTOLD = frozenset({"source", "note", "framework_version"})
_HINT = "Correct or remove the line, or leave measurements out with --no-measurements."


class Stored(Struct, frozen=True):
    """A figure and the line it stands on."""

    line: int
    measurement: Measurement

    @property
    def id(self) -> str:
        """The figure's short name."""
        return id_of(self.measurement)


def id_of(measurement: Measurement) -> str:
    """Name a figure by what was measured and when, not by the file it came from."""
    told = asdict(measurement)
    text = "\0".join(f"{key}={value}" for key, value in told.items() if key not in _UNTOLD)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def parse(data: bytes, shown: str) -> list[Stored]:
    """Read the store's content.

    Raises:
        UserError: Every line that is wrong.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError("the file is not UTF-8", source=Source(shown), hint=_HINT) from None
    lines = csv_lines(text.replace("\r\n", "\n").replace("\r", "\n"), shown)
    number, header = next(lines, (1, COLUMNS))
    if isinstance(header, UserError):
        raise header
    names = [cell.strip() for cell in header]
    if sorted(names) != sorted(COLUMNS):
        raise RequestError(
            f"the header must name these columns: {', '.join(COLUMNS)}",
            source=Source(shown, number),
            hint=_HINT,
        )
    found = [_line(names, cells, shown, number) for number, cells in lines]
    raise_problems([item for item in found if isinstance(item, UserError)])
    return [item for item in found if isinstance(item, Stored)]


def _line(
    names: Sequence[str], cells: Sequence[str] | UserError, shown: str, number: int
) -> Stored | UserError:
    place = Fields({}, shown, number)
    if isinstance(cells, UserError):
        return place.error(cells.message, _HINT)
    if len(cells) != len(names):
        return place.error(f"the line has {len(cells)} cells, the header {len(names)}", _HINT)
    try:
        row = Fields(dict(zip(names, cells, strict=True)), shown, number)
        return Stored(number, _measurement(row))
    except UserError as error:
        return place.error(error.message, _HINT)


def _measurement(row: Fields) -> Measurement:
    for key in _NEEDED:
        if not row.said(key):
            raise row.error(f"{key} is missing")
    return Measurement(
        gpu=row.text("gpu"),
        gpus=row.count("gpus") or 1,
        model=row.text("model"),
        precision=row.text("precision"),
        framework=row.text("framework"),
        framework_version=row.text("framework_version"),
        backend=row.text("backend"),
        prompt_tokens=row.count("prompt_tokens") or 0,
        gen_tokens=row.count("gen_tokens") or 0,
        depth_tokens=row.count("depth_tokens") or 0,
        batch=row.count("batch") or 1,
        metric=metric_of(row),
        tok_s=row.speed("tok_s"),
        stdev=row.spread("stdev"),
        date=day(row),
        source=row.text("source"),
        note=row.text("note"),
    )


def load(path: Path, shown: str = "") -> tuple[bytes, list[Stored]]:
    """Read the store; nothing where there is none.

    Raises:
        UserError: It cannot be read, or lines are wrong.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b"", []
    except OSError as bad:
        reason = f"cannot read '{shown or path}': {bad.strerror}"
        raise RequestError(reason, hint=_HINT) from None
    return data, parse(data, shown or str(path))


def add(path: Path, measurements: Iterable[Measurement]) -> tuple[list[Stored], list[Stored]]:
    """Add what is not stored yet; gives the store as it was and as it is.

    Raises:
        UserError: The store is damaged, or cannot be written; it is then as it was.
    """

    def change(data: bytes, stored: Sequence[Stored]) -> bytes:
        known = {item.id for item in stored}
        fresh = {id_of(m): m for m in measurements if id_of(m) not in known}
        return _appended(data, fresh.values()) if fresh else data

    return _changed(path, change)


def remove(path: Path, ids: Iterable[str]) -> tuple[list[Stored], list[Stored]]:
    """Take figures out by id; gives the store as it was and as it is.

    Raises:
        UserError: An id is unknown or the beginning of several; nothing is then removed.
    """
    ids = list(ids)
    if not path.exists():
        _whole_ids(ids, [])

    def change(data: bytes, stored: Sequence[Stored]) -> bytes:
        wanted = frozenset(_whole_ids(ids, stored))
        lines = {item.line for item in stored if item.id in wanted}
        kept = data.splitlines(keepends=True)
        return b"".join(text for n, text in enumerate(kept, start=1) if n not in lines)

    return _changed(path, change)


def _whole_ids(ids: Iterable[str], stored: Sequence[Stored]) -> list[str]:
    known = list(dict.fromkeys(item.id for item in stored))
    whole, problems = [], list[UserError]()
    for given in ids:
        found = [one for one in known if given and one.startswith(given.strip().casefold())]
        if len(found) == 1:
            whole.append(found[0])
        elif found:
            problems.append(RequestError(f"'{given}' begins several: {', '.join(found)}"))
        else:
            hint = "See them with 'advisor measure list'."
            problems.append(RequestError(f"no measurement is called '{given}'", hint=hint))
    raise_problems(problems)
    return whole


def _changed(
    path: Path, change: Callable[[bytes, Sequence[Stored]], bytes]
) -> tuple[list[Stored], list[Stored]]:
    shown, path = str(path), path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone(path.parent / _LOCK, wait=True):
            data, before = load(path, shown)
            made = change(data, before)
            after = before if made == data else parse(made, shown)
            if made != data:
                _write(path, made)
            return before, after
    except OSError as bad:
        raise RequestError(
            f"cannot write '{shown}': {bad.strerror}",
            hint="Set ADVISOR_DATA_DIR to a folder of yours, or name one with --knowledge.",
        ) from None


def _appended(data: bytes, measurements: Iterable[Measurement]) -> bytes:
    if not data.strip():
        return _rows([COLUMNS, *map(astuple, measurements)], COLUMNS, ",")
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    header = next(iter(csv_lines(text, "")), (0, COLUMNS))[1]
    names = COLUMNS if isinstance(header, UserError) else [cell.strip() for cell in header]
    rows = [astuple(m) for m in measurements]
    return data + (b"" if data.endswith(b"\n") else b"\n") + _rows(rows, names, parted_by(text))


def _rows(rows: Iterable[Sequence[object]], names: Sequence[str], parted: str) -> bytes:
    """Write rows of ``COLUMNS`` in the order that the file has them."""
    order = [COLUMNS.index(name) for name in names]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", delimiter=parted)
    writer.writerows([_cell(row[place]) for place in order] for row in rows)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def _write(path: Path, data: bytes) -> None:
    """Put the whole content in the place of the old one, or leave the old one."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            flush(file)
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # where folders cannot be opened, the file alone is safe
        flush_folder(path.parent)
