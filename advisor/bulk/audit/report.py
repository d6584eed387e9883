"""One report held against itself, against its other formats and against a fresh computation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, ValidationError, field

from advisor.bulk.audit.pages import Finding, Kind, Page, broken, markdown_links, read_page
from advisor.bulk.batch.formats import row
from advisor.bulk.batch.manifest import Entry, line_of, read_document
from advisor.bulk.batch.plan import Item
from advisor.bulk.batch.shard import Failure, Making, Report, make_report, report_entry
from advisor.errors import UserError
from advisor.report.sentence_check import contradictions, wrong_numbers, wrong_state
from advisor.report.views import escaped
from advisor.scenario.settings import request_from
from advisor.units import json_line

if TYPE_CHECKING:
    from advisor.advice.document import Advice

_MOST_DIFFERENCES = 3
_MOST_SHOWN = 60
_APART = ("provenance",)
"""What tells how a document was made, not what it says."""
_SPACES = re.compile(r"\s+")
_MARKS = re.compile(r"\\([\\*\[\]<|#>])")


class Stored(Struct):
    """One report as it lies in the folder; what is not there, or cannot be read, is None."""

    entry: Entry
    line: bytes = b""
    """Its result document as it was written."""
    doc: Advice | None = None
    markdown: str | None = None
    html: str | None = None
    row: Mapping[str, Any] | None = None
    page: Page | None = None
    problems: list[Finding] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The report's name."""
        return str(self.entry["id"])

    def found(self, kind: Kind, message: str) -> Finding:
        """Make a finding about this report."""
        return Finding(kind, self.name, message)


Tables = Mapping[str, list[Entry]]
"""The rows of a shard's Parquet files, by path."""


def read_report(root: Path, entry: Entry, tables: Tables) -> Stored:
    """Read everything that belongs to a report, and note what cannot be read."""
    stored = Stored(entry)
    stored.markdown = _text(root, stored, "markdown")
    stored.html = _text(root, stored, "html")
    stored.page = read_page(stored.html) if stored.html is not None else None
    if "jsonl" in entry["files"]:
        try:
            place = entry["files"]["jsonl"]
            stored.line = line_of(root / place["path"], place["offset"], place["bytes"])
            stored.doc = read_document(stored.line)
        except ValidationError as bad:
            stored.problems.append(stored.found("damaged", f"its document cannot be read: {bad}"))
        except (OSError, ValueError) as bad:
            path = str(entry["files"]["jsonl"]["path"])
            stored.problems.append(
                Finding("damaged", path, f"no document of '{stored.name}': {bad}")
            )
    place = entry["files"].get("parquet")
    rows = tables.get(place["path"], []) if place else []
    if place and place["row"] < len(rows):
        stored.row = rows[place["row"]]
    return stored


def _text(root: Path, stored: Stored, kind: str) -> str | None:
    file = stored.entry["files"].get(kind)
    if file is None:
        return None
    path = str(file["path"])
    try:
        content = (root / path).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        stored.problems.append(Finding("damaged", path, "its content is not what was written"))
    return content.decode("utf-8", "replace")


def check_report(root: Path, stored: Stored, making: Making, *, fresh: bool) -> Iterator[Finding]:
    """Find everything that is wrong with one report.

    ``fresh`` says whether ``making`` is what the batch was made from.
    """
    yield from stored.problems
    made = make_report(Item(stored.entry["request"]), making)
    doc = stored.doc
    if doc is None and fresh and isinstance(made, Report):
        doc = made.doc
    if doc is not None:
        try:
            yield from _contradictions(stored, doc)
        except (LookupError, TypeError, ValueError, AttributeError) as bad:
            yield stored.found("damaged", f"its document cannot be read: {_said(bad)}")
    yield from _compared(stored, made, fresh=fresh)
    yield from _links(root, stored)


def _said(bad: Exception) -> str:
    return f"{type(bad).__name__} {bad}".strip()


def _contradictions(stored: Stored, doc: Advice) -> Iterator[Finding]:
    """Verdict, sentences and figures of one scenario, in all its formats."""
    for problem in contradictions(doc):
        yield stored.found("contradiction", problem)
    yield from _entry_against(stored, doc)
    if stored.row is not None:
        yield from _row_against(stored, doc)
    if stored.markdown is not None:
        text = _MARKS.sub(r"\1", stored.markdown)
        said = escaped(doc.verdict.sentence) in stored.markdown
        yield from _text_against(stored, doc, "Markdown", text, said=said)
    if stored.page is not None:
        text = stored.page.text
        said = _one_line(doc.verdict.sentence) in _one_line(text)
        yield from _text_against(stored, doc, "HTML", text, said=said)
        if doc.verdict.state not in stored.page.classes:
            yield stored.found("contradiction", "HTML: coloured as another verdict")


def _text_against(
    stored: Stored, doc: Advice, form: str, text: str, *, said: bool
) -> Iterator[Finding]:
    if not said:
        yield stored.found("contradiction", f"{form}: gives another verdict than the document")
    for problem in (*wrong_numbers(doc, form, text), *wrong_state(doc, form, _opening(text))):
        yield stored.found("contradiction", problem)


