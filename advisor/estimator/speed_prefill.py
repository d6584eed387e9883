"""How long reading a prompt takes: arithmetic over the throughput a card really reaches.

One pass over ``n`` tokens behind ``d`` cached ones takes

    2 n (dense + experts / share) / reached  +  attention (n, d) / (reached x share)
        + n steps of every recurrent layer, one behind the other
        + launches of every layer, and what is copied out of system RAM, once per micro-batch

Arithmetic is two operations per parameter and token, in TFLOPS (10^12 per second).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.speed_fields import Fields
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.types import Format, Gpu

if TYPE_CHECKING:
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model

Unit = Literal["tensor", "core", "shader", "none"]
_FALLS_FROM_TFLOPS = 100.0
_WATTS_PER_TFLOPS = 2.0
_TENSOR_CORES = 7.0  # compute capability from which generations have them, if not every chip
_BY_WATTS = 0.5
"""Power by which the size falls with the watts behind each TFLOPS of the peak: clocks give way."""
_PER_LAYER_S = 1e-3 / 32
_ATTENTION_OPERATIONS = 4
"""Per head, its width, and pair of tokens: two products of two operations each."""
EXPERT_ROWS = 32.0
"""Tokens for each expert of a micro-batch for which the share of experts is stated."""


class Reached(Struct, frozen=True):
    """What one card reaches while it reads a prompt."""

    tflops: float
    range_name: str
    """Which 80 % range applies."""
    experts: float
    """Share of it that routed experts reach."""
    attention: float
    """Share of it that attention reaches."""
    launch_s: float
    """Per layer and micro-batch."""
    rows: float = 0.0
    """Power of the tokens for each expert by which the share of experts grows."""
    plain: float = 1.0
    """Share of attention's that it reaches without flash attention."""
    latent: float = 1.0
    """Share of attention's that it reaches where latent attention is absorbed."""
    recurrent_s: float = 0.0
    """Per layer with a recurrent state and token, which are taken in turn."""
    family: bool = False
    """The llama.cpp family: latent attention is absorbed, weights in RAM are copied each time."""


class PrefillTables(Struct, frozen=True, kw_only=True):
    """The groups ``prefill`` of the calibration."""

    prompt_tokens: int
    falls: float
    """Exponent by which the share falls as the tensor peak grows beyond 100 TFLOPS."""
    units: Mapping[tuple[str, str], float] = {}
    """Share of the peak by backend and unit, for architectures without an own one."""
    architectures: Mapping[tuple[str, str], float] = {}
    """Share of the peak by architecture and backend."""
    sixteen_bit: Mapping[str, float] = {}
    """16-bit weights over quantised ones, by backend."""
    sixteen_bit_experts: Mapping[str, float] = {}
    formats: Mapping[str, float] = {}
    """Packed weights of a group of formats over those of all."""
    experts: Mapping[str, float] = {}
    experts_rows: float = 0.0
    attention: Mapping[str, float] = {}
    attention_plain: Mapping[str, float] = {}
    """Attention without flash attention over that with it, by backend."""
    attention_latent: Mapping[str, float] = {}
    """Latent attention over that of heads, by backend."""
    launch_s: Mapping[str, float] = {}
    """Per layer and micro-batch, by backend."""
    recurrent_s: Mapping[str, float] = {}
    """Per layer with a recurrent state and token, by backend."""
    cards: Mapping[tuple[str, str], float] = {}
    """TFLOPS of measured cards with quantised weights, by card and backend."""
    engines: float
    """Share of the FP32-accumulate peak under engines outside the llama.cpp family."""
    engine_experts: float
    engine_attention: float
    copied: float = 1.0
    """Share of what bounds it (``copied_s``) at which weights in system RAM reach the card."""
    copied_experts: float = 1.0
    """The same of experts, of which those that a micro-batch uses are copied."""


