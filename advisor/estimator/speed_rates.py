"""What one card reaches with one engine, backend and format, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.measured_speed import MeasuredSpeeds
from advisor.estimator.speed_fields import Match
from advisor.estimator.speed_prefill import (
    Reached,
    generation_of,
    reached_by_engine,
    reached_by_llamacpp,
)
from advisor.estimator.speed_tables import (
    BatchTable,
    EngineSpeed,
    Tables,
    group_in,
    read_tables,
)
from advisor.knowledge.catalogue import ALONE, MAKERS
from advisor.knowledge.programs import Capability
from advisor.knowledge.types import CardEngine, Format, Framework, Gpu, Knowledge
from advisor.scenario.figures import Evidence
from advisor.scenario.support import never_there

if TYPE_CHECKING:
    from advisor.knowledge.types import UserSpeeds

MODELLED_FROM_GPUS = 3
PACKED = 4
"""Stored bits of formats that a kernel has to unpack."""
_SIXTEEN_BITS_ABOVE = 8.6
_EIGHT_BITS_ABOVE = 5.0
SIXTEEN_BITS = frozenset({"F16", "BF16", "FP16"})


class Rate(Struct, frozen=True):
    """One card with one engine, backend and weight format; times per layer and token."""

    efficiency: float
    """Share of the datasheet bandwidth that reading weights reaches."""
    cache_efficiency: float
    """The same for the cache."""
    overhead_s: float
    expert_overhead_s: float
    """The further overhead of a mixture of experts."""
    recurrent_overhead_s: float
    """The further overhead of a layer with a recurrent state."""
    overlapped: bool
    scale: float
    """Measured speed of this very card over the model's."""
    evidence: Evidence
    ranges: tuple[str, ...]
    """80 % ranges that apply whatever the model; the widest counts."""
    small_range: str
    """The further one for models of few bytes."""
    cards: int
    """Measured cards behind the figures."""
    batch: BatchTable
    prefill: Reached | None
    """Arithmetic of one card while it reads a prompt."""
    expert_efficiency: float = 1.0
    """How well routed experts are read, against other weights."""
    serving_s: float = 0.0
    """What sampling and sending take of each token."""
    latent_cache: float = 1.0
    """How well a cache of latent vectors, which every head reads, is read against another."""
    unpacked: float = 0.0
    """What unpacking a cache of few bits takes, in reads of the same in 16 bits."""
    unpacked_by_head_s: float = 0.0
    """The same for every value, head that reads it and shading unit, where each head unpacks."""


class Speeds(Struct, frozen=True):
    """The tables of one knowledge base, with the rates already worked out."""

    source: Mapping[str, object]
    tables: Tables
    measured: MeasuredSpeeds
    gpus: Mapping[str, Gpu]
    rates: dict[tuple[str, ...], Rate | None]
    reached: dict[tuple[str, ...], Reached | None]
    """What a card does of a prompt, the same in every format but for a factor.

    Without it lines of ``estimate`` take 1.01 times the instructions.
    """
    widest: dict[tuple[str, ...], tuple[float, float]]
    """Ranges of situations that were combined before."""
    user: UserSpeeds | None = None

    def rate(
        self,
        gpu: Gpu,
        backend: str,
        framework: Framework,
        precision: Format,
        *,
        moe: bool = False,
        slow: Capability | None = None,
    ) -> Rate | None:
        """Give the rate, or None where nothing has figures; ``slow`` says that it reads slowly."""
        key = (
            gpu.name, gpu.architecture, gpu.vram_type or "", backend, framework.name,
            precision.name, "moe" if moe else "", slow.name if slow else "",
        )  # fmt: skip
        if key not in self.rates:
            made = _rate(self, gpu, backend, framework, precision, moe=moe)
            self.rates[key] = _slowed(made, slow.times or 1.0, moe=moe) if made and slow else made
        return self.rates[key]


