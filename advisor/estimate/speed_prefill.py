"""How much arithmetic reading a prompt reaches: the part of the speed model that reads no bytes.

Arithmetic is counted as two operations per active parameter and token, in TFLOPS (10^12 per
second). The figures are the group ``prefill`` of knowledge/calibration.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from advisor.knowledge.types import Format, Gpu

Unit = Literal["tensor", "core", "shader"]
_FALLS_FROM_TFLOPS = 100.0


@dataclass(frozen=True, slots=True)
class Reached:
    """What one card reaches while it reads a prompt."""

    tflops: float
    spread: float
    """80 % range factor."""


@dataclass(frozen=True, slots=True)
class PrefillTables:
    """The group ``prefill`` of calibration.yaml."""

    prompt_tokens: int
    units: Mapping[tuple[str, str], float]
    """Share of the peak by backend and unit, for architectures without an own one."""
    architectures: Mapping[tuple[str, str], float]
    """Share of the peak by architecture and backend."""
    falls: float
    """Exponent by which the share falls as the tensor peak grows beyond 100 TFLOPS."""
    sixteen_bit: Mapping[str, float]
    """16-bit weights over quantised ones, by backend."""
    cards: Mapping[tuple[str, str], float]
    """TFLOPS of measured cards, by card and backend."""
    engines: float
    """Share of the FP32-accumulate peak under engines outside the llama.cpp family."""
    experts: float
    """A mixture of experts over a dense model of its active size."""


def reached_by_llamacpp(
    tables: PrefillTables,
    ranges: Mapping[str, float],
    gpus: Mapping[str, Gpu],
    *,
    gpu: Gpu,
    backend: str,
    architecture: str,
) -> Reached | None:
    """Give the TFLOPS of one card in the llama.cpp family with quantised weights.

    A card without a measurement keeps between the measured ones of its architecture: never below
    a weaker card, never above a stronger one.

    Args:
        tables: The calibration.
        ranges: Its range factors.
        gpus: All cards, where the peaks of measured ones stand.
        gpu: The card.
        backend: The backend.
        architecture: What the calibration calls its architecture.

    Returns:
        None without a peak figure or without any measurement of the backend and unit.
    """
    own = tables.cards.get((gpu.name, backend))
    if own is not None:
        return Reached(own, ranges["prefill_card"])
    modelled = _modelled(tables, gpu, backend, architecture)
    if modelled is None:
        return None
    known = (architecture, backend) in tables.architectures
    spread = ranges["prefill" if known else "prefill_unmeasured"]
    for name, of_backend in tables.cards:
        peer = gpus.get(name) if of_backend == backend else None
        if peer is None or peer.architecture != gpu.architecture:
            continue
        tflops = tables.cards[name, of_backend]
        if _as_strong(gpu, peer):
            modelled = max(modelled, tflops)
        elif _as_strong(peer, gpu):
            modelled = min(modelled, tflops)
    return Reached(modelled, spread)


def reached_by_engine(
    tables: PrefillTables, ranges: Mapping[str, float], gpu: Gpu, precision: Format
) -> Reached | None:
    """Give the TFLOPS of one card under vLLM and its like.

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
    return Reached(peak * tables.engines, ranges["prefill_engine"])


def _is_native(gpu: Gpu, precision: Format) -> bool:
    if gpu.compute_capability is None:
        return gpu.vendor == "AMD"
    needed = precision.native_compute_capability
    return needed is not None and gpu.compute_capability >= needed


def _modelled(tables: PrefillTables, gpu: Gpu, backend: str, architecture: str) -> float | None:
    unit, peak = _peak(gpu)
    share = tables.architectures.get((architecture, backend))
    share = tables.units.get((backend, unit)) if share is None else share
    if share is None or peak is None:
        return None
    falls = (_FALLS_FROM_TFLOPS / peak) ** tables.falls if unit == "tensor" else 1.0
    return share * peak * falls


def _peak(gpu: Gpu) -> tuple[Unit, float | None]:
    """Give the card's size: tensor TFLOPS in FP16, Apple's cores, or shader TFLOPS in FP16."""
    if gpu.fp16_tensor_tflops is not None:
        return "tensor", gpu.fp16_tensor_tflops
    if gpu.vendor == "Apple":
        return "core", gpu.cores
    return "shader", gpu.fp16_shader_tflops


def _as_strong(gpu: Gpu, other: Gpu) -> bool:
    """Say whether no figure of the card is below the other's, as far as both are known."""
    (unit, mine), (other_unit, its) = _peak(gpu), _peak(other)
    if unit != other_unit or mine is None or its is None:
        return False
    return mine >= its and (gpu.bandwidth_bytes_s or 0) >= (other.bandwidth_bytes_s or 0)