class Work(Struct, frozen=True):
    """What one token of a prompt has to compute."""

    layers: int
    recurrent: int
    """Layers with a recurrent state; a short convolution is none."""
    dense: float
    """Parameters that every token uses, embeddings and output aside."""
    experts: float
    """Parameters of the routed experts that it uses."""
    full_width: int
    """Summed attention width of the layers that see the whole context."""
    slide_width: int
    window: int
    picked: float
    """Share of the routed experts that a token uses."""
    absorbed: float
    """Operations of latent attention where it is computed absorbed, over those where it is not."""

    def crowding(self, tokens: int) -> float:
        """Tokens for each expert of a micro-batch, over those that shares are stated for."""
        return tokens * self.picked / EXPERT_ROWS

    def attention(self, tokens: int, before: int) -> float:
        """Count the operations of attention for ``tokens`` behind ``before`` others."""
        pairs = tokens * (before + tokens / 2)
        near = tokens * min(self.window, before + tokens)
        return _ATTENTION_OPERATIONS * (self.full_width * pairs + self.slide_width * near)


def work_of(model: Model) -> Work:
    """Count the arithmetic of a model, once per model."""
    shape, counts = model.shape, model.shape.counts
    experts = sum(counts.experts) if counts else 0
    used = experts * shape.moe.used / shape.moe.experts if shape.moe and shape.moe.experts else 0.0
    active = max(model.active_parameters - model.vision_parameters, 0)
    dense = sum(counts.layers) - experts if counts else active - used - _aside(shape)
    width = shape.heads * shape.head_dim
    kinds = shape.layer_kinds
    short = shape.recurrent is not None and shape.recurrent.kind == "conv"
    return Work(
        layers=shape.layers,
        recurrent=0 if short else kinds.count("R") + kinds.count("H"),
        dense=float(max(dense, 0)),
        experts=used,
        full_width=width * (kinds.count("F") + kinds.count("H")),
        slide_width=width * (kinds.count("S") + kinds.count("C")),
        window=shape.window or 0,
        picked=shape.moe.used / shape.moe.experts if used and shape.moe else 0.0,
        absorbed=_absorbed(shape),
    )


def _absorbed(shape: Shape) -> float:
    """Compare heads as wide as the latent vector with heads of their own width."""
    if shape.mla is None or not shape.head_dim:
        return 1.0
    return (2 * shape.mla.kv_lora_rank + shape.mla.rope_dim) / (2 * shape.head_dim)


def _aside(shape: Shape) -> int:
    """Count what no token of a prompt multiplies: embedding, output and other lookups."""
    matrix = shape.vocab * shape.hidden
    return matrix * (1 if shape.tied else 2) + shape.lookup


def prompt_seconds(
    work: Work,
    reached: Reached,
    tokens: int,
    before: int,
    *,
    ubatch: int,
    cards: float = 1.0,
    flash: bool = True,
) -> float:
    """Time one pass over a prompt.

    Args:
        work: The model's arithmetic.
        reached: What one card reaches.
        tokens: Length of the prompt.
        before: Tokens already in the cache.
        ubatch: Tokens computed at once.
        cards: How many cards' worth of arithmetic works at once.
        flash: Whether attention is computed without writing its matrix down.
    """
    per_s = reached.tflops * 1e12 * cards
    matrices = 2 * tokens * (work.dense + _experts(work, reached, min(tokens, ubatch)))
    attention = work.attention(tokens, before)
    attention /= reached.attention * (1.0 if flash else reached.plain)
    if reached.family and work.absorbed != 1:
        attention *= work.absorbed / reached.latent
    steps = reached.recurrent_s * work.recurrent * tokens / cards
    launches = reached.launch_s * work.layers * ceil(tokens / ubatch)
    return (matrices + attention) / per_s + steps + launches


def _experts(work: Work, reached: Reached, tokens: int) -> float:
    """Give the dense parameters that take as long as the routed experts of a micro-batch."""
    if not work.experts:
        return 0.0
    grown: float = work.crowding(tokens) ** reached.rows
    return work.experts / min(reached.experts * grown, 1.0)


