"""Advice: the result document. It is the JSON of ``advise --format json``, and every view reads it.

Keys may be added, never renamed. Bytes, tokens per second, percent and US dollars are plain
numbers with the unit in the key; ``None`` is an unknown figure. What bears the name of a record
and ``Doc`` is that record as far as it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from advisor.advice.configuration import MemoryDoc, ScenarioDoc, SetupDoc, SpeedDoc
from advisor.estimator.picture import MemoryPicture
from advisor.knowledge.layers import SwitchedOff, UserEntry
from advisor.knowledge.vocabulary import FactValue
from advisor.runtimes.commands import Command
from advisor.scenario.figures import BreakEven, Figure, Span


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
