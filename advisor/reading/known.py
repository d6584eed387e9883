"""Cards, models and formats by the names that the knowledge has for them.

A card is found by whole tokens, blind to case and punctuation: vendor and series words may be left
out; every other word of the query must be in its name or one of its aliases.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import MAKERS, PROCESSOR, can_have, open_range, sizes_of
from advisor.knowledge.index import (
    by_text,
    gpu_core,
    gpu_form,
    gpu_words,
    is_board_word,
    is_size_word,
    model_key,
    model_words,
    models_called,
    models_published,
    plain_key,
    spellings_with,
)
from advisor.knowledge.names import find_format_candidates
from advisor.knowledge.types import Format, Gpu, Knowledge, ModelRecord
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading.format_patterns import patterned
from advisor.reading.public_list import exact
from advisor.units import GIB, UnitError, parse_size_as_sold

_MOST_LISTED = 8
_MOST_SAID = 4


class Reading(Struct, frozen=True):
    """What a name was taken for."""

    gpu: Gpu
    count: int | None = None
    """How many of them the named machine has."""
    others: tuple[Gpu, ...] = ()
    """What the name could have meant too."""
    how: str = ""
    """With which memory and why this one was taken, as a line goes on after its name."""


def told(reading: Reading, text: str, count: int = 1) -> str:
    """Say what was taken in one line, with what else it could have meant."""
    many = f"{count}x " if count > 1 else ""
    line = f"'{text.strip()}' is read as {many}{reading.gpu.name}{reading.how}."
    boards = [other for other in reading.others if other.name != reading.gpu.name]
    if not boards:
        return line
    names = list(dict.fromkeys(map(with_size, boards)))
    return f"{line} It could also be {listed(names, _MOST_SAID)}."


def with_size(gpu: Gpu) -> str:
    """Give a card's name with its memory, where the name has not that and it is one of several."""
    several = gpu.vram_bytes is None or gpu.vram_bytes == max(gpu.vram_sizes, default=0)
    size = "" if several else f"{(gpu.vram_bytes or 0) / GIB:g} GB"
    return gpu.name if not size or size in gpu.name else f"{gpu.name} ({size})"