def token_seconds(work: Work, reached: Reached) -> tuple[float, float]:
    """Time the arithmetic of one token, its attention aside: of dense matrices and of experts."""
    per_s = reached.tflops * 1e12
    return 2 * work.dense / per_s, 2 * work.experts / reached.experts / per_s


_SHARES = (
    "sixteen_bit", "sixteen_bit_experts", "formats", "experts", "attention", "attention_plain",
    "attention_latent",
)  # fmt: skip


def read_prefill(policy: Fields, fitted: Fields | None) -> PrefillTables:
    """Check and convert the groups ``prefill`` of both files; ``fitted`` None: nothing fitted.

    Raises:
        KnowledgeError: A figure is missing or of the wrong kind.
    """
    stated = PrefillTables(
        prompt_tokens=int(policy.number("prompt_tokens")),
        falls=policy.number("falls"),
        engines=policy.number("engines"),
        engine_experts=policy.number("engine_experts"),
        engine_attention=policy.number("engine_attention"),
    )
    if fitted is None:
        return stated
    units, own = fitted.group("units").groups(), fitted.group("architectures").groups()
    return replace(
        stated,
        units={(b, u): n for b, line in units.items() for u, n in line.numbers().items()},
        architectures={(a, b): n for a, line in own.items() for b, n in line.numbers().items()},
        experts_rows=fitted.number("experts_rows"),
        copied=fitted.group("copied").number("dense"),
        copied_experts=fitted.group("copied").number("experts"),
        launch_s={b: ms * _PER_LAYER_S for b, ms in fitted.group("launch_ms").numbers().items()},
        recurrent_s={b: us * 1e-6 for b, us in fitted.group("recurrent_us").numbers().items()},
        cards={
            (line.text("gpu"), line.text("backend")): line.number("tflops")
            for line in fitted.lines("cards")
        },
        **{name: fitted.group(name).numbers() for name in _SHARES},
    )


def reached_by_llamacpp(
    tables: PrefillTables, gpus: Mapping[str, Gpu], gpu: Gpu, backend: str, architecture: str
) -> Reached | None:
    """Give what one card reaches in the llama.cpp family with quantised weights.

    A card without a measurement keeps between the measured ones of its architecture: never below
    a weaker card, one of an earlier generation included, never above a stronger one.

    ``gpus`` are all cards, where the peaks of measured ones stand; ``architecture`` is what the
    calibration calls that of the card.

    Returns:
        None without a peak figure or any measurement of the backend and unit.
    """
    tflops = tables.cards.get((gpu.name, backend))
    name = "prefill_card"
    if tflops is None:
        tflops = _modelled(tables, gpus, gpu, backend, architecture)
        known = (architecture, backend) in tables.architectures
        name = "prefill" if known else "prefill_unmeasured"
    if tflops is None:
        return None
    return Reached(
        tflops,
        name,
        tables.experts.get(backend, tables.engine_experts),
        tables.attention.get(backend, tables.engine_attention),
        tables.launch_s.get(backend, 0.0),
        tables.experts_rows,
        tables.attention_plain.get(backend, 1.0),
        tables.attention_latent.get(backend, 1.0),
        tables.recurrent_s.get(backend, 0.0),
        family=True,
    )


def reached_by_engine(
    tables: PrefillTables, gpu: Gpu, precision: Format, launch_s: float
) -> Reached | None:
    """Give what one card reaches under vLLM and its like.

    Formats that the card computes in itself (FP8, INT8 with INT8 activations) count against the
    peak of their own, all others against FP16 with FP32 accumulation.

    Returns:
        None without the peak.
    """
    peak = gpu.fp16_tensor_tflops_fp32acc
    if peak is None:
        return None
    if _is_native(gpu, precision):
        full = gpu.fp16_tensor_tflops or peak
        if precision.family == "fp8" and gpu.fp8_tflops is not None:
            peak *= gpu.fp8_tflops / full
        elif precision.family == "int8" and gpu.int8_tops is not None:
            peak = max(peak, gpu.int8_tops)
    return Reached(
        peak * tables.engines,
        "prefill_engine",
        tables.engine_experts,
        tables.engine_attention,
        launch_s,
    )


