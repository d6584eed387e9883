"""From what people type to records; an unknown name is an error with the nearest ones.

Cards match by whole tokens, blind to case and punctuation; vendor and series words may be
left out, every other word of the query must be in the card's name or one of its aliases.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import can_have, open_range, sizes_of
from advisor.knowledge.index import (
    Spelling,
    by_text,
    gpu_core,
    gpu_form,
    gpu_words,
    index_of,
    is_board_word,
    is_size_word,
    makers_named,
    model_core,
    model_key,
    of_one_family,
    plain_key,
)
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType, ModelRecord
from advisor.memo import by_identity
from advisor.suggest import nearest
from advisor.units import GIB, UnitError, parse_size_as_sold

_MOST_LISTED = 8
_SIZE_AT_END = re.compile(r" \d+ GB$")


class _HasAliases(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=_HasAliases)


class _Match(Struct, frozen=True):
    """A card that has every word of the query, and the words the query left out."""

    name: str
    surplus: frozenset[str]

    @property
    def only_board_words(self) -> bool:
        return all(is_board_word(word) for word in self.surplus)


@by_text
def find_gpu(knowledge: Knowledge, text: str) -> Gpu:
    """Find a card by name, alias, or ``NAME:SIZE``.

    ``SIZE`` is memory as sold: it picks among cards that differ in memory, and sets the
    memory of cards that come in many sizes (unified memory).

    Raises:
        RequestError: Unknown (nearest names), ambiguous (candidates), or of unknown memory.
    """
    name, colon, size_text = text.partition(":")
    size = _size(text, size_text) if colon else None
    words = frozenset(gpu_words(name))
    matches = _matches(knowledge, words) if gpu_core(name) else []
    sizes = {word for word in words if is_size_word(word)}
    if not matches and size is None and len(sizes) == 1:
        size = _size(text, next(iter(sizes)))
        words -= sizes
        matches = _matches(knowledge, words)
    if not matches:
        raise _unknown_gpu(knowledge, name)
    if size is None:
        return _with_memory(_chosen(knowledge, text, matches), text.strip())
    return _sized(knowledge, text, matches, size)


def siblings(knowledge: Knowledge, gpu: Gpu) -> tuple[str, ...]:
    """Name the other boards of this model that differ in memory or bandwidth.

    RTX 3080 (10 GB) has the sibling RTX 3080 12 GB.
    """
    base = _base(gpu.name, gpu.vendor)
    words = frozenset(gpu_words(" ".join(base)))
    return tuple(
        other.name
        for other in (knowledge.gpus[m.name] for m in _matches(knowledge, words))
        if other.name != gpu.name
        and _base(other.name, other.vendor) == base
        and (other.vram_bytes, other.bandwidth_bytes_s) != (gpu.vram_bytes, gpu.bandwidth_bytes_s)
    )


@by_text
def find_model(knowledge: Knowledge, text: str) -> ModelRecord:
    """Find a model by name, alias or Hugging Face id.

    Instruct, Chat, IT, HF and Base may be left out; otherwise every word must be there.

    Raises:
        RequestError: Unknown (nearest names) or ambiguous (candidates).
    """
    index = index_of(knowledge)["models"]
    if text.casefold() in index["hf"]:
        return knowledge.models[index["hf"][text.casefold()]]
    if "/" in text:
        return _same_publisher(knowledge, text)
    names = index["exact"].get(model_key(text)) or _models_with(index["cores"], model_core(text))
    if len(names) > 1:
        raise RequestError(
            f"'{text}' names several models: {_listed(names)}.", hint="Write one of these."
        )
    if not names:
        raise _unknown_model(knowledge, text)
    return knowledge.models[names[0]]


def is_known_repository(knowledge: Knowledge, text: str) -> bool:
    """Whether a model of the knowledge base is published under just this name."""
    return text.casefold() in index_of(knowledge)["models"]["hf"]


@by_text
def find_format_candidates(knowledge: Knowledge, text: str) -> tuple[Format, ...]:
    """Find the weight formats of this name or alias, in file order; never none.

    Two formats may share a name (MXFP4 of llama.cpp and of the servers); the framework decides.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    if found := _named(knowledge.formats, text):
        return found
    raise _unknown_format(knowledge, text)


@by_text
def find_framework(knowledge: Knowledge, text: str) -> Framework:
    """Find an inference runtime by name or alias.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    found = _named(knowledge.frameworks, text)
    if not found:
        raise _unknown("framework", text, knowledge.frameworks, _all(knowledge.frameworks))
    return found[0]


@by_text
def find_kv_type(knowledge: Knowledge, text: str) -> KvType:
    """Find a KV-cache element type by name.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    key = plain_key(text)
    for name in knowledge.kv_types:
        if plain_key(name) == key:
            return knowledge.kv_types[name]
    raise _unknown("KV-cache type", text, knowledge.kv_types, _all(knowledge.kv_types))


