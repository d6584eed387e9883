"""One shard: a slice of the plan in, files as bytes out. Nothing here touches a disk.

The same slice gives the same bytes in any process on any machine with the same code and data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.advice import Advisor
from advisor.bulk.batch.formats import (
    TABLE_TEXT,
    Namer,
    divided_by,
    form_of,
    packed,
    row,
    table_bytes,
    table_of,
    texts_of,
)
from advisor.bulk.batch.plan import Item, Shard, canonical
from advisor.bulk.batch.store import File, described, place_of, record_of, sha256_of_lines
from advisor.errors import Problems, UserError
from advisor.knowledge.layers import Stack
from advisor.report import FORMATS, Page
from advisor.report.assembly import document_and_views
from advisor.report.prose import Length, report
from advisor.scenario.settings import Request, request_from
from advisor.units import json_line

if TYPE_CHECKING:
    from advisor.advice.conclusions import Conclusions
    from advisor.advice.document import Advice
    from advisor.report.assembly import Views
    from advisor.scenario.figures import Figure


def report_entry(
    name: str,
    item: Item,
    request: Request,
    doc: Advice,
    files: Mapping[str, Mapping[str, object]],
) -> Mapping[str, object]:
    """Describe a report: its request, the figures a list shows, and where its files are."""
    asked = doc.scenario
    gpu, model = asked.gpu, asked.model
    first = doc.recommendations[0] if doc.recommendations else None
    return {
        "id": name,
        **_stated(item),
        "request": dict(request.stated()),
        "gpu": gpu and gpu.name,
        "vendor": gpu and gpu.vendor,
        "gpus": asked.gpus,
        "model": model.name,
        "family": model.family,
        "precision": asked.precision,
        "context_tokens": asked.context_tokens,
        "batch": asked.batch,
        "kv_cache": asked.kv_cache,
        "framework": asked.framework,
        "state": doc.verdict.state,
        "required_bytes": doc.memory.required_bytes,
        "usable_bytes": doc.memory.usable_bytes,
        "headroom_bytes": doc.memory.headroom_bytes,
        "deficit_bytes": doc.memory.deficit_bytes,
        "decode_tok_s": _speed(doc.speed.decode_tok_s if doc.speed else None),
        "first": first and {"action": first.action, "title": first.title},
        "files": files,
    }


def failure_entry(number: int, item: Item, message: str, *, bug: bool) -> Mapping[str, object]:
    """Describe a scenario that has no report."""
    return {
        "shard": number,
        **_stated(item),
        "request": dict(item.request),
        "bug": bug,
        "error": message,
    }


def _stated(item: Item) -> Mapping[str, object]:
    """Where an explicit request stood in its file."""
    return {"row": {"line": item.line, "id": item.id}} if item.line else {}


def _speed(figure: Figure | None) -> Mapping[str, object] | None:
    if figure is None:
        return None
    return {key: getattr(figure, key) for key in ("estimate", "low", "high", "evidence")}


_MOST_SHOWN = 1000
_TOGETHER = 4
"""Scenarios answered before their reports are written: each part finds its data still at hand."""
_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


class Making(Struct, frozen=True):
    """How reports are made; the same for every shard of a run."""

    advisor: Advisor
    namer: Namer
    formats: tuple[str, ...]
    length: Length
    templates: Stack = None


class Failure(Struct, frozen=True):
    """A scenario without a report."""

    message: str
    bug: bool = False
    """Whether the fault is ours."""


class Report(Struct, frozen=True):
    """One scenario answered; a text that nobody asked for is empty."""

    request: Request
    doc: Advice
    texts: Mapping[str, str]
    """Its text in every format that has files of its own, by name."""


class _Tables(Struct):
    """What is gathered over a shard."""

    jsonl: list[bytes] = field(default_factory=list)
    offset: int = 0
    rows: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)
    """The rows of each table, by its path."""
    files: list[Mapping[str, object]] = field(default_factory=list)
    entries: list[Mapping[str, object]] = field(default_factory=list)
    failures: list[Mapping[str, object]] = field(default_factory=list)


def make_shard(shard: Shard, making: Making) -> Iterator[File]:
    """Make every file of a shard; its record comes last.

    A scenario that goes wrong costs nothing but its own report.
    """
    tables = _Tables()
    items = iter(shard.items)
    while few := tuple(islice(items, _TOGETHER)):
        answered = [_answered(item, making) for item in few]
        for item, answer in zip(few, answered, strict=True):
            made = answer if isinstance(answer, Failure) else _reported(answer, making)
            if isinstance(made, Failure):
                failure = failure_entry(shard.number, item, made.message, bug=made.bug)
                tables.failures.append(failure)
            else:
                yield from _files(shard.number, item, made, making, tables)
    yield from _whole_files(shard.number, making, tables)
    yield _record(shard, tables)


def make_report(item: Item, making: Making) -> Report | Failure:
    """Answer one scenario and write what is asked for; whatever goes wrong is given back."""
    answer = _answered(item, making)
    return answer if isinstance(answer, Failure) else _reported(answer, making)


def _answered(item: Item, making: Making) -> tuple[Request, Conclusions] | Failure:
    try:
        request = request_from(item.request)
        if item.line:
            request = canonical(request, making.advisor.knowledge)
        return request, _advice(request, making)
    except Exception as error:  # noqa: BLE001  one scenario must not cost the others; told at the end
        return _failure(error)


def _reported(answer: tuple[Request, Conclusions], making: Making) -> Report | Failure:
    request, advice = answer
    try:
        doc, views = document_and_views(advice, templates=making.templates)
        texts = _texts(doc, views, making)
    except Exception as error:  # noqa: BLE001  likewise
        return _failure(error)
    return Report(request, doc, texts)


def _failure(error: Exception) -> Failure:
    if isinstance(error, UserError):
        several = error.errors if isinstance(error, Problems) else [error]
        return Failure(" ".join(map(str, several))[:_MOST_SHOWN])
    if isinstance(error, OSError):
        return Failure(f"{error.strerror}: '{error.filename}'."[:_MOST_SHOWN])
    said = f"a bug in advisor: {type(error).__name__}: {error}"
    return Failure(said[:_MOST_SHOWN], bug=True)


def _advice(request: Request, making: Making) -> Conclusions:
    """Answer a request as ``advisor advise`` does for the same length and format."""
    complete = bool(form_of("jsonl", making.formats)) or making.length == "full"
    return making.advisor.advise(request, complete=complete)


def _texts(doc: Advice, views: Views, making: Making) -> Mapping[str, str]:
    """Write the report in the formats that are asked for."""
    table = {TABLE_TEXT} if form_of("parquet", making.formats) else set()
    wanted = texts_of({*making.formats, *table})
    if not wanted:
        return {}
    made = report(doc, making.length, making.templates, views)
    page = Page(doc, making.length, making.templates, made)
    return {name: FORMATS[name].write(page) for name in wanted}


def _files(
    number: int, item: Item, made: Report, making: Making, tables: _Tables
) -> Iterator[File]:
    """Give the files of one report and note it in the shard's tables."""
    name, files = making.namer.path(made.request.stated()), dict[str, Mapping[str, object]]()
    for kind in texts_of(making.formats):
        file = File(f"{kind}/{name}.{FORMATS[kind].suffix}", made.texts[kind].encode())
        files[kind] = described(file)
        yield file
    if form := form_of("jsonl", making.formats):
        line = packed(form, json_line(made.doc))
        place = {"offset": tables.offset, "bytes": len(line)}
        files["jsonl"] = {"path": place_of("jsonl", number, form), **place}
        tables.jsonl.append(line)
        tables.offset += len(line)
    if form := form_of("parquet", making.formats):
        laid_out = row(name, made.doc, made.texts[TABLE_TEXT])
        path = table_of(form, number, laid_out)
        rows = tables.rows.setdefault(path, [])
        files["parquet"] = {"path": path, "row": len(rows)}
        rows.append(laid_out)
    tables.entries.append(report_entry(name, item, made.request, made.doc, files))


def _whole_files(number: int, making: Making, tables: _Tables) -> Iterator[File]:
    if form := form_of("jsonl", making.formats):
        file = File(place_of("jsonl", number, form), b"".join(tables.jsonl))
        tables.files.append(described(file))
        yield file
    for path, rows in tables.rows.items():
        apart = divided_by(form_of("parquet", making.formats))
        file = File(path, table_bytes(rows, apart))
        tables.files.append(described(file))
        yield file


def _record(shard: Shard, tables: _Tables) -> File:
    """One line about the shard, one for each report, one for each failure."""
    listed = (*tables.entries, *tables.failures)
    lines = [f"{_ENCODER.encode(line)}\n".encode("ascii") for line in listed]
    head = {
        "shard": shard.number,
        "scenarios": len(shard.items),
        "reports": len(tables.entries),
        "failed": len(tables.failures),
        "bugs": sum(bool(entry["bug"]) for entry in tables.failures),
        "files": tables.files,
        "sha256": sha256_of_lines(lines),
    }
    first = f"{_ENCODER.encode(head)}\n".encode("ascii")
    return File(record_of(shard.number), b"".join((first, *lines)))
