"""A finished batch read back: entries of the index, documents, texts and table rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct
from msgspec.json import Decoder

from advisor.advice.document import Advice
from advisor.bulk.batch.formats import is_format, told_by, unpacked
from advisor.bulk.batch.plan import MOST_IN_A_SHARD, shards_of
from advisor.bulk.batch.store import MANIFEST, record_of
from advisor.errors import RequestError
from advisor.report.prose import Length

Entry = Mapping[str, Any]
"""A line of the index; see ``advisor.bulk.batch.shard``."""


_DOCUMENT = Decoder(Advice)


class Batch(Struct, frozen=True):
    """An output folder and what its manifest says."""

    root: Path
    manifest: Mapping[str, Any]

    @property
    def shards(self) -> int:
        """How many shards there should be."""
        return int(self.manifest["shards"])

    @property
    def formats(self) -> tuple[str, ...]:
        """What was written."""
        return tuple(self.manifest["formats"])


def read_manifest(file: Path) -> Mapping[str, object]:
    """Read the manifest of an earlier run.

    Raises:
        RequestError: It cannot be read.
    """
    try:
        found = json.loads(file.read_bytes())
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        hint = "Name another folder, or delete this one."
        raise RequestError(f"'{file}' is not a manifest", hint=hint)
    return found


def open_batch(root: Path) -> Batch:
    """Open an output folder.

    Raises:
        RequestError: There is no batch in it, or its manifest cannot be used.
    """
    if not root.is_dir():
        hint = "Name the --out folder of a batch."
        raise RequestError(f"there is no folder '{root}'", hint=hint)
    if not (root / MANIFEST).is_file():
        hint = "Make one: advisor batch PLAN --out DIR."
        raise RequestError(f"'{root}' holds no batch: it has no {MANIFEST}", hint=hint)
    found = read_manifest(root / MANIFEST)
    if problems := [*_problems(found)]:
        hint = "Make the batch again in another folder."
        raise RequestError(f"'{root / MANIFEST}' {' and '.join(problems)}", hint=hint)
    return Batch(root, found)


def _problems(found: Mapping[str, Any]) -> Iterator[str]:
    """Say what a manifest lacks, and which of its values no batch has."""
    if lacking := [key for key in _RIGHT if key not in found]:
        yield f"lacks {', '.join(lacking)}"
    wrong = [key for key, right in _RIGHT.items() if key in found and not right(found[key])]
    if not wrong and not lacking:
        shards = shards_of(found["scenarios"], found["shard_size"])
        wrong = [] if found["shards"] == shards else ["shards"]
    if wrong:
        yield f"has a wrong {', '.join(wrong)}"


def _within(value: object, least: int, most: float = inf) -> bool:
    return type(value) is int and least <= value <= most


_RIGHT: Mapping[str, Callable[[Any], bool]] = {
    "shards": lambda value: _within(value, 0),
    "scenarios": lambda value: _within(value, 0),
    "shard_size": lambda value: _within(value, 1, MOST_IN_A_SHARD),
    "formats": lambda value: isinstance(value, list) and all(map(is_format, value)),
    "length": lambda value: value in get_args(Length),
}


def read_record(root: Path, number: int) -> tuple[Entry, list[Entry]] | None:
    """Read the record of a shard: its head and its lines; None where it is not whole."""
    try:
        with (root / record_of(number)).open("rb") as lines:
            head, *rest = (json.loads(line) for line in lines)
        whole = len(rest) == head["scenarios"] and all(isinstance(line, dict) for line in rest)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return (head, rest) if whole else None


def index_entries(root: Path, name: str) -> Iterator[Entry]:
    """Read the index line by line.

    Raises:
        RequestError: It is missing or damaged.
    """
    try:
        with (root / name).open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield _entry(line, f"{root / name}:{number}")
    except OSError as bad:
        hint = "Finish the batch with --resume."
        raise RequestError(f"cannot read '{root / name}': {bad.strerror}", hint=hint) from None


def _entry(line: bytes, where: str) -> Entry:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RequestError(f"{where}: not a line of an index", hint="Run 'advisor audit'.")
    return found


def document_of(root: Path, entry: Entry) -> Advice:
    """Read the result document of a report.

    Raises:
        OSError: Its file cannot be read.
        ValueError: What stands there is no document.
    """
    place = entry["files"]["jsonl"]
    return read_document(line_of(root / place["path"], place["offset"], place["bytes"]))


def line_of(path: Path, offset: int, length: int) -> bytes:
    """Read a line by its place in a JSON Lines file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is packed and not whole.
    """
    with path.open("rb") as file:
        file.seek(offset)
        return unpacked(file.read(length))


def read_document(line: bytes) -> Advice:
    """Read a result document.

    Raises:
        ValueError: It is none.
    """
    return _DOCUMENT.decode(line)


def table_rows(root: Path, path: str) -> list[Entry] | None:
    """Read a Parquet file, what its path tells included; None where pyarrow is not installed.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no Parquet file.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        return None
    try:
        rows: list[Entry] = pq.ParquetFile(root / path).read().to_pylist()
    except pa.ArrowException as bad:
        raise ValueError(str(bad)) from None
    return [{**told_by(path), **row} for row in rows]
