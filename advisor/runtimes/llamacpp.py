"""llama.cpp: its cache, where it puts weights, and its compute buffers, rebuilt from its graph.

Source: llama.cpp 0c1e57098 (``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp``,
``src/llama-model.cpp``), checked row by row (tests/data) and on 13,587 contexts. The buffers are
fitted to its own reports (tests/data/llamacpp_memory.csv.gz): exact to 32 bytes in the server
regime, mostly within 10 % elsewhere. Partial offload: the device keeps its formula, the host takes
the one of a whole graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

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
from advisor.scenario import split_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import KvType
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model
    from advisor.scenario import Scenario

FRAMEWORK = "llama.cpp"
OLLAMA = "Ollama"
LOGICAL_BATCH = 2048
"""Its n_batch."""
_PAD_TOKENS = 256
"""It rounds the cells of a stream up to a multiple of this."""
_TAKEN_BACK = frozenset({"qwen3_5", "qwen3_5_moe", "nemotron_h"})
"""Whose recurrent states it keeps per drafted token (``llm_arch_supports_rs_rollback``)."""
_COMPUTE = "compute buffer: fitted to llama.cpp's own reports"
_PIPELINE = "compute buffer: copies for several cards taken from one published log"
_INDEX = "compute buffer: scores of the token index, as one step or, at the upper end, head by head"
_ROWS = "split: small tensors are taken as divided by rows too, scratch memory as the upper end"
_F16 = 2
_F32_BITS = 32
_INPUT_COPIES = 4
_ALLOCATOR_BYTES = 32
_SLACK_BYTES = 4096
_HIP_OR_CUDA = frozenset({"CUDA", "ROCm"})


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

    def cells(self, scenario: Scenario, window: int, tokens: int, sequences: int) -> Cells:
        """Count the padded cells of one stream for all sequences or of one for each."""
        context, unified = tokens * sequences, scenario.kv_unified
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
        found = llamacpp_buffers(scenario, graph, cache, cells, placement.placed)
        if not placement.placed:
            return Compute(NO_BYTES, found.host)
        central = found.device + cuda_cache_copies(scenario, graph, cells)
        low = central - found.device + found.device_low
        high = central - found.device + found.device_high
        why = () if found.exact else (_COMPUTE,)
        if graph.index_heads:
            scores = index_scores(scenario, graph, cells)
            central, high, why = central + scores.central, high + scores.high, (_INDEX,)
        if split_of(scenario) == "row":
            high, why = high + scratch_of_rows(scenario, graph), (_ROWS,)
        elif _works_as_pipeline(scenario, graph, placement):
            central, high, why = central + found.pipeline, high + found.pipeline, (_PIPELINE,)
        return Compute(Range(central, low, high), found.host, why)

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
        found = llamacpp_buffers(head, graph, cache, cells, len(cache.full_sums))
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
        gpu = scenario.gpu
        if scenario.framework.lookups_on_card or (gpu and gpu.unified_memory):
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


class GraphShape(Struct, frozen=True):
    """What the buffer formulas need of a model; floats per token unless named otherwise."""

    hidden: int
    vocab: int
    heads: int
    queries: int
    keys: int
    ffn: int
    """Widest feed-forward term."""
    latent: bool
    latent_flash: int
    """Attention term of a latent cache with flash attention."""
    latent_plain: int
    """The same without, less the part that grows with the context."""
    latent_width: int
    index_heads: int
    """Heads that score tokens by an index; 0 without."""
    layers: int
    state_floats: int
    """Recurrent state of one layer and sequence."""
    conv_floats: int
    inner: int


class Buffers(Struct):
    """Compute buffers in bytes."""

    device: int
    """On a card that holds the output."""
    device_low: int
    device_high: int
    host: int
    exact: bool
    """Whether llama.cpp was seen to agree to 32 bytes in this regime."""
    pipeline: int
    """Extra bytes per card when several cards work as a pipeline."""


def graph_shape(model: Model) -> GraphShape:
    """Collect a model's widths for the buffer formulas."""
    shape = model.shape
    h, heads = shape.hidden, shape.heads
    q, kv = heads * shape.head_dim, shape.kv_heads * shape.head_dim
    mla, state = shape.mla, shape.recurrent
    attention = h if mla else q
    terms = [h]
    if "D" in shape.ffn_kinds:
        terms.append(_dense_term(model, attention))
    if shape.moe and "E" in shape.ffn_kinds:
        used, width = shape.moe.used, shape.moe.width
        terms.append(3 * used * width + 2 * h + attention)
        if 2 * width < h:
            terms.append(2 * used * h + used * width + 2 * h)
    if state and state.inner:
        terms.append(_recurrent_term(state))
    return GraphShape(
        hidden=h,
        vocab=shape.vocab,
        heads=heads,
        queries=q,
        keys=kv,
        ffn=max(terms),
        latent=mla is not None,
        latent_flash=(
            heads * (2 * mla.kv_lora_rank + mla.nope_dim + 3 * mla.rope_dim) + 3 * h if mla else 0
        ),
        latent_plain=heads * (2 * mla.kv_lora_rank + mla.rope_dim) + 3 * h if mla else 0,
        latent_width=mla.kv_lora_rank + mla.rope_dim if mla else 0,
        index_heads=mla.index_heads if mla else 0,
        layers=shape.layers,
        state_floats=state.state_elements if state else 0,
        conv_floats=state.conv_elements * (state.conv_kernel - 1) // state.conv_kernel
        if state and state.conv_kernel
        else 0,
        inner=state.inner if state else 0,
    )


