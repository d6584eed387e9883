"""The result document: the JSON of ``advise --format json``, which every view reads.

Keys may be added, never renamed. Bytes, tokens per second, percent and US dollars are plain
numbers with the unit in the key; ``None`` is an unknown figure.
"""

from __future__ import annotations

from typing_extensions import TypedDict

from advisor.report.contract_picture import PictureDoc
from advisor.report.contract_provenance import ProvenanceDoc, YoursDoc


class GpuDoc(TypedDict):
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
    disputed: dict[str, list[str]]


class ModelDoc(TypedDict):
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


class SetupDoc(TypedDict):
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


class EachCardDoc(TypedDict):
    """One of several unequal cards."""

    name: str
    vram_bytes: int | None
    bandwidth_bytes_s: float | None


class ScenarioDoc(TypedDict):
    """The resolved request; ``cards`` holds every card where they are unequal."""

    gpu: GpuDoc | None
    gpus: int
    cards: list[EachCardDoc]
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
    cpu_cores: int | None
    prefer: str
    use: str
    draft_model: str | None
    mtp: int
    """Tokens that the model's own head drafts at once; 0: none."""


class CardDoc(TypedDict):
    """One card's share, bytes; ``low`` and ``high`` are the ends of ``required``."""

    name: str
    capacity_bytes: int
    usable_bytes: int
    required_bytes: int
    weights_bytes: int
    kv_cache_bytes: int
    compute_buffer_bytes: int
    overhead_bytes: int
    low_bytes: int
    high_bytes: int


class MemoryDoc(TypedDict):
    """What the scenario occupies; card figures are sums over the cards."""

    capacity_bytes: int | None
    usable_bytes: int | None
    required_bytes: int
    deficit_bytes: int | None
    headroom_bytes: int | None
    weights_bytes: int
    kv_cache_bytes: int
    compute_buffer_bytes: int
    overhead_bytes: int
    host_weights_bytes: int
    host_kv_cache_bytes: int
    host_compute_bytes: int
    nominal_weights_gb: float | None
    max_context_tokens: int | None
    max_batch: int | None
    bits_per_weight: float | None
    low_bytes: int
    high_bytes: int
    certainty: str | None
    cache_room_bytes: int | None
    cache_tokens: int | None
    cache_sequences: int | None
    approximate: list[str]
    per_gpu: list[CardDoc]


class BreakEvenDoc(TypedDict):
    """Where the request tips over, all else as it is; null: unknown, or no such point."""

    max_context_tokens: int | None
    """The longest context that fits."""
    missing_bytes: int | None
    """On the fullest card; 0 when it fits."""
    too_large_batch: int | None
    """The smallest batch that does not fit."""
    largest_format: str | None
    """The largest weight format of the framework that fits; larger and worse ones left out."""
    largest_format_bits: float | None
    """Its bits per weight, everything included."""
    fewest_gpus: int | None
    """The fewest equal cards that hold it, up to 8."""
    smallest_capacity_bytes: int | None
    """The smallest whole-GiB memory of one card, as sold, that holds it."""


class FigureDoc(TypedDict):
    """Tokens per second, or seconds to a first token, with the 80 % range."""

    estimate: float
    low: float
    high: float
    evidence: str
    source: str
    modelled: float | None


class SpeedDoc(TypedDict):
    """Speeds of a scenario that runs."""

    depth_tokens: int
    decode_tok_s: FigureDoc
    prefill_tok_s: FigureDoc | None
    aggregate_tok_s: FigureDoc | None
    bound_by: str
    first_token_s: FigureDoc | None
    prompt_tokens: int
    cards: int


class VerdictDoc(TypedDict):
    """The answer."""

    state: str
    sentence: str


class BecauseDoc(TypedDict):
    """One condition that held."""

    fact: str
    value: float | str | bool | None
    test: str
    shown: str
    distance: str
    """For a veto: how far the number lies beyond the limit; else empty."""


class ScoreTermDoc(TypedDict):
    """One term of a score."""

    text: str
    points: float


class BeforeDoc(TypedDict):
    """The request's own figures."""

    required_bytes: int
    decode_tok_s: FigureDoc | None


class AfterDoc(TypedDict):
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
    decode_tok_s: FigureDoc | None
    aggregate_tok_s: FigureDoc | None


class TradeoffDoc(TypedDict):
    """What a change costs; ``quality`` is the perplexity increase over FP16 in %."""

    quality: float | None
    quality_change: float | None
    cost_usd: float | None
    effort: str


class OptionDoc(TypedDict):
    """A what-if."""

    action: str
    change: dict[str, object]
    setup: SetupDoc
    after: AfterDoc
    tradeoff: TradeoffDoc
    steps: int
    best: bool
    """Whether no other fitting what-if beats it in quality, speed and price at once."""


class OptionsDoc(TypedDict):
    """What was tried; the rows fit, no rule bars them and none is beaten by one of its action."""

    tried: int
    fitting: int
    dominated: int
    barred: int
    rows: list[OptionDoc]


class AlternativeDoc(TypedDict):
    """Another option of the same action that also fits."""

    change: dict[str, object]
    setup: SetupDoc
    after: AfterDoc


class SpanDoc(TypedDict):
    """Tokens per second that a draft model or an own head may lead to; it can lose."""

    low: float
    high: float


class GapDoc(TypedDict):
    """A setting that a program cannot be told, and why."""

    setting: str
    reason: str


class CommandDoc(TypedDict):
    """A complete invocation of one program, for a POSIX shell."""

    program: str
    what: str
    version: str
    text: str
    gaps: list[GapDoc]


class RecommendationDoc(TypedDict):
    """A what-if that is worth doing."""

    rank: int
    action: str
    title: str
    text: str
    change: dict[str, object]
    setup: SetupDoc
    before: BeforeDoc
    after: AfterDoc
    tradeoff: TradeoffDoc
    confidence: str
    command: str
    commands: list[CommandDoc]
    """Every program of the framework, the one that leaves the least unsaid first."""
    alternatives: list[AlternativeDoc]
    speculative_tok_s: SpanDoc | None
    rule: str
    yours: YoursDoc | None
    """Where the rule is the user's; null for a built-in one."""
    score: float
    score_terms: list[ScoreTermDoc]
    because: list[BecauseDoc]


class NoteDoc(TypedDict):
    """A remark."""

    rule: str
    yours: YoursDoc | None
    text: str


class NotRecommendedDoc(TypedDict):
    """A what-if that a rule barred, or one people look for that cannot run here, and why."""

    title: str
    """It in a few words: ``AWQ 4-bit in llama.cpp``."""
    action: str
    change: dict[str, object]
    rule: str
    yours: YoursDoc | None
    reason: str
    because: list[BecauseDoc]


class Document(TypedDict):
    """One report."""

    schema_version: int
    request: dict[str, object]
    scenario: ScenarioDoc
    memory: MemoryDoc
    break_even: BreakEvenDoc
    speed: SpeedDoc | None
    speculative_tok_s: SpanDoc | None
    verdict: VerdictDoc
    commands: list[CommandDoc]
    """How to run the request as it stands; empty where it does not run."""
    recommendations: list[RecommendationDoc]
    notes: list[NoteDoc]
    not_recommended: list[NotRecommendedDoc]
    warnings: list[str]
    missing: list[str]
    facts: dict[str, float | str | bool]
    options: OptionsDoc | None
    """Only with ``--options``."""
    memory_picture: PictureDoc | None
    """Only with ``--memory``."""
    provenance: ProvenanceDoc
