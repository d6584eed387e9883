"""What the project knows about hardware, models, formats and frameworks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import TypeVar, cast

from msgspec import Raw, Struct, json

from advisor.errors import KnowledgeError, Problems, Source, UserError
from advisor.files import compiled, digest
from advisor.knowledge.layers import SHORTER, Stack, stack, switched_off_records, user_record
from advisor.knowledge.stacked_files import layers_key, places_of, read_files
from advisor.knowledge.types import (
    UNUSUAL,
    Format,
    Framework,
    GgmlType,
    Gpu,
    Knowledge,
    KvType,
    ModelRecord,
)
from advisor.memo import forget
from advisor.units import GIB, format_quantity

_R = TypeVar("_R", bound=Struct | str)
WARNINGS = (UNUSUAL, SHORTER)
"""Kinds of problems that refuse nothing."""
_MOST_FOLDERS = 8
_loaded: dict[str, Knowledge] = {}
_unusual: dict[str, None] = {}


def load_knowledge(folders: Stack = None, *, alone: bool = False) -> Knowledge:
    """Load the built-in knowledge, with a user's own laid over it (docs/overlays.md).

    ``alone`` takes the first folder in the place of the built-in files.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    files, user = read_files(folders, alone=alone)
    sha256 = digest(files)
    key = layers_key(files) if user else sha256
    found = _loaded.get(key)
    if found is None:
        shown = shown_folder(folders)
        data = compiled("knowledge", key, lambda: build(files, user, shown), Stored)
        found = _knowledge(data, sha256)
        if len(_loaded) >= _MOST_FOLDERS:  # what is kept of each is many times its size
            _loaded.clear()
            forget()
        _loaded[key] = found
    _unusual.update(dict.fromkeys(found.unusual))
    return found


def unusual_figures() -> Sequence[str]:
    """Give, once, what is unusual in the knowledge that was loaded since this was asked last."""
    found = [*_unusual]
    _unusual.clear()
    return found


class Stored(Struct, frozen=True):
    """Knowledge as it is kept: records by name as JSON, made when they are first looked at."""

    gpus: dict[str, Raw]
    models: dict[str, Raw]
    ggml_types: dict[str, Raw]
    formats: dict[str, Raw]
    kv_types: dict[str, Raw]
    frameworks: dict[str, Raw]
    policy: dict[str, float]
    second_cards: tuple[str, ...]
    calibration: dict[str, object]
    measured: dict[str, Raw]
    """Published speeds by card, of which a request reads one or two."""
    index: dict[str, Raw]
    user_entries: dict[str, object]
    switched_off: dict[str, object]
    unusual: tuple[str, ...] = ()
    """What is told of figures that are unlike all others."""


def build(
    files: Mapping[str, bytes], user: Collection[str] = (), shown: str = "knowledge"
) -> Stored:
    """Parse and check the files.

    ``user`` are the paths of the user's files, whose records replace others of the same name.

    Raises:
        KnowledgeError: One thing is wrong in a file.
        Problems: Several are.
    """
    problems: list[UserError] = []
    found = _parsed(files, problems)
    places = places_of(files)
    raise_at([p for p in problems if p.lint not in WARNINGS], shown, user, places)
    measured = cast("Mapping[str, str]", found.calibration.get("measured") or {})
    return Stored(
        _raw(found.gpus),
        _raw(found.models),
        _raw(found.ggml_types),
        _raw(found.formats),
        _raw(found.kv_types),
        _raw(found.frameworks),
        dict(found.policy),
        found.second_cards,
        {part: held for part, held in found.calibration.items() if part != "measured"},
        {card: Raw(json.encode(text)) for card, text in measured.items()},
        dict(found.index),
        dict(found.user_entries),
        dict(found.switched_off),
        tuple(str(moved_to(p, shown, user, places)) for p in problems if p.lint == UNUSUAL),
    )


def _raw(table: Mapping[str, Struct]) -> dict[str, Raw]:
    return {name: Raw(json.encode(record)) for name, record in table.items()}


def shown_folder(folders: Stack) -> str:
    """Give the folder that messages name before a file; of several each names its own."""
    return str((stack(folders) or ("knowledge",))[-1])


def raise_at(
    problems: Sequence[UserError],
    shown: str,
    user: Collection[str] = (),
    places: Mapping[str, str] | None = None,
) -> None:
    """Raise what was collected, with the folder before every file name."""
    moved = [moved_to(problem, shown, user, places) for problem in problems]
    if len(moved) == 1:
        raise moved[0]
    if moved:
        raise Problems(moved)


def moved_to(
    problem: UserError,
    shown: str,
    user: Collection[str] = (),
    places: Mapping[str, str] | None = None,
) -> UserError:
    """Write the folder before the file name of a problem: the user's, or the built-in one."""
    at = problem.source or Source("")
    shown = "knowledge" if user and at.file and at.file not in user else shown
    file = (places or {}).get(at.file) or (f"{shown}/{at.file}" if at.file else shown)
    place = Source(file, at.line, at.column)
    return KnowledgeError(problem.message, source=place, hint=problem.hint, lint=problem.lint)


def _knowledge(data: Stored, sha256: str) -> Knowledge:
    return Knowledge(
        gpus=Table(data.gpus, Gpu),
        models=Table(data.models, ModelRecord),
        ggml_types=Table(data.ggml_types, GgmlType),
        formats=Table(data.formats, Format),
        kv_types=Table(data.kv_types, KvType),
        frameworks=Table(data.frameworks, Framework),
        policy=data.policy,
        calibration={**data.calibration, "measured": Table(data.measured, str)},
        sha256=sha256,
        index=data.index,
        user_entries=data.user_entries,
        switched_off=data.switched_off,
        unusual=data.unusual,
        second_cards=data.second_cards,
    )


