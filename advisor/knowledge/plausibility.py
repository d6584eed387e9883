"""Figures that files of knowledge state, held against each other and against all other entries.

Nothing is asked of the world: what a card or a format has, in kind, is what the others here have. A
figure more than ten times beyond the least or the most of them is an error, one more than 3.3
times beyond is unusual, which is told and counts, as is a word a slip away from one that others
have. A figure that cannot stand beside another one of the same entry is an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import fields

from advisor.errors import KnowledgeError, is_slip
from advisor.knowledge.record_links import Read
from advisor.knowledge.types import UNUSUAL, Format, Framework, GgmlType, Gpu, KvType, ModelRecord
from advisor.units import GIB

_UNUSUAL, _IMPOSSIBLE = 3.3, 10.0
"""How many times beyond the others; the carried entries lie within 3.3 times of their next ones."""
_YEARS = 3
_LEAST = 4
"""Entries below this say nothing of what is usual."""
_SIZE_IN_NAME = re.compile(r" (\d+) ?GB\b")
_LANES = (1, 2, 4, 8, 16)
_HUB = re.compile(r"[\w.-]+/[\w.-]+")


class _Figure(NamedTuple):
    """A figure of an entry, or one as a share of another."""

    what: str
    key: str
    """Where it stands in the entry."""
    field: str
    over: str = ""

    def of(self, record: object) -> float | None:
        """Work it out; None where it is unknown."""
        part = getattr(record, self.field)
        whole = getattr(record, self.over) if self.over else 1
        return part / whole if part and whole else None


def _figures(kind: type[Struct], *said: str) -> tuple[_Figure, ...]:
    """Figures by their keys; of one as a share of another the last word is the other's key."""
    named = {one.encode_name: one.name for one in fields(kind)}
    words = {what: what.split() for what in said}
    return tuple(
        _Figure(what, key, named[key], named[rest[-1]] if rest else "")
        for what, (key, *rest) in words.items()
    )


_CARD = _figures(
    Gpu,
    *("vram", "bus_width", "bandwidth", "cores", "tensor_cores", "fp16_tensor"),
    *("fp16_tensor_fp32acc", "fp16_shader", "fp32", "int8", "fp8", "fp4", "tdp", "pcie_gen"),
    *("nvlink", "launch_price", "compute_capability"),
    *("bandwidth for its vram", "bandwidth for its tdp", "tdp for its cores"),
    *("fp16_tensor_fp32acc for its tdp", "int8 beside fp16_tensor"),
    *("fp8 beside fp16_tensor", "fp4 beside fp16_tensor"),
)
_LABEL = ("label_parameters", "parameters", "label_parameters_b")
_MODEL = (
    *_figures(ModelRecord, "parameters", "active_parameters", "vision_parameters"),
    *_figures(ModelRecord, "trained_context"),
    _Figure("parameters beside label_parameters", *_LABEL),
)
_FORMAT = _figures(
    Format,
    "bits_per_weight",
    "class_bits beside bits_per_weight",
    "nominal_bytes_per_weight beside bits_per_weight",
)
_KV_TYPE = _figures(KvType, "bits")
_GGML = (_Figure("bytes for its elements", "block_bytes", "block_bytes", "block_elements"),)


def check_cards(cards: Sequence[Read[Gpu]], user: Collection[str]) -> None:
    """Collect figures and words of cards that cannot be, or that no other card has."""
    built_in = _built_in(cards, user)
    _check_figures(cards, built_in, _CARD)
    _check_words(cards, built_in, "architecture")
    _check_words(cards, built_in, "vram_type", "Its data rate is not known, so bandwidth stands.")
    _check_dates(cards, built_in)
    for read in cards:
        for key, message, hint in _beside(read.record):
            read.entry.problem(message, at=read.entry.at(key), hint=hint)


def check_models(
    models: Sequence[Read[ModelRecord]],
    frameworks: Sequence[Read[Framework]],
    user: Collection[str],
) -> None:
    """Collect figures and words of models and runtimes that cannot be, or that no other has."""
    built_in = _built_in(models, user)
    _check_figures(models, built_in, _MODEL)
    _check_words(models, built_in, "family")
    _check_dates(models, built_in)
    runtimes = _built_in(frameworks, user)
    types = {name for read in built_in for name in _types_of(read.record)}
    types |= {name for read in runtimes for name in read.record.model_types}
    keys = {key for read in built_in for part in _parts(read.record) for key in part}
    for read in models:
        for name in _types_of(read.record) - types:
            _say_word(read, "model_type", name, types, "No runtime here is known to run it.")
        for key in {key for part in _parts(read.record) for key in part} - keys:
            if near := _slips(key, keys):
                message = f"config: unknown key '{key}'."
                place = read.entry.at_config(key)
                read.entry.problem(message, at=place, hint=f"Did you mean '{near}'?")
        if read.record.hf_id and not _HUB.fullmatch(read.record.hf_id):
            message = f"'hf_id' is '{read.record.hf_id}'"
            hint = "Write PUBLISHER/NAME, as in the address of the model."
            read.entry.problem(message, at=read.entry.at("hf_id"), hint=hint)
    for runtime in frameworks:
        for name in set(runtime.record.model_types) - types:
            _say_word(runtime, "model_types", name, types)


