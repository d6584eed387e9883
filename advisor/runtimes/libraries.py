"""Libraries, which keep a cache as it comes: transformers, ExLlama, MLX.

Source: transformers 5.23.0 (``cache_utils.py``), checked row by row (tests/data).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import CacheShape, Cells, Range, Runtime, Weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.knowledge.types import KvType
    from advisor.models.shape import Mla, Shape
    from advisor.scenario import Scenario

_SLIDING_EXTRA_BYTES = 8


class Transformers(Runtime):
    """Hugging Face transformers."""

    memory_model = "transformers"
    windowed = True
    cache_checked = True
    chunk_tokens = None

    def cached_heads(self, shape: Shape, layer: int) -> int:
        """Count every head of a Falcon with the new decoder: it repeats keys and values."""
        if shape.model_type == "falcon" and shape.config.get("new_decoder_architecture"):
            return shape.heads
        return super().cached_heads(shape, layer)

    def cells(self, _scenario: Scenario, window: int, tokens: int, sequences: int) -> Cells:
        """Count the tokens; a window drops the token that is about to be replaced."""
        kept = min(tokens, max(window - 1, 0))
        full, slide = sequences * tokens, sequences * kept
        return Cells(full, slide, _SLIDING_EXTRA_BYTES, sequences, tokens, kept)

    def activations(
        self, scenario: Scenario, cache: CacheShape, cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Add the whole prompt's keys and values of sliding layers, cut only afterwards."""
        found = super().activations(scenario, cache, cells, policy)
        if not cache.window:
            return found
        beyond = scenario.batch * scenario.context_tokens - cells.slide
        extra = max(beyond, 0) * cache.slide_sums[-1]
        return found + Range(extra, extra, extra)

    def shares(self, weights: Weights, free: Sequence[int]) -> tuple[int, ...]:
        """Give every card an even share and what does not fit to the last."""
        whole = weights.embedding + weights.layer_sums[-1] + weights.output
        even = -(-whole // len(free))
        first = [max(min(even, each), 1) for each in free[:-1]]
        return (*first, max(whole - sum(first), 1))


class ExLlama(Runtime):
    """ExLlamaV2 and ExLlamaV3."""

    memory_model = "exllama"
    page_tokens = 256


class Mlx(Runtime):
    """MLX-LM."""

    memory_model = "mlx"
    page_tokens = 256
    windowed = True
    overheads = ()

    def index_bytes(self, mla: Mla, key: KvType) -> int:
        """Size a key of the index, with an empty value beside it (its ``deepseek_v32.py``)."""
        return 2 * super().index_bytes(mla, key)