def _matches(knowledge: Knowledge, words: Collection[str]) -> list[_Match]:
    """List the cards that have every word, each with its closest spelling."""
    if not words:
        return []
    probe = max(words, key=lambda word: (not word.isalpha(), len(word)))
    best: dict[str, _Match] = {}
    needed = frozenset(words)
    for name, spelled, core in index_of(knowledge)["gpus"]:
        if probe in spelled and needed.issubset(spelled.split()):
            match = _Match(name, frozenset(core.split()).difference(words))
            if name not in best or len(match.surplus) < len(best[name].surplus):
                best[name] = match
    return list(best.values())


def _chosen(knowledge: Knowledge, text: str, matches: Sequence[_Match]) -> Gpu:
    exact = [match for match in matches if not match.surplus]
    boards = [match for match in matches if match.only_board_words]
    for tier in (exact, boards):
        if len(tier) == 1:
            return knowledge.gpus[tier[0].name]
    if len(matches) == 1:
        raise _unknown_gpu(knowledge, text, [matches[0].name])
    raise _ambiguous(knowledge, text, exact or boards or matches)


def _sized(knowledge: Knowledge, text: str, matches: Sequence[_Match], size: int) -> Gpu:
    found = _of_size(knowledge, matches, size)
    if len(found) == 1:
        return replace(found[0], vram_bytes=size)
    if found:
        names = [gpu.name for gpu in found]
        raise RequestError(
            f"'{text}' names several cards: {_listed(names)}.", hint="Write one of these."
        )
    boards = [match.name for match in matches if match.only_board_words]
    if not boards:
        raise _ambiguous(knowledge, text, matches)
    known = sorted({size for name in boards for size in sizes_of(knowledge.gpus[name])})
    sizes = f" ({', '.join(f'{bytes_ / GIB:g} GB' for bytes_ in known)})" if known else ""
    least, most = open_range(knowledge)
    hint = "Write one of these." if known else f"Write {least / GIB:g} to {most / GIB:g} GB."
    raise RequestError(
        f"'{text}': no such card has {size / GIB:g} GB; known: {_listed(boards)}{sizes}.", hint=hint
    )


def _of_size(knowledge: Knowledge, matches: Sequence[_Match], size: int) -> list[Gpu]:
    """Give the closest cards that have, or can be set to, this memory."""
    boards = [match for match in matches if match.only_board_words]
    word = f"{size / GIB:g}gb"
    cards = [(len(m.surplus - {word}), knowledge.gpus[m.name]) for m in boards]
    fitting = [(left, gpu) for left, gpu in cards if gpu.vram_bytes == size]
    fitting = fitting or [(left, gpu) for left, gpu in cards if can_have(knowledge, gpu, size)]
    least = min((left for left, _ in fitting), default=0)
    return [gpu for left, gpu in fitting if left == least]


def _with_memory(gpu: Gpu, text: str) -> Gpu:
    """Refuse a short name of what comes in several sizes; its full name stands for the largest."""
    full = text.casefold() == gpu.name.casefold()
    if gpu.vram_bytes is not None and (full or gpu.segment != "apple"):
        return gpu
    sizes = sizes_of(gpu)
    named = [f"'{text}:{size / GIB:g}GB'" for size in sizes]
    hint = f"Write one of these: {', '.join(named)}."
    if len(named) == 1:
        hint = f"Write NAME:SIZE, at most {named[0]}."
    if not named:
        hint = f"Write NAME:SIZE, for example '{text}:64GB'."
    raise RequestError(f"'{gpu.name}' is sold with several memory sizes.", hint=hint)


def _ambiguous(knowledge: Knowledge, text: str, matches: Sequence[_Match]) -> RequestError:
    names = [match.name for match in sorted(matches, key=lambda match: len(match.surplus))]
    hint = "Write one of these."
    if example := _example(knowledge, text.partition(":")[0], matches):
        hint = f"Write one of these, or NAME:SIZE, for example {example}."
    return RequestError(f"'{text}' names several cards: {_listed(names)}.", hint=hint)


def _example(knowledge: Knowledge, name: str, matches: Sequence[_Match]) -> str:
    """Give a NAME:SIZE that settles the question, if one does."""
    cards = [knowledge.gpus[match.name] for match in matches[:_MOST_LISTED]]
    sized = [(gpu, gpu.vram_bytes) for gpu in cards if gpu.vram_bytes]
    for _, size in sized:
        if len(_of_size(knowledge, matches, size)) == 1:
            return f"{name.strip()}:{size / GIB:g}GB"
    for gpu, size in sized:
        without_size = _SIZE_AT_END.sub("", gpu.name)
        found = _matches(knowledge, frozenset(gpu_words(without_size)))
        if len(_of_size(knowledge, found, size)) == 1:
            return f"'{without_size}:{size / GIB:g}GB'"
    return ""


def _base(name: str, vendor: str) -> frozenset[str]:
    return frozenset(w for w in gpu_form(name, vendor, name).core if not is_board_word(w))


