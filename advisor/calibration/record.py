"""One measured speed, whoever measured it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Metric = Literal["decode_tok_s", "prefill_tok_s", "total_throughput_tok_s"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure of one configuration; an empty text or None means not stated."""

    gpu: str
    gpus: int
    model: str
    precision: str
    framework: str
    framework_version: str
    backend: str
    prompt_tokens: int
    gen_tokens: int
    depth_tokens: int
    """Tokens in the cache when the clock starts."""
    batch: int
    """Sequences at once."""
    metric: Metric
    """Decode: of one stream; total throughput: generated tokens of all streams, prompts and
    waiting included."""
    tok_s: float
    stdev: float | None
    date: str
    """ISO date."""
    source: str
    note: str
