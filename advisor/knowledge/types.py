"""What the knowledge base holds, as frozen records in base units.

``None`` means unknown, never zero or "no". Each field is declared here alone: type, ``name``, kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from msgspec import Raw, Struct, field

from advisor.knowledge.field_kinds import (
    Bits,
    Bytes,
    BytesPerSecond,
    Contexts,
    Count,
    Day,
    Dollars,
    Flag,
    Kind,
    Loss,
    Losses,
    Number,
    Parameters,
    SoldBytes,
    Text,
    Texts,
    Tflops,
    Tokens,
    Watts,
    choice,
    choices,
    count,
    disputes,
    mapping,
    nodes,
    plain,
    quantity,
    sizes,
    whole,
    written,
)
from advisor.knowledge.programs import Capability, Program

UNUSUAL = "unusual-figure"  # a problem that is told and does not keep knowledge from being read
Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple", "Processor", "Several", "Huawei",
    "Moore Threads", "Tenstorrent", "Cambricon", "MetaX", "Google", "AWS"]  # fmt: skip
Segment = Literal["consumer", "mobile", "workstation", "datacenter", "edge", "apple"]
Modality = Literal["text", "vision", "audio", "embedding"]
Split = Literal["layer", "row", "tensor", "data", "dp-attention"]
"""How several cards share a model: whole layers, rows of every matrix, or every tensor."""
SPLITS: tuple[Split, ...] = get_args(Split)
TensorHeads = Literal["copied", "whole", "uneven"]
"""Heads in a split of every tensor: KV heads on several cards, on one each, or uneven numbers."""
_COMPANIONS = Kind(mapping(written, ("eagle3", "speculators", "mtp", "qat", "ggml"), "companion"))
_YARN = Kind(mapping(count, ("original", "factor", "theta"), "part of YaRN"))
FAMILIES = (
    "unquantized", "gguf-k", "gguf-i", "gguf-legacy", "gguf-mxfp4", "gguf-nvfp4", "awq", "gptq",
    "bnb", "int8", "int4-experts", "fp8", "mxfp4", "nvfp4", "exl2", "exl3", "hqq", "mlx",
)  # fmt: skip
_DISPUTED = {
    **dict.fromkeys(("fp16_tensor", "fp16_tensor_fp32acc", "fp16_shader", "fp32"), "compute"),
    **dict.fromkeys(("int8", "fp8", "fp4"), "compute"), "launch_price": "money",
    "vram": "memory", "bandwidth": "bandwidth", "nvlink": "bandwidth", "tdp": "power",
}  # fmt: skip
_PARTS = Kind(choices(("dense", "shared", "experts", "attention")))
_UNSIZED = Kind(mapping(written, (*SPLITS, *get_args(Vendor), "gguf", "architecture"), "way"))
_VENDOR, _VENDORS = Kind(choice(get_args(Vendor))), Kind(choices(get_args(Vendor)))


class Gpu(Struct, frozen=True, omit_defaults=True):
    """A graphics card, accelerator or system-on-chip."""

    name: Text = field(name="gpu")
    aliases: Texts
    vendor: Annotated[Vendor, _VENDOR]
    segment: Annotated[Segment, Kind(choice(get_args(Segment)))]
    architecture: Text
    compute_capability: Number | None = None
    """NVIDIA only: 8.9, 9.0, 12.0."""
    vram_bytes: SoldBytes | None = field(default=None, name="vram")
    """Memory as sold (24 GB are 24 GiB); for unified memory the whole shared pool."""
    vram_sizes: Annotated[tuple[int, ...], Kind(sizes)] = ()
    """Every size it is sold with, where it has several and they are known, the smallest first."""
    vram_type: Text | None = None
    bus_width_bits: Annotated[int, Kind(whole("bits"))] | None = field(
        default=None, name="bus_width"
    )
    bandwidth_bytes_s: BytesPerSecond | None = field(default=None, name="bandwidth")
    cores: Count | None = None
    """Shading units (CUDA cores, stream processors) or Apple GPU cores."""
    multiprocessors: int | None = None
    """Streaming multiprocessors, derived from cores and compute capability."""
    slice_of: str | None = None
    """The card that it is a slice of; in no file: a machine says so."""
    tensor_cores: Count | None = None
    fp16_tensor_tflops: Tflops | None = field(default=None, name="fp16_tensor")
    fp16_tensor_tflops_fp32acc: Tflops | None = field(default=None, name="fp16_tensor_fp32acc")
    """Dense, FP32 accumulate: the one that prefill sees. Without the name, FP16 accumulate."""
    fp16_shader_tflops: Tflops | None = field(default=None, name="fp16_shader")
    fp32_tflops: Tflops | None = field(default=None, name="fp32")  # where FP16 does not tell
    bf16: Flag | None = None
    int8_tops: Tflops | None = field(default=None, name="int8")
    fp8_tflops: Tflops | None = field(default=None, name="fp8")
    fp4_tflops: Tflops | None = field(default=None, name="fp4")
    tdp_w: Watts | None = field(default=None, name="tdp")
    pcie_gen: Count | None = None
    pcie_lanes: Count | None = None
    nvlink_bytes_s: BytesPerSecond | None = field(default=None, name="nvlink")
    unified_memory: Flag | None = None
    released: Day | None = None
    launch_price_usd: Dollars | None = field(default=None, name="launch_price")
    not_for_sale: Text | None = None  # why it is never proposed: a virtual profile, its own market
    sale: Annotated[str, Kind(choice(("used", "special")))] = ""  # had as sold new; made for few
    disputed: Annotated[Mapping[str, tuple[str, ...]], Kind(disputes(_DISPUTED))] = field(
        default_factory=dict
    )
    """Field -> the values that sources disagree on."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field -> source; key ``""`` holds the record's default source."""

    @property
    def stands_alone(self) -> bool:
        """Whether no second one can be put beside it: a part of its machine, or of a card."""
        # server modules that share memory with their own processor sit several in one machine
        shares = bool(self.unified_memory) and self.segment != "datacenter"
        return shares or self.segment == "mobile" or self.slice_of is not None


