"""Files of a batch: how each format is packed and divided, where it lies, and what it is called.

The name of a report is readable, the same on every machine and safe on every file system. It
depends on the request alone. Names of the knowledge base are told apart by their readable form
(checked here); whatever else stands in a request, or was cut off, adds a hash.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from msgspec import Struct

from advisor.advice.configuration import MemoryDoc
from advisor.advice.document import Advice
from advisor.bulk.batch.store import place_of
from advisor.knowledge.types import Knowledge
from advisor.report import FORMATS

if TYPE_CHECKING:
    from advisor.scenario.figures import Figure

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


_WORDS, _WHOLE, _FIGURE = "string", "int64", "float64"
_COLUMNS: Mapping[str, str] = {
    "id": _WORDS,
    "request": _WORDS,
    "gpu": _WORDS,
    "vendor": _WORDS,
    "gpus": _WHOLE,
    "model": _WORDS,
    "family": _WORDS,
    "parameters": _WHOLE,
    "precision": _WORDS,
    "context_tokens": _WHOLE,
    "batch": _WHOLE,
    "kv_cache": _WORDS,
    "framework": _WORDS,
    "prefer": _WORDS,
    "state": _WORDS,
    "verdict": _WORDS,
    "capacity_bytes": _WHOLE,
    "usable_bytes": _WHOLE,
    "required_bytes": _WHOLE,
    "deficit_bytes": _WHOLE,
    "headroom_bytes": _WHOLE,
    "weights_bytes": _WHOLE,
    "kv_cache_bytes": _WHOLE,
    "compute_buffer_bytes": _WHOLE,
    "overhead_bytes": _WHOLE,
    "host_weights_bytes": _WHOLE,
    "host_kv_cache_bytes": _WHOLE,
    "max_context_tokens": _WHOLE,
    "max_batch": _WHOLE,
    "decode_tok_s": _FIGURE,
    "decode_low_tok_s": _FIGURE,
    "decode_high_tok_s": _FIGURE,
    "decode_evidence": _WORDS,
    "prefill_tok_s": _FIGURE,
    "aggregate_tok_s": _FIGURE,
    "bound_by": _WORDS,
    "recommendations": _WHOLE,
    "first_action": _WORDS,
    "first_title": _WORDS,
    "first_change": _WORDS,
    "first_command": _WORDS,
    "report_markdown": _WORDS,
}
_ASKED = (
    "gpus", "precision", "context_tokens", "batch", "kv_cache", "framework", "prefer",
)  # fmt: skip


def row(name: str, doc: Advice, markdown: str) -> Mapping[str, object]:
    """Lay a report out flat; unknown figures are None."""
    asked, memory = doc.scenario, doc.memory
    gpu, model = asked.gpu, asked.model
    return {
        "id": name,
        "request": _text(doc.request),
        "gpu": gpu and gpu.name,
        "vendor": gpu and gpu.vendor,
        "model": model.name,
        "family": model.family,
        "parameters": model.parameters,
        "state": doc.verdict.state,
        "verdict": doc.verdict.sentence,
        "report_markdown": markdown,
        **{key: getattr(asked, key) for key in _ASKED},
        **{key: getattr(memory, key) for key in MemoryDoc.__struct_fields__ if key in _COLUMNS},
        **_speed(doc),
        **_first(doc),
    }


def _speed(doc: Advice) -> Mapping[str, object]:
    speed = doc.speed
    if speed is None:
        return {}
    decode = speed.decode_tok_s
    return {
        "decode_tok_s": decode.estimate,
        "decode_low_tok_s": decode.low,
        "decode_high_tok_s": decode.high,
        "decode_evidence": decode.evidence,
        "prefill_tok_s": _estimate(speed.prefill_tok_s),
        "aggregate_tok_s": _estimate(speed.aggregate_tok_s),
        "bound_by": speed.bound_by,
    }


def _estimate(figure: Figure | None) -> float | None:
    return figure.estimate if figure else None


def _first(doc: Advice) -> Mapping[str, object]:
    items = doc.recommendations
    if not items:
        return {"recommendations": 0}
    return {
        "recommendations": len(items),
        "first_action": items[0].action,
        "first_title": items[0].title,
        "first_change": _text(items[0].change),
        "first_command": items[0].command,
    }


def _text(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def table_bytes(rows: Sequence[Mapping[str, object]], apart: Collection[str] = ()) -> bytes:
    """Write rows as one Parquet file, without the columns that its path holds."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    kept = {n: pa.type_for_alias(kind) for n, kind in _COLUMNS.items() if n not in apart}
    columns = {n: pa.array([one.get(n) for one in rows], type=kind) for n, kind in kept.items()}
    out = BytesIO()
    pq.write_table(pa.table(columns, schema=pa.schema(kept)), out, compression="zstd")
    return out.getvalue()


