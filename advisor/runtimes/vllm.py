"""vLLM: pages of 16 tokens, a profiling run that reserves for the largest step, CUDA graphs.

Source: vLLM 0.33.0 (``v1/core/kv_cache_planning.py``, ``get_pp_indices``); read, not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import Cells, Server, up
from advisor.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.scenario.scenario import Scenario

FRAMEWORK = "vLLM"
_STEP_TOKENS = 2048
"""Tokens it schedules in one step on most cards (max_num_batched_tokens)."""
_LARGE_BYTES = 70 * GIB
_LARGEST_BYTES = 160 * GIB


class Vllm(Server):
    """vLLM."""

    memory_model = "vllm"
    page_tokens = 16
    windowed = True
    sees_card = True
    overheads = ("torch_overhead", "vllm_graph")
    graph_overheads = ("vllm_graph",)

    def cells(self, scenario: Scenario, window: int, tokens: int, sequences: int) -> Cells:
        """Count whole pages; a window keeps what one step adds, and a page more."""
        full = up(tokens, self.page_tokens)
        span = min(window - 1 + (scenario.max_num_batched_tokens or _STEP_TOKENS), tokens)
        kept = min(up(span, self.page_tokens) + self.page_tokens, full) if window else 0
        return Cells(sequences * full, sequences * kept, 0, sequences, full, kept)

    def tokens_at_once(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the tokens of its profiling run: as told, else they follow from the card."""
        if scenario.max_num_batched_tokens:
            return scenario.max_num_batched_tokens
        gpu = scenario.gpu
        capacity = (gpu.vram_bytes or 0) if gpu else 0
        size = "small"
        if capacity >= _LARGEST_BYTES:
            size = "largest"
        elif gpu and capacity >= _LARGE_BYTES and "A100" not in gpu.name:
            size = "large"
        return round(policy[f"vllm_profile_tokens_{size}"])

    def inputs_at_once(self, _scenario: Scenario) -> int:
        """Encode one input after the other."""
        return 1

    def capacity_steps(self, _policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the sizes of ``tokens_at_once``."""
        return (_LARGE_BYTES, _LARGEST_BYTES)

    def first_long_rank(self, ranks: int, rest: int) -> int:
        """Give the longer stages to the ranks before the last."""
        return ranks - 1 - rest
