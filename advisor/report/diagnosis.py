"""A log beside our own figures: the document of ``advisor diagnose``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.reading.logs import Log
from advisor.report.figures import amount, count, say
from advisor.units import plain

_FAR_SHARE, _FAR_BYTES = 0.10, 0.3 * 2**30
"""A figure is far off where it differs by more than this share, and by more than these bytes."""
_NOT_OF_THE_CARD = ("system-memory", "no-bfloat16")
_SCHEMA = 1
_OF_THE_CACHE = ("cache-too-small", "no-cache-room")
_ALL_PERCENT = 99.5
_BYTES_OF_IMAGES = 2
"""Of each parameter of the part that reads images, whose files are of 16 bits."""
Unit = Literal["bytes", "tokens", "layers", "%"]


class Row(Struct, frozen=True):
    """One figure of the log beside ours."""

    figure: str
    """``log.figure.NAME`` of words.txt says what it is."""
    unit: Unit
    """Unit of the figures of this row."""
    logged: float
    """The figure of the log. [as unit says]"""
    computed: float | None
    """Our figure; null: nothing of ours answers to it. [as unit says]"""
    difference: float | None
    """Ours less the log's. [as unit says]"""
    far: bool
    """Whether ours is far off: more than 10 %, and of memory more than 0.3 GiB."""
    each_card: bool
    """Whether it is of one card, the fullest or the one that is named, not of all together."""
    line: int
    """Line of the log where it stands. [line from 1]"""


class CauseDoc(Struct, frozen=True):
    """What went wrong."""

    cause: str
    """Its name."""
    text: str
    """It in a sentence."""
    line: int
    """Where the log says it; 0: it follows from figures. [line from 1]"""
    quoted: str
    """That line."""


class Diagnosis(Struct, frozen=True):
    """What a log says, what we compute, and what to do: the JSON of ``advisor diagnose``.

    Keys may be added, never renamed. Memory is in bytes.
    """

    schema_version: int
    """1; raised only where a key changes its meaning. [version]"""
    program: str | None
    """What wrote the log; null: not known."""
    version: str | None
    """Its version as it says it; null: it does not."""
    cards: Mapping[str, str]
    """As the log names them, by device."""
    model: str | None
    """As the log names it."""
    lines: int
    """Lines that were read. [lines]"""
    known_lines: int
    """Those of them that are known here. [lines]"""
    left_out_bytes: int
    """What of a large file was not read."""
    settings: Mapping[str, Any]
    """What the request takes from the log, then from flags, which count instead."""
    unknown: Mapping[str, str]
    """What neither tells, with the words of the log that are not known here."""
    cause: CauseDoc | None
    """What went wrong; null: nothing, or nothing that is known here."""
    comparison: Sequence[Row]
    """Figures of the log beside ours."""
    remarks: Sequence[str]
    """What is to be said of them, a sentence each."""
    starts: str | None
    """The command with the longest context that the program itself said to hold."""
    advice: Advice | None
    """None where the log does not tell enough for one."""


def compared(log: Log, doc: Advice | None) -> list[Row]:
    """Set every figure of the log beside ours, in the order of memory: whole, parts, limits."""
    return list(_rows(log, doc))


def _rows(log: Log, doc: Advice | None) -> Iterator[Row]:
    for name, unit, logged, whole, share in _pairs(log, doc):
        if logged is None:
            continue
        several = doc is not None and doc.scenario.gpus > 1
        alone = name == "capacity" and several and bool(log.alone(name))
        each = unit == "bytes" and (log.each(name) or alone)
        ours = share if each else whole
        place = log.place(name) or log.place(name.removesuffix("_in_ram"))
        yield _row(name, unit, logged, ours, each=each, line=place)


def _row(name: str, unit: Unit, logged: float, ours: float | None, *, each: bool, line: int) -> Row:
    difference = None if ours is None else ours - logged
    far = difference is not None and abs(difference) > abs(logged) * _FAR_SHARE
    if unit == "bytes" and difference is not None:
        far = far and abs(difference) > _FAR_BYTES
    far = far and unit != "layers"  # ours are the most that fit
    return Row(name, unit, logged, ours, difference, far, each, line)


_Pair = tuple[str, Unit, float | None, float | None, float | None]
"""Figure, its unit, the log's, ours over all cards, and ours on the fullest card."""


