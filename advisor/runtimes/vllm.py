"""vLLM: pages of 16 tokens, a profiling run that reserves for the largest step, CUDA graphs.

Source: vLLM 0.33.0 (``v1/core/kv_cache_planning.py``, ``v1/worker/gpu_worker.py``,
``v1/worker/gpu_model_runner.py``, ``v1/sample/ops/topk_topp_sampler.py``, ``get_pp_indices``).
What its terms come to was compared with what servers printed (docs/memory-accuracy.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runtimes.base import CacheShape, Cells, Range, element_bytes, live_elements, up
from advisor.runtimes.server import Server
from advisor.scenario import pipeline_ranks, split_of, tensor_ranks
from advisor.units import GIB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from advisor.knowledge.types import Gpu
    from advisor.models.shape import Shape
    from advisor.scenario import Scenario

FRAMEWORK = "vLLM"
_LARGE_BYTES = 70 * GIB
_LARGEST_BYTES = 160 * GIB
_SAMPLED_STATES = 2
"""Hidden states of a step that still live while it samples."""
_EVERY_SIZE = 256
"""Graphs are captured for 1, 2, 4, every eighth size up to this and every sixteenth beyond."""
_LARGEST_GRAPH = 512
_FABRIC = (9.0, 10.0, 10.3)
"""Compute capabilities with a symmetric memory of their own (``symm_mem.py``)."""


class Vllm(Server):
    """vLLM."""

    memory_model = "vllm"
    page_tokens = 16
    windowed = True
    sees_card = True
    overheads = ("vllm_outside",)
    context_outside_share = True
    reads_speculators = True
    scales_picked = True
    captures_graphs = True
    prompt_chunk = 2048  # of smaller cards; ``max_concurrent_batches`` of config/vllm.py, line 588

    def cells(self, scenario: Scenario, window: int, policy: Mapping[str, float]) -> Cells:
        """Count whole pages; a window keeps what steps in flight add, and a page more.

        So of the one request whose prompt is read: as many must be free before it is taken up, and
        what has left the window is free after each step (``max_admission_blocks_per_request`` in
        ``v1/kv_cache_interface.py``, line 918; ``core/kv_cache_manager.py``, line 543).
        """
        tokens, sequences = scenario.context_tokens, scenario.batch
        full = up(tokens, self.page_tokens)
        span = min(window - 1 + self._in_flight(scenario, policy), tokens)
        kept = min(up(span, self.page_tokens) + self.page_tokens, full) if window else 0
        settled = min(up(window, self.page_tokens) + self.page_tokens, kept)
        slid = kept + (sequences - 1) * settled
        held = _padded(scenario.model.shape.layer_kinds, sequences * full, slid)
        states = sequences * _states(scenario.model.shape)
        return Cells(*held, 0, states, full, kept)

    def _in_flight(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the tokens of all steps that run at once (``max_in_flight_tokens``).

        One for every stage, and those it schedules ahead, which it does not for embeddings
        (``config/vllm.py``, lines 588, 601 and 1687).
        """
        pooling = scenario.model.modality == "embedding"
        ahead = 0 if pooling else round(policy["vllm_steps_ahead"])
        return (pipeline_ranks(scenario) + ahead) * self.tokens_at_once(scenario, policy)

    def activations(
        self, scenario: Scenario, _cache: CacheShape, _cells: Cells, policy: Mapping[str, float]
    ) -> Range:
        """Size its profiling run and its graphs, which it takes off before the cache.

        The low end is that of a start that is told to hold one sequence, where none are stated.
        """
        held = self.slots(scenario, policy), scenario.slots or 1
        peak, least = self._peaks(scenario, held, policy)
        graphs, fewest_graphs = (self._graphs(scenario, slots) for slots in held)
        step, graph = "vllm_step{}_share", "vllm_graph{}_bytes_per_layer_and_size"
        return Range(
            round(peak + graphs * policy[graph.format("")]),
            round(
                least * policy[step.format("_low")] / 100
                + fewest_graphs * policy[graph.format("_low")]
            ),
            round(
                peak * policy[step.format("_high")] / 100 + graphs * policy[graph.format("_high")]
            ),
        )

    def _peaks(
        self, scenario: Scenario, held: Iterable[int], policy: Mapping[str, float]
    ) -> Iterator[int]:
        """Size the most that one full step holds, and the sampler after it, whichever is more.

        For each number of sequences held. The experts' workspace outlives the step, and so does
        what an image encoder puts out.
        """
        shape, width = scenario.model.shape, element_bytes(scenario.precision)
        tokens = self.tokens_at_once(scenario, policy)
        states = tokens * shape.hidden * width
        experts = _workspace(scenario, tokens) * width
        step = tokens * live_elements(shape, _ranks(scenario), experts=False) * width
        logit = policy["vllm_sampler_bytes_per_logit"] + width
        pictures = states if scenario.model.vision_parameters else 0
        beside = experts + pictures + round(policy["vllm_step_bytes"])
        for slots in held:
            rows = 0 if scenario.model.modality == "embedding" else min(slots, tokens)
            sampling = _SAMPLED_STATES * states + round(logit * rows * shape.vocab)
            yield max(step, sampling) + beside

    def _graphs(self, scenario: Scenario, slots: int) -> int:
        """Count the CUDA graphs of one card, one for every layer and captured size."""
        if scenario.eager or scenario.backend in {None, "CPU"}:
            return 0
        largest = min(2 * slots, _LARGEST_GRAPH)
        even, wide = min(largest, _EVERY_SIZE), max(largest - _EVERY_SIZE, 0)
        sizes = min(largest.bit_length(), 3) + even // 8 + wide // 16
        return sizes * -(-scenario.model.shape.layers // pipeline_ranks(scenario))

    def tokens_at_once(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the tokens of its profiling run: as told, else they follow from the card."""
        if scenario.max_num_batched_tokens:
            return scenario.max_num_batched_tokens
        tokens = round(policy[f"vllm_profile_tokens_{_size(scenario.gpu)}"])
        return min(tokens, self.slots(scenario, policy) * scenario.context_tokens)

    def slots(self, scenario: Scenario, policy: Mapping[str, float]) -> int:
        """Count the sequences it may hold: as told, else as many as it does by default."""
        size = "small" if _size(scenario.gpu) == "small" else "large"
        usual = round(policy[f"vllm_sequences_{size}"])
        return scenario.slots or max(usual, scenario.batch)

    def most_at_start(
        self, scenario: Scenario, cache: CacheShape, pool: Range, policy: Mapping[str, float]
    ) -> int | None:
        """Count the sequences whose states the pool holds, where it must be told to start at all.

        With CUDA graphs it takes up no more sequences than its cache has blocks where layers keep a
        state (``config/compilation.py``, line 1514); a block holds one in every layer of a group.
        """
        kinds, state = scenario.model.shape.layer_kinds, cache.state_sums[-1]
        layers = {kind: sum(map(kinds.count, kind)) for kind in ("RH", "FH", "SC")}
        if not layers["RH"] or not self._graphs(scenario, 1):
            return None
        token = cache.full_sums[-1] / max(layers["FH"], 1)
        page = up(-(-state // layers["RH"]), round(self.page_tokens * token) or 1)
        blocks = pool.low // (page * _group(layers.values()))
        slots = self.slots(scenario, policy)
        held = pool.central // (state * _states(scenario.model.shape))
        return max(held, 1) if blocks < slots > held else None

    def communication(self, scenario: Scenario, policy: Mapping[str, float], found: Range) -> Range:
        """Add the symmetric memory that cards of one fabric trade through."""
        gpu = scenario.gpu
        if not gpu or gpu.segment != "datacenter" or gpu.compute_capability not in _FABRIC:
            return super().communication(scenario, policy, found)
        low, central, high = (
            round(policy[f"vllm_fabric{end}_bytes"]) for end in ("_low", "", "_high")
        )
        return Range(central, low, high)

    def inputs_at_once(self, _scenario: Scenario) -> int:
        """Encode one input after the other."""
        return 1

    def capacity_steps(self, _policy: Mapping[str, float]) -> tuple[int, ...]:
        """Give the sizes of ``tokens_at_once``."""
        return (_LARGE_BYTES, _LARGEST_BYTES)

    def first_long_rank(self, ranks: int, rest: int) -> int:
        """Give the longer stages to the ranks before the last."""
        return ranks - 1 - rest


def _padded(kinds: str, whole: int, slid: int) -> tuple[int, int]:
    """Add what is padded to the cells of the whole and of the sliding cache.

    Layers of one kind fill groups that are all of one size, and the last group is padded
    (``_get_kv_cache_groups_uniform_page_size``).
    """
    counts = (kinds.count("F"), kinds.count("S") + kinds.count("C"))
    if not all(counts):
        return whole, slid
    size = _group(counts)
    held = zip((whole, slid), counts, strict=True)
    whole, slid = (-(-cells * up(count, size) // count) for cells, count in held)
    return whole, slid


def _group(counts: Collection[int]) -> int:
    """Count the layers of a group, of which each holds layers of one kind alone."""
    least, most = min(filter(None, counts)), max(counts)
    return most if 2 * most < 3 * least else least


def _states(shape: Shape) -> int:
    """Count the recurrent states that a sequence keeps (``MambaSpec.max_memory_usage_bytes``).

    One more for the block that is shared with later prompts, where there is attention too, which
    turns prefix caching on; Mamba 2 keeps a third, of the prompt's last whole block.
    """
    if shape.recurrent is None or not set(shape.layer_kinds) & set("FSCH"):
        return 1
    return 3 if shape.recurrent.kind == "mamba2" else 2


def _size(gpu: Gpu | None) -> str:
    """Name the size of card by which it chooses its defaults (``get_batch_defaults``)."""
    capacity = (gpu.vram_bytes or 0) if gpu else 0
    if capacity >= _LARGEST_BYTES:
        return "largest"
    large = gpu and capacity >= _LARGE_BYTES and "A100" not in gpu.name and not gpu.unified_memory
    return "large" if large else "small"


def _ranks(scenario: Scenario) -> int:
    """Count the shards of every tensor."""
    return tensor_ranks(scenario) if split_of(scenario) == "tensor" else 1


def _workspace(scenario: Scenario, tokens: int) -> int:
    """Count the elements of the experts' two workspaces (``fused_moe``): kept between layers."""
    moe, hidden = scenario.model.shape.moe, scenario.model.shape.hidden
    if not moe:
        return 0
    width = -(-moe.width // _ranks(scenario))
    return tokens * moe.used * (max(2 * width, hidden) + max(width, hidden))