def _recurrent_term(state: Recurrent) -> int:
    mixed = state.inner + 2 * state.groups * state.state
    return 3 * (state.inner + mixed) + (state.dt_rank or state.heads)


def _dense_term(model: Model, attention: int) -> int:
    shape = model.shape
    h, ff = shape.hidden, shape.intermediate
    if not shape.gated:
        return ff + 2 * h + attention
    if shape.model_type == "phi3":
        return 3 * ff + 2 * h
    return 3 * ff + 2 * h + attention


def llamacpp_buffers(
    scenario: Scenario, graph: GraphShape, cache: CacheShape, cells: Cells, placed: int
) -> Buffers:
    """Size the compute buffers of one card and of the host.

    Args:
        scenario: Batch, context and switches.
        graph: Widths of the model.
        cache: Its cache per layer.
        cells: Cells the scenario allocates.
        placed: Layers on the card, the output counted as one.
    """
    flash, sequences, h = scenario.flash_attention, scenario.batch, graph.hidden
    whole = scenario.model.shape.role == "encoder"
    u = min(scenario.context_tokens * sequences, scenario.ubatch)
    u = u if whole else min(u, LOGICAL_BATCH)
    u = -(-u // sequences) * sequences
    out = min(u, scenario.logits_rows)
    mask = u * (cells.stream_full + cells.stream_slide) * (2 if flash else 4)
    caches = 2 if cache.window else 1
    values = 0 if flash or graph.latent else 2 * graph.keys * caches
    ids = (3 if graph.latent else 1 + 4 * caches) if flash else 1 + 2 * caches
    if not (cache.full_sums[-1] or cache.window):
        mask = values = ids = 0
    widest = max(graph.ffn, _attention_floats(scenario, graph, cells, u))
    layer = FLOAT_BYTES * u * (widest + values + ids) + mask + _state_bytes(graph, sequences, u)
    logits = FLOAT_BYTES * (out * graph.vocab + u * h)
    device, host = max(layer, logits), layer + FLOAT_BYTES * (u * (h + 1) + out)
    if placed > graph.layers:
        host = FLOAT_BYTES * (u * (2 * h + values + ids + 1) + out) + mask
    elif placed == 1:
        device = FLOAT_BYTES * out * (graph.vocab + h)
    elif placed == 0:
        device, host = 0, max(layer, logits) + FLOAT_BYTES * u * (h + 1)
    exact = flash and out < u and placed > graph.layers and not cache.state_sums[-1]
    high = device + _ALLOCATOR_BYTES
    if device and not exact:
        spread = out * graph.vocab + u * (4 * h + graph.queries + ids + 1)
        logits_too = FLOAT_BYTES * spread + mask if out > 1 else 0
        high = max(device + _SLACK_BYTES, layer + FLOAT_BYTES * u, logits_too)
    low = device if exact else device * 9 // 10
    pipeline = 3 * mask + _INPUT_COPIES * FLOAT_BYTES * u * h
    return Buffers(device, low, high, host, exact, pipeline)


def _attention_floats(scenario: Scenario, graph: GraphShape, cells: Cells, u: int) -> int:
    """Floats per token of the attention node."""
    if graph.latent:
        if scenario.flash_attention:
            return graph.latent_flash
        return graph.latent_plain + graph.heads * cells.stream_full
    span = max(cells.stream_full, cells.stream_slide)
    rest = 2 * graph.hidden + graph.queries
    if not scenario.flash_attention:
        return graph.heads * span + rest + graph.queries
    wide = (scenario.kv_cache_k.bits == _F32_BITS) + (scenario.kv_cache_v.bits == _F32_BITS)
    return graph.keys * span * 2 * wide // (FLOAT_BYTES * u) + rest if wide else 0


def _state_bytes(graph: GraphShape, sequences: int, u: int) -> int:
    """Bytes one recurrent layer holds while it is computed; fitted to Mamba-2."""
    if not graph.state_floats:
        return 0
    if sequences == 1:
        return FLOAT_BYTES * (graph.state_floats + 3 * graph.conv_floats)
    each = graph.state_floats + 2 * graph.conv_floats
    return FLOAT_BYTES * (sequences * each + u * graph.inner)


def scratch_of_rows(scenario: Scenario, graph: GraphShape) -> int:
    """Bound what the kernels of a split by rows take beside the buffers: one layer's widest part.

    Source: ``ggml_cuda_op_mul_mat``, which keeps a matrix's input and its rows of the output in a
    pool on every card; read, not measured.
    """
    tokens = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    return 4 * tokens * graph.ffn


def index_scores(scenario: Scenario, graph: GraphShape, cells: Cells) -> Range:
    """Size the scores of a token index: of every cached token for each one computed, in float32.

    Source: ``src/models/glm-dsa.cpp``; read, not measured. Where no kernel takes it as one step,
    every head has scores of its own, twice.
    """
    tokens = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    whole = FLOAT_BYTES * tokens * cells.stream_full
    return Range(whole, 0, whole * (1 + 2 * graph.index_heads))


def cuda_cache_copies(scenario: Scenario, graph: GraphShape, cells: Cells) -> int:
    """Size the f16 copies of one layer's cache that the CUDA attention kernels make.

    Read in ``ggml-cuda/fattn-common.cuh``, not measured: with flash attention and a cache that
    is not f16.
    """
    if not scenario.flash_attention or scenario.backend not in _HIP_OR_CUDA:
        return 0
    key, value = scenario.kv_cache_k.name, scenario.kv_cache_v.name
    copied = (key != "f16") + (value != "f16")
    if not copied:
        return 0
    if graph.latent:
        return graph.latent_width * cells.full * _F16
    return copied * graph.keys * max(cells.full, cells.slide) * _F16