def _opening(text: str) -> str:
    """The title and the verdict; what follows also tells of changed setups."""
    return "\n".join([line for line in text.splitlines() if line.strip()][:2])


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text)


def _entry_against(stored: Stored, doc: Advice) -> Iterator[Finding]:
    try:
        request = request_from(stored.entry["request"])
    except UserError as bad:
        yield stored.found("contradiction", f"the index holds no request: {bad}")
        return
    expected = report_entry(stored.name, Item({}), request, doc, {})
    for key, value in expected.items():
        if key != "files" and stored.entry.get(key) != value:
            yield stored.found(
                "contradiction",
                f"index and document differ: {key} is {_shown(stored.entry.get(key))} and "
                f"{_shown(value)}",
            )


def _row_against(stored: Stored, doc: Advice) -> Iterator[Finding]:
    assert stored.row is not None
    text = stored.row.get("report_markdown")
    for key, value in row(stored.name, doc, str(text)).items():
        if stored.row.get(key) != value:
            yield stored.found(
                "contradiction",
                f"table and document differ: {key} is {_shown(stored.row.get(key))} and "
                f"{_shown(value)}",
            )
    if stored.markdown is not None and text != stored.markdown:
        yield stored.found("contradiction", "table and Markdown file hold different texts")


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def _compared(stored: Stored, made: Report | Failure, *, fresh: bool) -> Iterator[Finding]:
    """Hold a report against one made now."""
    kind: Kind = "wrong" if fresh else "outdated"
    if isinstance(made, Failure):
        yield stored.found(kind, f"it cannot be made again: {made.message}")
        return
    found = [*_different_document(stored, made)]
    if not found:
        found = [*_different_texts(stored, made)]
    if found:
        yield stored.found(kind, "; ".join(found))


def _different_document(stored: Stored, made: Report) -> Iterator[str]:
    if stored.doc is None:
        return
    line = json_line(made.doc)
    if stored.line == line:
        return
    then, now = (
        {key: value for key, value in json.loads(text).items() if key not in _APART}
        for text in (stored.line, line)
    )
    told = [*islice(differing(then, now), _MOST_DIFFERENCES + 1)]
    yield from told[:_MOST_DIFFERENCES]
    if len(told) > _MOST_DIFFERENCES:
        yield "and more"


def differing(then: object, now: object, where: str = "") -> Iterator[str]:
    """Say where two documents differ: ``verdict.state: "fits" then, "tight" now``."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*_first(now), *now, *then]):
            inner = f"{where}.{key}" if where else str(key)
            yield from differing(then.get(key), now.get(key), inner)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for place, (one, other) in enumerate(zip(then, now, strict=True), start=1):
            yield from differing(one, other, f"{where} {place}")
    elif then != now:
        yield f"{where}: {_short(then)} then, {_short(now)} now"


def _first(now: Mapping[str, object]) -> list[str]:
    """What matters most to a reader is told first."""
    return [key for key in ("verdict", "memory", "speed", "recommendations") if key in now]


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    return "nothing" if value is None else _shown(value)


def _different_texts(stored: Stored, made: Report) -> Iterator[str]:
    pairs = (("Markdown", "markdown", stored.markdown), ("HTML", "html", stored.html))
    for form, name, then in pairs:
        now = made.texts.get(name)
        if then is not None and now and _plain(then) != _plain(now):
            yield f"{form}: {_first_line(_plain(then), _plain(now))}"


def _plain(text: str) -> list[str]:
    """The lines of a text but for the one that tells how it was made."""
    return [line for line in text.splitlines() if "rules " not in line or "knowledge " not in line]


def _first_line(then: list[str], now: list[str]) -> str:
    for one, other in zip(then, now, strict=False):
        if one != other:
            return f"{_shown(one)} then, {_shown(other)} now"
    return f"{len(then)} lines then, {len(now)} now"


def _links(root: Path, stored: Stored) -> Iterator[Finding]:
    files = stored.entry["files"]
    texts: list[tuple[str, list[str], frozenset[str]]] = []
    if stored.markdown is not None:
        texts.append((files["markdown"]["path"], markdown_links(stored.markdown), frozenset()))
    if stored.page is not None:
        texts.append((files["html"]["path"], stored.page.links, frozenset(stored.page.ids)))
    for path, links, own in texts:

        def ids(target: str, path: str = path, own: frozenset[str] = own) -> frozenset[str]:
            return own if target == path else frozenset()

        for problem in broken(path, links, lambda target: (root / target).is_file(), ids):
            yield Finding("link", path, problem)


def text_of(stored: Stored) -> str | None:
    """Give the text of a report in the plainest form there is."""
    if stored.markdown is not None:
        return stored.markdown
    if stored.row is not None:
        return cast("str | None", stored.row.get("report_markdown")) or None
    return stored.page.text if stored.page is not None else None
