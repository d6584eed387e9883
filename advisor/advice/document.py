"""Advice: the result document. It is the JSON of ``advise --format json``, and every view reads it.

Keys may be added, never renamed. Bytes, tokens per second, percent and US dollars are plain
numbers with the unit in the key; ``None`` is an unknown figure. What bears the name of a record
and ``Doc`` is that record as far as it is printed.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from advisor.advice.configuration import MemoryDoc, MemoryPicture, ScenarioDoc, SetupDoc, SpeedDoc
from advisor.knowledge.layers import SwitchedOff, UserEntry
from advisor.knowledge.vocabulary import FactValue
from advisor.runtimes.commands import Command
from advisor.scenario.figures import BreakEven, Figure, Span

if TYPE_CHECKING:
    from advisor.scenario.figures import CardMemory


class Because(Struct, frozen=True):
    """One condition of the rule that fired: the fact, its value and the test it passed."""

    fact: str
    """Name of the fact."""
    value: FactValue | None
    """Its value, in base units (bytes, bytes/s, tokens/s, %, US dollars). [of the fact]"""
    test: str
    """What the rule asks of it."""
    shown: str
    """The value with its unit, for people."""
    distance: str = ""
    """For a veto: how far the number lies beyond the limit; else empty."""


class Verdict(Struct):
    """The answer."""

    state: str
    """fits, tight, needs_offload or too_big."""
    sentence: str
    """It in words."""


class Before(Struct, frozen=True):
    """The request's own figures."""

    required_bytes: int
    """Memory needed on the cards."""
    decode_tok_s: Figure | None
    """Speed of one sequence; null where it does not run."""


class After(Struct, frozen=True):
    """The changed scenario's figures."""

    required_bytes: int
    """Memory needed on the cards."""
    headroom_bytes: int | None
    """What stays free on the fullest card."""
    deficit_bytes: int | None
    """What is missing on the fullest card."""
    usable_bytes: int | None
    """What the cards offer in all."""
    weights_bytes: int
    """Weights on the cards."""
    kv_cache_bytes: int
    """Key/value cache on the cards."""
    host_bytes: int
    """All that lies in system RAM."""
    fits: bool
    """Whether it runs: on the cards, and in system RAM that is known or said to be needed."""
    margin: str | None
    """How far one may rely on it: thin, narrow or ample; null where it does not fit."""
    held_sequences: int | None
    """Sequences that a server holds at once; null for other programs. [sequences]"""
    decode_tok_s: Figure | None
    """Speed of one sequence."""
    aggregate_tok_s: Figure | None
    """Speed of all sequences together."""


class Tradeoff(Struct, frozen=True):
    """What a change costs; ``quality`` is the perplexity increase over FP16 in %."""

    quality: float | None
    """Perplexity increase of its weight format over FP16; null: not measured. [%]"""
    quality_change: float | None
    """The same over the request as it stands. [%]"""
    cost_usd: float | None
    """Launch price of the cards to add or buy; null: nothing, or not known."""
    effort: str
    """What it asks of a person: setting, download, rebuild or purchase."""
    quality_known: str = ""
    """What is published of the loss of its formats, where no figure of them compares."""
    quality_of: str = ""
    """Size of the model that the perplexity of its weight format was measured on: 8B."""


class OptionDoc(Struct, frozen=True):
    """A what-if."""

    action: str
    """What kind of change it is."""
    change: Mapping[str, Any]
    """The settings that change, complete: added to the request they give this."""
    setup: SetupDoc
    """The configuration that comes of it."""
    after: After
    """Its figures."""
    tradeoff: Tradeoff
    """What it costs."""
    steps: int
    """Actions taken together. [actions]"""
    best: bool
    """Whether no other fitting what-if beats it in quality, speed and price at once."""


class OptionsDoc(Struct, frozen=True):
    """What was tried; the rows fit, no rule bars them and none is beaten by one of its action."""

    tried: int
    """What-ifs that were estimated. [what-ifs]"""
    fitting: int
    """Those of them that fit. [what-ifs]"""
    dominated: int
    """Those that fit and are beaten by one of the same action. [what-ifs]"""
    barred: int
    """Those that fit and a rule bars. [what-ifs]"""
    rows: Sequence[OptionDoc]
    """Those that are left."""