class ModelRecord(Struct, frozen=True, omit_defaults=True):
    """A language model as the knowledge base knows it."""

    name: Text = field(name="model")
    hf_id: Text | None
    aliases: Texts
    family: Text
    modality: Annotated[Modality, Kind(choice(get_args(Modality)))]
    config: Annotated[Mapping[str, object], Kind(plain)]
    """Architecture facts under config.json keys, for the reader of such files."""
    verified: Text
    """How far the totals were checked; starts with ``exact`` when proven to the parameter."""
    parameters: Parameters | None = None  # as stated, where no formula covers the architecture
    active_parameters: Parameters | None = None
    label_parameters_b: Annotated[float, Kind(quantity("parameters", per=1e9))] | None = field(
        default=None, name="label_parameters"
    )
    """The number in the marketing name, in 10^9."""
    vision_parameters: Parameters | None = None
    trained_context_tokens: Tokens | None = field(default=None, name="trained_context")
    image_tokens: Text | None = None
    native_dtype: Text | None = None
    native_formats: Texts = ()
    """Weight formats that hold what the publisher released, where that is less than 16 bits."""
    companions: Annotated[Mapping[str, str], _COMPANIONS] = field(default_factory=dict)
    yarn: Annotated[Mapping[str, int], _YARN] = field(default_factory=dict)  # as its publisher says
    licence: Text | None = None
    released: Day | None = None
    notes: Text = ""
    sources: Mapping[str, str] = field(default_factory=dict)


class GgmlType(Struct, frozen=True):
    """One ggml tensor type: ``block_bytes`` hold ``block_elements`` weights."""

    name: Text = field(name="ggml_type")
    block_elements: Count
    block_bytes: Bytes
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def bits_per_weight(self) -> float:
        """Bits per weight, scales included."""
        return 8 * self.block_bytes / self.block_elements


class Format(Struct, frozen=True, omit_defaults=True):
    """A weight format a user can ask for (a GGUF file type, FP8, AWQ, NF4, MLX 4-bit ...)."""

    name: Text = field(name="format")
    aliases: Texts
    family: Annotated[str, Kind(choice(FAMILIES))]
    kind: Annotated[Literal["gguf", "plain"], Kind(choice(("gguf", "plain")))]
    """``gguf``: by llama.cpp's rules for file type ``name``; ``plain``: the rest is at 16 bits."""
    bits_per_weight: Bits | None
    """Nominal bits of one quantised weight, scales included."""
    class_bits: Count | None
    """4 for the formats meant by "INT4" or "4-bit", 8 for "INT8" or "8-bit", else its own."""
    nominal_bytes_per_weight: Number | None
    """The well-known rule of thumb (FP16 2, INT8 1, 4-bit 0.5, Q3_K_M 0.4); decides nothing."""
    quality_loss_percent: Loss | None = field(name="quality_loss")
    """Perplexity increase over FP16 in %, see ``sources["quality_loss"]``; None where unknown."""
    quality_by_size: Losses = ()  # the same by parameters of the models it was measured on
    exam_loss: Losses = ()  # points of MMLU lost, in %, by parameters of the models measured
    quality_known: Text = ""  # what is published of its loss, where no figure compares: a clause
    floats: Flag = False  # its elements are floats, which INT8 does not mean
    offered: Flag = True  # not for types that exist but are not proposed (ggml's own, F32)
    min_compute_capability: Number | None = None  # below it, not on NVIDIA cards
    native_compute_capability: Number | None = None  # from here no unpacking to 16 bits
    vendors: Annotated[tuple[str, ...], _VENDORS] | None = None  # of the cards; None: any
    near: Texts = ()  # mixes that have no entry of their own and are sized as this one
    keeps: Texts = ()  # of recurrent layers, what stays in 16 bits: a config's names of modules
    beside_experts: Bits | None = None  # what other matrices have where experts alone are packed
    block: Count | None = None  # weights in a row that share a scale in files of blocks
    block_publishers: Texts = ()  # who publishes every file of it in blocks
    lean_bits: Bits | None = None  # the same in files without groups, whose columns share scales
    head_again: Flag = False  # files may hold a tied output matrix by itself, beside the embedding
    note: Text = ""
    sources: Mapping[str, str] = field(default_factory=dict)


