"""Checks of what was published: a batch or a site against itself and against a fresh answer."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.bulk.audit.folder import (
    Alike,
    Common,
    check_folder,
    failures,
    overlap,
    runs,
    sentences,
    signature,
    site_of,
)
from advisor.bulk.audit.pages import Finding, Findings, check_site
from advisor.bulk.audit.report import Tables, check_report, read_report, text_of
from advisor.bulk.batch import check_same, each
from advisor.bulk.batch.formats import Namer, kind_of
from advisor.bulk.batch.manifest import (
    Batch,
    Entry,
    Inputs,
    changed_files,
    differences,
    read_record,
    table_rows,
)
from advisor.bulk.batch.shard import Making
from advisor.bulk.batch.store import sha256_of
from advisor.bulk.batch.worker import Place
from advisor.knowledge.layers import UserFiles
from advisor.report.prose import Length


class Setup(Struct, frozen=True):
    """What every process of an audit is told."""

    root: str
    formats: tuple[str, ...]
    length: Length
    fresh: bool
    """Whether rules, knowledge, templates and program are those the batch was made with."""
    user: UserFiles = UserFiles()
    mark: str = ""
    """By which a worker elsewhere knows that it sees the same; see ``mark_of``."""

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
    if setup.mark:
        check_same(setup.folder, setup.user, setup.mark)
    record = read_record(setup.folder, task.number)
    if record is None:
        return checked
    head, lines = record
    rows = _tables(setup, task, head, lines, checked)
    chosen = range(head["reports"]) if task.places is None else task.places
    for place in chosen:
        if place < head["reports"]:
            _check(setup, task, lines[place], rows, checked)
    return checked


def _check(setup: Setup, task: Task, entry: Entry, rows: Tables, checked: Checked) -> None:
    checked.reports += 1
    stored = read_report(setup.folder, entry, rows)
    checked.findings += check_report(setup.folder, stored, _making(setup), fresh=setup.fresh)
    text = text_of(stored) if task.compared else None
    if text is not None:
        found = runs(text)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]
        counted = (array("I", sorted(found)), tuple(sentences(text))) if task.counted else ()
        checked.texts.append(Text(stored.name, digest, signature(found), *counted))


def _tables(setup: Setup, task: Task, head: Entry, lines: list[Entry], checked: Checked) -> Tables:
    for file in head["files"] if task.places is None else ():
        found = sha256_of(setup.folder / str(file["path"]))
        if found is not None and found != file["sha256"]:
            said = "its content is not what was written"
            checked.findings.append(Finding("damaged", str(file["path"]), said))
    placed = (line.get("files", {}).get("parquet") for line in lines)
    tables = {}
    for path, reports in Counter(str(place["path"]) for place in placed if place).items():
        try:
            rows = table_rows(setup.folder, path)
        except (OSError, ValueError) as bad:
            checked.findings.append(Finding("damaged", path, f"cannot be read: {bad}"))
            continue
        if rows is None:
            checked.unread = "Parquet was not read: pyarrow is not installed"
            break
        if len(rows) != reports:
            said = f"{len(rows)} rows for {reports} reports"
            checked.findings.append(Finding("contradiction", path, said))
        tables[path] = rows
    return tables


@lru_cache(maxsize=1)
def _making(setup: Setup) -> Making:
    advisor = Advisor.with_files(setup.user)
    texts = tuple(form for form in setup.formats if kind_of(form) != "parquet")
    return Making(advisor, Namer.of(advisor.knowledge), texts, setup.length, setup.user.templates)


_MOST_COMPARED = 50_000
"""Texts held against one another; a larger folder is sampled."""
_MOST_COUNTED = 400
"""Texts whose sentences are counted."""
_PAIRS, _GROUPS, _REPEATED = 5, 20, 5
_NAMED_FILES = 20


class Pair(Struct, frozen=True):
    """Two reports that read alike."""

    one: str
    other: str
    overlap: float
    """Share of runs of five words in both, 0 to 1."""


class Likeness(Struct, frozen=True):
    """How alike the texts are; this is told, and is no fault."""

    compared: int
    common: float | None
    """Share of an average report that stands in more than half of all reports."""
    counted: int
    repeated: Mapping[str, float]
    groups: list[list[str]]
    pairs: list[Pair]


class Result(Struct):
    """Everything an audit has found out."""

    reports: int
    failed: int = 0
    """Scenarios of those that have no report, as errors.jsonl lists them."""
    checked: int = 0
    findings: Findings = field(default_factory=Findings)
    likeness: Likeness | None = None
    unread: set[str] = field(default_factory=set)
    pages: int = 0


class Now(Struct, frozen=True):
    """What reports would be made from now."""

    made_by: Mapping[str, str | None]
    inputs: Inputs


class _Texts(Struct):
    """Texts as they come in, in the order of the plan."""

    alike: Alike
    common: Common = field(default_factory=Common)
    seen: dict[bytes, str] = field(default_factory=dict)

    def add(self, checked: Checked) -> Iterator[Finding]:
        for text in checked.texts:
            first = self.seen.setdefault(text.digest, text.name)
            if first != text.name:
                yield Finding("duplicate", text.name, f"the same text as '{first}'")
            self.alike.add(text.name, text.bins)
            if text.runs is not None:
                self.common.add(text.runs, text.sentences)


def audit(
    batch: Batch,
    setup: Setup,
    now: Now,
    *,
    sample: int | None,
    place: Place,
    threshold: float,
    tell: Callable[[str, int, int], None],
) -> Result:
    """Check an output folder.

    The contents of ``sample`` reports are checked, spread evenly (None: of all); texts that overlap
    at least ``threshold`` (0 to 1) are told as alike. ``tell`` is called with what is done, how
    much of it, and how much there is.

    Raises:
        UserError: Rules, knowledge or templates cannot be loaded.
    """
    result = Result(int(batch.manifest["scenarios"]), failures(batch.root))
    stale = [*stale_findings(batch, now)]
    result.findings.add(stale)
    result.findings.add(check_folder(batch, lambda done: tell("files", done, batch.shards)))
    texts = _Texts(Alike(threshold))
    tasks = [*_tasks(batch, sample)]
    fresh = replace(setup, fresh=not stale)
    for done, checked in enumerate(each(place, partial(check_shard, fresh), tasks), start=1):
        result.checked += checked.reports
        result.findings.add(checked.findings)
        result.findings.add(texts.add(checked))
        result.unread |= {checked.unread} - {""}
        tell("reports", done, len(tasks))
    if texts.alike.names:
        result.likeness = _likeness(batch, texts)
    site = site_of(batch)
    if site is not None:
        result.pages = _pages(site, result, tell)
    return result


def _pages(site: Path, result: Result, tell: Callable[[str, int, int], None]) -> int:
    found, pages = check_site(site, lambda done, of: tell("pages", done, of))
    result.findings.add(replace(one, where=f"{site.name}/{one.where}") for one in found)
    return pages


def stale_findings(batch: Batch, now: Now) -> Iterator[Finding]:
    """Say what the batch was made from that is different now, files included."""
    then = {key: batch.manifest.get(key) for key in now.made_by}
    for clause in differences(then, now.made_by):
        yield Finding("stale", "manifest.json", clause)
    inputs = batch.manifest.get("inputs")
    if not isinstance(inputs, dict):
        return
    files = [*changed_files(inputs, now.inputs)]
    yield from (Finding("stale", "manifest.json", name) for name in files[:_NAMED_FILES])
    if files[_NAMED_FILES:]:
        more = len(files) - _NAMED_FILES
        yield Finding("stale", "manifest.json", f"and {more} more files")


def _tasks(batch: Batch, sample: int | None) -> Iterator[Task]:
    """Cut the work into shards; a sample is spread evenly over the plan."""
    total, size = int(batch.manifest["scenarios"]), int(batch.manifest["shard_size"])
    if sample is None or sample >= total:
        compared_every = -(-total // _MOST_COMPARED)
        counted_every = max(-(-total // _MOST_COUNTED) // size, 1)
        for number in range(batch.shards):
            compared = number % compared_every == 0
            yield Task(number, None, compared, compared and number % counted_every == 0)
        return
    by_shard: dict[int, list[int]] = {}
    for at in range(sample):
        number, place = divmod((2 * at + 1) * total // (2 * sample), size)
        by_shard.setdefault(number, []).append(place)
    compared_every = -(-sample // _MOST_COMPARED)
    counted_every = -(-sample // _MOST_COUNTED)
    for at, (number, places) in enumerate(sorted(by_shard.items())):
        compared = at % compared_every == 0
        yield Task(number, tuple(places), compared, compared and at % counted_every == 0)


def _likeness(batch: Batch, texts: _Texts) -> Likeness:
    closest = texts.alike.closest(_PAIRS)
    read = dict(_texts_of(batch, {name for pair in closest for name in pair}))
    pairs = [
        Pair(one, other, overlap(runs(read[one]), runs(read[other])))
        for one, other in closest
        if one in read and other in read
    ]
    return Likeness(
        compared=len(texts.alike.names),
        common=texts.common.share(),
        counted=texts.common.texts,
        repeated=texts.common.repeated(_REPEATED),
        groups=texts.alike.groups()[:_GROUPS],
        pairs=sorted(pairs, key=lambda pair: (-pair.overlap, pair.one)),
    )


def _texts_of(batch: Batch, names: set[str]) -> Iterator[tuple[str, str]]:
    """Read a few texts again, so that what is told of them is exact."""
    for number in range(batch.shards):
        record = read_record(batch.root, number) if names else None
        for entry in record[1] if record else ():
            if entry.get("id") in names:
                names.discard(entry["id"])
                path = entry["files"].get("parquet", {}).get("path")
                rows = table_rows(batch.root, path) if path else None
                text = text_of(read_report(batch.root, entry, {path: rows} if rows else {}))
                if text is not None:
                    yield entry["id"], text
