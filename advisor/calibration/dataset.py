"""The measurements that the project carries, as they were collected."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from advisor.errors import KnowledgeError, Source
from advisor.files import data_dir

Row = Mapping[str, str]
_NEEDED = ("gpu", "model", "quant", "framework", "metric", "value", "source", "note", "caution")


def measurements_dir() -> Path:
    """The folder of the carried measurements; its SOURCE.md says where they come from."""
    return data_dir("knowledge") / "measurements"


@cache
def speed_rows() -> Sequence[Row]:
    """Read every published speed, as collected.

    Raises:
        KnowledgeError: The file is missing or has other columns.
    """
    path = measurements_dir() / "speed.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as bad:
        raise KnowledgeError(f"cannot be read: {bad}", source=Source(path.name)) from None
    missing = [name for name in _NEEDED if not rows or name not in rows[0]]
    if missing:
        raise KnowledgeError(f"has no column {', '.join(missing)}", source=Source(path.name))
    return rows


@cache
def name_rows() -> Sequence[Row]:
    """Read the spellings of the measurements that no general rule resolves."""
    with (measurements_dir() / "names.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def speculation_rows() -> Sequence[Row]:
    """Read the pairs of runs with and without drafts: row ids, or figures with a source."""
    with (measurements_dir() / "speculation.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def odd_rows() -> Mapping[str, str]:
    """Read why single rows are far off, by row id."""
    with (measurements_dir() / "odd.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row["reason"] for row in csv.DictReader(file)}