def told_apart(gpu: Gpu, others: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Leave out boards that differ in nothing that is sized, and those that few people can have."""
    rare = gpu.not_for_sale is not None
    figures = (gpu.vram_bytes, gpu.bandwidth_bytes_s, gpu.architecture)
    return tuple(
        other
        for other in others
        if (other.vram_bytes, other.bandwidth_bytes_s, other.architecture) != figures
        and (rare or other.not_for_sale is None)
    )


class Match(Struct, frozen=True):
    """A card that has every word of the query, and the words the query left out."""

    name: str
    surplus: frozenset[str]

    @property
    def only_board_words(self) -> bool:
        """Whether these words tell boards of one model apart."""
        return all(is_board_word(word) for word in self.surplus)


_NO_CARD = re.compile(
    r"(?:no|without(?:\s+an?)?)\s+(?:graphics\s+)?(?:gpu|card)|none|(?:the\s+)?(?:cpu|processor)(?:[\s-]+(?:only|alone))?"
    r"|none\s*\(.*\)",
    re.IGNORECASE,
)
_RAM_BESIDE = re.compile(r"(?<![\w.])\d{1,4}\s*gi?b(?!\w)", re.IGNORECASE)


def names_processor(text: str) -> bool:
    """Whether a text says that there is no card: ``cpu``, ``no GPU``, ``processor:64GB``."""
    name = text.partition(":")[0].strip()
    before = _RAM_BESIDE.split(name, maxsplit=1)[0].rstrip(" ,;+(") or name
    return any(map(_NO_CARD.fullmatch, (name, before)))


@by_text
def catalogue_gpu(knowledge: Knowledge, text: str) -> Gpu:
    """Find a card by a name that the catalogue has, with nothing read into it.

    Raises:
        RequestError: It is none, or not the name of one card alone.
    """
    gpu = known_card(knowledge, text)
    if gpu is None:
        raise RequestError(f"'{text}' is no card's name.", hint="Write it as in the catalogue.")
    return gpu


def known_card(knowledge: Knowledge, text: str) -> Gpu | None:
    """Find the one card of a name, an alias or ``NAME:SIZE``; None where that is not settled.

    ``SIZE`` is memory as sold: it picks among cards that differ in memory, and sets the memory of
    cards that come in many sizes (unified memory).

    Raises:
        RequestError: The size after the colon is none.
    """
    name, colon, size_text = text.partition(":")
    size = size_after_colon(text, size_text) if colon else None
    if names_processor(name):
        beside = None if colon else _RAM_BESIDE.search(name)
        said = size_after_colon(text, beside[0]) if beside else size
        return replace(PROCESSOR, vram_bytes=said)
    words = frozenset(gpu_words(name))
    matches = matches_of(knowledge, words) if gpu_core(name) else []
    sizes = {word for word in words if is_size_word(word)}
    if not matches and size is None and len(sizes) == 1:
        size = size_after_colon(text, next(iter(sizes)))
        matches = matches_of(knowledge, words - sizes)
    if size is None:
        return _complete(_chosen(knowledge, matches), text.strip())
    found = of_size(knowledge, matches, size)
    return replace(found[0], vram_bytes=size) if len(found) == 1 else None


def was_sold(gpu: Gpu) -> bool:
    """Whether people have it as its maker sold it, new or used by now."""
    return not gpu.not_for_sale or gpu.sale == "used"


def siblings(knowledge: Knowledge, gpu: Gpu) -> tuple[Gpu, ...]:
    """Give the other boards of this model that its maker has sold and that differ in memory.

    RTX 3080 (10 GB) has the sibling RTX 3080 12 GB, a board that comes in two sizes the other.
    """
    base = _base(gpu.name, gpu.vendor)
    words = frozenset(gpu_words(" ".join(base)))
    sizes = () if MAKERS[gpu.vendor].one_memory or gpu.unified_memory else gpu.vram_sizes
    boards = (knowledge.gpus[m.name] for m in matches_of(knowledge, words))
    others = tuple(
        other
        for other in boards
        if was_sold(other)
        and other.architecture == gpu.architecture
        and other.vram_bytes != gpu.vram_bytes
        and _base(other.name, other.vendor) == base
    )
    own = (replace(gpu, vram_bytes=size) for size in sizes if size != gpu.vram_bytes)
    return (*others, *own)


def namesakes(knowledge: Knowledge, text: str, gpu: Gpu) -> tuple[str, ...]:
    """Name cards of other generations that are called the same: RTX 6000 was one in three."""
    name = text.partition(":")[0]
    if name.strip().casefold() == gpu.name.casefold() or ":" in text:
        return ()
    boards = (m for m in matches_of(knowledge, frozenset(gpu_words(name))) if m.only_board_words)
    others = (knowledge.gpus[match.name] for match in boards if match.name != gpu.name)
    return tuple(other.name for other in others if other.architecture != gpu.architecture)


def matches_of(knowledge: Knowledge, words: Collection[str]) -> list[Match]:
    """List the cards that have every word, each with its closest spelling."""
    if not words:
        return []
    probe = max(words, key=lambda word: (not word.isalpha(), len(word)))
    best: dict[str, Match] = {}
    needed = frozenset(words)
    for name, spelled, core in spellings_with(knowledge, probe):
        if needed.issubset(spelled.split()):
            match = Match(name, frozenset(core.split()).difference(words))
            if name not in best or len(match.surplus) < len(best[name].surplus):
                best[name] = match
    return list(best.values())


def of_size(knowledge: Knowledge, matches: Sequence[Match], size: int) -> list[Gpu]:
    """Give the closest cards that have, or can be set to, this memory."""
    boards = [match for match in matches if match.only_board_words]
    word = f"{size / GIB:g}gb"
    cards = [(len(m.surplus - {word}), knowledge.gpus[m.name]) for m in boards]
    fitting = [(left, gpu) for left, gpu in cards if gpu.vram_bytes == size]
    fitting = fitting or [(left, gpu) for left, gpu in cards if can_have(knowledge, gpu, size)]
    least = min((left for left, _ in fitting), default=0)
    return [gpu for left, gpu in fitting if left == least]


def size_after_colon(text: str, size_text: str) -> int:
    """Read the memory of ``NAME:SIZE``, in bytes.

    Raises:
        RequestError: It is no size.
    """
    try:
        return parse_size_as_sold(size_text)
    except UnitError as bad:
        raise RequestError(f"'{text}': {bad}", hint="Write NAME:SIZE.") from None


def of_laptops(knowledge: Knowledge, gpu: Gpu, marks: frozenset[str]) -> str:
    """Say that a card is for laptops where only its memory tells so: ``RTX 4080 12GB``."""
    core = gpu_form(gpu.name, gpu.vendor, gpu.name).core - marks
    desk = known_card(knowledge, " ".join(word for word in core if not is_size_word(word)))
    if desk is None or desk.segment == gpu.segment or not desk.vram_bytes:
        return ""
    return f", a part of laptops (the card for desktops has {desk.vram_bytes / GIB:g} GB)"


def no_such_size(knowledge: Knowledge, text: str, cards: Sequence[Gpu], size: int) -> RequestError:
    """Say that none of these cards has this memory, and which they have."""
    cards = [gpu for gpu in cards if was_sold(gpu)] or cards
    known = sorted({size for gpu in cards for size in sizes_of(gpu)})
    sizes = f" ({', '.join(f'{bytes_ / GIB:g} GB' for bytes_ in known)})" if known else ""
    least, most = open_range(knowledge)
    hint = "Write one of these." if known else f"Write {least / GIB:g} to {most / GIB:g} GB."
    names = listed([gpu.name for gpu in cards])
    return RequestError(
        f"'{text}': no such card has {size / GIB:g} GB; known: {names}{sizes}.", hint=hint
    )


def listed(names: Sequence[str], most: int = _MOST_LISTED) -> str:
    """Write names one after the other, the first few of many."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _chosen(knowledge: Knowledge, matches: Sequence[Match]) -> Gpu | None:
    exact = [match for match in matches if not match.surplus]
    boards = [match for match in matches if match.only_board_words]
    one = next((tier[0] for tier in (exact, boards) if len(tier) == 1), None)
    return knowledge.gpus[one.name] if one else None


def _complete(gpu: Gpu | None, text: str) -> Gpu | None:
    """Give a card whose memory is known; of what comes in several sizes the full name alone."""
    full = gpu is not None and text.casefold() == gpu.name.casefold()
    if gpu and gpu.vram_bytes is not None and (full or not MAKERS[gpu.vendor].one_memory):
        return gpu
    return None


def _base(name: str, vendor: str) -> frozenset[str]:
    return frozenset(w for w in gpu_form(name, vendor, name).core if not is_board_word(w))


class ModelRead(Struct, frozen=True):
    """What a text names."""

    model: Model
    precision: str = ""
    """The format that the name itself says; a tag's default stands in the model alone."""
    said: tuple[str, ...] = ()
    """How it was read, a sentence; nothing where the name is known just so."""
    others: tuple[str, ...] = ()
    """Known models that the name could mean too."""
    mixed: bool = False
    """The name's format is a maker's own mix, of which the file may be smaller or larger."""


def known_model(knowledge: Knowledge, text: str) -> Model | None:
    """Give a known model under its own name, alias or repository; the tuning asked for counts.

    What is not spelt as it is published, ``llama 3 8b``, is the model that people talk to.
    """
    name = models_published(knowledge).get(text.casefold())
    called = () if name or "/" in text else models_called(knowledge).get(model_key(text), ())
    name = called[0] if len(called) == 1 else name
    if name is None:
        return None
    record = knowledge.models[name]
    return as_tuned(knowledge, record, "instruct" if tells_instruct(text) else meant(record, text))


def meant(record: ModelRecord, text: str) -> str:
    """Give the tuning that is meant where none is told: of a name spelt as published its own."""
    names = (record.name, (record.hf_id or record.name).rpartition("/")[2], *record.aliases)
    spelt = any(one.casefold() in text.casefold() for one in names)
    return "" if spelt or record.modality != "text" else "instruct"


_INSTRUCT: Final = frozenset({"instruct", "chat", "it"})
"""What a known name is looked over for without the file of words."""
_TUNED_ENDINGS: Final = ("Instruct", "it", "Chat", "Chat-hf", "Instruct-hf")


def tells_instruct(text: str) -> bool:
    """Whether a name says that the model answers instructions."""
    return not _INSTRUCT.isdisjoint(model_words(text))


def tuning_of(tokens: Sequence[str], tunings: Mapping[str, str]) -> str:
    """Give the first tuning that the words of a name tell, or nothing."""
    return next((tunings[word] for word in tokens if tunings.get(word)), "")


def has_tuning(record: ModelRecord, tuning: str) -> bool:
    """Whether a record's repository is in this tuning; none asked for is any."""
    own = tells_instruct((record.hf_id or "").rpartition("/")[2])
    return not tuning or own == (tuning == "instruct")


def as_tuned(knowledge: Knowledge, record: ModelRecord, tuning: str) -> Model:
    """Give the model in the tuning that was asked for, where that is another repository."""
    found = None if has_tuning(record, tuning) else tuned_of(record, tuning, knowledge)
    return found or model_from_record(record, knowledge)


def tuned_of(record: ModelRecord, tuning: str, knowledge: Knowledge) -> Model | None:
    """Find the publisher's repository of a model in another tuning, in the public list."""
    publisher, _, own = (record.hf_id or "").partition("/")
    if tuning != "instruct" or not own:
        return None
    for ending in _TUNED_ENDINGS:
        listed = exact(f"{publisher}/{own.removesuffix('-hf')}-{ending}")
        if listed is not None:
            sized = model_from_record(record, knowledge)
            return replace(sized, name=listed.name, hf_id=listed.hf_id)
    return None


class FormatRead(Struct, frozen=True):
    """What a precision stands for."""

    formats: tuple[Format, ...]
    """One, or those that bear the same word in different runtimes; never none."""
    remark: str = ""
    """What a size rests on, a clause; empty where the format is listed just so."""
    mixed: bool = False
    """A maker's own mix of types, of which the file may be smaller or larger."""

    def said(self, text: str, chosen: Format) -> tuple[str, ...]:
        """Say in a sentence which format was taken; nothing where it is listed just so."""
        listed = not self.remark or plain_key(chosen.name).endswith(plain_key(text))
        return () if listed else (f"{text.strip()} is sized as {chosen.name}{self.remark}.",)


@by_text
def read_format(knowledge: Knowledge, text: str) -> FormatRead:
    """Find the weight formats that a word stands for.

    Raises:
        RequestError: Unknown, with the nearest names.
    """
    try:
        return FormatRead(find_format_candidates(knowledge, text))
    except RequestError:
        found = patterned(knowledge, text)
        if found is None:
            raise
        return FormatRead(*found)


def is_mix(knowledge: Knowledge, text: str) -> bool:
    """Say whether a word is a maker's own mix of types; what is no name of a format is none."""
    try:
        return read_format(knowledge, text).mixed
    except RequestError:
        return False