def _pairs(log: Log, doc: Advice | None) -> Iterator[_Pair]:
    ours = _Ours(doc)
    yield (
        "capacity",
        "bytes",
        log.on_cards("capacity"),
        *ours.memory("capacity_bytes", log.alone("capacity")),
    )
    yield "free", "bytes", log.on_cards("free"), None, None
    yield "used", "bytes", log.on_cards("used"), None, None
    yield "others", "bytes", log.on_cards("others"), None, None
    yield "claimed", "bytes", log.figure("claimed"), *ours.memory("usable_bytes")
    yield "required", "bytes", log.figure("required"), ours.whole("required", "host_all"), None
    yield "model_size", "bytes", log.figure("model_size"), ours.stored(), None
    seeing = ours.sees() if log.text("weights_of") else 0
    every, fullest = (value and value - seeing for value in ours.memory("weights_bytes"))
    yield "weights", "bytes", log.on_cards("weights"), every, fullest
    yield "weights_in_ram", "bytes", log.in_ram("weights"), ours.whole("host_weights"), None
    yield "cache", "bytes", _cache(log), *ours.memory("kv_cache_bytes")
    yield "cache_in_ram", "bytes", log.in_ram("cache"), ours.whole("host_kv_cache"), None
    whole = ours.whole("kv_cache", "host_kv_cache")
    yield "cache_whole", "bytes", log.figure("cache_whole"), whole, None
    yield "buffers", "bytes", log.on_cards("buffers"), *ours.memory("compute_buffer_bytes")
    yield "buffers_in_ram", "bytes", log.in_ram("buffers"), ours.whole("host_compute"), None
    yield "cache_needed", "bytes", log.figure("cache_needed"), None, ours.one_sequence()
    yield "cache_room", "bytes", log.figure("cache_room"), *ours.room()
    tokens = doc.memory.cache_tokens if doc else None
    yield "cache_tokens", "tokens", log.figure("cache_tokens"), tokens, tokens
    longest = doc.memory.max_context_tokens if doc else None
    yield "max_context", "tokens", log.figure("max_context"), longest, longest
    fitting = ours.layers()
    yield "layers_on_card", "layers", log.figure("layers_on_card"), fitting, fitting
    yield "card_percent", "%", log.figure("card_percent"), ours.on_card_percent(), None
    yield "asked", "bytes", log.figure("asked"), None, None


def _sum(log: Log, *names: str) -> float | None:
    found = [value for name in names if (value := log.on_cards(name)) is not None]
    return sum(found) if found else None


def _cache(log: Log) -> float | None:
    """Give the cache on the cards; where one failed, with the part that found no room."""
    held, cause = _sum(log, "cache", "cache_state"), log.cause()
    found = held is not None and cause is not None and cause.cause == "cache"
    failed = log.apart("asked", "cache") if found else 0.0
    return held + failed if held is not None else None


class _Ours:
    """Our figures, where there are any."""

    def __init__(self, doc: Advice | None) -> None:
        self._doc = doc

    def memory(self, name: str, device: str = "") -> tuple[float | None, float | None]:
        """Give a figure over all cards, and on one of them: this one, or the fullest."""
        if self._doc is None:
            return None, None
        memory = self._doc.memory
        each = [getattr(card, name) for card in memory.per_gpu]
        each = [each[int(device)]] if device.isdecimal() and int(device) < len(each) else each
        return getattr(memory, name), max(each) if each else None

    def whole(self, *parts: str) -> float | None:
        """Add up parts of what is needed, on the cards and in system RAM."""
        if self._doc is None:
            return None
        memory = self._doc.memory
        in_ram = (memory.host_weights_bytes, memory.host_kv_cache_bytes, memory.host_compute_bytes)
        every = {"host_all": sum(in_ram)}
        return sum(every[one] if one in every else getattr(memory, f"{one}_bytes") for one in parts)

    def sees(self) -> float:
        """Give the part that reads images, in a file of its own."""
        return _BYTES_OF_IMAGES * self._doc.scenario.model.vision_parameters if self._doc else 0.0

    def stored(self) -> float | None:
        """Give the file of the model: an embedding that is the output too once, no images."""
        bits = self._doc.memory.bits_per_weight if self._doc else None
        if self._doc is None or bits is None:
            return None
        return bits * self._doc.scenario.model.parameters / 8 - self.sees()

    def one_sequence(self) -> float | None:
        """Give the cache of one sequence on the fullest card."""
        if self._doc is None or not self._doc.memory.per_gpu:
            return None
        most = max(card.kv_cache_bytes for card in self._doc.memory.per_gpu)
        return most / self._doc.scenario.batch

    def room(self) -> tuple[float | None, float | None]:
        """Give what a server keeps for its cache, on all cards and on each."""
        room = self._doc.memory.cache_room_bytes if self._doc else None
        return room, None if room is None or self._doc is None else room / self._doc.scenario.gpus

    def layers(self) -> float | None:
        """Give the most layers on the cards that a recommendation of ours proves, or all."""
        if self._doc is None:
            return None
        if self._doc.scenario.gpu_layers is None and self._doc.memory.deficit_bytes == 0:
            return self._doc.scenario.model.layers + 1
        found = [
            layers
            for item in self._doc.recommendations
            if set(item.change) == {"gpu_layers"}
            and isinstance(layers := item.change["gpu_layers"], int)
        ]
        return max(found, default=None)

    def on_card_percent(self) -> float | None:
        """Give the share of what is needed that lies on the cards."""
        on_cards, whole = self.whole("required"), self.whole("required", "host_all")
        if self._doc is None or on_cards is None or not whole:
            return None
        usable = self._doc.memory.usable_bytes
        return round(100 * (on_cards if usable is None else min(on_cards, usable)) / whole)


