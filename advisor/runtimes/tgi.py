"""Text Generation Inference: prompts are computed whole."""

from __future__ import annotations

from advisor.runtimes.server import Server


class Tgi(Server):
    """TGI."""

    memory_model = "tgi"
    chunk_tokens = None
