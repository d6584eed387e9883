"""What one card reaches with one engine, backend and format, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.estimate.result import Evidence
from advisor.estimate.speed_prefill import Reached, reached_by_engine, reached_by_llamacpp
from advisor.estimate.speed_tables import Curve, EngineSpeed, Tables, read_tables
from advisor.knowledge.own import CardEngine, OwnSpeeds
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge

_MODELLED_FROM_GPUS = 3
_SIXTEEN_BITS_ABOVE = 8.6
_EIGHT_BITS_ABOVE = 5.0
_SIXTEEN_BITS = frozenset({"F16", "BF16", "FP16"})


@dataclass(frozen=True, slots=True)
class Rate:
    """One card with one engine, backend and weight format."""

    efficiency: float
    """Share of the datasheet bandwidth that reading weights and cache reaches."""
    overhead_s: float
    """Host and launch time per layer and token."""
    moe_overhead_s: float | None
    """The further overhead of a mixture of experts; None: unknown, no figure for those."""
    overlapped: bool
    scale: float
    """Measured speed of this very card over the model's."""
    evidence: Evidence
    spread: float
    """80 % range factor for weights of usual size."""
    small_spread: float
    batch: Curve
    """Aggregate over one stream, by streams."""
    prefill: Reached | None
    """Arithmetic of one card while it reads a prompt."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """The tables of one knowledge base, with the rates already worked out."""

    source: Mapping[str, object]
    tables: Tables
    gpus: Mapping[str, Gpu]
    rates: dict[tuple[str, ...], Rate | None]
    own: OwnSpeeds | None = None

    def rate(
        self, gpu: Gpu, backend: str, framework: Framework, precision: Format, *, moe: bool = False
    ) -> Rate | None:
        """Give the rate, or None where the engine, backend or format has no figures."""
        key = (
            gpu.name,
            gpu.architecture,
            gpu.vram_type or "",
            backend,
            framework.name,
            precision.name,
            "moe" if moe else "",
        )
        try:
            return self.rates[key]
        except KeyError:
            made = _rate(self, gpu, backend, framework, precision, moe=moe)
            self.rates[key] = made
            return made


_KEPT: dict[str, Speeds] = {}


def speeds_of(knowledge: Knowledge) -> Speeds | None:
    """Read the calibration once per knowledge base; None when it holds none.

    Raises:
        KnowledgeError: calibration.yaml is wrong.
    """
    key = f"{knowledge.sha256} {knowledge.own.sha256 if knowledge.own else ''}"
    found = _KEPT.get(key)
    if found and found.source is knowledge.calibration and found.own is knowledge.own:
        return found
    if not knowledge.calibration:
        return None
    tables = read_tables(knowledge.calibration)
    made = Speeds(knowledge.calibration, tables, knowledge.gpus, {}, knowledge.own)
    _KEPT[key] = made
    return made


def engine_of(tables: Tables, framework: Framework) -> str:
    """Name the engine that sets a framework's speed: llama.cpp for its whole family."""
    return "llama.cpp" if tables.engines.get(framework.name) is None else framework.name


def _own_factors(
    speeds: Speeds, gpu: Gpu, backend: str, framework: Framework, *, moe: bool
) -> tuple[float | None, float | None]:
    """Give what the user's measurements of this card say: of its decoding and of its prefill."""
    if speeds.own is None:
        return None, None
    key = CardEngine(gpu.name, backend, engine_of(speeds.tables, framework))
    found = speeds.own.factors.get(key)
    if found is None:
        return None, None
    return (found.experts or found.dense if moe else found.dense), found.prefill


