"""SGLang: it works out from card, prefill chunk and batch what stays out of its static share.

Source: SGLang 0.5.23; read, not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import CacheShape, Cells, Range, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.scenario.scenario import Scenario
FRAMEWORK = "SGLang"


class Sglang(Server):
    """SGLang."""

    memory_model = "sglang"
    sees_card = True

    def activations(
        self, scenario: Scenario, _cache: CacheShape, _cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Give what it keeps out of its static share: as told, else by its own rule."""
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        if scenario.gpu_memory_utilization and capacity:
            told = round((1 - scenario.gpu_memory_utilization) * capacity)
            return Range(told, told, told)
        least = policy["sglang_prefill_min_tokens"]
        reserve = (
            policy["sglang_reserve_base_bytes"]
            + policy["sglang_reserve_per_prefill_token_bytes"]
            * max(scenario.max_num_batched_tokens or least, least)
            + policy["sglang_reserve_per_rank_bytes"] * scenario.gpus
            + policy["sglang_reserve_per_decode_sequence_bytes"] * scenario.batch
        )
        low = reserve
        if capacity > policy["sglang_large_card_bytes"]:
            reserve = max(reserve, policy["sglang_large_card_reserve_bytes"])
        return Range(round(reserve), round(low) // 2, round(reserve))

    def capacity_steps(self, policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the size above which it reserves more."""
        return (round(policy["sglang_large_card_bytes"]) + 1,)

    def first_long_rank(self, ranks: int, rest: int) -> int:
        """Give the longer stages to the last ranks."""
        return ranks - rest
