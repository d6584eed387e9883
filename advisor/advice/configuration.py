"""What a document says of a configuration: card, model, settings, speed, and how memory grows.

Bytes, tokens per second, percent and US dollars are plain numbers with the unit in the key, others
name it in brackets; ``None`` is an unknown figure. What bears the name of a record and ``Doc`` is
that record as far as it is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.kv_cache import kv_bytes_per_token
from advisor.scenario import Scenario, with_batch
from advisor.scenario.figures import CardMemory, Certainty, Occupied, Rates

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge


class GpuDoc(Struct, frozen=True):
    """The card, one of ``scenario.gpus`` equal ones; of unequal ones the least in every figure."""

    name: str
    """Its name in the knowledge base, or as typed where only its figures are known."""
    vendor: str
    """NVIDIA, AMD, Intel or Apple."""
    segment: str
    """The market it was made for: consumer, mobile, workstation, datacenter, edge or apple."""
    architecture: str
    """Hardware generation, for example Ada Lovelace."""
    compute_capability: float | None
    """NVIDIA's own number, 8.9 or 12.0; null for other makers. [version]"""
    vram_bytes: int | None
    """Memory of one card as sold."""
    vram_type: str | None
    """Memory technology, for example GDDR6X."""
    bandwidth_bytes_s: float | None
    """Memory bandwidth of one card."""
    cores: int | None
    """Shading units: CUDA cores, stream processors, Apple GPU cores. [cores]"""
    tensor_cores: int | None
    """Units that multiply matrices. [cores]"""
    fp16_tensor_tflops_fp32acc: float | None
    """Dense FP16 matrix throughput, sums kept in FP32."""
    tdp_w: float | None
    """Rated board power."""
    unified_memory: bool | None
    """Whether the card shares its memory with the processor."""
    released: str | None
    """Day it came out, YYYY-MM-DD or a part of it."""
    launch_price_usd: float | None
    """Launch price of one card; no street price."""
    disputed: Mapping[str, Sequence[str]]
    """Figures on which sources differ -> the values they state."""


class ModelDoc(Struct, frozen=True):
    """The model."""

    name: str
    """Its name in the knowledge base, or that of the file or folder."""
    family: str
    """Models of one kind in several sizes, for example Qwen3."""
    modality: str
    """What it is for: text, vision, audio or embedding."""
    hf_id: str | None
    """Its repository on Hugging Face, owner/name."""
    licence: str | None
    """The identifier of its licence."""
    origin: str
    """Where its sizes are from: ``knowledge``, ``list`` (public models) or ``config`` (files)."""
    parameters: int
    """All weights. [parameters]"""
    active_parameters: int
    """Those that one token reads: of a mixture without idle experts, input embedding and the part
    that reads pictures. [parameters]"""
    vision_parameters: int
    """Those of the part that reads images or sound. [parameters]"""
    label_parameters_b: float | None
    """Billions of parameters as its name has it. [10^9 parameters]"""
    trained_context_tokens: int | None
    """The longest context it was trained on."""
    image_tokens: str | None
    """How many tokens an image becomes, in words."""
    layers: int
    """Blocks of the text model. [layers]"""
    experts: int | None
    """Routed experts of a layer; null without any. [experts]"""
    experts_used: int | None
    """Routed experts that one token passes through. [experts]"""


class SetupDoc(Struct, frozen=True):
    """A configuration, short form: what an option changes."""

    gpu: str | None
    """The card."""
    gpu_vram_bytes: int | None
    """Memory of one card as sold."""
    gpu_bandwidth_bytes_s: float | None
    """Memory bandwidth of one card."""
    gpus: int
    """How many of them. [cards]"""
    model: str
    """The model."""
    model_family: str
    """Its family."""
    model_parameters: int
    """All its weights. [parameters]"""
    precision: str
    """Weight format."""
    context_tokens: int
    """Context of each sequence."""
    batch: int
    """Sequences held at once. [sequences]"""
    kv_cache: str
    """Type of the key/value cache; K/V where the halves differ."""
    framework: str
    """The program that runs it."""
    framework_split: str | None
    """How several cards share the model; null with one."""
    gpu_layers: int | None
    """Layers on the cards; null: all. [layers]"""
    layers: int
    """Layers of the model. [layers]"""
    cpu_experts: int
    """Layers whose experts lie in system RAM. [layers]"""
    draft_model: str | None
    """A small model that drafts tokens; null without one."""
    mtp: int
    """Tokens that the model's own head drafts at once; 0: none. [tokens]"""
    ram_bytes: int | None
    """System RAM."""


