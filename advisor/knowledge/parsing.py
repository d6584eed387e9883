"""Knowledge files -> records, every problem collected; a warm start does without."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

from msgspec import Raw, Struct, json
from msgspec.structs import asdict, replace

from advisor.errors import KnowledgeError, Source, UserError, did_you_mean
from advisor.knowledge import catalogue, overlay
from advisor.knowledge.file_records import (
    CardWords,
    Declared,
    Multiprocessor,
    Policy,
    ProgramRecord,
    SecondCard,
    UsualCard,
    check_formats,
    finished_card,
    finished_model,
)
from advisor.knowledge.index import build_index, named
from advisor.knowledge.merit import Board, Merits
from advisor.knowledge.merit_scale import FILE, NUMBERS, CardNames, Machine, stored_merits
from advisor.knowledge.plausibility import check_cards, check_models, check_stored
from advisor.knowledge.programs import Capability
from advisor.knowledge.record_links import (
    Read,
    check_names,
    link_capabilities,
    link_frameworks,
    link_policies,
    link_programs,
    names_of,
    report_shared_names,
)
from advisor.knowledge.stacked_files import Files, files_of_user, gone_problems, unread_problems
from advisor.knowledge.types import Format, Framework, GgmlType, Gpu, Knowledge, KvType, ModelRecord
from advisor.knowledge.validation import Entry, record_of, report_duplicates
from advisor.yamlfile import read_yaml

_R = TypeVar("_R", bound=Struct)
_ID = re.compile(r"[a-z0-9][a-z0-9.-]*")
_COLUMNS = (
    "gpu", "model", "precision", "framework", "backend", "gpus", "batch", "cache", "depth_tokens",
    "tok_s", "source", "date",
)  # fmt: skip
_NEEDED = tuple(name for name in _COLUMNS if name != "cache")
_SEPARATOR = "\t"


def parse(files: Mapping[str, bytes], problems: list[UserError]) -> Knowledge:
    """Read every record of the files, checked; ``sha256`` is left empty.

    ``problems`` takes what is wrong; such a field is left at its default.
    """
    problems += unread_problems(files)
    reading = _Reading(files, overlay.source_ids(files), problems)
    seen = reading.sources()
    cards, models = reading.cards(), reading.models()
    report_shared_names(cards, models)
    runtime = reading.runtime()
    for model in models:
        check_formats(model.record, model.entry, runtime.formats)
    user = files_of_user(files)
    check_cards(cards, user)
    check_models(models, runtime.runners, user)
    gpus, known = _table(cards), _table(models)
    usual = reading.listed_cards("usual_cards.yaml", UsualCard, "usual_card", gpus)
    said = CardNames(
        tuple(one.name for one in usual),
        tuple(one.name for one in usual if one.of_memory),
        reading.card_words(),
        reading.machines(gpus),
    )
    policy = reading.policy()
    parts = {
        **asdict(build_index(map(named, gpus.values()), map(named, known.values()))),
        **catalogue.groups(gpus.values(), known.values()),
        "card_names": said,
        "seen": seen,
        "merit": reading.merit(known, policy),
    }
    return Knowledge(
        gpus,
        known,
        runtime.ggml_types,
        runtime.formats,
        runtime.kv_types,
        runtime.frameworks,
        policy,
        calibration_in(files, problems),
        "",
        {name: Raw(json.encode(part)) for name, part in parts.items()},
        files.replaced if isinstance(files, Files) else {},
        files.off if isinstance(files, Files) else {},
        tuple(
            one.name
            for one in reading.listed_cards("second_cards.yaml", SecondCard, "second_card", gpus)
        ),
    )


class _Runtime(Struct):
    ggml_types: Mapping[str, GgmlType]
    formats: Mapping[str, Format]
    kv_types: Mapping[str, KvType]
    frameworks: Mapping[str, Framework]
    runners: Sequence[Read[Framework]]


class _Reading(Struct):
    """Files that are read, the sources they may name, and what is wrong so far."""

    files: Mapping[str, bytes]
    ids: frozenset[str]
    problems: list[UserError]

    def read(self, where: str, kind: type[_R]) -> list[Read[_R]]:
        """Read the records of a table or folder."""
        entries = overlay.entries_of(self.files, where, self.problems)
        return [Read(record_of(kind, entry, self.ids), entry) for entry in entries]

    def sources(self) -> dict[str, str]:
        """Collect what is wrong in the declarations of sources; give the date of each."""
        declared = self.read("sources", Declared)
        for read in declared:
            if not _ID.fullmatch(read.entry.name):
                read.entry.problem("an id has lower-case letters, digits, dots and hyphens only")
        report_duplicates([read.entry for read in declared], "source", self.problems)
        return {read.record.name: read.record.as_of for read in declared}

    def cards(self) -> list[Read[Gpu]]:
        """Read gpus/ with the multiprocessors of each card."""
        capabilities = self.read("compute_capabilities", Multiprocessor)
        cores = {each.record.capability: each.record.cores for each in capabilities}
        found = self.read("gpus", Gpu)
        for card in found:
            card.record = finished_card(card.record, card.entry, cores)
        return _unique(found)

    def models(self) -> list[Read[ModelRecord]]:
        """Read models/."""
        found = self.read("models", ModelRecord)
        for model in found:
            model.record = finished_model(model.record, model.entry)
        return _unique(found)

    def runtime(self) -> _Runtime:
        """Read formats, cache types and frameworks with their programs."""
        ggml, formats = self.read("ggml_types", GgmlType), self.read("formats", Format)
        kinds, frameworks = self.read("kv_types", KvType), self.read("frameworks", Framework)
        programs = self.read("commands", ProgramRecord)
        link_frameworks(frameworks, names_of(formats), names_of(kinds))
        link_programs(programs, frameworks, names_of(formats), names_of(kinds))
        cells = self.read("capabilities", Capability)
        link_capabilities(cells, frameworks)
        for table in (ggml, formats, kinds, frameworks, programs, cells):
            self._report_duplicates(table)
        check_names(formats, frameworks, self.problems)
        check_stored(formats, kinds, ggml, files_of_user(self.files))
        tables = (_table(ggml), _table(formats), _table(kinds), _table(frameworks))
        return _Runtime(*tables, frameworks)

    def policy(self) -> dict[str, float]:
        """Read the named numbers, in base units."""
        found = self.read("policy", Policy)
        self._report_duplicates(found)
        return link_policies(found, files_of_user(self.files))

    def merit(self, models: Mapping[str, ModelRecord], policy: Mapping[str, float]) -> Merits:
        """Read the boards and their figures, put on one scale for each use."""
        before = len(self.problems)
        boards = _table(_unique(self.read("boards", Board)))
        if len(self.problems) > before or not policy.keys() >= NUMBERS:
            return Merits()  # told already, and no scale without them
        return stored_merits(self.files.get(FILE), boards, models, policy, self.problems)

    def listed_cards(
        self, where: str, kind: type[_R], key: str, gpus: Mapping[str, Gpu]
    ) -> Sequence[_R]:
        """Read a list of cards, in file order."""
        content = self.files.get(where)
        if content is None:
            return ()
        entries = list(overlay.entries_in(content, where, key, self.problems))
        read = [(entry, record_of(kind, entry, self.ids)) for entry in entries]
        for entry in entries:
            self._check_card(entry, entry.name, gpus)
        return [record for entry, record in read if entry.name in gpus]

    def card_words(self) -> tuple[str, ...]:
        """Read the words beside a card's name that mean nothing."""
        return tuple(w for read in self.read("card_words", CardWords) for w in read.record.words)

    def machines(self, gpus: Mapping[str, Gpu]) -> tuple[Machine, ...]:
        """Read the computers by their product names."""
        found = _unique(self.read("computers", Machine))
        for read in found:
            for name in (*read.record.cards, *read.record.usual):
                self._check_card(read.entry, name, gpus)
        kept = ([name for name in read.record.cards if name in gpus] for read in found)
        pairs = zip(found, kept, strict=True)
        return tuple(replace(read.record, cards=tuple(cards)) for read, cards in pairs if cards)

    def _check_card(self, entry: Entry, name: str, gpus: Mapping[str, Gpu]) -> None:
        """Report a name of no card; a built-in entry may name one that the user took away."""
        users = self.files.user if isinstance(self.files, Files) else None
        if name not in gpus and (users is None or entry.place.file in users):
            hint = did_you_mean(name, gpus) or "Write the name as in gpus/."
            entry.problem(f"there is no card '{name}' in gpus/", hint=hint)

    def _report_duplicates(self, table: Iterable[Read[Any]]) -> None:
        entries = [read.entry for read in table]
        report_duplicates(entries, entries[0].kind if entries else "", self.problems)


