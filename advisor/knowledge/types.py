"""What the knowledge base holds, as frozen records in base units.

``None`` always means unknown, never zero or "no".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from advisor.knowledge.user_measurements import OwnSpeeds

Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple"]
Segment = Literal["consumer", "mobile", "workstation", "datacenter", "edge", "apple"]
Modality = Literal["text", "vision", "audio", "embedding"]
Split = Literal["layer", "row", "tensor"]
"""How several cards share a model: whole layers, rows of every matrix, or every tensor."""
SPLITS: tuple[Split, ...] = ("layer", "row", "tensor")
TensorHeads = Literal["copied", "whole", "uneven"]
"""Heads in a split of every tensor: KV heads on several cards, on one each, or uneven numbers."""


class Gpu(Struct, frozen=True):
    """A graphics card, accelerator or system-on-chip."""

    name: str
    aliases: tuple[str, ...]
    vendor: Vendor
    segment: Segment
    architecture: str
    compute_capability: float | None = None
    """NVIDIA only: 8.9, 9.0, 12.0."""
    vram_bytes: int | None = None
    """Memory as sold (binary); for unified memory the whole shared pool."""
    vram_sizes: tuple[int, ...] = ()
    """Every size it is sold with, where it has several and they are known, the smallest first."""
    vram_type: str | None = None
    bus_width_bits: int | None = None
    bandwidth_bytes_s: float | None = None
    cores: int | None = None
    """Shading units (CUDA cores, stream processors) or Apple GPU cores."""
    multiprocessors: int | None = None
    """Streaming multiprocessors, derived from cores and compute capability."""
    tensor_cores: int | None = None
    fp16_tensor_tflops: float | None = None
    """Dense, FP16 accumulate."""
    fp16_tensor_tflops_fp32acc: float | None = None
    """Dense, FP32 accumulate: the one that prefill sees."""
    fp16_shader_tflops: float | None = None
    bf16: bool | None = None
    int8_tops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    tdp_w: float | None = None
    pcie_gen: int | None = None
    pcie_lanes: int | None = None
    nvlink_bytes_s: float | None = None
    unified_memory: bool | None = None
    released: str | None = None
    """ISO date."""
    launch_price_usd: float | None = None
    not_for_sale: str | None = None
    """Why it is never proposed as an upgrade: a virtual profile, a market of its own."""
    disputed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field -> the values that sources disagree on."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field -> source; key ``""`` holds the record's default source."""

    @property
    def stands_alone(self) -> bool:
        """Whether no second one can be put beside it: it is a part of its machine.

        Server modules that share memory with their own processor sit several in one machine.
        """
        shares = bool(self.unified_memory) and self.segment != "datacenter"
        return shares or self.segment == "mobile"


class ModelRecord(Struct, frozen=True):
    """A language model as the knowledge base knows it."""

    name: str
    hf_id: str | None
    aliases: tuple[str, ...]
    family: str
    modality: Modality
    config: Mapping[str, object]
    """Architecture facts under Hugging Face config.json keys; read by the reader that
    reads a config.json on disk."""
    parameters: int | None = None
    """Stated total (to 1000 parameters); used where no formula covers the architecture."""
    active_parameters: int | None = None
    label_parameters_b: float | None = None
    """The number in the marketing name, in 10^9."""
    vision_parameters: int | None = None
    trained_context_tokens: int | None = None
    image_tokens: str | None = None
    native_dtype: str | None = None
    native_formats: tuple[str, ...] = ()
    """Weight formats that hold what the publisher released, where that is less than 16 bits."""
    licence: str | None = None
    released: str | None = None
    verified: str = ""
    """How far the totals were checked; starts with ``exact`` when proven to the parameter."""
    notes: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


class GgmlType(Struct, frozen=True):
    """One ggml tensor type: ``block_bytes`` hold ``block_elements`` weights."""

    name: str
    block_elements: int
    block_bytes: int

    @property
    def bits_per_weight(self) -> float:
        """Bits per weight, scales included."""
        return 8 * self.block_bytes / self.block_elements


class Format(Struct, frozen=True):
    """A weight format a user can ask for (a GGUF file type, FP8, AWQ, NF4, MLX 4-bit ...)."""

    name: str
    aliases: tuple[str, ...]
    family: str
    """``unquantized``, ``gguf-k``, ``gguf-i``, ``gguf-legacy``, ``gguf-mxfp4``, ``awq``, ``gptq``,
    ``bnb``, ``int8``, ``fp8``, ``mxfp4``, ``nvfp4``, ``exl2``, ``exl3``, ``hqq``, ``mlx``."""
    kind: Literal["gguf", "plain"]
    """``gguf``: bytes follow llama.cpp's per-tensor rules for file type ``name``;
    ``plain``: linear weights at ``bits_per_weight``, the rest at 16 bits."""
    bits_per_weight: float | None
    """Nominal bits of one quantised weight, scales included."""
    class_bits: int | None
    """4 for the formats meant by "INT4" or "4-bit", 8 for "INT8" or "8-bit", else its own."""
    nominal_bytes_per_weight: float | None
    """The well-known rule of thumb (FP16 2, INT8 1, 4-bit 0.5, Q3_K_M 0.4); decides nothing."""
    quality_loss_percent: float | None
    """Perplexity increase over FP16 in %, see ``sources["quality_loss"]``; None where unknown."""
    quality_by_size: tuple[tuple[float, float], ...] = ()
    """The same by parameters of the model it was measured on, where several sizes were."""
    exam_loss: tuple[tuple[float, float], ...] = ()
    """Points of MMLU lost, in %, by parameters of the model they were measured on."""
    offered: bool = True
    """False for types that exist but are not proposed (internal ggml types, F32)."""
    min_compute_capability: float | None = None
    """Below this the format does not run on NVIDIA cards."""
    native_compute_capability: float | None = None
    """From here the card computes in the format itself instead of unpacking to 16 bits."""
    vendors: tuple[str, ...] | None = None
    """Card vendors it runs on; None: any."""
    note: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