# ---- names of reports

MOST_STEM, MOST_FOLDER = 110, 60
"""Longest file name without its ending, and longest folder name, in characters (ASCII)."""
_OTHER = re.compile(r"[^a-z0-9.]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that Windows keeps for devices, with any ending."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*")
_SHOWN = {"gpus": "x{}", "context": "{}", "batch": "b{}", "kv_cache": "kv-{}"}
_BARE = ("precision", "framework", "prefer")


def slug(text: str) -> str:
    """Write a text in lower-case letters, digits, dots and hyphens; may be empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _OTHER.sub("-", plain.casefold()).strip("-.")


class Namer(Struct, frozen=True):
    """Names reports; ``known`` are the texts that their slug alone tells apart."""

    known: frozenset[str]

    @classmethod
    def of(cls, knowledge: Knowledge) -> Namer:
        """Take the names of a knowledge base."""
        known: set[str] = set()
        for table in knowledge.names().values():
            count = Counter(slug(name) for name in table)
            known.update(name for name in table if count[slug(name)] == 1)
        return cls(frozenset(known))

    def path(self, request: Mapping[str, object]) -> str:
        """Name a report by its request: ``meta-llama-3-8b/geforce-rtx-4090_q4-k-m_4096``.

        The request has its keys in canonical spelling.
        """
        given = {key: value for key, value in sorted(request.items()) if value is not None}
        model = str(given.pop("model", given.pop("config", "")))
        folder = _bounded(slug(model), MOST_FOLDER, model, exact=model in self.known)
        parts = [_part(key, value) for key, value in _in_order(given)]
        exact = all(
            value in self.known or slug(value) == value
            for value in given.values()
            if isinstance(value, str)
        )
        stem = "_".join(filter(None, parts))
        if not _says_all(stem, MOST_STEM, exact=exact):
            whole = json.dumps(request, sort_keys=True, ensure_ascii=True)
            stem = _bounded(stem, MOST_STEM, whole, exact=exact)
        return f"{folder}/{stem}"


def _in_order(given: Mapping[str, object]) -> list[tuple[str, object]]:
    first = ("gpu", "gpus", "precision", "context", "batch", "kv_cache", "framework", "prefer")
    shown = [(key, given[key]) for key in first if key in given]
    return shown + [(key, value) for key, value in given.items() if key not in first]


def _part(key: str, value: object) -> str:
    text = slug(str(value))
    if key == "gpu" or key in _BARE:
        return text
    return _SHOWN[key].format(text) if key in _SHOWN else f"{slug(key)}-{text}"


def _says_all(text: str, most: int, *, exact: bool) -> bool:
    return exact and text != "" and len(text) <= most and not _RESERVED.match(text)


def _bounded(text: str, most: int, whole: str, *, exact: bool) -> str:
    """Cut a name to its longest, and add a hash unless it says everything."""
    if _says_all(text, most, exact=exact):
        return text
    text = f"x-{text}" if _RESERVED.match(text) else text
    mark = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return f"{text[: most - len(mark) - 1].rstrip('-_.')}-{mark}".lstrip("-_.")


def folder_names(texts: Collection[str]) -> Mapping[str, str]:
    """Name each of some texts apart from the others, safe on every file system.

    A text whose readable form stands alone keeps it; others add a hash.
    """
    count = Counter(slug(text) for text in texts)
    return {
        text: _bounded(slug(text), MOST_FOLDER, text, exact=count[slug(text)] == 1)
        for text in texts
    }


def is_name(text: str) -> bool:
    """Whether a text can be the name of a report: a folder and a file, nothing else."""
    return _NAME.fullmatch(text) is not None