def calibration_in(files: Mapping[str, bytes], problems: list[UserError]) -> dict[str, object]:
    """Join what people decide of speeds, what was fitted, and what was published."""
    problems += gone_problems(files)
    found = _mapping(files, "calibration.yaml", problems)
    if "calibration-fitted.yaml" in files:
        found["fitted"] = _mapping(files, "calibration-fitted.yaml", problems)
    if (speeds := files.get("measured.csv")) is not None:
        found["measured"] = measured_by_card(speeds, "measured.csv", problems)
    return found


def _mapping(files: Mapping[str, bytes], name: str, problems: list[UserError]) -> dict[str, object]:
    content = files.get(name)
    node = None if content is None else read_yaml(content, name, KnowledgeError, problems)
    plain = None if node is None else node.plain()
    if node is not None and not isinstance(plain, dict):
        problems.append(KnowledgeError("the file must be a mapping", source=node.source))
    return plain if isinstance(plain, dict) else {}


def _table(table: Iterable[Read[_R]]) -> dict[str, _R]:
    return {read.entry.name: read.record for read in table}


def _unique(table: Iterable[Read[_R]]) -> list[Read[_R]]:
    """Keep the first of each name."""
    kept: dict[str, Read[_R]] = {}
    for read in table:
        first = kept.setdefault(read.entry.name, read).entry
        if first is not read.entry:
            message = f"stands twice (first in {first.place})"
            shown = f"{first.kind} '{first.name}' {message}"
            first.problems.append(KnowledgeError(shown, source=read.entry.place))
    return list(kept.values())


