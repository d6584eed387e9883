"""llama.cpp: its cache, where it puts weights, and its compute buffers, rebuilt from its graph.

Source: llama.cpp 0c1e57098 (``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp``,
``src/llama-model.cpp``), checked row by row (tests/data) and on 13,587 contexts. The buffers are
fitted to its own reports (tests/data/llamacpp_memory.csv.gz): exact to 32 bytes in the server
regime, mostly within 10 % elsewhere. Partial offload: the device keeps its formula, the first one
holds what is sent to it too (``_sent_layers``); else the host takes the one of a whole graph.
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
_PAD_TOKENS = 256
"""It rounds the cells of a stream up to a multiple of this."""
_TAKEN_BACK = frozenset({"qwen3_5", "qwen3_5_moe", "nemotron_h"})
"""Whose recurrent states it keeps per drafted token (``llm_arch_supports_rs_rollback``)."""
_COMPUTE = "compute buffer: fitted to llama.cpp's own reports"
_PIPELINE = "compute buffer: copies for several cards taken from one published log"
_INDEX = "compute buffer: scores of the token index; at the upper end the masks made of them too"
_ROWS = "split: small tensors are taken as divided by rows too, scratch memory as the upper end"
LOGICAL_BATCH = 2048
"""Its n_batch."""
_F16 = 2
_F32_BITS = 32
_INPUT_COPIES = 4
_ALLOCATOR_BYTES = 32
_SLACK_BYTES = 4096
_HIP_OR_CUDA = frozenset({"CUDA", "ROCm"})
_SENT = frozenset({"CUDA", "ROCm", "SYCL", "Vulkan"})
"""Back ends that compute a long step's share of layers in system RAM (``offload_op``)."""
_SENT_FROM_TOKENS = 32
"""``op_offload_min_batch_size``."""


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
        graph = _graph_shape(scenario.model)
        found = _buffers(scenario, graph, cache, cells, placement)
        if not placement.placed:
            return Compute(NO_BYTES, found.host)
        copies = _cuda_cache_copies(scenario, graph, cells)
        device, why = (
            found.device + Range(copies, copies, copies),
            () if found.exact else (_COMPUTE,),
        )
        if graph.indexed:
            device, why = device + _index_scores(scenario, cells), (_INDEX,)
        if split_of(scenario) == "row":
            device, why = device + _scratch_of_rows(scenario, graph), (_ROWS,)
        elif _works_as_pipeline(scenario, graph, placement):
            device, why = device + Range(found.pipeline, 0, found.pipeline), (_PIPELINE,)
        return Compute(device, found.host, why, found.sent)

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
        graph = _graph_shape(head.model)
        whole = Placement(0, len(cache.full_sums), (), 0)
        found = _buffers(head, graph, cache, cells, whole)
        copies = _cuda_cache_copies(head, graph, cells)
        return Range(found.device.central + copies, 0, found.device.high + copies)

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


def _works_as_pipeline(scenario: Scenario, graph: _GraphShape, placement: Placement) -> bool:
    """Whether cards compute several micro-batches at once, which takes copies of the inputs.

    Source: ``llama_context::llama_context`` in ``src/llama-context.cpp``: every layer lies on the
    cards, the split is by layers, and no tensor is told to lie elsewhere (``-ncmoe``).
    """
    whole = placement.placed > graph.layers and not scenario.cpu_experts
    return scenario.gpus > 1 and whole and split_of(scenario) == "layer"


class _GraphShape(Struct, frozen=True):
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
    indexed: bool
    """Whether an index picks the tokens that are attended to."""
    layers: int
    state_floats: int
    """Recurrent state of one layer and sequence."""
    conv_floats: int
    inner: int
    sent: tuple[int, int]
    """Beside a matrix out of system RAM, the one down and another: what goes into it, and comes."""


class _Buffers(Struct):
    """Compute buffers in bytes."""

    device: Range
    """On a card that holds the output."""
    host: int
    exact: bool
    """Whether llama.cpp was seen to agree to 32 bytes in this regime."""
    pipeline: int
    """Extra bytes per card when several cards work as a pipeline."""
    sent: Range
    """Extra bytes on the first card while it has a matrix out of system RAM.

    The high end has the mask once more, as three short contexts were seen.
    """


def _graph_shape(model: Model) -> _GraphShape:
    """Collect a model's widths for the buffer formulas."""
    shape = model.shape
    h, heads = shape.hidden, shape.heads
    q, kv = heads * shape.head_dim, shape.kv_heads * shape.head_dim
    mla, state = shape.mla, shape.recurrent
    attention, kernel = h if mla else q, state.conv_kernel if state else 0
    terms = [h]
    if "D" in shape.ffn_kinds:
        beside = 0 if shape.gated and shape.model_type == "phi3" else attention
        terms.append((3 if shape.gated else 1) * shape.intermediate + 2 * h + beside)
    if shape.moe and "E" in shape.ffn_kinds:
        used, width = shape.moe.used, shape.moe.width
        terms.append(3 * used * width + 2 * h + attention)
        if 2 * width < h:
            terms.append(2 * used * h + used * width + 2 * h)
    if state and state.inner:
        mixed = state.inner + 2 * state.groups * state.state
        terms.append(3 * (state.inner + mixed) + (state.dt_rank or state.heads))
    plain = heads * (2 * mla.kv_lora_rank + mla.rope_dim) + 3 * h if mla else 0
    return _GraphShape(
        hidden=h,
        vocab=shape.vocab,
        heads=heads,
        queries=q,
        keys=kv,
        ffn=max(terms),
        latent=mla is not None,
        latent_flash=plain + heads * (mla.nope_dim + 2 * mla.rope_dim) if mla else 0,
        latent_plain=plain,
        latent_width=mla.kv_lora_rank + mla.rope_dim if mla else 0,
        indexed=bool(mla and mla.index_heads),
        layers=shape.layers,
        state_floats=state.state_elements if state else 0,
        conv_floats=state.conv_elements * (kernel - 1) // kernel if state and kernel else 0,
        inner=state.inner if state else 0,
        sent=_beside_sent(shape),
    )


