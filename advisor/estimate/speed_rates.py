"""What one card reaches with one engine, backend and format, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.estimate.result import Evidence
from advisor.estimate.speed_tables import Curve, EngineSpeed, Tables, read_tables
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge

_MODELLED_FROM_GPUS = 3
_SIXTEEN_BITS_ABOVE = 8.6
_EIGHT_BITS_ABOVE = 5.0


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
    utilisation: float
    """Share of the dense FP16 peak that prefill reaches."""
    prefill_spread: float


@dataclass(frozen=True, slots=True)
class Speeds:
    """The tables of one knowledge base, with the rates already worked out."""

    source: Mapping[str, object]
    tables: Tables
    rates: dict[tuple[str, ...], Rate | None]

    def rate(self, gpu: Gpu, backend: str, framework: Framework, precision: Format) -> Rate | None:
        """Give the rate, or None where the engine, backend or format has no figures."""
        key = (
            gpu.name,
            gpu.architecture,
            gpu.vram_type or "",
            backend,
            framework.name,
            precision.name,
        )
        try:
            return self.rates[key]
        except KeyError:
            made = _rate(self.tables, gpu, backend, framework, precision)
            self.rates[key] = made
            return made


_KEPT: dict[str, Speeds] = {}


def speeds_of(knowledge: Knowledge) -> Speeds | None:
    """Read the calibration once per knowledge base; None when it holds none.

    Raises:
        KnowledgeError: calibration.yaml is wrong.
    """
    found = _KEPT.get(knowledge.sha256)
    if found is not None and found.source is knowledge.calibration:
        return found
    if not knowledge.calibration:
        return None
    made = Speeds(knowledge.calibration, read_tables(knowledge.calibration), {})
    _KEPT[knowledge.sha256] = made
    return made


def _rate(
    tables: Tables, gpu: Gpu, backend: str, framework: Framework, precision: Format
) -> Rate | None:
    if framework.name not in tables.engines:
        return None
    engine = tables.engines[framework.name]
    architecture = next((m.to for m in tables.matches if m.fits(gpu)), "")
    if engine is None:
        return _family_rate(tables, gpu, backend, precision, architecture)
    return _engine_rate(tables, engine, precision, architecture)


def _family_rate(
    tables: Tables, gpu: Gpu, backend: str, precision: Format, architecture: str
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
    evidence, spread, small = _trust(tables.ranges, measured, near=offset is not None)
    if factor is None:
        evidence, spread = "extrapolated", max(spread, tables.ranges["unmeasured_format"])
    use, prefill_spread = _prefill(tables, architecture)
    return Rate(
        efficiency=min(product * (factor or 1.0), tables.most_efficiency),
        overhead_s=behind.overhead_s,
        moe_overhead_s=behind.moe_overhead_s,
        overlapped=False,
        scale=offset or 1.0,
        evidence=evidence,
        spread=spread,
        small_spread=max(spread, small),
        batch=tables.batch_llamacpp,
        utilisation=use,
        prefill_spread=prefill_spread,
    )


def _engine_rate(
    tables: Tables, engine: EngineSpeed, precision: Format, architecture: str
) -> Rate | None:
    bits = _stored_bits(precision)
    efficiency = engine.efficiency.get(bits)
    if efficiency is None:
        return None
    family = f"{precision.family}_{bits}"
    use, prefill_spread = _prefill(tables, architecture)
    return Rate(
        efficiency=efficiency,
        overhead_s=engine.overhead_by_family_s.get(family, engine.overhead_s),
        moe_overhead_s=0.0,
        overlapped=engine.overlapped,
        scale=1.0,
        evidence="extrapolated",
        spread=tables.ranges["other_engine"],
        small_spread=tables.ranges["other_engine"],
        batch=tables.batch_other,
        utilisation=use,
        prefill_spread=prefill_spread,
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


def _prefill(tables: Tables, architecture: str) -> tuple[float, float]:
    known = tables.utilisation.get(architecture)
    if known is None:
        return tables.utilisation_elsewhere, tables.ranges["prefill_unmeasured"]
    return known, tables.ranges["prefill"]