def _is_native(gpu: Gpu, precision: Format) -> bool:
    if gpu.compute_capability is None:
        return MAKERS[gpu.vendor].computes_in_formats
    needed = precision.native_compute_capability
    return needed is not None and gpu.compute_capability >= needed


def _modelled(
    tables: PrefillTables, gpus: Mapping[str, Gpu], gpu: Gpu, backend: str, architecture: str
) -> float | None:
    unit, size = card_size(gpu, tables.falls)
    peers = [(gpus[n], at) for (n, of), at in tables.cards.items() if of == backend and n in gpus]
    share = tables.units.get((backend, unit))
    if any(_counts_alike(gpu, peer, architecture) for peer, _ in peers):
        share = tables.architectures.get((architecture, backend), share)
    if share is None or size is None:
        return None
    found = share * size
    for peer, tflops in peers:
        alike = peer.architecture == gpu.architecture
        if (alike or _is_newer(gpu, peer)) and as_strong(gpu, peer):
            found = max(found, tflops)
        if alike and as_strong(peer, gpu):
            found = min(found, tflops)
    return found


def _counts_alike(gpu: Gpu, peer: Gpu, architecture: str) -> bool:
    """Whether a measured card of its generation counts in its unit: their share is of that."""
    alike = peer.architecture == gpu.architecture or peer.architecture.startswith(architecture)
    return alike and _peak(peer)[0] == _peak(gpu)[0]


def _is_newer(gpu: Gpu, other: Gpu) -> bool:
    """Whether it is a later generation of the same maker, as its compute capability tells."""
    return (gpu.compute_capability or 0) > (other.compute_capability or inf)


def card_size(gpu: Gpu, falls: float) -> tuple[Unit, float | None]:
    """Give the unit a card's arithmetic is counted in, and how much of it there is.

    Dense FP16 tensor TFLOPS (discounted above 100, and where few watts drive many), Apple's GPU
    cores, or shaders' TFLOPS: in FP32 where that is stated, else in FP16.
    """
    unit, peak = _peak(gpu)
    if peak is None:
        return "none", None
    if unit != "tensor":
        return unit, peak
    driven = (gpu.tdp_w / peak / _WATTS_PER_TFLOPS) ** _BY_WATTS if gpu.tdp_w else 1.0
    return unit, peak * (_FALLS_FROM_TFLOPS / peak) ** falls * driven


def _peak(gpu: Gpu) -> tuple[Unit, float | None]:
    if gpu.fp16_tensor_tflops is not None:
        return "tensor", gpu.fp16_tensor_tflops
    if MAKERS[gpu.vendor].one_memory:
        return "core", gpu.cores
    return "shader", gpu.fp32_tflops or gpu.fp16_shader_tflops


def generation_of(architecture: str, gpu: Gpu) -> str:
    """Leave memory and size of the chip out of an architecture's name; matrix units count."""
    name = architecture.removesuffix(" GDDR").removesuffix(" HBM").removesuffix(" small")
    bare = _peak(gpu)[0] == "shader" and (gpu.compute_capability or 0) >= _TENSOR_CORES
    return f"{name} plain" if bare else name


def as_strong(gpu: Gpu, other: Gpu) -> bool:
    """Say whether no figure of the card is below the other's, as far as both are known.

    The cores of two generations of Apple's chips do not compare.
    """
    (unit, mine), (other_unit, its) = _peak(gpu), _peak(other)
    if unit != other_unit or mine is None or its is None:
        return False
    if unit == "core" and gpu.name.split()[1] != other.name.split()[1]:
        return False
    fast = (gpu.bandwidth_bytes_s or 0) >= (other.bandwidth_bytes_s or 0)
    return mine >= its and fast and (gpu.tdp_w or 0) >= (other.tdp_w or 0)
