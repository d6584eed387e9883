"""One measured speed, with every name as the knowledge base has it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Metric = Literal["decode_tok_s", "prefill_tok_s", "total_throughput_tok_s"]


class Measurement(Struct, frozen=True):
    """A speed somebody measured; text fields are empty and numbers None where not stated."""

    gpu: str
    """Name of the card in the knowledge base."""
    gpus: int
    model: str
    """Name of the model in the knowledge base."""
    precision: str
    """Name of the weight format in the knowledge base."""
    framework: str
    """Name of the runtime in the knowledge base."""
    framework_version: str
    backend: str
    """CUDA, ROCm, Vulkan, Metal or SYCL."""
    prompt_tokens: int | None
    gen_tokens: int | None
    depth_tokens: int | None
    """Tokens in the cache before the timed part."""
    batch: int
    """Streams at once."""
    metric: Metric
    """Decode: of one stream; total throughput: generated tokens of all streams, prompts and
    waiting included."""
    tok_s: float
    stdev: float | None
    date: str
    """ISO, as exact as stated: ``2026-08`` or ``2026-08-13``."""
    source: str
    note: str
