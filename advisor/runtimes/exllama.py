"""ExLlama: a cache in pages of 256 tokens, without windows."""

from __future__ import annotations

from advisor.runtimes.base import Runtime


class ExLlama(Runtime):
    """ExLlamaV2 and ExLlamaV3."""

    memory_model = "exllama"
    page_tokens = 256