_KEPT: dict[str, Speeds] = {}


def speeds_of(knowledge: Knowledge) -> Speeds | None:
    """Read the calibration once per knowledge base; None when it holds none.

    Raises:
        KnowledgeError: A calibration file is wrong.
    """
    calibration = knowledge.calibration
    key = f"{knowledge.sha256} {knowledge.user_speeds.sha256 if knowledge.user_speeds else ''}"
    found = _KEPT.get(key)
    if found and found.source is calibration and found.user is knowledge.user_speeds:
        return found
    if not calibration or not calibration.get("fitted"):
        return None
    measured = MeasuredSpeeds(calibration.get("measured"))
    tables = read_tables(calibration)
    gpus, user = knowledge.gpus, knowledge.user_speeds
    made = Speeds(calibration, tables, measured, gpus, {}, {}, {}, user)
    _KEPT[key] = made
    return made


def architecture_of(matches: Iterable[Match], gpu: Gpu) -> str:
    """Name the architecture of the calibration that a card belongs to, empty for none."""
    return next((match.to for match in matches if match.fits(gpu)), "")


def stored_bits(precision: Format) -> int:
    """Sort a format by what an engine stores: 16, 8 or 4 bits, 0 where unknown."""
    bits = precision.bits_per_weight or precision.class_bits or 0
    if not bits:
        return 0
    return 16 if bits > _SIXTEEN_BITS_ABOVE else 8 if bits > _EIGHT_BITS_ABOVE else 4


def engine_of(tables: Tables, framework: Framework) -> str:
    """Name the engine that sets a framework's speed: llama.cpp for its whole family."""
    return tables.leader if tables.engines.get(framework.name) is None else framework.name


def _user_factors(
    speeds: Speeds, gpu: Gpu, backend: str, framework: Framework, *, moe: bool
) -> tuple[float | None, float | None]:
    """Give what the user's measurements of this card say: of its decoding and of its prefill."""
    if speeds.user is None:
        return None, None
    key = CardEngine(gpu.name, backend, engine_of(speeds.tables, framework))
    found = speeds.user.factors.get(key)
    if found is None:
        return None, None
    return (found.experts or found.dense if moe else found.dense), found.prefill


def _rate(
    speeds: Speeds, gpu: Gpu, backend: str, framework: Framework, precision: Format, *, moe: bool
) -> Rate | None:
    tables = speeds.tables
    if framework.name not in tables.engines or not MAKERS[gpu.vendor].timed:
        return None
    if gpu.vendor == ALONE:
        return _processor_rate(tables, gpu.bandwidth_bytes_s or 0.0, precision, moe=moe)
    engine = tables.engines[framework.name]
    architecture = architecture_of(tables.matches, gpu)
    user, user_prefill = _user_factors(speeds, gpu, backend, framework, moe=moe)
    if engine is None:
        prefill = _llamacpp_prefill(speeds, gpu, backend, precision, architecture)
        if prefill and user_prefill:
            prefill = _with_user_prefill(prefill, user_prefill)
        return _family_rate(
            tables, gpu, backend, precision, architecture=architecture, user=user, prefill=prefill
        )
    prefill = reached_by_engine(tables.prefill, gpu, precision, engine.overhead_s)
    if never_there(framework, gpu):
        if _halves_crawl(gpu) and (precision.class_bits or _PLAIN_BITS) < _PLAIN_BITS:
            return None
        prefill = None
    elif prefill is None:
        prefill = _llamacpp_prefill(speeds, gpu, backend, precision, architecture)
    if prefill and user_prefill:
        prefill = replace(prefill, tflops=prefill.tflops * user_prefill)
    rate = _engine_rate(
        tables, framework.name, engine, gpu=gpu, precision=precision, card=user, prefill=prefill
    )
    if rate is None:
        return None
    far = moe and not user and _of_another_generation(tables, engine, architecture)
    rate = replace(rate, ranges=(*rate.ranges, "unmeasured_card")) if far else rate
    slower = tables.packed_experts.get(backend) if stored_bits(precision) == PACKED else None
    return replace(rate, expert_efficiency=1 / (1 + slower * rate.efficiency)) if slower else rate


