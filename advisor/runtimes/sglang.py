"""SGLang: it works out from card, prefill chunk and batch what stays out of its static share.

Source: SGLang 0.5.23 (``arg_groups/memory_hook.py``, ``arg_groups/cuda_graph_hook.py``,
``KVCacheConfigurator._profile_available_bytes``); few printed logs were compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import CacheShape, Cells, Compute, Range
from advisor.runtimes.server import Server, shown_bytes
from advisor.scenario import split_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.runtimes.base import Placement
    from advisor.scenario import Scenario
FRAMEWORK = "SGLang"
_SIZES = ("small", "medium", "large", "largest")
_EDGES = ("sglang_small_card_bytes", "sglang_medium_card_bytes", "sglang_large_prefill_card_bytes")
_CAPTURED = ((32, 4), (256, 16), (512, 32), (1024, 64), (4096, 256))
"""Prompt lengths it captures a graph for: up to the first every so many tokens, and so on."""
_CAPTURED_BEYOND = 512


class Sglang(Server):
    """SGLang."""

    memory_model = "sglang"
    sees_card = True
    overheads = ()
    captures_graphs = True

    def activations(
        self, scenario: Scenario, _cache: CacheShape, _cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Give what it keeps out of its static share: as told, else by its own rule.

        Told to keep less than by its rule, it may run out at the first long prompt or picture.
        """
        own = self._reserve(scenario, policy)
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        if scenario.gpu_memory_utilization and scenario.gpu and capacity:
            shown = shown_bytes(scenario.gpu, capacity, policy)
            told = round((1 - scenario.gpu_memory_utilization) * shown)
            return Range(told, told, max(told, own.central))
        return own

    def compute_beside(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        placement: Placement,
        policy: Mapping[str, float],
    ) -> Compute:
        """Size the graphs of a second model: what stays out of the static share does so once."""
        whole = self.compute(scenario, cache, cells, placement, policy)
        graphs = round(self._graphs(scenario, self.tokens_at_once(scenario, policy), policy))
        return Compute(Range(graphs, 0, graphs), approximate=whole.approximate)

    def _reserve(self, scenario: Scenario, policy: Mapping[str, float]) -> Range:
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        chunk = self.tokens_at_once(scenario, policy)
        ranks = 1 if split_of(scenario) == "data" else scenario.gpus
        reserve = (
            policy["sglang_reserve_base_bytes"]
            + policy["sglang_reserve_per_prefill_token_bytes"]
            * max(chunk, policy["sglang_prefill_min_tokens"])
            + policy["sglang_reserve_per_rank_bytes"] * ranks
            + self._graphs(scenario, chunk, policy)
        )
        low = reserve
        if capacity > policy["sglang_large_card_bytes"]:
            reserve = max(reserve, policy["sglang_large_card_reserve_bytes"])
        if scenario.model.vision_parameters:
            reserve += (capacity - reserve) * policy["sglang_vision_share"] / 100
        return Range(round(reserve), round(low) // 2, round(reserve))

    def tokens_at_once(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the tokens of a prefill chunk: as told, else they follow from the card."""
        if scenario.max_num_batched_tokens:
            return scenario.max_num_batched_tokens
        capacity = (scenario.gpu.vram_bytes or 0) if scenario.gpu else 0
        size = _SIZES[sum(capacity >= policy[edge] for edge in _EDGES)]
        return round(policy[f"sglang_prefill_tokens_{size}"])

    def _graphs(self, scenario: Scenario, chunk: int, policy: Mapping[str, float]) -> float:
        """Size its CUDA graphs of decode steps and of prompts, none in an eager start."""
        if scenario.eager:
            return 0.0
        sequences = min(scenario.batch, policy["sglang_decode_sequences"])
        decode = policy["sglang_reserve_per_decode_sequence_bytes"] * sequences
        if scenario.model.shape.mla:
            return decode + policy["sglang_latent_graph_bytes"]
        return decode + policy["sglang_prompt_graph_bytes"] * _captured(chunk)

    def capacity_steps(self, policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the sizes from which it computes more at once or reserves more."""
        edges = {round(policy[edge]) for edge in _EDGES}
        return tuple(sorted(edges | {round(policy["sglang_large_card_bytes"]) + 1}))

    def first_long_rank(self, ranks: int, rest: int) -> int:
        """Give the longer stages to the last ranks."""
        return ranks - rest


def _captured(tokens: int) -> int:
    """Count the prompt lengths up to ``tokens`` for which it captures a graph."""
    found = start = 0
    for end, step in _CAPTURED:
        found += max(min(tokens, end) - start, 0) // step
        start = end
    return found + max(tokens - start, 0) // _CAPTURED_BEYOND