class Table(Mapping[str, _R]):
    """Name -> record, in file order, each made when it is first looked at."""

    __slots__ = ("_built", "_decoder", "_kind", "_stored", "_whole")

    def __init__(self, stored: Mapping[str, Raw], kind: type[_R]) -> None:
        """Hold the stored records of one type."""
        self._stored = stored
        self._kind = kind
        self._decoder: json.Decoder[_R] | None = None
        self._built: dict[str, _R] = {}
        self._whole = False

    def __getitem__(self, name: str) -> _R:
        found = self._built.get(name)
        if found is None:
            self._decoder = self._decoder or json.Decoder(self._kind)
            found = self._built[name] = self._decoder.decode(self._stored[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def _all(self) -> dict[str, _R]:
        if not self._whole:  # what was looked at by name stands in another order
            self._built = {name: self[name] for name in self._stored}
            self._whole = True
        return self._built

    def values(self) -> ValuesView[_R]:
        """Every record, in file order."""
        return self._all().values()

    def items(self) -> ItemsView[str, _R]:
        """Every name with its record, in file order."""
        return self._all().items()

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, name: object) -> bool:
        return name in self._stored


def _parsed(files: Mapping[str, bytes], problems: list[UserError]) -> Knowledge:
    from advisor.knowledge.parsing import parse  # noqa: PLC0415 - pydantic and pyyaml, which a warm start does without

    return parse(files, problems)


Row = tuple[str, str, str]
"""Table, name, short description."""


def check_knowledge(
    folders: Stack, *checks: Callable[[Mapping[str, bytes]], Sequence[UserError]]
) -> list[UserError]:
    """Parse and check folders, laid over the built-in one; gives every problem.

    ``checks`` find more problems in the files, by relative path.
    """
    try:
        files, user = read_files(folders)
    except KnowledgeError as missing:
        return [missing]
    problems: list[UserError] = []
    _parsed(files, problems)
    problems += [problem for check in checks for problem in check(files)]
    return sorted(
        (moved_to(problem, shown_folder(folders), user, places_of(files)) for problem in problems),
        key=lambda problem: (str(problem.source), problem.message),
    )


def provenance_line(knowledge: Knowledge) -> str:
    """Count what is the user's: what is added, replaced or changed, and switched off."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str | None]]]", knowledge.user_entries)
    rows = [row for kind, table in tables.items() if kind != "id" for row in table.values()]
    counts = {
        "added": sum(row[1] is None for row in rows),
        "in the place of built-in ones": sum(row[1] is not None for row in rows),
        "switched off": sum(1 for _ in switched_off_records(knowledge)),
    }
    return users_counted(counts)


def users_counted(counts: Mapping[str, int]) -> str:
    """Say how much of each kind is the user's; empty where nothing is."""
    said = [f"{number} {what}" for what, number in counts.items() if number]
    return f"yours: {', '.join(said)}" if said else ""


def find(knowledge: Knowledge, text: str) -> list[Row]:
    """List every record in which each word of ``text`` begins a word of a name or alias."""
    wanted = _words(text)
    if not wanted:
        return []
    return [
        (table, name, f"{shown}{_whose(knowledge, table, name)}")
        for table, name, aliases, shown in _rows(knowledge)
        if any(_begins(wanted, spelling) for spelling in (name, *aliases))
    ] + [
        (kind, off.name, str(off))
        for kind, off in switched_off_records(knowledge)
        if _begins(wanted, off.name)
    ]


def _whose(knowledge: Knowledge, table: str, name: str) -> str:
    entry = user_record(knowledge, table, name)
    return f"; {entry}" if entry else ""


def _words(text: str) -> Sequence[str]:
    return re.findall(r"[a-z0-9]+(?:\.[0-9]+)*", text.casefold())


def _begins(wanted: Sequence[str], spelling: str) -> bool:
    words = _words(spelling)
    return all(any(word.startswith(part) for word in words) for part in wanted)


def _rows(knowledge: Knowledge) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    for gpu in knowledge.gpus.values():
        yield "gpu", gpu.name, gpu.aliases, _gpu(gpu)
    for model in knowledge.models.values():
        names = (*model.aliases, *([model.hf_id] if model.hf_id else []))
        yield "model", model.name, names, _model(model)
    for weights in knowledge.formats.values():
        yield "format", weights.name, weights.aliases, _format(weights)
    for kind in knowledge.kv_types.values():
        yield "kv_type", kind.name, (), _kv_type(kind)
    for framework in knowledge.frameworks.values():
        yield "framework", framework.name, framework.aliases, _framework(framework)


def _gpu(gpu: Gpu) -> str:
    size = f"{gpu.vram_bytes / GIB:g} GB" if gpu.vram_bytes else "memory not stated"
    speed = format_quantity(gpu.bandwidth_bytes_s, "GB/s") if gpu.bandwidth_bytes_s else ""
    return _joined(f"{size} {gpu.vram_type or ''}".rstrip(), speed, gpu.architecture, gpu.segment)


def _model(model: ModelRecord) -> str:
    size = format_quantity(model.parameters, "B") if model.parameters else "size not stated"
    context = model.trained_context_tokens
    return _joined(size, model.modality, f"{context} tokens" if context else "", model.family)


def _format(weights: Format) -> str:
    bits = weights.bits_per_weight
    return _joined(weights.family, f"{bits:g} bits per weight" if bits else "")


def _kv_type(kind: KvType) -> str:
    return f"{kind.bits:g} bits per element"


def _framework(framework: Framework) -> str:
    return _joined(framework.version, ", ".join(framework.vendors))


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


__all__ = ["load_knowledge"]