_PLAIN_BITS = 16


def _of_another_generation(tables: Tables, engine: EngineSpeed, architecture: str) -> bool:
    """Say whether an engine was measured on no chip of a generation that is told by its name."""
    name = next((m.name for m in tables.matches if m.to == architecture), "")
    return bool(name) and not any(name in card for card in engine.offsets)


def _halves_crawl(gpu: Gpu) -> bool:
    """Whether the card computes in 16 bits far slower than in 32, as a server's kernels unpack to.

    On Pascal but the P100 at 1/64; nobody has published how fast packed weights are there.
    """
    halves, single = gpu.fp16_shader_tflops, gpu.fp32_tflops
    return halves is not None and single is not None and halves < single


def _slowed(rate: Rate, times: float, *, moe: bool) -> Rate:
    """Rate a format without fast kernels; experts that have slow ones already are left at those.

    What lies beside such experts is mostly kept in 16 bits.
    """
    apart = rate.expert_efficiency < 1
    return replace(
        rate,
        efficiency=rate.efficiency / (1.0 if moe and apart else times),
        evidence="extrapolated",
        ranges=(*rate.ranges, "unmeasured_format"),
    )


def _processor_rate(tables: Tables, bandwidth: float, precision: Format, *, moe: bool) -> Rate:
    """Rate a processor alone by what is left in system RAM beside a card; it reads as fast."""
    ram = tables.offload
    unpack = bandwidth * ram.unpacking_s(precision.name)
    share = ram.ram_efficiency_beside_experts if moe else ram.ram_efficiency
    dense = 1 / (1 / share + unpack)
    ranges = ("offload_experts",) if moe else ("offload",)
    return Rate(
        efficiency=dense,
        cache_efficiency=1 / (1 / ram.ram_efficiency + unpack),
        overhead_s=0.0,
        expert_overhead_s=0.0,
        recurrent_overhead_s=0.0,
        overlapped=False,
        scale=1.0,
        evidence="extrapolated",
        ranges=ranges,
        small_range=ranges[0],
        cards=0,
        batch=tables.batch_family,
        prefill=None,
        expert_efficiency=1 / (1 / ram.ram_efficiency_experts + unpack) / dense,
    )


def _with_user_prefill(prefill: Reached, factor: float) -> Reached:
    return replace(prefill, tflops=prefill.tflops * factor, range_name="prefill_card")


def _family_rate(
    tables: Tables,
    gpu: Gpu,
    backend: str,
    precision: Format,
    *,
    architecture: str,
    user: float | None,
    prefill: Reached | None,
) -> Rate | None:
    """Rate the llama.cpp family: base x backend x architecture x format, then the card's own."""
    family = tables.family
    behind = family.backends.get(backend)
    if behind is None:
        return None
    known = family.architectures.get(architecture)
    product, launch = family.efficiency * behind.efficiency, 1.0
    if known:
        product *= known.efficiency * known.backends.get(backend, 1.0)
        launch *= known.overhead
    factor = family.formats.get(group_in(family.format_groups, precision.name) or "")
    offset = family.offsets.get((gpu.name, backend))
    cards = known.cards.get(backend, 0) if known else 0
    evidence, ranges, small = _trust(gpu, cards, near=bool(offset or user))
    if factor is None:
        evidence, ranges = "extrapolated", (*ranges, "unmeasured_format")
    return Rate(
        efficiency=min(product * (factor or 1.0), family.most_efficiency),
        cache_efficiency=min(product * family.cache * behind.cache, family.most_efficiency),
        overhead_s=launch * family.overhead_s * behind.overhead,
        expert_overhead_s=launch * family.expert_overhead_s * behind.expert_overhead,
        recurrent_overhead_s=launch * family.recurrent_overhead_s * behind.recurrent_overhead,
        overlapped=False,
        scale=user or offset or 1.0,
        evidence=evidence,
        ranges=ranges,
        small_range=small,
        cards=cards,
        batch=_batch_of(tables, backend),
        prefill=prefill,
        expert_efficiency=(behind.sixteen_bit_experts if precision.name in SIXTEEN_BITS else 1.0),
        serving_s=family.serving_s,
        latent_cache=behind.latent_cache,
        unpacked=behind.unpacked,
        unpacked_by_head_s=behind.unpacked_by_head_s
        * family.cache_generations.get(architecture, 1.0),
    )


