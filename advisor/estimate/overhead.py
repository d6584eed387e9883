"""Memory outside every buffer of the model: what the driver, the display and the runtime hold.

All figures come from knowledge/policy.yaml, where each carries its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.estimate.memo import by_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Framework, Gpu, Knowledge

_WITHOUT_TORCH = frozenset({"llama.cpp", "mlx"})
_CAPTURES_GRAPHS = frozenset({"vllm"})
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Range:
    """A figure in bytes that is only known as a range."""

    central: int
    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(self.central + other.central, self.low + other.low, self.high + other.high)


NO_BYTES = Range(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Card:
    """What one card offers and what the runtime takes of it, bytes."""

    capacity: int | None
    usable: int | None
    overhead: Range


@by_identity
def card_of(
    gpu: Gpu | None, backend: str | None, framework: Framework, knowledge: Knowledge
) -> Card:
    """Say what one card offers to a framework.

    Without a card and a back end the overhead is 0: the figures are those of llama.cpp's
    back-end-neutral buffers.
    """
    overhead = _overhead(gpu, backend, framework, knowledge.policy)
    if gpu is None or gpu.vram_bytes is None:
        return Card(None, None, overhead)
    capacity = gpu.vram_bytes
    return Card(capacity, usable_bytes(gpu, capacity, framework, knowledge.policy), overhead)


def usable_bytes(gpu: Gpu, capacity: int, framework: Framework, policy: Mapping[str, float]) -> int:
    """Say what a framework may use of a card like this one with ``capacity`` bytes."""
    usable = capacity - _reserve(gpu, capacity, policy)
    if framework.memory_fraction is not None:
        usable = min(usable, int(capacity * _share(framework.memory_fraction)))
    return max(usable, 0)


def largest_share(gpu: Gpu, framework: Framework, policy: Mapping[str, float]) -> float:
    """Give a share of the capacity that ``usable_bytes`` never exceeds, 0 to 1."""
    kept = policy["reserve_unified_share"] / _PERCENT if gpu.unified_memory else 0.0
    claimed = 1.0 if framework.memory_fraction is None else _share(framework.memory_fraction)
    return min(1.0 - kept, claimed)


def _share(fraction: float) -> float:
    """Read a share that may be written 0.92 or 92 (%)."""
    return fraction / _PERCENT if fraction > 1 else fraction


def _reserve(gpu: Gpu, capacity: int, policy: Mapping[str, float]) -> int:
    if gpu.unified_memory:
        return round(capacity * policy["reserve_unified_share"] / _PERCENT)
    reserve = policy[f"reserve_{gpu.segment}_bytes"]
    if gpu.segment == "datacenter" and (gpu.vram_type or "").startswith("GDDR"):
        reserve += capacity * policy["reserve_ecc_gddr_share"] / _PERCENT
    return round(reserve)


def _overhead(
    gpu: Gpu | None, backend: str | None, framework: Framework, policy: Mapping[str, float]
) -> Range:
    if backend is None or backend == "CPU":
        return NO_BYTES
    total = _cuda(gpu, policy) if backend == "CUDA" else _named("other_backend_overhead", policy)
    if framework.memory_model not in _WITHOUT_TORCH:
        total += _named("torch_overhead", policy)
    if framework.memory_model in _CAPTURES_GRAPHS:
        total += _named("vllm_graph", policy)
    return total


def _cuda(gpu: Gpu | None, policy: Mapping[str, float]) -> Range:
    if gpu is None or gpu.multiprocessors is None:
        context = policy["cuda_context_unknown_bytes"]
    else:
        context = gpu.multiprocessors * policy["cuda_context_bytes_per_multiprocessor"]
    central = context + policy["cuda_libraries_bytes"]
    return Range(
        round(central),
        round(central * policy["cuda_overhead_low_share"] / _PERCENT),
        round(central * policy["cuda_overhead_high_share"] / _PERCENT),
    )


def _named(name: str, policy: Mapping[str, float]) -> Range:
    return Range(
        round(policy[f"{name}_bytes"]),
        round(policy[f"{name}_low_bytes"]),
        round(policy[f"{name}_high_bytes"]),
    )