class KvType(Struct, frozen=True):
    """A KV-cache element type of a framework."""

    name: Text = field(name="kv_type")
    bits: Bits
    quality_loss_percent: Loss | None = field(default=None, name="quality_loss")
    quality_known: Text = ""  # as a format's
    needs_flash_attention: Flag = False
    aliases: Texts = ()
    sources: Mapping[str, str] = field(default_factory=dict)


class FormatLimit(Struct, frozen=True):
    """Where a runtime runs the formats of one family, where that is not wherever it runs."""

    vendors: Annotated[tuple[str, ...], _VENDORS] = ()
    """Cards of these makers alone; empty: of all."""
    model_types: Texts = ()  # these architectures alone; empty: all
    model_types_of: Text | None = None  # whose ``model_types`` these are, once the file is read
    one_card: Flag = False  # not split over several cards
    whole_blocks: Annotated[tuple[str, ...], _PARTS] = ()  # that cards share in whole blocks alone


class Framework(Struct, frozen=True, omit_defaults=True):
    """An inference runtime."""

    name: Text = field(name="framework")
    aliases: Texts
    version: Text
    vendors: Annotated[tuple[str, ...], _VENDORS]
    formats: Texts
    """Format names it runs, in the order it prefers them."""
    model_types: Texts  # in order of the alphabet, once the file is read
    """Hugging Face ``model_type``s it supports; ``("*",)`` means any."""
    kv_types: Texts
    memory_model: Text
    """Which runtime of ``advisor.runtimes`` sizes it; ``none``: not modelled, never a default."""
    min_compute_capability: Number | None = None
    usual_formats: Texts = ()  # where nobody names one, the first that runs; empty: as published
    library_tags: Flag = False  # Ollama's library says which format it takes of the models there
    own_mix: Texts = ()  # model types whose Q4_K_M it mixes by rules of its own
    usual_context: Contexts = ()  # from which memory of the cards how many tokens it takes
    not_on: Texts = ()  # architectures of its vendors without it (Gaudi for llama.cpp)
    cpu_offload: Flag | None = None  # whole layers can live in system RAM
    expert_offload: Flag | None = None
    """Expert tensors of a mixture of experts can live in system RAM."""
    model_types_of: Text | None = None  # whose ``model_types`` these are, once the file is read
    multi_gpu: Annotated[tuple[Split, ...], Kind(choices(SPLITS))] = ()
    """How several cards can share a model, the preferred way first; empty: unknown or none."""
    variants: Annotated[Mapping[str, str], Kind(mapping(written))] = field(default_factory=dict)
    """Programs sized as it is -> what differs, in one clause."""
    loads_with: Texts = ()  # of a front end: the runtimes it loads models with, preferred first
    backends_beside: Texts = ()  # what it computes with beside the vendor's own
    one_backend_on: Texts = ()  # vendors on whose cards it has the vendor's own alone
    backend_by_setting: Flag = False  # one package holds them all, and a setting says which
    beyond: Annotated[Mapping[str, str], Kind(mapping(written))] = field(default_factory=dict)
    """What only other releases or builds run, or is had where it is asked for -> a clause on it."""
    not_sized: Annotated[Mapping[str, str], _UNSIZED] = field(default_factory=dict)
    """Ways, makers, kinds of format, architectures that it lists not: not sized, with why."""
    format_limits: Annotated[Mapping[str, FormatLimit], Kind(nodes)] = field(default_factory=dict)
    """Family of weight formats -> where they run."""
    embedding_in_ram: Flag | None = None  # unless the input embedding is also the output
    flash_attention: Flag | None = None
    paged_kv: Flag | None = None
    speculative: Flag | None = None
    mtp_model_types: Texts = ()  # of the text part whose own draft head it runs
    vision: Flag | None = None
    serves_batches: Flag | None = None
    """Built for many users: new requests join the batch while others are answered."""
    even_ranks: Flag = False  # attention data parallel takes powers of two alone
    copies_experts: Flag = False  # copies of a model for requests of their own hold its experts
    step_by_step: Flag = False  # each operation of a token is started from Python
    card_free: Flag = False  # its buffers are known apart from any card
    memory_checked: Flag = False
    """What its memory model gives was compared with memory that it printed."""
    own_code: Flag = False  # runs the code beside the weights, of whatever architecture
    places_layers: Flag = False  # a request can say which layers, whose experts lie on the cards
    pipeline: Flag = False  # a split by layer is a pipeline of ranks, each of which needs a layer
    tensor_heads: Annotated[TensorHeads, Kind(choice(get_args(TensorHeads)))] = "copied"
    sized_states: Annotated[tuple[str, ...], Kind(choices(("encoder", "rwkv", "index")))] = ()
    whole_inputs: Flag = False  # an encoder computes an input at once
    one_latent_type: Flag = False  # a latent cache has one type for K and V
    draft_padding: Count = 0  # tokens by which the vocabulary of a draft model may differ
    memory_fraction: Annotated[float, Kind(quantity("share", per=100))] | None = None
    """Share of the card it claims by default (vLLM 0.92); None: it takes what it needs."""
    commands: tuple[Program, ...] = ()  # how it is started
    capabilities: tuple[Capability, ...] = ()  # in the order of asking
    licence: Text | None = None
    notes: Text = ""
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
    index: Mapping[str, Raw] = field(default_factory=dict)
    """What is worked out of the records beforehand, as JSON; nothing where made by hand."""
    user_entries: Mapping[str, object] = field(default_factory=dict)
    """Kind -> name -> where the user's entry stands, what it replaces, where that stands."""
    switched_off: Mapping[str, object] = field(default_factory=dict)
    """Kind -> name of a built-in entry -> where the user switches it off, and why."""
    second_cards: tuple[str, ...] = ()
    """Names of cards that are tried beside another one (second_cards.yaml)."""
    user_speeds: UserSpeeds | None = None
    """What the user measured (``advisor.estimator.calibration.user``); not part of ``sha256``."""
    unusual: tuple[str, ...] = ()
    """What the user's entries state that is unlike all others, in words."""

    def names(self) -> Names:
        """The canonical names of every table that text facts refer to."""
        tables = ("gpus", "models", "formats", "kv_types", "frameworks")
        return Names(self, {table: tuple(getattr(self, table)) for table in tables})


