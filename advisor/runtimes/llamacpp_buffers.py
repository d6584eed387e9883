"""llama.cpp's compute buffers, rebuilt from its graph; see ``advisor.runtimes.llamacpp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.memo import by_identity
from advisor.models.shape import Recurrent
from advisor.runtimes.base import FLOAT_BYTES, CacheShape, Cells, Placement, Range

if TYPE_CHECKING:
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model
    from advisor.scenario import Scenario

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
    indexed: bool
    """Whether an index picks the tokens that are attended to."""
    layers: int
    state_floats: int
    """Recurrent state of one layer and sequence."""
    conv_floats: int
    inner: int
    sent: tuple[int, int]
    """Beside a matrix out of system RAM, the one down and another: what goes into it, and comes."""


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
    sent: int
    """Extra bytes on the first card while it has a matrix out of system RAM."""
    sent_high: int
    """The same with the mask once more, as three short contexts were seen."""


@by_identity
def graph_shape(model: Model) -> GraphShape:
    """Collect a model's widths for the buffer formulas.

    Without what is kept lines of ``estimate`` take 1.02 times the instructions.
    """
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
        indexed=bool(mla and mla.index_heads),
        layers=shape.layers,
        state_floats=state.state_elements if state else 0,
        conv_floats=state.conv_elements * (state.conv_kernel - 1) // state.conv_kernel
        if state and state.conv_kernel
        else 0,
        inner=state.inner if state else 0,
        sent=_beside_sent(shape),
    )


def _beside_sent(shape: Shape) -> tuple[int, int]:
    h, moe = shape.hidden, shape.moe
    if moe:
        return 2 * h + moe.used * (moe.width + h), 2 * (h + moe.used * moe.width)
    return 2 * h + shape.intermediate, 2 * h + (1 + shape.gated) * shape.intermediate


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


def _sent_layers(scenario: Scenario, graph: GraphShape, cells: Cells, placement: Placement) -> int:
    """Size a card's buffer while it computes with a matrix out of system RAM; 0: none is sent.

    Each such matrix is a split of its own, so one at a time is held.
    Source: ``ggml_backend_sched_split_graph``; measured (``knowledge/measurements/buffers.csv``).
    """
    if not any(placement.copied):
        return 0
    u = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    if scenario.backend not in _SENT or u < _SENT_FROM_TOKENS:
        return 0
    mask = u * (cells.stream_full + cells.stream_slide) * (2 if scenario.flash_attention else 4)
    pairs = zip(placement.copied, graph.sent, strict=True)
    return max(matrix + FLOAT_BYTES * u * beside for matrix, beside in pairs) + mask


def llamacpp_buffers(
    scenario: Scenario, graph: GraphShape, cache: CacheShape, cells: Cells, placement: Placement
) -> Buffers:
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
    beside = max(sent - device, 0)
    beside_high = max(sent + mask - device, 0) if sent else 0
    return Buffers(device, low, high, host, exact, pipeline, beside, beside_high)


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


def index_scores(scenario: Scenario, cells: Cells) -> Range:
    """Size the scores of a token index: of every cached token for each one computed, in float32.

    Source: ``src/models/glm-dsa.cpp``; read, not measured. One step sums them over the heads (pull
    request 27877: CUDA, Metal, Vulkan and SYCL have it, else the processor); the upper end are the
    masks that are made of them too.
    """
    tokens = min(scenario.context_tokens * scenario.batch, LOGICAL_BATCH, scenario.ubatch)
    whole = FLOAT_BYTES * tokens * cells.stream_full
    return Range(whole, 0, 3 * whole)


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
