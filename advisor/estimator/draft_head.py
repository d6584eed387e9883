"""What a model's own draft head takes: layers for multi-token prediction behind the others.

Such a head is one more decoder layer of full attention and a projection of two hidden states into
one. That count agrees to the parameter with what the checkpoints of 25 models hold beyond the main
model (tests/estimate/test_draft_head.py). It keeps a cache of its own, and in llama.cpp a context
with a compute buffer of its own (``common/speculative.cpp`` of llama-cpp-python 0.3.36). Drafted
tokens that are refused must be taken back, so runtimes keep a recurrent state per token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimator.kv_cache import cache_shape_of, cells_of
from advisor.models.shape import Counts
from advisor.runtimes import runtime_of

if TYPE_CHECKING:
    from advisor.models.shape import Shape
    from advisor.models.stored_tensors import Model
    from advisor.runtimes.base import Range
    from advisor.scenario.scenario import Scenario

HEAD_GUESSED = "draft head: its weight format and buffers differ between files and runtimes"
_MAY_COPY = frozenset({"deepseek_v3", "deepseek_v32", "glm4_moe", "glm4_moe_lite"})
"""Architectures some of whose checkpoints repeat embedding and output in the head."""
_FULL_BITS = 16
_BYTE = 8


class HeadMemory(Struct, frozen=True):
    """Bytes of a draft head, wherever it lies."""

    weights: int
    kv_cache: int
    compute: int
    below: int
    """How far the true figure may lie below the sum."""
    above: int


def head_parameters(shape: Shape) -> int | None:
    """Count the parameters that a draft head runs, without copies of embedding and output.

    Returns:
        None without such layers, or where the layers of the architecture are not counted.
    """
    counts = shape.counts
    if not shape.mtp_layers or counts is None:
        return None
    return shape.mtp_layers * (_block(shape, counts) + 2 * shape.hidden**2)


def _block(shape: Shape, counts: Counts) -> int:
    """Count one decoder layer; where layers are either attention or experts, one of each."""
    if shape.mla and shape.mla.index_layers:
        return counts.layers[shape.mla.index_layers.rindex("F")]
    last = counts.layers[-1]
    if shape.layer_kinds[-1] != "N" or "F" not in shape.layer_kinds:
        return last
    return last + counts.layers[shape.layer_kinds.rindex("F")]


def head_memory(scenario: Scenario, bits_per_weight: float) -> HeadMemory:
    """Size the draft head of a scenario's model.

    GGUF files hold it like the rest; other quantised checkpoints mostly leave it at 16 bits, so
    each is the other's end of the range.

    Args:
        scenario: ``mtp`` tokens are drafted at once.
        bits_per_weight: Of the main model, on average.
    """
    parameters = head_parameters(scenario.model.shape) or 0
    packed = round(parameters * bits_per_weight / _BYTE)
    plain = round(parameters * max(bits_per_weight, _FULL_BITS) / _BYTE)
    weights = packed if _like_the_rest(scenario) else plain
    kv_cache, compute = _working_memory(scenario)
    copies = round(_copies(scenario.model.shape) * bits_per_weight / _BYTE)
    return HeadMemory(
        weights=weights,
        kv_cache=kv_cache,
        compute=compute.central,
        below=weights - packed + compute.central - compute.low,
        above=plain - weights + copies + compute.high - compute.central,
    )


def _like_the_rest(scenario: Scenario) -> bool:
    precision = scenario.precision
    native = (scenario.model.native_dtype or "").casefold()
    return precision.kind == "gguf" or native.startswith(precision.family)


def _copies(shape: Shape) -> int:
    return 2 * shape.vocab * shape.hidden if shape.model_type in _MAY_COPY else 0


def _working_memory(scenario: Scenario) -> tuple[int, Range]:
    """Size cache and compute buffer."""
    block = replace(scenario, model=_block_model(scenario.model), mtp=0)
    cache = cache_shape_of(block)
    cells = cells_of(block, cache)
    held = cells.bytes_of(cache, 0, len(cache.full_sums) - 1)
    runtime = runtime_of(scenario.framework)
    if runtime.keeps_draft_states(scenario.model.shape):
        states = cache_shape_of(scenario).state_sums[-1]
        held += scenario.mtp * scenario.batch * states
    return held, runtime.draft_compute(block, cache, cells)


def _block_model(model: Model) -> Model:
    """The head as a model of its own: layers of full attention like the last."""
    shape = model.shape
    layers = shape.mtp_layers
    by_layer = shape.kv_heads_by_layer
    return replace(
        model,
        vision_parameters=0,
        stored=None,
        shape=replace(
            shape,
            layers=layers,
            layer_kinds="F" * layers,
            ffn_kinds=shape.ffn_kinds[-1:] * layers,
            window=None,
            recurrent=None,
            kv_heads=max(by_layer) if by_layer else shape.kv_heads,
            kv_heads_by_layer=None,
            mtp_layers=0,
        ),
    )