def check_stored(
    formats: Sequence[Read[Format]],
    kinds: Sequence[Read[KvType]],
    ggml: Sequence[Read[GgmlType]],
    user: Collection[str],
) -> None:
    """Collect figures of weight formats, cache types and ggml types that cannot be."""
    _check_figures(formats, _built_in(formats, user), _FORMAT)
    _check_figures(kinds, _built_in(kinds, user), _KV_TYPE)
    _check_figures(ggml, _built_in(ggml, user), _GGML)


def _built_in(reads: Sequence[Read[Any]], user: Collection[str]) -> list[Read[Any]]:
    """The entries to hold others against: the built-in ones, or all where few are left."""
    found = [read for read in reads if read.entry.place.file not in user]
    return found if len(found) > _LEAST else [*reads]


def _check_figures(
    reads: Sequence[Read[Any]],
    built_in: Sequence[Read[Any]],
    figures: Sequence[_Figure],
) -> None:
    told: dict[int, set[str]] = {}
    for figure in figures:
        known = sorted((value, id(r)) for r in built_in if (value := figure.of(r.record)))
        for read in reads if len(known) >= _LEAST else ():
            value, wrong = figure.of(read.record), told.setdefault(id(read), set())
            said = _beyond(value, id(read), known) if value else None
            if said and not wrong & {figure.field, figure.over}:
                wrong.add(figure.field)
                _say_figure(read, figure, *said)


def _beyond(value: float, own: int, known: Sequence[tuple[float, int]]) -> tuple[float, str] | None:
    """How many times a figure is beyond the least or the most of the others, and which."""
    least = known[1 if known[0][1] == own else 0][0]
    most = known[-2 if known[-1][1] == own else -1][0]
    if value > _UNUSUAL * most:
        return value / most, "above the highest"
    if value < least / _UNUSUAL:
        return least / value, "below the lowest"
    return None


def _say_figure(read: Read[Any], figure: _Figure, times: float, side: str) -> None:
    entry, key = read.entry, figure.key
    message = f"{figure.what} is {times:,.3g} times {side} of the others here"
    hint = f"Check the figure and its unit: '{entry.text(key)}'."
    if times > _IMPOSSIBLE:
        entry.problem(message, at=entry.at(key), hint=hint)
    else:
        _unusual(read, key, message, hint)


def _unusual(read: Read[Any], key: str, message: str, hint: str) -> None:
    shown = f"{read.entry.kind} '{read.entry.name}': {message}"
    at = read.entry.at(key) if key in read.entry.values else read.entry.at_config(key)
    found = KnowledgeError(shown, source=at, hint=hint, lint=UNUSUAL)
    read.entry.problems.append(found)


def _check_words(
    reads: Sequence[Read[Any]], built_in: Sequence[Read[Any]], key: str, unknown: str = ""
) -> None:
    """Tell a word that no other entry has, where it is a slip away from one that others have."""
    known = {word for read in built_in if (word := getattr(read.record, key))}
    for read in reads:
        word = getattr(read.record, key)
        if word and word not in known:
            _say_word(read, key, word, known, unknown)


def _check_dates(reads: Sequence[Read[Any]], built_in: Sequence[Read[Any]]) -> None:
    years = sorted(int(day[:4]) for read in built_in if (day := read.record.released))
    for read in reads:
        day = read.record.released
        if day and years and not years[0] - _YEARS <= int(day[:4]) <= years[-1] + _YEARS:
            said = f"'released' is {day}, and all others came out from {years[0]} to {years[-1]}"
            _unusual(read, "released", said, "Check the year.")


def _say_word(
    read: Read[Any], key: str, word: str, known: Collection[str], unknown: str = ""
) -> None:
    near = _slips(word, known)
    if near or unknown:
        message = f"'{key}' is '{word}', which nothing else here has."
        _unusual(read, key, message, f"Did you mean '{near}'?" if near else unknown)


def _slips(word: str, known: Collection[str]) -> str:
    return next((name for name in sorted(known) if is_slip(word, name)), "")


def _beside(card: Gpu) -> Iterator[tuple[str, str, str]]:
    """Give key, message and hint of figures of a card that cannot stand beside each other."""
    size, sizes = card.vram_bytes, card.vram_sizes
    if size and sizes and size not in sizes:
        yield "vram", "'vram' is none of its 'vram_sizes'", "Write one of them, or add it there."
    named = _SIZE_IN_NAME.search(card.name)
    if size and named and int(named[1]) * GIB not in {size, *sizes}:
        message = f"'vram' is {size / GIB:g} GiB, and its name says {named[1]} GB"
        yield "vram", message, "Correct one of the two."
    if card.compute_capability and card.vendor != "NVIDIA":
        message = f"'compute_capability' is NVIDIA's, and this card is {card.vendor}'s"
        yield "compute_capability", message, "Leave it out, or correct 'vendor'."
    if card.segment == "apple" and card.vendor != "Apple":
        yield "segment", f"'segment' is apple, and this card is {card.vendor}'s", "Correct one."
    if card.pcie_lanes and card.pcie_lanes not in _LANES:
        lanes = ", ".join(map(str, _LANES))
        yield "pcie_lanes", f"'pcie_lanes' is {card.pcie_lanes}", f"It is one of {lanes}."


def _parts(model: ModelRecord) -> Iterator[Mapping[str, object]]:
    yield model.config
    inner = model.config.get("text_config")
    if isinstance(inner, Mapping):
        yield inner


def _types_of(model: ModelRecord) -> set[str]:
    found = (part.get("model_type") for part in _parts(model))
    return {name for name in found if isinstance(name, str)}
