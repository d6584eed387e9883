"""What the estimator answers with. Bytes, seconds and tokens/s, never strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Evidence = Literal["measured", "near", "modelled", "extrapolated"]
BoundBy = Literal["bandwidth", "compute", "overhead", "offload"]


@dataclass(frozen=True, slots=True)
class CardMemory:
    """One card's share, bytes."""

    capacity_bytes: int
    usable_bytes: int
    required_bytes: int
    weights_bytes: int
    kv_cache_bytes: int
    compute_buffer_bytes: int
    overhead_bytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What a scenario occupies, bytes; with several cards the card figures are sums.

    ``deficit_bytes`` and ``headroom_bytes`` belong to the fullest card (one of them is 0).
    """

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
    per_gpu: tuple[CardMemory, ...]
    low_bytes: int
    """Lower end of ``required_bytes`` where a part is only known as a range."""
    high_bytes: int
    approximate: tuple[str, ...]
    """Names of the parts that are estimates, one plain phrase each; empty: exact formulas."""
    bits_per_weight: float | None
    """Average over the whole model as stored."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The longest context and the largest batch that still fit, None when nothing does."""

    max_context_tokens: int | None
    max_batch: int | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A tokens/s figure with its 80 % range and where it comes from."""

    estimate: float
    low: float
    high: float
    evidence: Evidence
    source: str = ""
    """Where a measured figure was published."""
    modelled: float | None = None
    """The model's own figure beside a measured one."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second; ``aggregate`` is over all sequences of the batch."""

    depth_tokens: int
    decode_tok_s: Figure
    prefill_tok_s: Figure | None
    aggregate_tok_s: Figure | None
    bound_by: BoundBy