def _size(text: str, size_text: str) -> int:
    try:
        return parse_size_as_sold(size_text)
    except UnitError as bad:
        raise RequestError(f"'{text}': {bad}", hint="Write NAME:SIZE.") from None


def _models_with(cores: Sequence[Spelling], wanted: Sequence[str]) -> list[str]:
    """List the models with exactly these words, or else with all of them."""
    if not wanted:
        return []
    spelled = " ".join(wanted)
    same = list(dict.fromkeys(name for name, core in cores if core == spelled))
    if same:
        return same
    need = {word: wanted.count(word) for word in wanted}
    return list(
        dict.fromkeys(
            name for name, core in cores if wanted[0] in core and _has_words(core.split(), need)
        )
    )


def _has_words(words: Sequence[str], need: Mapping[str, int]) -> bool:
    return all(words.count(word) >= count for word, count in need.items())


def _named(table: Mapping[str, R], text: str) -> tuple[R, ...]:
    return tuple(table[name] for name in _index(table).get(plain_key(text), ()))


# Bulk estimates take 1.15 times as long without, as most name a format.
@by_identity
def _index(table: Mapping[str, R]) -> Mapping[str, Sequence[str]]:
    """Key every name and alias of a small table."""
    keys: dict[str, list[str]] = {}
    for record in table.values():
        for key in {plain_key(name) for name in (record.name, *record.aliases)} - {""}:
            keys.setdefault(key, []).append(record.name)
    return keys


def _spellings(table: Iterable[R]) -> list[str]:
    return [name for record in table for name in (record.name, *record.aliases)]


def _unknown_gpu(knowledge: Knowledge, text: str, names: Iterable[str] = ()) -> RequestError:
    """Say that no card is called this; ``names`` are near ones that are already known."""
    message = f"unknown GPU '{text}'."
    if not gpu_core(text):
        return RequestError(message, hint="Write the model too, for example 'RTX 4090'.")
    makers = makers_named(text)
    cards = [name for name, gpu in knowledge.gpus.items() if not makers or gpu.vendor in makers]
    by_core = {" ".join(gpu_core(name)): name for name in cards}
    found = list(names) or [by_core[c] for c in nearest(" ".join(gpu_core(text)), by_core)]
    return RequestError(message, hint=_hint(found, "'advisor knowledge find WORD'"))


def _unknown_model(knowledge: Knowledge, text: str) -> RequestError:
    """Say that no model is called this; a near name shares more than a size or a tuning with it."""
    spellings = {model_key(n): n for m in knowledge.models.values() for n in (*m.aliases, m.name)}
    found = [name for name in nearest(text, spellings.values()) if of_one_family(text, name)]
    otherwise = "'advisor knowledge find WORD', or give the model's config.json or .gguf file"
    return RequestError(f"unknown model '{text}'.", hint=_hint(found, otherwise))


def _same_publisher(knowledge: Knowledge, text: str) -> ModelRecord:
    """Take ``meta-llama/Llama-3.1-8B-Instruct`` for the publisher's model of that name."""
    publisher, _, name = text.partition("/")
    if "/" in name:
        raise _unknown_repository(knowledge, text)
    try:
        found = find_model(knowledge, name)
    except RequestError:
        raise _unknown_repository(knowledge, text) from None
    if (found.hf_id or "").partition("/")[0].casefold() != publisher.casefold():
        raise _unknown_repository(knowledge, text)
    return found


def _unknown_repository(knowledge: Knowledge, text: str) -> RequestError:
    """Say that this Hugging Face id is not known; its last part may be."""
    hint = "Give a local folder with its config.json, or let 'advisor advise --hub' look it up."
    try:
        same = find_model(knowledge, text.rpartition("/")[2])
    except RequestError:
        same = None
    if same is not None:
        hint = f"Did you mean '{same.hf_id or same.name}'?"
    return RequestError(f"unknown model '{text}'.", hint=hint)


def _unknown(what: str, text: str, choices: Iterable[str], otherwise: str) -> RequestError:
    return RequestError(f"unknown {what} '{text}'.", hint=_hint(nearest(text, choices), otherwise))


def _unknown_format(knowledge: Knowledge, text: str) -> RequestError:
    """Name the formats that begin like this, as runtimes prefer them, else near ones."""
    offered, key = {n: f for n, f in knowledge.formats.items() if f.offered}, plain_key(text)
    preferred = dict.fromkeys(n for f in knowledge.frameworks.values() for n in f.formats)
    sizes = [n for n in preferred if n in offered and key and plain_key(n).startswith(key)][:3]
    near = sizes or nearest(text, _spellings(offered.values()))
    hint = _hint(near, "'advisor knowledge find WORD'")
    return RequestError(f"unknown weight format '{text}'.", hint=hint)


def _hint(names: Sequence[str], otherwise: str) -> str:
    if not names:
        return f"Try {otherwise}."
    quoted = [f"'{name}'" for name in names]
    head = ", ".join(quoted[:-1])
    return f"Did you mean {f'{head} or {quoted[-1]}' if head else quoted[-1]}?"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)