class EachCardDoc(Struct, frozen=True):
    """One of several unequal cards."""

    name: str
    """Its name."""
    vram_bytes: int | None
    """Its memory as sold."""
    bandwidth_bytes_s: float | None
    """Its memory bandwidth."""


class ScenarioDoc(Struct, frozen=True):
    """The resolved request; ``cards`` holds every card where they are unequal."""

    gpu: GpuDoc | None
    """The card; null where none was asked about."""
    gpus: int
    """How many cards. [cards]"""
    cards: Sequence[EachCardDoc]
    """Every card by itself where they are unequal, in their order; else empty."""
    model: ModelDoc
    """The model."""
    precision: str
    """Weight format."""
    precision_quality_loss_percent: float | None
    """Perplexity increase of the format over FP16; null: not measured."""
    precision_class_bits: int | None
    """Bits of the class it belongs to, as 4 for Q4_K_M. [bits]"""
    precision_nominal_bytes_per_weight: float | None
    """What the rule of thumb counts for a weight. [bytes/weight]"""
    context_tokens: int
    """Context of each sequence."""
    batch: int
    """Sequences held at once. [sequences]"""
    kv_cache: str
    """Type of the key/value cache; K/V where the halves differ."""
    kv_cache_k: str
    """Type of its K half."""
    kv_cache_v: str
    """Type of its V half."""
    framework: str
    """The program that runs it."""
    framework_offloads: bool | None
    """Whether that program can leave parts in system RAM."""
    framework_memory_model: str
    """The runtime by whose rules its memory is counted."""
    framework_memory_fraction: float | None
    """Share of each card that it claims; null: what it needs. [share of 1]"""
    framework_split: str | None
    """How several cards share the model; null with one."""
    backend: str | None
    """CUDA, ROCm, Vulkan, Metal or SYCL; null without a card."""
    backend_usual: bool | None
    """Whether that is the usual one for the card's maker."""
    flash_attention: bool
    """Whether flash attention is on."""
    ubatch: int
    """Tokens computed at once. [tokens]"""
    gpu_layers: int | None
    """Layers on the cards; null: all. [layers]"""
    cpu_experts: int
    """Layers whose experts lie in system RAM. [layers]"""
    depth_tokens: int
    """Tokens in the cache when speed is told."""
    ram_bytes: int | None
    """System RAM."""
    ram_bandwidth_bytes_s: float | None
    """Stated, or the middle of what it may be."""
    least_ram_bandwidth_bytes_s: float | None
    """The least that the bandwidth of the RAM may be."""
    most_ram_bandwidth_bytes_s: float | None
    """The most that it may be."""
    ram_assumed: bool
    """Nothing was said of how fast the RAM is, so it is as such machines have it."""
    cpu_cores: int | None
    """Cores of the processor. [cores]"""
    prefer: str
    """What matters most: balanced, quality, speed or cost."""
    use: str
    """How fast it has to be: interactive, batch or none."""
    draft_model: str | None
    """A small model that drafts tokens; null without one."""
    mtp: int
    """Tokens that the model's own head drafts at once; 0: none. [tokens]"""
    read_as: Sequence[str]
    """How what was typed was understood, a sentence each; empty where it stands there plainly."""
    stages: int | None = None
    """Groups of cards, one behind the other, that each share tensors; null: none. [stages]"""
    idle_cards: Sequence[str] = ()
    """Cards of the request beside these, left out because they make nothing faster."""


