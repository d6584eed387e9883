"""The manifest: everything that the bytes of a batch depend on, and nothing else."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct
from msgspec.json import Decoder

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.bulk.batch.formats import form_of, is_format, told_by, unpacked
from advisor.bulk.batch.plan import MOST_IN_A_SHARD, Plan, shard_count, shards_of
from advisor.bulk.batch.store import MANIFEST, record_of
from advisor.errors import RequestError, UserError
from advisor.files import Kind, code_sha256, data_dir, read_tree, with_extra
from advisor.knowledge.layers import Stack, layers
from advisor.report.prose import Length

_SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "rules": (".yaml",),
    "templates": (".j2",),
    "knowledge": (".yaml", ".csv"),
}
_ASIDE: Mapping[Kind, tuple[str, ...]] = {
    "rules": ("scenarios/",),
    "templates": ("site/",),
    "knowledge": ("measurements/",),
}
"""Files that change no report."""
_SHORT = 16

Inputs = Mapping[str, str]
"""``rules/fit.yaml`` -> hash; the user's own stand under ``own/``, or under their names."""


def input_files(folders: Mapping[Kind, Stack]) -> Inputs:
    """Hash every file that reports are made from.

    Raises:
        UserError: A folder cannot be read.
    """
    found: dict[str, str] = {}
    for kind in get_args(Kind):
        found |= _hashed(kind, data_dir(kind), kind)
        for layer in layers(folders.get(kind), f"own/{kind}"):
            found |= _hashed(kind, layer.folder, layer.label)
    return found


def _hashed(kind: Kind, folder: Path, shown: str) -> dict[str, str]:
    try:
        files = read_tree(folder, _SUFFIXES[kind])
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    return {
        f"{shown}/{name}": hashlib.sha256(content).hexdigest()[:_SHORT]
        for name, content in files.items()
        if not name.startswith(_ASIDE[kind])
    }


def changed_files(then: Inputs, now: Inputs) -> Iterator[str]:
    """Name the files that differ: ``rules/fit.yaml changed``."""
    for name in sorted({*then, *now}):
        if name not in now:
            yield f"{name} removed"
        elif name not in then:
            yield f"{name} added"
        elif then[name] != now[name]:
            yield f"{name} changed"


SCHEMA_VERSION = 1
_SHOWN = 12
_SAID = {
    "advisor": "the version of advisor",
    "plan_sha256": "the plan",
    "rules_sha256": "the rules",
    "knowledge_sha256": "the knowledge",
    "templates_sha256": "the templates",
    "measurements_sha256": "your own measurements",
    "code_sha256": "the program",
    "engine": "the rule engine",
    "formats": "the formats",
    "length": "the length",
    "shard_size": "the shard size",
    "pyarrow": "the version of pyarrow",
    "zlib": "the version of zlib",
}
_LIBRARIES = ("pyarrow", "zlib")
"""What some formats alone depend on."""

_TOLD_ELSEWHERE = ("inputs",)
"""Only names what the hashes already tell; a built-in file may change behind a user's own."""

Manifest = Mapping[str, object]


def manifest(
    plan: Plan, advisor: Advisor, inputs: Inputs, *, formats: tuple[str, ...], length: str
) -> Manifest:
    """Describe a batch before it is made.

    From ``inputs`` an audit can name what changed.
    """
    described = dict(plan.described)
    return {
        "schema_version": SCHEMA_VERSION,
        "scenarios": plan.scenarios,
        "shards": shard_count(plan),
        "shard_size": plan.shard_size,
        "skipped": dict(plan.skipped),
        "formats": list(formats),
        "length": length,
        **made_by(advisor, formats),
        "plan_sha256": hashlib.sha256(json.dumps(described).encode()).hexdigest(),
        "plan": described,
        "inputs": dict(inputs),
    }


def made_by(advisor: Advisor, formats: tuple[str, ...]) -> Mapping[str, str | None]:
    """Name the program and data that make the reports; workers must have the same."""
    made = advisor.provenance()
    found: dict[str, str | None] = {
        "advisor": made.advisor,
        "engine": made.engine,
        "code_sha256": code_sha256(),
        "rules_sha256": made.rules_sha256,
        "knowledge_sha256": made.knowledge_sha256,
        "templates_sha256": made.templates_sha256,
        "measurements_sha256": made.measurements_sha256,
    }
    if form_of("parquet", formats):
        found["pyarrow"] = pyarrow_version()
    if "jsonl.gz" in formats:
        found["zlib"] = zlib.ZLIB_RUNTIME_VERSION
    return found


def pyarrow_version() -> str:
    """Name the version of pyarrow.

    Raises:
        RequestError: It is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
    except ImportError:
        hint = f"{with_extra('parquet')} Or leave parquet out of --formats."
        raise RequestError("Parquet files need pyarrow", hint=hint) from None
    return str(pa.__version__)


def as_bytes(made: Manifest) -> bytes:
    """Write a manifest."""
    return (json.dumps(made, indent=1, ensure_ascii=True) + "\n").encode("ascii")


def differences(
    old: Mapping[str, object],
    new: Mapping[str, object],
    words: tuple[str, str] = ("then", "now"),
) -> list[str]:
    """Say what differs between two manifests, one clause each; empty where nothing does."""
    keys = [key for key in _SAID if old.get(key) != new.get(key)]
    if not keys and old != new:
        keys = [key for key in new if key not in _TOLD_ELSEWHERE and old.get(key) != new[key]]
    if "formats" in keys:
        keys = [key for key in keys if key not in _LIBRARIES]
    return [_clause(key, (old.get(key), new.get(key)), words) for key in keys]


def _clause(key: str, values: tuple[object, object], words: tuple[str, str]) -> str:
    said = _SAID.get(key, f"'{key}' in its manifest")
    if any(isinstance(value, Mapping) for value in values):
        return said
    both = (f"{_short(value)} {word}" for value, word in zip(values, words, strict=True))
    return f"{said} ({', '.join(both)})"


def _short(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return " and ".join(map(str, value))
    text = str(value)
    return text[:_SHOWN] if len(text) > 2 * _SHOWN else text


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
