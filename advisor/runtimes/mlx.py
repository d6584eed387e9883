"""MLX: a cache that grows by 256 tokens, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import Runtime

if TYPE_CHECKING:
    from advisor.knowledge.types import KvType
    from advisor.models.shape import Mla


class Mlx(Runtime):
    """MLX-LM."""

    memory_model = "mlx"
    page_tokens = 256
    windowed = True
    overheads = ()

    def index_bytes(self, mla: Mla, key: KvType) -> int:
        """Size a key of the index, with an empty value beside it (its ``deepseek_v32.py``)."""
        return 2 * super().index_bytes(mla, key)
