"""Advice: the result document. It is the JSON of ``advise --format json``, and every view reads it.

Keys may be added, never renamed. Bytes, tokens per second, percent and US dollars are plain
numbers with the unit in the key; ``None`` is an unknown figure. What bears the name of a record
and ``Doc`` is that record as far as it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from advisor.estimator.picture import MemoryPicture
from advisor.knowledge.provenance import SwitchedOff, UserEntry
from advisor.knowledge.vocabulary import FactValue
from advisor.runtimes.commands import Command
from advisor.scenario.figures import (
    BreakEven,
    CardMemory,
    Certainty,
    Figure,
    Occupied,
    Rates,
    Span,
)


class GpuDoc(Struct, frozen=True):
    """The card, one of ``scenario.gpus`` equal ones; of unequal ones the least in every figure."""

    name: str
    vendor: str
    segment: str
    architecture: str
    compute_capability: float | None
    vram_bytes: int | None
    vram_type: str | None
    bandwidth_bytes_s: float | None
    cores: int | None
    tensor_cores: int | None
    fp16_tensor_tflops_fp32acc: float | None
    tdp_w: float | None
    unified_memory: bool | None
    released: str | None
    launch_price_usd: float | None
    disputed: Mapping[str, Sequence[str]]


class ModelDoc(Struct, frozen=True):
    """The model."""

    name: str
    family: str
    modality: str
    hf_id: str | None
    licence: str | None
    origin: str
    parameters: int
    active_parameters: int
    vision_parameters: int
    label_parameters_b: float | None
    trained_context_tokens: int | None
    image_tokens: str | None
    layers: int
    experts: int | None
    experts_used: int | None


class SetupDoc(Struct, frozen=True):
    """A configuration, short form: what an option changes."""

    gpu: str | None
    gpu_vram_bytes: int | None
    gpu_bandwidth_bytes_s: float | None
    gpus: int
    model: str
    model_family: str
    model_parameters: int
    precision: str
    context_tokens: int
    batch: int
    kv_cache: str
    framework: str
    framework_split: str | None
    gpu_layers: int | None
    layers: int
    cpu_experts: int
    draft_model: str | None
    mtp: int
    ram_bytes: int | None


class EachCardDoc(Struct, frozen=True):
    """One of several unequal cards."""

    name: str
    vram_bytes: int | None
    bandwidth_bytes_s: float | None


class ScenarioDoc(Struct, frozen=True):
    """The resolved request; ``cards`` holds every card where they are unequal."""

    gpu: GpuDoc | None
    gpus: int
    cards: Sequence[EachCardDoc]
    model: ModelDoc
    precision: str
    precision_quality_loss_percent: float | None
    precision_class_bits: int | None
    precision_nominal_bytes_per_weight: float | None
    context_tokens: int
    batch: int
    kv_cache: str
    kv_cache_k: str
    kv_cache_v: str
    framework: str
    framework_offloads: bool | None
    framework_memory_model: str
    framework_memory_fraction: float | None
    framework_split: str | None
    backend: str | None
    backend_usual: bool | None
    flash_attention: bool
    ubatch: int
    gpu_layers: int | None
    cpu_experts: int
    depth_tokens: int
    ram_bytes: int | None
    ram_bandwidth_bytes_s: float | None
    """Stated, or the middle of what it may be."""
    least_ram_bandwidth_bytes_s: float | None
    most_ram_bandwidth_bytes_s: float | None
    ram_assumed: bool
    """Nothing was said of how fast the RAM is, so it is as such machines have it."""
    cpu_cores: int | None
    prefer: str
    use: str
    draft_model: str | None
    mtp: int
    """Tokens that the model's own head drafts at once; 0: none."""
    read_as: Sequence[str]
    """How what was typed was understood, a sentence each; empty where it stands there plainly."""


class MemoryDoc(Occupied, frozen=True):
    """What the scenario occupies; card figures are sums over the cards."""

    max_context_tokens: int | None
    max_batch: int | None
    bits_per_weight: float | None
    low_bytes: int
    high_bytes: int
    certainty: Certainty | None
    cache_room_bytes: int | None
    cache_tokens: int | None
    cache_sequences: int | None
    held_sequences: int | None
    approximate: Sequence[str]
    per_gpu: Sequence[CardMemory]