class Names(dict[str, Sequence[str]]):
    """Table -> canonical names, with the knowledge that says what else people call them."""

    def __init__(self, knowledge: Knowledge, tables: Mapping[str, Sequence[str]]) -> None:
        """Hold the names of the tables."""
        super().__init__(tables)
        self.knowledge = knowledge


class Setup(Struct, frozen=True, order=True):
    """One configuration by canonical names; its figures are told apart by depth."""

    gpu: str
    gpus: int
    model: str
    precision: str
    framework: str
    backend: str
    batch: int


class CardEngine(Struct, frozen=True, order=True):
    """A card under one backend and engine; ``engine`` is llama.cpp for its whole family."""

    gpu: str
    backend: str
    engine: str


class UserFigure(Struct, frozen=True):
    """What was measured on one setup, tokens/s of one stream."""

    depth_tokens: int
    tok_s: float
    source: str


class CardFactors(Struct, frozen=True):
    """The user's card against the speed model; None: nothing measured that says so."""

    dense: float | None = None
    """Decoding over the model without any card factor; takes the place of a published one."""
    experts: float | None = None
    """The same for mixtures of experts."""
    prefill: float | None = None
    """Arithmetic over what is published or modelled."""


class UserSpeeds(Struct, frozen=True):
    """The user's measurements, laid over the calibration."""

    sha256: str
    models: frozenset[tuple[str, str]]
    """Every card and model that was measured together."""
    decode: Mapping[Setup, tuple[UserFigure, ...]]
    prefill: Mapping[Setup, tuple[UserFigure, ...]]
    """Of prompts as long as the calibration's."""
    factors: Mapping[CardEngine, CardFactors]