def diagnosed(
    log: Log,
    settings: Mapping[str, object],
    unknown: Mapping[str, str],
    doc: Advice | None,
    starts: str | None = None,
) -> Diagnosis:
    """Put the document together.

    ``unknown`` is what is missing for a request; ``starts`` the command with the longest context
    that the log says to hold.
    """
    named = [text for text in (log.text("name"), log.text("model")) if text]
    return Diagnosis(
        _SCHEMA,
        log.runtime or None,
        log.text("version") or None,
        log.cards,
        plain(named[0]) if named else None,
        log.lines,
        log.known_lines,
        log.left_out_bytes,
        settings,
        unknown,
        _cause(log),
        compared(log, doc),
        _remarks(log, doc),
        starts,
        doc,
    )


def _cause(log: Log) -> CauseDoc | None:
    found = log.cause()
    if found:
        return CauseDoc(found.cause, say(f"log.cause.{found.cause}"), found.line, plain(found.text))
    on_cards, every = log.figure("layers_on_card"), log.figure("layers")
    in_ram = log.figure("host_percent")
    if on_cards is not None and every:
        in_ram = 100 * (1 - on_cards / every)
    if not in_ram:
        return None
    cause = "in-ram" if in_ram >= _ALL_PERCENT else "part-in-ram"
    place = log.place("layers_on_card") or log.place("host_percent")
    return CauseDoc(cause, say(f"log.cause.{cause}"), place, "")


def _remarks(log: Log, doc: Advice | None) -> list[str]:
    """Say why our figures may differ from the log's, and what of it was not read."""
    found = []
    cause = log.cause()
    on_card = cause is not None and cause.cause not in _NOT_OF_THE_CARD
    if doc and on_card and doc.memory.deficit_bytes == 0 and not lacking(log, doc):
        found.append(say("log.remark.fits", free=amount(doc.memory.headroom_bytes)))
    longest = log.figure("max_context")
    if longest and log.causes:
        found.append(say("log.remark.longest", n=count(longest)))
    if any(row.far for row in compared(log, doc)):
        found.append(say("log.remark.far"))
    if log.left_out_bytes:
        found.append(say("log.left-out", size=amount(log.left_out_bytes)))
    return found


def lacking(log: Log, doc: Advice) -> float:
    """Give what each card had less for the cache than we compute, bytes; 0 where it had not."""
    cause, room = log.cause(), log.figure("cache_room")
    ours = doc.memory.cache_room_bytes
    if cause is None or cause.cause not in _OF_THE_CACHE or room is None or ours is None:
        return 0.0
    short = ours / doc.scenario.gpus - room
    return short if short > _FAR_BYTES and doc.memory.per_gpu else 0.0


def with_assumed_card(made: Diagnosis, card: str) -> Diagnosis:
    """Say that a card was taken for its memory alone."""
    return replace(made, remarks=[say("log.remark.card", card=card), *made.remarks])


def held_by_others(made: Diagnosis, short: float, reserve_gib: float, doc: Advice) -> Diagnosis:
    """Give the diagnosis with the answer for cards of which others hold so much."""
    return replace(
        made,
        settings={**made.settings, "reserve_gib": reserve_gib},
        remarks=[*made.remarks, say("log.remark.held", size=amount(short))],
        advice=doc,
    )
