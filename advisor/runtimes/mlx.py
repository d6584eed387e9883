"""MLX: a cache that grows by 256 tokens, without torch."""

from __future__ import annotations

from advisor.runtimes.base import Runtime


class Mlx(Runtime):
    """MLX-LM."""

    memory_model = "mlx"
    page_tokens = 256
    windowed = True
    overheads = ()
