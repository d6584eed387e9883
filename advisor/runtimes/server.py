"""What servers have in common, those that are no more than that, and what a driver shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.runtimes.base import FLOAT_BYTES, Range, Runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Gpu, KvType
    from advisor.models.shape import Mla, Shape
    from advisor.scenario import Scenario

_PERCENT = 100
_INDEX_BLOCK = 128
"""Elements of an index key that share a scale, on servers."""


class Server(Runtime):
    """A runtime that fills its share of each card with cache and shards every tensor."""

    claims_memory = True
    reads_window = True
    by_layer = False

    def images_at_once(self, scenario: Scenario, tokens: int, policy: Mapping[str, float]) -> int:
        """Count as many images of all prompts as one step has tokens for, one at least."""
        every = super().images_at_once(scenario, tokens, policy)
        return min(every, max(self.tokens_at_once(scenario, policy) // max(tokens, 1), 1))

    def communication(self, scenario: Scenario, policy: Mapping[str, float], found: Range) -> Range:
        """Give less where the cards have no fabric between them: fewer channels, no own buffers."""
        gpu = scenario.gpu
        fabric = gpu and gpu.nvlink_bytes_s and gpu.segment != "consumer"
        if scenario.backend != "CUDA" or gpu is None or fabric:
            return found
        return replace(found, central=round(policy["nccl_plain_bytes"]))

    def index_bytes(self, mla: Mla, _key: KvType) -> int:
        """Size a key of the index: one byte an element, with a float32 scale for every block.

        Source: ``DeepseekV32Indexer`` of vLLM, ``DSATokenToKVPool`` of SGLang.
        """
        return mla.index_dim + mla.index_dim // _INDEX_BLOCK * FLOAT_BYTES


def shown_bytes(gpu: Gpu, capacity: int, policy: Mapping[str, float]) -> float:
    """Say how much of so large a card the driver shows to programs."""
    if gpu.unified_memory:
        return capacity
    kept = policy["driver_consumer_share" if gpu.segment == "consumer" else "driver_share"]
    return capacity * (1 - (kept + corrected_share(gpu, policy)) / _PERCENT)


def corrected_share(gpu: Gpu, policy: Mapping[str, float]) -> float:
    """Give the part of a card that error correction takes, per cent."""
    found = gpu.segment == "datacenter" and (gpu.vram_type or "").startswith("GDDR")
    return policy["reserve_ecc_gddr_share"] * found


class TensorRt(Server):
    """TensorRT-LLM."""

    memory_model = "tensorrt-llm"
    shares_what_is_free = True
    chunk_tokens = 8192

    def uses_window(self, shape: Shape) -> bool:
        """Whether it keeps the window alone untold: of Gemma 4, whose layers differ in width.

        Source: ``_create_kv_cache_manager`` of its ``_torch/pyexecutor/_util.py``; for others
        ``resource_manager.py`` keeps the longest sequence in every layer.
        """
        return shape.model_type.startswith("gemma4")

    def told_windows(self, scenario: Scenario) -> str:
        """Write one period of ``max_attention_window``, which it repeats over the layers."""
        shape, whole = scenario.model.shape, scenario.context_tokens
        window = shape.window or whole
        if set(shape.layer_kinds) != set("FS") or window >= whole or self.uses_window(shape):
            return ""
        kinds = shape.layer_kinds
        period = next(n for n in range(2, len(kinds) + 1) if _repeats(kinds, n))
        return str([window if kind == "S" else whole for kind in kinds[:period]])


def _repeats(kinds: str, period: int) -> bool:
    return kinds[period:] == kinds[:-period]


class Tgi(Server):
    """TGI."""

    memory_model = "tgi"
    chunk_tokens = None
