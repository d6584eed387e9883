"""llama.cpp: its cache, where it puts weights, and its compute buffers, rebuilt from its graph.

Source: llama.cpp 0c1e57098 (``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp``,
``src/llama-model.cpp``), checked row by row (tests/data) and on 13,587 contexts. The buffers are
fitted to its own reports (tests/data/llamacpp_memory.csv.gz): exact to 32 bytes in the server
regime, mostly within 10 % elsewhere. Partial offload: the device keeps its formula, the first one
holds what is sent to it too (``_sent_layers``); else the host takes the one of a whole graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.models.shape import Recurrent
from advisor.runtimes.base import (
    FLOAT_BYTES,
    NO_BYTES,
    CacheShape,
    CardShare,
    Cells,
    Compute,
    Placement,
    Range,
    Runtime,
    Weights,
    up,
)
from advisor.runtimes.llamacpp_buffers import (
    LOGICAL_BATCH,
    GraphShape,
    cuda_cache_copies,
    graph_shape,
    index_scores,
    llamacpp_buffers,
    scratch_of_rows,
)
from advisor.scenario import split_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import KvType
    from advisor.models.shape import Shape
    from advisor.scenario import Scenario

FRAMEWORK = "llama.cpp"
OLLAMA = "Ollama"
_PAD_TOKENS = 256
"""It rounds the cells of a stream up to a multiple of this."""
_TAKEN_BACK = frozenset({"qwen3_5", "qwen3_5_moe", "nemotron_h"})
"""Whose recurrent states it keeps per drafted token (``llm_arch_supports_rs_rollback``)."""
_COMPUTE = "compute buffer: fitted to llama.cpp's own reports"
_PIPELINE = "compute buffer: copies for several cards taken from one published log"
_INDEX = "compute buffer: scores of the token index; at the upper end the masks made of them too"
_ROWS = "split: small tensors are taken as divided by rows too, scratch memory as the upper end"


class LlamaCpp(Runtime):
    """llama.cpp and what is built around it: Ollama, LM Studio."""

    memory_model = FRAMEWORK
    windowed = True
    cache_checked = True
    gguf_alone = True
    micro_batches = True
    one_engine = True
    sizes_layers_in_ram = True
    overheads = ()
    image_bytes = FLOAT_BYTES
    most_sequences = 256

    def uses_window(self, shape: Shape) -> bool:
        """Whether it keeps the window alone, which it does not for every architecture."""
        return shape.windows

    def state_bytes(self, state: Recurrent, _key: KvType) -> int:
        """Size the state, in float32 and without the newest column of the convolution."""
        kernel = state.conv_kernel or 1
        held = state.conv_elements * (kernel - 1) // kernel if kernel > 1 else state.conv_elements
        return FLOAT_BYTES * (held + state.state_elements)

    def cells(self, scenario: Scenario, window: int, _policy: Mapping[str, float]) -> Cells:
        """Count the padded cells of one stream for all sequences or of one for each."""
        sequences, unified = scenario.batch, scenario.kv_unified
        context = scenario.context_tokens * sequences
        full, streams = up(context, _PAD_TOKENS), 1
        if not unified:
            full, streams = up(full // sequences, _PAD_TOKENS), sequences
        slide = full if window else 0
        if window and not scenario.swa_full:
            windows = window * (sequences if unified else 1)
            ubatch = min(context, LOGICAL_BATCH, scenario.ubatch)
            slide = up(min(full, windows + ubatch), _PAD_TOKENS)
        return Cells(streams * full, streams * slide, 0, sequences, full, slide)

    def step_tokens(self, scenario: Scenario) -> int:
        """Give the part of the padding that falls to one sequence."""
        return _PAD_TOKENS // scenario.batch if _PAD_TOKENS % scenario.batch == 0 else 1

    def compute(
        self,
        scenario: Scenario,
        cache: CacheShape,
        cells: Cells,
        placement: Placement,
        _policy: Mapping[str, float],
    ) -> Compute:
        """Size the compute buffers, and what the kernels take beside them."""
        graph = graph_shape(scenario.model)
        found = llamacpp_buffers(scenario, graph, cache, cells, placement)
        if not placement.placed:
            return Compute(NO_BYTES, found.host)
        central = found.device + cuda_cache_copies(scenario, graph, cells)
        low = central - found.device + found.device_low
        high = central - found.device + found.device_high
        why = () if found.exact else (_COMPUTE,)
        if graph.indexed:
            scores = index_scores(scenario, cells)
            central, high, why = central + scores.central, high + scores.high, (_INDEX,)
        if split_of(scenario) == "row":
            high, why = high + scratch_of_rows(scenario, graph), (_ROWS,)
        elif _works_as_pipeline(scenario, graph, placement):
            central, high, why = central + found.pipeline, high + found.pipeline, (_PIPELINE,)
        sent = Range(found.sent, found.sent * 9 // 10, found.sent_high)
        return Compute(Range(central, low, high), found.host, why, sent)

    def images_at_once(
        self, _scenario: Scenario, _tokens: int, _policy: Mapping[str, float]
    ) -> int:
        """Compute one image after the other (``tools/mtmd``)."""
        return 1

    def keeps_draft_states(self, shape: Shape) -> bool:
        """Whether it can take a recurrent state back."""
        return shape.model_type in _TAKEN_BACK

    def draft_compute(self, head: Scenario, cache: CacheShape, cells: Cells) -> Range:
        """Size the buffer of the head's own context (``common/speculative.cpp``)."""
        graph = graph_shape(head.model)
        whole = Placement(0, len(cache.full_sums), (), 0)
        found = llamacpp_buffers(head, graph, cache, cells, whole)
        central = found.device + cuda_cache_copies(head, graph, cells)
        return Range(central, 0, central + found.device_high - found.device)

    def place_rest(
        self,
        scenario: Scenario,
        cards: tuple[CardShare, ...],
        weights: Weights,
        start: int,
        holder: int | None,
    ) -> int:
        """Keep what is looked up by token in system RAM, the image tower on the first card.

        Source: ``LLM_TENSOR_TOKEN_EMBD`` and ``LLM_TENSOR_PER_LAYER_TOKEN_EMBD`` are of
        ``LLM_TENSOR_LAYER_INPUT`` (``LLM_TENSOR_INFOS`` of ``src/llama-arch.cpp``, 00395eb), which
        ``llama_model_base::load_tensors`` of ``src/llama-model.cpp`` leaves to the processor
        ("there is very little benefit to offloading the input layer"). Where both are one memory,
        tables take what the cards can use.
        """
        profile, rope = weights.profile, weights.rope
        host, lookup = weights.embedding, weights.lookup
        if holder is None:
            output = weights.norm if profile.tied else weights.output
            return host + lookup + output + rope + profile.vision_bytes
        cards[holder].weights += weights.output
        if scenario.gpu and scenario.gpu.unified_memory:
            cards[holder].weights += lookup
        else:
            host += lookup
        cards[0].weights += profile.vision_bytes
        if start < len(weights.layer_sums) - 1:
            cards[0].weights += rope
        return host + (rope if start else 0)


def _works_as_pipeline(scenario: Scenario, graph: GraphShape, placement: Placement) -> bool:
    """Whether cards compute several micro-batches at once, which takes copies of the inputs.

    Source: ``llama_context::llama_context`` in ``src/llama-context.cpp``: every layer lies on the
    cards, the split is by layers, and no tensor is told to lie elsewhere (``-ncmoe``).
    """
    whole = placement.placed > graph.layers and not scenario.cpu_experts
    return scenario.gpus > 1 and whole and split_of(scenario) == "layer"