def _beside_sent(shape: Shape) -> tuple[int, int]:
    h, moe = shape.hidden, shape.moe
    if moe:
        return 2 * h + moe.used * (moe.width + h), 2 * (h + moe.used * moe.width)
    return 2 * h + shape.intermediate, 2 * h + (1 + shape.gated) * shape.intermediate


def _sent_layers(scenario: Scenario, graph: _GraphShape, cells: Cells, placement: Placement) -> int:
    """Size a card's buffer while it computes with a matrix out of system RAM; 0: none is sent.

    Each such matrix is a split of its own, so one at a time is held.
    Source: ``ggml_backend_sched_split_graph``; measured (``knowledge/measurements/buffers.csv``).
    """
    u = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    if not any(placement.copied) or scenario.backend not in _SENT or u < _SENT_FROM_TOKENS:
        return 0
    mask = u * (cells.stream_full + cells.stream_slide) * (2 if scenario.flash_attention else 4)
    pairs = zip(placement.copied, graph.sent, strict=True)
    return max(matrix + FLOAT_BYTES * u * beside for matrix, beside in pairs) + mask


def _buffers(
    scenario: Scenario, graph: _GraphShape, cache: CacheShape, cells: Cells, placement: Placement
) -> _Buffers:
    """Size the compute buffers of one card and of the host."""
    placed, sent = placement.placed, _sent_layers(scenario, graph, cells, placement)
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
    if placed > graph.layers or (sent and placed):
        host = FLOAT_BYTES * (u * (2 * h + values + ids + 1) + out) + mask
    if placed == 1:
        device = FLOAT_BYTES * out * (graph.vocab + h)
    elif placed == 0:
        device, host = 0, max(layer, logits) + FLOAT_BYTES * u * (h + 1)
    exact = flash and out < u and placed > graph.layers and not cache.state_sums[-1]
    high = device + _ALLOCATOR_BYTES
    if device and not exact:
        spread = out * graph.vocab + u * (4 * h + graph.queries + ids + 1)
        logits_too = FLOAT_BYTES * spread + mask if out > 1 else 0
        high = max(device + _SLACK_BYTES, layer + FLOAT_BYTES * u, logits_too)
        if cache.state_sums[-1]:  # 3 to 21 % more was measured (knowledge/measurements/buffers.csv)
            high = max(high, device * 5 // 4)
    low = device if exact else device * 9 // 10
    pipeline = 3 * mask + _INPUT_COPIES * FLOAT_BYTES * u * h
    more = max(sent - device, 0)
    beside = Range(more, more * 9 // 10, max(sent + mask - device, 0) if sent else 0)
    return _Buffers(Range(device, low, high), host, exact, pipeline, beside)


def _attention_floats(scenario: Scenario, graph: _GraphShape, cells: Cells, u: int) -> int:
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


def _state_bytes(graph: _GraphShape, sequences: int, u: int) -> int:
    """Bytes one recurrent layer holds while it is computed; fitted to Mamba-2."""
    if not graph.state_floats:
        return 0
    several = sequences > 1
    each = graph.state_floats + (2 if several else 3) * graph.conv_floats
    return FLOAT_BYTES * (sequences * each + several * u * graph.inner)


def _scratch_of_rows(scenario: Scenario, graph: _GraphShape) -> Range:
    """Bound what the kernels of a split by rows take beside the buffers: one layer's widest part.

    Source: ``ggml_cuda_op_mul_mat``, which keeps a matrix's input and its rows of the output in a
    pool on every card; read, not measured.
    """
    tokens = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    return Range(0, 0, 4 * tokens * graph.ffn)


def _index_scores(scenario: Scenario, cells: Cells) -> Range:
    """Size the scores of a token index: of every cached token for each one computed, in float32.

    Source: ``src/models/glm-dsa.cpp``; read, not measured. One step sums them over the heads (pull
    request 27877: CUDA, Metal, Vulkan and SYCL have it, else the processor); the upper end are the
    masks that are made of them too.
    """
    tokens = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    whole = FLOAT_BYTES * tokens * cells.stream_full
    return Range(whole, 0, 3 * whole)


def _cuda_cache_copies(scenario: Scenario, graph: _GraphShape, cells: Cells) -> int:
    """Size the f16 copies of one layer's cache that the CUDA attention kernels make.

    Read in ``ggml-cuda/fattn-common.cuh``, not measured: with flash attention and a cache that
    is not f16.
    """
    copied = sum(kind.name != "f16" for kind in (scenario.kv_cache_k, scenario.kv_cache_v))
    if not copied or not scenario.flash_attention or scenario.backend not in _HIP_OR_CUDA:
        return 0
    if graph.latent:
        return graph.latent_width * cells.full * _F16
    return copied * graph.keys * max(cells.full, cells.slide) * _F16