class MemoryDoc(Occupied, frozen=True):
    """What the scenario occupies; card figures are sums over the cards."""

    max_context_tokens: int | None
    """The longest context that fits; null where none does."""
    max_batch: int | None
    """The largest batch that fits; null where none does. [sequences]"""
    bits_per_weight: float | None
    """Average over the whole model as stored. [bits]"""
    low_bytes: int
    """Lower end of ``required_bytes``."""
    high_bytes: int
    """Upper end of ``required_bytes``."""
    certainty: Certainty | None
    """How that range lies to the usable memory: sure, unverified, may_exceed, may_fit, beyond."""
    cache_room_bytes: int | None
    """What a server keeps for its cache beside all else; null for other programs."""
    cache_tokens: int | None
    """Tokens of all sequences together that this room holds. [tokens]"""
    cache_sequences: int | None
    """Sequences of this context that it holds at once. [sequences]"""
    held_sequences: int | None
    """Sequences of the batch held at once, while the others wait. [sequences]"""
    approximate: Sequence[str]
    """The parts that are estimates, a phrase each; empty: exact formulas."""
    per_gpu: Sequence[CardMemory]
    """The share of every card."""
    state_slots: int | None = None
    """Recurrent states that a server is told to keep; null where it is not told. [states]"""


class SpeedDoc(Rates, frozen=True):
    """Speeds of a scenario that runs."""


_SHORTEST_TOKENS = 1024
_LONGEST_TOKENS = 131_072
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Growth(Struct, frozen=True):
    """What one context length needs on the cards at the scenario's batch, bytes."""

    context_tokens: int
    """Context of each sequence."""
    weights_bytes: int
    """Weights on the cards."""
    kv_cache_bytes: int
    """Key/value cache on the cards."""
    compute_buffer_bytes: int
    """Work buffers on the cards."""
    overhead_bytes: int
    """The runtime's own memory on the cards."""
    required_bytes: int
    """All of it."""
    fits: bool
    """Whether the cards hold it."""


class MemoryPicture(Struct, frozen=True):
    """What people would rather see than read."""

    growth: tuple[Growth, ...]
    """By context, ascending."""
    contexts: tuple[int, ...]
    """Rows of ``free_bytes``. [tokens]"""
    batches: tuple[int, ...]
    """Columns of ``free_bytes``. [sequences]"""
    free_bytes: tuple[tuple[int | None, ...], ...]
    """What stays free on the fullest card, negative where so many do not fit at once."""
    cache_tokens: int | None
    """Tokens of cache that all sequences together could hold beside the weights, where the
    cache grows with every token; None where it does not."""


def memory_picture(scenario: Scenario, knowledge: Knowledge) -> MemoryPicture:
    """Work out the picture of one scenario.

    The scenario needs a card.
    """
    contexts = tuple(_contexts(scenario))
    batches = tuple(sorted({*_BATCHES, scenario.batch}))
    return MemoryPicture(
        growth=tuple(_growth(scenario, knowledge, tokens) for tokens in contexts),
        contexts=contexts,
        batches=batches,
        free_bytes=tuple(
            tuple(_free(scenario, knowledge, tokens, batch) for batch in batches)
            for tokens in contexts
        ),
        cache_tokens=_cache_tokens(scenario, knowledge),
    )


def _growth(scenario: Scenario, knowledge: Knowledge, tokens: int) -> Growth:
    memory = estimate_memory(replace(scenario, context_tokens=tokens), knowledge)
    return Growth(
        tokens,
        memory.weights_bytes,
        memory.kv_cache_bytes,
        memory.compute_buffer_bytes,
        memory.overhead_bytes,
        memory.required_bytes,
        memory.deficit_bytes == 0,
    )


def _contexts(scenario: Scenario) -> Iterator[int]:
    """Doublings up to the trained length, with the context asked for and that length."""
    longest = max(scenario.model.trained_context_tokens or _LONGEST_TOKENS, scenario.context_tokens)
    longest = max(min(longest, _LONGEST_TOKENS), scenario.context_tokens)
    found = {scenario.context_tokens, longest}
    tokens = _SHORTEST_TOKENS
    while tokens < longest:
        found.add(tokens)
        tokens *= 2
    return iter(sorted(found))


def _free(scenario: Scenario, knowledge: Knowledge, tokens: int, batch: int) -> int | None:
    other = replace(with_batch(scenario, batch), context_tokens=tokens)
    return free_bytes(other, knowledge, in_full=True)


def _cache_tokens(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """Count the tokens for which memory is left beside everything that is not cache."""
    memory = estimate_memory(scenario, knowledge)
    if memory.cache_room is not None:
        return memory.cache_room.tokens
    each = kv_bytes_per_token(scenario)
    free = free_bytes(scenario, knowledge)
    if free is None or each <= 0 or scenario.gpus > 1:
        return None
    return max(0, int((free + memory.kv_cache_bytes) // each))