class SpeedDoc(Rates, frozen=True):
    """Speeds of a scenario that runs."""


class Because(Struct, frozen=True):
    """One condition of the rule that fired: the fact, its value and the test it passed."""

    fact: str
    value: FactValue | None
    test: str
    shown: str
    """The value with its unit, for people."""
    distance: str = ""
    """For a veto: how far the number lies beyond the limit; else empty."""


class Verdict(Struct):
    """The answer."""

    state: str
    sentence: str


class Before(Struct, frozen=True):
    """The request's own figures."""

    required_bytes: int
    decode_tok_s: Figure | None


class After(Struct, frozen=True):
    """The changed scenario's figures."""

    required_bytes: int
    headroom_bytes: int | None
    deficit_bytes: int | None
    usable_bytes: int | None
    weights_bytes: int
    kv_cache_bytes: int
    host_bytes: int
    fits: bool
    margin: str | None
    held_sequences: int | None
    decode_tok_s: Figure | None
    aggregate_tok_s: Figure | None


class Tradeoff(Struct, frozen=True):
    """What a change costs; ``quality`` is the perplexity increase over FP16 in %."""

    quality: float | None
    quality_change: float | None
    cost_usd: float | None
    effort: str


class OptionDoc(Struct, frozen=True):
    """A what-if."""

    action: str
    change: Mapping[str, Any]
    setup: SetupDoc
    after: After
    tradeoff: Tradeoff
    steps: int
    best: bool
    """Whether no other fitting what-if beats it in quality, speed and price at once."""


class OptionsDoc(Struct, frozen=True):
    """What was tried; the rows fit, no rule bars them and none is beaten by one of its action."""

    tried: int
    fitting: int
    dominated: int
    barred: int
    rows: Sequence[OptionDoc]


class Alternative(Struct, frozen=True):
    """Another option of the same action that also fits."""

    change: Mapping[str, Any]
    setup: SetupDoc
    after: After


class Recommendation(Struct):
    """A what-if that is worth doing."""

    rank: int
    action: str
    title: str
    text: str
    change: Mapping[str, Any]
    setup: SetupDoc
    before: Before
    after: After
    tradeoff: Tradeoff
    confidence: str
    command: str
    commands: Sequence[Command]
    """Every program of the framework, the one that leaves the least unsaid first."""
    alternatives: Sequence[Alternative]
    speculative_tok_s: Span | None
    rule: str
    yours: UserEntry | None
    """Where the rule is the user's; null for a built-in one."""
    score: float
    score_terms: Sequence[ScoreTermDoc]
    because: Sequence[Because]


class ScoreTermDoc(Struct, frozen=True):
    """One term of a score."""

    text: str
    points: float


class Note(Struct, frozen=True):
    """A remark."""

    rule: str
    yours: UserEntry | None
    text: str


class NotRecommended(Struct):
    """A what-if that a rule barred, or one people look for that cannot run here, and why."""

    title: str
    """It in a few words: ``AWQ 4-bit in llama.cpp``."""
    action: str
    change: Mapping[str, Any]
    rule: str
    yours: UserEntry | None
    reason: str
    because: Sequence[Because]


class Provenance(Struct, frozen=True):
    """What produced the advice."""

    advisor: str
    rules_sha256: str
    knowledge_sha256: str
    templates_sha256: str
    engine: str
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
    request: Mapping[str, Any]
    scenario: ScenarioDoc
    memory: MemoryDoc
    break_even: BreakEven
    speed: SpeedDoc | None
    speed_full: SpeedDoc | None
    """The same with the whole context in use; null for a short one, or with a stated depth."""
    speculative_tok_s: Span | None
    verdict: Verdict
    commands: Sequence[Command]
    """How to run the request as it stands; empty where it does not run."""
    recommendations: Sequence[Recommendation]
    notes: Sequence[Note]
    not_recommended: Sequence[NotRecommended]
    warnings: Sequence[str]
    missing: Sequence[str]
    facts: Mapping[str, FactValue]
    options: OptionsDoc | None
    """Only with ``--options``."""
    memory_picture: MemoryPicture | None
    """Only with ``--memory``."""
    provenance: Provenance