class Alternative(Struct, frozen=True):
    """Another option of the same action that also fits."""

    change: Mapping[str, Any]
    """The settings that change, complete."""
    setup: SetupDoc
    """The configuration that comes of it."""
    after: After
    """Its figures."""


class Recommendation(Struct):
    """A what-if that is worth doing."""

    rank: int
    """Its place, the best first. [place from 1]"""
    action: str
    """What kind of change it is: quantize, add-gpus ..."""
    title: str
    """It in a few words."""
    text: str
    """It in sentences."""
    change: Mapping[str, Any]
    """The settings that change, complete: added to the request they give ``after``."""
    setup: SetupDoc
    """The configuration that comes of it."""
    before: Before
    """The request's own figures."""
    after: After
    """The figures of the changed scenario."""
    tradeoff: Tradeoff
    """What it costs."""
    confidence: str
    """How sure its figures are: high, medium or low."""
    command: str
    """The first of ``commands``; empty where none is sourced."""
    commands: Sequence[Command]
    """Every program of the framework, the one that leaves the least unsaid first."""
    alternatives: Sequence[Alternative]
    """Other options of the same action that fit."""
    speculative_tok_s: Span | None
    """Where the speed of one sequence may come to lie with drafted tokens."""
    rule: str
    """The rule that recommends it."""
    yours: UserEntry | None
    """Where the rule is the user's; null for a built-in one."""
    score: float
    """What it is ordered by within its action and beside others. [points]"""
    score_terms: Sequence[ScoreTermDoc]
    """What that score is made of."""
    because: Sequence[Because]
    """What held, so that the rule fired."""


class ScoreTermDoc(Struct, frozen=True):
    """One term of a score."""

    text: str
    """What it is for."""
    points: float
    """What it adds. [points]"""


class Note(Struct, frozen=True):
    """A remark."""

    rule: str
    """The rule that makes it."""
    yours: UserEntry | None
    """Where that rule is the user's; null for a built-in one."""
    text: str
    """It in sentences."""


class NotRecommended(Struct):
    """A what-if that a rule barred, or one people look for that cannot run here, and why."""

    title: str
    """It in a few words: ``AWQ 4-bit in llama.cpp``."""
    action: str
    """What kind of change it is."""
    change: Mapping[str, Any]
    """The settings that it would change."""
    rule: str
    """The rule that bars it."""
    yours: UserEntry | None
    """Where that rule is the user's; null for a built-in one."""
    reason: str
    """Why not, in sentences."""
    because: Sequence[Because]
    """What held, so that the rule fired."""


class Provenance(Struct, frozen=True):
    """What produced the advice."""

    advisor: str
    """Version of the program."""
    rules_sha256: str
    """Digest of the rules."""
    knowledge_sha256: str
    """Digest of the knowledge."""
    templates_sha256: str
    """Digest of the texts."""
    engine: str
    """The rule engine that answered."""
    measurements_sha256: str | None = None
    """Of the user's own measurements; None without any."""
    yours: tuple[UserEntry, ...] = ()
    """What of the user's own rules and knowledge it rests on."""
    switched_off: tuple[SwitchedOff, ...] = ()
    """Built-in rules that the user disabled."""

    def rules(self) -> Mapping[str, UserEntry]:
        """Give the rules among what is the user's, by name."""
        return {entry.name: entry for entry in self.yours if entry.what == "rule"}


class Advice(Struct):
    """One report."""

    schema_version: int
    """1; raised only where a key changes its meaning. [version]"""
    request: Mapping[str, Any]
    """What was asked, as typed."""
    scenario: ScenarioDoc
    """What it means: names resolved, defaults filled in."""
    memory: MemoryDoc
    """What it occupies."""
    break_even: BreakEven
    """Where it tips over, all else as it is."""
    speed: SpeedDoc | None
    """How fast it runs; null where it does not, or the speed is not known."""
    speed_full: SpeedDoc | None
    """The same with the whole context in use; null for a short one, or with a stated depth."""
    speculative_tok_s: Span | None
    """Where the speed of one sequence may come to lie with drafted tokens."""
    verdict: Verdict
    """The answer."""
    commands: Sequence[Command]
    """How to run the request as it stands; empty where it does not run."""
    recommendations: Sequence[Recommendation]
    """What is worth doing, the best first."""
    notes: Sequence[Note]
    """Remarks."""
    not_recommended: Sequence[NotRecommended]
    """What people look for and cannot or should not be done here, with the reason."""
    warnings: Sequence[str]
    """What is odd about the request, a sentence each."""
    missing: Sequence[str]
    """What nobody states and speed needs: names of facts, or words."""
    facts: Mapping[str, FactValue]
    """Facts beside the other keys that texts may name, in base units."""
    options: OptionsDoc | None
    """Only with ``--options``."""
    memory_picture: MemoryPicture | None
    """Only with ``--memory``."""
    provenance: Provenance
    """What produced it."""