def _rate(
    speeds: Speeds, gpu: Gpu, backend: str, framework: Framework, precision: Format, *, moe: bool
) -> Rate | None:
    tables = speeds.tables
    if framework.name not in tables.engines:
        return None
    engine = tables.engines[framework.name]
    architecture = next((m.to for m in tables.matches if m.fits(gpu)), "")
    own, prefill_own = _own_factors(speeds, gpu, backend, framework, moe=moe)
    if engine is None:
        prefill = _llamacpp_prefill(speeds, gpu, backend, precision, architecture)
        if prefill and prefill_own:
            spread = min(prefill.spread, tables.ranges["prefill_card"])
            prefill = Reached(prefill.tflops * prefill_own, spread)
        return _family_rate(
            tables, gpu, backend, precision, architecture=architecture, own=own, prefill=prefill
        )
    prefill = reached_by_engine(tables.prefill, tables.ranges, gpu, precision)
    if prefill is None:
        prefill = _llamacpp_prefill(speeds, gpu, backend, precision, architecture)
    if prefill and prefill_own:
        prefill = replace(prefill, tflops=prefill.tflops * prefill_own)
    return _engine_rate(tables, engine, precision, own, prefill)


def _family_rate(
    tables: Tables,
    gpu: Gpu,
    backend: str,
    precision: Format,
    *,
    architecture: str,
    own: float | None,
    prefill: Reached | None,
) -> Rate | None:
    """Rate the llama.cpp family: base x backend x architecture x format, then the card's own."""
    behind = tables.backends.get(backend)
    if behind is None:
        return None
    known = tables.architectures.get(architecture)
    factor = next((f for begin, f in tables.formats if precision.name.startswith(begin)), None)
    product = tables.base_efficiency * behind.factor * (known.factor if known else 1.0)
    offset = tables.offsets.get((gpu.name, backend))
    measured = known.measured.get(backend, 0) if known else 0
    evidence, spread, small = _trust(tables.ranges, measured, near=bool(offset or own))
    if factor is None:
        evidence, spread = "extrapolated", max(spread, tables.ranges["unmeasured_format"])
    return Rate(
        efficiency=min(product * (factor or 1.0), tables.most_efficiency),
        overhead_s=behind.overhead_s,
        moe_overhead_s=behind.moe_overhead_s,
        overlapped=False,
        scale=own or offset or 1.0,
        evidence=evidence,
        spread=spread,
        small_spread=max(spread, small),
        batch=tables.batch_llamacpp,
        prefill=prefill,
    )


def _engine_rate(
    tables: Tables,
    engine: EngineSpeed,
    precision: Format,
    card: float | None,
    prefill: Reached | None,
) -> Rate | None:
    bits = _stored_bits(precision)
    efficiency = engine.efficiency.get(bits)
    if efficiency is None:
        return None
    family = f"{precision.family}_{bits}"
    own = engine.overhead_by_family_s.get(family, engine.overhead_s)
    return Rate(
        efficiency=efficiency,
        overhead_s=max(own, tables.kernels_s.get(family, 0.0)),
        moe_overhead_s=0.0,
        overlapped=engine.overlapped,
        scale=card or 1.0,
        evidence="near" if card else "extrapolated",
        spread=tables.ranges["other_engine"],
        small_spread=tables.ranges["other_engine"],
        batch=tables.batch_other,
        prefill=prefill,
    )


def _stored_bits(precision: Format) -> int:
    bits = precision.bits_per_weight or precision.class_bits or 0
    if not bits:
        return 0
    return 16 if bits > _SIXTEEN_BITS_ABOVE else 8 if bits > _EIGHT_BITS_ABOVE else 4


def _trust(
    ranges: Mapping[str, float], measured: int, *, near: bool
) -> tuple[Evidence, float, float]:
    if near:
        return "near", ranges["near"], ranges["near_small"]
    if measured >= _MODELLED_FROM_GPUS:
        return "modelled", ranges["modelled"], ranges["modelled_small"]
    return "extrapolated", ranges["alone"], ranges["alone"]


def _llamacpp_prefill(
    speeds: Speeds, gpu: Gpu, backend: str, precision: Format, architecture: str
) -> Reached | None:
    tables = speeds.tables
    found = reached_by_llamacpp(
        tables.prefill,
        tables.ranges,
        speeds.gpus,
        gpu=gpu,
        backend=backend,
        architecture=architecture,
    )
    if found is None or precision.name not in _SIXTEEN_BITS:
        return found
    return replace(found, tflops=found.tflops * tables.prefill.sixteen_bit.get(backend, 1.0))
