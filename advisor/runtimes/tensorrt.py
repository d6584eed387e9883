"""TensorRT-LLM: its cache takes a share of what is free beside weights and buffers."""

from __future__ import annotations

from advisor.runtimes.server import Server


class TensorRt(Server):
    """TensorRT-LLM."""

    memory_model = "tensorrt-llm"
    shares_what_is_free = True
    chunk_tokens = 8192
