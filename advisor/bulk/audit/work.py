"""What a process of an audit does: check some reports of one shard."""

from __future__ import annotations

import hashlib
from array import array
from functools import lru_cache
from pathlib import Path

from msgspec import Struct, field

from advisor.advice.pipeline import Advisor
from advisor.bulk.audit.finding import Finding
from advisor.bulk.audit.report import check_report, read_report, text_of
from advisor.bulk.audit.similarity import runs, sentences, signature
from advisor.bulk.batch import huge_pages
from advisor.bulk.batch.file_names import Namer
from advisor.bulk.batch.readback import Entry, read_record, sha256_of, table_rows
from advisor.bulk.batch.shard import Making, place_of
from advisor.report.prose import Length


class Setup(Struct, frozen=True):
    """What every process of an audit is told."""

    root: str
    formats: tuple[str, ...]
    length: Length
    fresh: bool
    """Whether rules, knowledge, templates and program are those the batch was made with."""
    rules: str | None = None
    templates: str | None = None
    knowledge: str | None = None
    measurements: str | None = None

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.root)


class Task(Struct, frozen=True):
    """Reports of one shard to be checked, by their place in its record; None is all."""

    number: int
    places: tuple[int, ...] | None
    compared: bool
    """Whether their texts are compared with those of others."""
    counted: bool
    """Whether their sentences are counted, too."""


class Text(Struct, frozen=True):
    """One text, as far as others are held against it."""

    name: str
    digest: bytes
    bins: array[int]
    runs: array[int] | None = None
    sentences: tuple[str, ...] = ()


class Checked(Struct):
    """What came of a task."""

    reports: int = 0
    findings: list[Finding] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    unread: str = ""
    """Why the table of the shard was not read."""


def check_shard(setup: Setup, task: Task) -> Checked:
    """Check reports of one shard; a shard without a whole record is told elsewhere.

    Raises:
        UserError: Rules, knowledge or templates cannot be loaded.
    """
    checked = Checked()
    record = read_record(setup.folder, task.number)
    if record is None:
        return checked
    head, lines = record
    rows = _table(setup, task, head, checked)
    chosen = range(head["reports"]) if task.places is None else task.places
    for place in chosen:
        if place < head["reports"]:
            _check(setup, task, lines[place], rows, checked)
    huge_pages.after_shard()
    return checked


def _check(
    setup: Setup, task: Task, entry: Entry, rows: list[Entry] | None, checked: Checked
) -> None:
    checked.reports += 1
    stored = read_report(setup.folder, entry, rows)
    checked.findings += check_report(setup.folder, stored, _making(setup), fresh=setup.fresh)
    text = text_of(stored) if task.compared else None
    if text is not None:
        found = runs(text)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]
        counted = (array("I", sorted(found)), tuple(sentences(text))) if task.counted else ()
        checked.texts.append(Text(stored.name, digest, signature(found), *counted))


def _table(setup: Setup, task: Task, head: Entry, checked: Checked) -> list[Entry] | None:
    for file in head["files"] if task.places is None else ():
        found = sha256_of(setup.folder / str(file["path"]))
        if found is not None and found != file["sha256"]:
            said = "its content is not what was written"
            checked.findings.append(Finding("damaged", str(file["path"]), said))
    if "parquet" not in setup.formats:
        return None
    try:
        rows = table_rows(setup.folder, task.number)
    except (OSError, ValueError) as bad:
        path = place_of("parquet", task.number, "parquet")
        checked.findings.append(Finding("damaged", path, f"cannot be read: {bad}"))
        return None
    if rows is None:
        checked.unread = "Parquet was not read: pyarrow is not installed"
    elif len(rows) != head["reports"]:
        path = place_of("parquet", task.number, "parquet")
        said = f"{len(rows)} rows for {head['reports']} reports"
        checked.findings.append(Finding("contradiction", path, said))
    return rows


@lru_cache(maxsize=1)
def _making(setup: Setup) -> Making:
    named = (setup.rules, setup.templates, setup.knowledge, setup.measurements)
    rules, templates, knowledge, own = (Path(name) if name else None for name in named)
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge, measurements=own)
    texts = tuple(kind for kind in setup.formats if kind != "parquet")
    return Making(advisor, Namer.of(advisor.knowledge), texts, setup.length, templates)
