"""The formats of a batch: how each is named, packed and divided, and where its files lie."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Mapping
from urllib.parse import quote, unquote

from advisor.report.formats import FORMATS

TABLE_TEXT = "markdown"
"""The format of the text in a row of a Parquet file."""
_DIVIDING = ("vendor", "gpu", "family", "model", "precision", "framework", "kv_cache", "state")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def texts_of(formats: Collection[str]) -> tuple[str, ...]:
    """Name the formats in which each report is a file."""
    return tuple(form.name for form in FORMATS.values() if form.suffix and form.name in formats)


def kinds() -> tuple[str, ...]:
    """Name every kind of format: files of their own, then files that a shard has one of."""
    return (*texts_of(FORMATS), "jsonl", "parquet")


def kind_of(form: str) -> str:
    """Give a format without how it is packed or divided: ``jsonl.gz``, ``parquet/vendor``."""
    return re.split(r"[./]", form)[0]


def form_of(kind: str, formats: Collection[str]) -> str:
    """Give a kind of format as it is asked for; empty where it is not."""
    return next((form for form in formats if kind_of(form) == kind), "")


def known_formats() -> tuple[str, ...]:
    """Name every format, tables that one column divides among them."""
    return (*kinds(), "jsonl.gz", *(f"parquet/{column}" for column in _DIVIDING))


def is_format(form: str) -> bool:
    """Whether a batch can be written so; a table may be divided by several columns."""
    known, (kind, *columns) = known_formats(), form.split("/")
    every = all(f"{kind}/{column}" in known for column in columns)
    return form in known or (bool(columns) and every and len({*columns}) == len(columns))


def place_of(kind: str, number: int, suffix: str) -> str:
    """Name a file that a shard has one of: ``jsonl/000/000012.jsonl``."""
    return f"{kind}/{number // 1000:03d}/{number:06d}.{suffix}"


# ---- packed documents

_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
"""The head of a member that names neither a time nor a system, which ``gzip`` does."""


def packed(form: str, line: bytes) -> bytes:
    """Give a document as it lies in its file; a packed one is a gzip member, to be read alone."""
    if form == "jsonl":
        return line
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    tail = zlib.crc32(line).to_bytes(4, "little") + len(line).to_bytes(4, "little")
    return b"".join((_GZIP, packing.compress(line), packing.flush(), tail))


def unpacked(content: bytes) -> bytes:
    """Give a document from what lies in its file.

    Raises:
        ValueError: It is packed and not whole.
    """
    if not content.startswith(_GZIP[:2]):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as bad:
        raise ValueError(str(bad)) from None


# ---- divided tables


def divided_by(form: str) -> tuple[str, ...]:
    """Name the columns that stand in the path of a table and not in it."""
    return tuple(form.split("/")[1:])


def table_of(form: str, number: int, row: Mapping[str, object]) -> str:
    """Name the table of a shard that a row goes into: ``parquet/vendor=NVIDIA/000012.parquet``."""
    columns = divided_by(form)
    if not columns:
        return place_of("parquet", number, "parquet")
    values = (_NOTHING if row[name] is None else str(row[name]) for name in columns)
    pairs = zip(columns, values, strict=True)
    folder = "/".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
    return f"parquet/{folder}/{number:06d}.parquet"


def told_by(path: str) -> Mapping[str, str | None]:
    """Give the columns that the path of a table holds."""
    pairs = (part.partition("=") for part in path.split("/")[1:-1])
    told = {name: unquote(value) for name, mark, value in pairs if mark}
    return {name: None if value == _NOTHING else value for name, value in told.items()}