def _batch_of(tables: Tables, backend: str) -> BatchTable:
    family, (dense, experts) = tables.batch_family, tables.batch_backends.get(backend, (1.0, 1.0))
    return replace(
        family,
        arithmetic=family.arithmetic * dense,
        expert_arithmetic=family.expert_arithmetic * experts,
    )


def _engine_rate(
    tables: Tables,
    name: str,
    engine: EngineSpeed,
    *,
    gpu: Gpu,
    precision: Format,
    card: float | None,
    prefill: Reached | None,
) -> Rate | None:
    bits = stored_bits(precision)
    efficiency = engine.efficiency.get(bits)
    if efficiency is None:
        return None
    family = f"{precision.family}_{bits}"
    own = engine.overhead_by_family_s.get(family, engine.overhead_s)
    offset = engine.offsets.get(gpu.name, 1.0)
    # A card's factor comes on top of every time, and this one was measured with it.
    kernels = tables.kernels_s.get(family, 0.0) * offset
    own_range = f"engine {name}"
    own_range = own_range if own_range in tables.ranges else "other_engine"
    return Rate(
        efficiency=efficiency,
        cache_efficiency=min(efficiency * engine.cache, tables.family.most_efficiency),
        overhead_s=max(own, kernels),
        expert_overhead_s=engine.expert_overhead_s,
        recurrent_overhead_s=0.0,
        overlapped=engine.overlapped,
        scale=card or offset,
        evidence="near" if card else "extrapolated",
        ranges=(own_range, "laptop") if gpu.segment == "mobile" else (own_range,),
        small_range=own_range,
        cards=engine.cards,
        batch=tables.batch_other,
        prefill=prefill,
    )


def _trust(gpu: Gpu, cards: int, *, near: bool) -> tuple[Evidence, tuple[str, ...], str]:
    """Give the tier, the ranges that apply, and the further one of small models."""
    if near:
        return "near", ("near",), "near_small"
    own = ("laptop",) if gpu.segment == "mobile" else ()
    if cards >= MODELLED_FROM_GPUS:
        return "modelled", ("modelled", *own), "modelled_small"
    name = "alone" if cards else "unmeasured_card"
    return "extrapolated", (name, *own), name


def _llamacpp_prefill(
    speeds: Speeds, gpu: Gpu, backend: str, precision: Format, architecture: str
) -> Reached | None:
    tables, key = speeds.tables.prefill, (gpu.name, gpu.architecture, gpu.vram_type or "", backend)
    if key not in speeds.reached:
        speeds.reached[key] = reached_by_llamacpp(
            tables, speeds.gpus, gpu, backend, generation_of(architecture, gpu)
        )
    found = speeds.reached[key]
    if found is None:
        return None
    if precision.name in SIXTEEN_BITS:
        factor = tables.sixteen_bit.get(backend, 1.0)
        experts = found.experts * tables.sixteen_bit_experts.get(backend, 1.0)
    else:
        group = group_in(speeds.tables.family.format_groups, precision.name)
        factor, experts = tables.formats.get(group or "", 1.0), found.experts
    return replace(
        found, tflops=found.tflops * factor, experts=experts, attention=found.attention / factor
    )