_MAY_BE_NEGATIVE = (".quality", "quality_change", "points", "score")
"""Ends of places whose numbers may lie below zero, as those of facts may."""
_ORDERED = ("low", "estimate", "high")
_LINES = frozenset("\n\t")


def wrong_in(doc: Advice) -> list[str]:
    """List what does not hold of a document, each with its place; nothing where all does."""
    return [*wrong_figures(doc, doc.memory), *_verdict(doc), *_ranks(doc)]


def wrong_figures(doc: Struct, memory: MemoryDoc | None) -> list[str]:
    """List what does not hold of the values of any document, and of its memory."""
    held = _memory(memory) if memory else ()
    return [*_values(to_builtins(doc, str_keys=True), ""), *held]


def _values(value: object, at: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _in_order(value, at)
        for key, inner in value.items():
            yield from _text(str(key), at)
            yield from _values(inner, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _values(inner, f"{at}[{number}]")
    elif isinstance(value, str):
        yield from _text(value, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, at)


def _number(value: float, at: str) -> Iterator[str]:
    if not math.isfinite(value):
        yield f"{at} is {value}, not a finite number"
    elif value < 0 and not _may_be_negative(at):
        yield f"{at} is {value}, below zero"


def _may_be_negative(at: str) -> bool:
    return at.startswith("facts.") or at.endswith(_MAY_BE_NEGATIVE) or ".because[" in at


def _text(value: str, at: str) -> Iterator[str]:
    if value.isascii() and value.isprintable():
        return
    for letter in value:
        if letter not in _LINES and unicodedata.category(letter) in {"Cc", "Cs"}:
            yield f"{at} holds the control character U+{ord(letter):04X}"
            return


def _in_order(value: Mapping[str, object], at: str) -> Iterator[str]:
    bounds = [value[key] for key in _ORDERED if isinstance(value.get(key), int | float)]
    if bounds != sorted(bounds):  # type: ignore[type-var]  # numbers alone
        yield f"{at} has bounds out of order: {' '.join(map(str, bounds))}"


def _memory(memory: MemoryDoc) -> Iterator[str]:
    parts: list[tuple[str, MemoryDoc | CardMemory]] = [("memory", memory)]
    parts += [(f"memory of {card.name}", card) for card in memory.per_gpu]
    for at, part in parts:
        if not part.low_bytes <= part.required_bytes <= part.high_bytes:
            bounds = f"{part.low_bytes} {part.required_bytes} {part.high_bytes}"
            yield f"{at} has bounds out of order: {bounds}"
        total = sum(getattr(part, name) for name in _PARTS)
        if total != part.required_bytes:
            yield f"{at} needs {part.required_bytes}, and its parts come to {total}"
    for name in (*_PARTS, "required_bytes") if memory.per_gpu else ():
        total = sum(getattr(card, name) for card in memory.per_gpu)
        if total != getattr(memory, name):
            yield f"memory.{name} is {getattr(memory, name)}, and its cards come to {total}"


_PARTS = ("weights_bytes", "kv_cache_bytes", "compute_buffer_bytes", "overhead_bytes")


def _verdict(doc: Advice) -> Iterator[str]:
    fits = doc.verdict.state in {"fits", "tight"}
    if fits and doc.memory.deficit_bytes:
        yield f"verdict.state is {doc.verdict.state} with a deficit of {doc.memory.deficit_bytes}"


def _ranks(doc: Advice) -> Iterator[str]:
    ranks = [item.rank for item in doc.recommendations]
    if ranks != list(range(1, len(ranks) + 1)):
        yield f"recommendations are ranked {ranks}"