# ---- measured speeds: one text per card, a line per configuration


def measured_by_card(content: bytes, name: str, problems: list[UserError]) -> dict[str, str]:
    """Turn a table of measured speeds into one text per card.

    Repeated configurations become their median, in the order of their first line.

    Args:
        content: CSV with a header line, UTF-8.
        name: The file, for complaints.
        problems: Collects what is wrong.
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    for key, tok_s in _lines(content, name, problems):
        groups.setdefault(key, []).append(tok_s)
    texts: dict[str, list[str]] = {}
    for (gpu, *before, source, date), found in groups.items():
        line = _SEPARATOR.join((*before, f"{median(found):.6g}", source, date))
        texts.setdefault(gpu, []).append(line)
    return {gpu: "\n".join(lines) for gpu, lines in texts.items()}


def _lines(
    content: bytes, name: str, problems: list[UserError]
) -> Iterator[tuple[tuple[str, ...], float]]:
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
        missing = [column for column in _NEEDED if column not in (reader.fieldnames or ())]
    except UnicodeDecodeError:
        problems.append(KnowledgeError("the file is not UTF-8", source=Source(name)))
        return
    if missing:
        message = f"the table has no column {', '.join(missing)}"
        problems.append(KnowledgeError(message, source=Source(name, 1)))
        return
    for row in reader:
        try:
            found = _line(row)
        except ValueError as bad:
            place = Source(name, reader.line_num)
            problems.append(KnowledgeError(str(bad), source=place, hint="Correct the line."))
            continue
        yield found


def _line(row: Mapping[str, str]) -> tuple[tuple[str, ...], float]:
    batch = _whole(row, "batch", 1)
    tok_s = _number(row, "tok_s")
    if tok_s <= 0:
        raise ValueError(f"tok_s is {tok_s:g}, not above 0")
    depth = _whole(row, "depth_tokens", 0)
    key = (
        row["gpu"], row["model"], row["precision"], row["framework"], row["backend"],
        str(_whole(row, "gpus", 1)), str(batch), row.get("cache") or "f16", str(depth),
        _plain(row["source"]), _plain(row["date"]),
    )  # fmt: skip
    return key, tok_s


def _plain(text: str) -> str:
    return " ".join((text or "").split())


def _whole(row: Mapping[str, str], column: str, default: int) -> int:
    text = row.get(column) or ""
    if not text:
        return default
    try:
        return round(float(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{column} is '{text}', not a whole number") from None


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (ValueError, TypeError):
        raise ValueError(f"{column} is '{row[column]}', not a number") from None