class KvType(Struct, frozen=True):
    """A KV-cache element type of a framework."""

    name: str
    bits: float
    quality_loss_percent: float | None = None
    needs_flash_attention: bool = False
    min_compute_capability: float | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


class FormatLimit(Struct, frozen=True):
    """Where a runtime runs the formats of one family, where that is not wherever it runs."""

    vendors: tuple[str, ...] = ()
    """Cards of these makers alone; empty: of all."""
    model_types: tuple[str, ...] = ()
    """These architectures alone; empty: all."""
    one_card: bool = False
    """Not split over several cards."""


class Framework(Struct, frozen=True):
    """An inference runtime."""

    name: str
    aliases: tuple[str, ...]
    version: str
    vendors: tuple[str, ...]
    formats: tuple[str, ...]
    """Format names it runs, in the order it prefers them."""
    model_types: tuple[str, ...]
    """Hugging Face ``model_type``s it supports; ``("*",)`` means any."""
    kv_types: tuple[str, ...]
    memory_model: str
    """Which runtime of ``advisor.runtimes`` sizes it; ``none``: not modelled, never a default."""
    min_compute_capability: float | None = None
    not_on: tuple[str, ...] = ()
    """Architectures of its vendors that it does not run on (Gaudi for llama.cpp)."""
    cpu_offload: bool | None = None
    """Whole layers can live in system RAM."""
    expert_offload: bool | None = None
    """Expert tensors of a mixture of experts can live in system RAM."""
    multi_gpu: tuple[Split, ...] = ()
    """How several cards can share a model, the preferred way first; empty: unknown or none."""
    not_sized: Mapping[str, str] = field(default_factory=dict)
    """Ways it has that are not sized here, each with why in one clause."""
    format_limits: Mapping[str, FormatLimit] = field(default_factory=dict)
    """Family of weight formats -> where they run."""
    embedding_in_ram: bool | None = None
    """The input embedding stays in system RAM unless it is also the output."""
    flash_attention: bool | None = None
    paged_kv: bool | None = None
    speculative: bool | None = None
    mtp_model_types: tuple[str, ...] = ()
    """``model_type``s of the text part whose own draft head it runs."""
    vision: bool | None = None
    serves_batches: bool | None = None
    """Built for many users: new requests join the batch while others are answered."""
    card_free: bool = False
    """Its buffers are known apart from any card."""
    places_layers: bool = False
    """A request can say which layers, and whose experts, lie on the cards."""
    pipeline: bool = False
    """A split by layer is a pipeline of ranks, each of which needs a layer."""
    tensor_heads: TensorHeads = "copied"
    sized_states: tuple[str, ...] = ()
    """What it keeps beside keys and values that is sized: ``encoder``, ``rwkv``."""
    whole_inputs: bool = False
    """An encoder computes an input at once."""
    one_latent_type: bool = False
    """A latent cache has one type for K and V."""
    draft_padding: int = 0
    """Tokens by which the vocabulary of a draft model may differ."""
    memory_fraction: float | None = None
    """Share of the card it claims by default (vLLM 0.92); None: it takes what it needs."""
    commands: tuple[Mapping[str, object], ...] = ()
    """How it is started: the records of commands.yaml, read by ``advisor.runtimes.commands``."""
    licence: str | None = None
    notes: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def sized(self) -> bool:
        """Whether its memory is modelled."""
        return self.memory_model != "none"


class Knowledge(Struct, frozen=True):
    """Everything in knowledge/, by canonical name; orders are file orders."""

    gpus: Mapping[str, Gpu]
    models: Mapping[str, ModelRecord]
    ggml_types: Mapping[str, GgmlType]
    formats: Mapping[str, Format]
    kv_types: Mapping[str, KvType]
    frameworks: Mapping[str, Framework]
    policy: Mapping[str, float]
    """Named numbers an expert may change (reserves, overheads, verdict thresholds), base units."""
    calibration: Mapping[str, object]
    """Speed parameters: knowledge/calibration.yaml as plain data."""
    sha256: str
    index: Mapping[str, object] = field(default_factory=dict)
    """Precomputed lookup of names (``advisor.knowledge.index``)."""
    yours: Mapping[str, object] = field(default_factory=dict)
    """Kind -> name -> where the user's entry stands, what it replaces, where that stands."""
    switched_off: Mapping[str, object] = field(default_factory=dict)
    """Kind -> name of a built-in entry -> where the user switches it off, and why."""
    second_cards: tuple[str, ...] = ()
    """Names of cards that are tried beside another one (second_cards.yaml)."""
    own: OwnSpeeds | None = None
    """What the user measured (``advisor.calibration.user``); not part of ``sha256``."""

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The canonical names of every table that text facts refer to."""
        return {
            table: tuple(getattr(self, table))
            for table in ("gpus", "models", "formats", "kv_types", "frameworks")
        }
