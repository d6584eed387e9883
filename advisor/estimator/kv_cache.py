"""Bytes of the key/value cache and of recurrent state, by runtime.

What differs between runtimes stands with its source in their modules (``advisor.runtimes``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from advisor.errors import RequestError
from advisor.knowledge.types import Framework, KvType
from advisor.memo import by_identity_up_to
from advisor.models.shape import Shape
from advisor.runtimes import runtime_of
from advisor.runtimes.base import CacheShape, Cells, Runtime, prefix_sums, up
from advisor.scenario.support import unsized

if TYPE_CHECKING:
    from advisor.models.stored_tensors import Model
    from advisor.scenario.scenario import Scenario

_COUNTER_BYTES = 8
_MOST_SHAPES = 8_192
"""Without what is kept a plan takes 1.34 times as long, lines of ``estimate`` 1.89."""
_ENCODER = "KV cache: the encoder's input is taken to be as long as the context"
_RWKV = "KV cache: the recurrent state of RWKV-4 was read, not measured"
_ESTIMATED = "KV cache: architecture not described: cache estimated"
_COMPRESSED = "KV cache: with index or compression as transformers keeps it, read and not measured"
_CROSS_ATTENTION = "KV cache: what cross-attention layers keep of an image is left out"


def kv_cache_bytes(
    scenario: Scenario,
    tokens: int | None = None,
    sequences: int | None = None,
    *,
    static: bool = False,
) -> int:
    """Size the whole cache as the runtime allocates it.

    Args:
        scenario: Model, cache types, framework and its settings.
        tokens: Tokens per sequence; the scenario's context if None.
        sequences: Sequences held at once; the scenario's batch if None.
        static: Whether transformers allocates its fixed-size cache for so many tokens, as it does
            for compiled models; it then keeps a whole window and a counter for each layer.

    Returns:
        Bytes, wherever they lie.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    shape = cache_shape_of(scenario)
    cells = cells_of(scenario, shape, tokens, sequences)
    layers = len(shape.full_sums) - 1
    if static:
        held = scenario.context_tokens if tokens is None else tokens
        cells.slide = cells.sequences * min(held, shape.window)
        full_layers = sum(b > a for a, b in pairwise(shape.full_sums))
        return cells.bytes_of(shape, 0, layers) + _COUNTER_BYTES * full_layers
    return cells.bytes_of(shape, 0, layers)


def kv_read_bytes(scenario: Scenario, depth_tokens: int) -> float:
    """Size what one decoded token of one sequence reads from the cache.

    Args:
        scenario: Model, cache types and framework.
        depth_tokens: Tokens already in the cache.

    Returns:
        Bytes, recurrent state included.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    shape = cache_shape_of(scenario)
    slide = min(depth_tokens, shape.window)
    whole = depth_tokens * shape.full_sums[-1] - _passed_over(scenario, shape, depth_tokens)
    return float(whole + slide * shape.slide_sums[-1] + shape.state_sums[-1])


def _passed_over(scenario: Scenario, shape: CacheShape, depth_tokens: int) -> int:
    """Size what a runtime keeps of sliding layers behind their window, and does not read."""
    model, runtime = scenario.model.shape, runtime_of(scenario.framework)
    behind = depth_tokens - (model.window or depth_tokens)
    if behind <= 0 or not runtime.reads_window:
        return 0
    sizes = (b - a for a, b in pairwise(shape.full_sums))
    slides = zip(sizes, model.layer_kinds, strict=False)
    return behind * sum(size for size, letter in slides if letter in "SC")


def kv_bytes_per_token(scenario: Scenario) -> float:
    """Size the cache of one token of one sequence while no window is full yet, bytes.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    shape = cache_shape_of(scenario)
    return float(shape.full_sums[-1] + shape.slide_sums[-1])


def cache_shape_of(scenario: Scenario) -> CacheShape:
    """Give the per-layer cache sizes of a scenario.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    return _cache_shape(
        scenario.model, scenario.kv_cache_k, scenario.kv_cache_v, scenario.framework
    )


def cells_of(
    scenario: Scenario,
    shape: CacheShape,
    tokens: int | None = None,
    sequences: int | None = None,
) -> Cells:
    """Count the cells a scenario's framework allocates."""
    held = scenario.context_tokens if tokens is None else tokens
    streams = scenario.batch if sequences is None else sequences
    return runtime_of(scenario.framework).cells(scenario, shape.window, held, streams)


@by_identity_up_to(_MOST_SHAPES)
def _cache_shape(model: Model, key: KvType, value: KvType, framework: Framework) -> CacheShape:
    shape, runtime = model.shape, runtime_of(framework)
    layers = "N" * shape.layers if shape.role == "encoder" else shape.layer_kinds
    _check(model, layers, framework)
    sliding = "SC" if runtime.uses_window(shape) else ""
    recurrent = runtime.state_bytes(shape.recurrent, key) if shape.recurrent else 0
    encoded = up(shape.encoder_positions or 0, runtime.page_tokens)
    full: list[int] = []
    slide: list[int] = []
    state: list[int] = []
    for index, letter in enumerate(layers):
        if shape.cells:
            whole, kept = (int(count * key.bits / 8) for count in shape.cells[index])
            held = recurrent if letter in "RH" else 0
            full, slide, state = [*full, whole], [*slide, kept], [*state, held]
            continue
        cell = _cell_bytes(shape, index, key, value, runtime) if letter in "FHSC" else 0
        slides = letter in sliding
        full.append(0 if slides else cell + (cell if shape.encoder_positions == 0 else 0))
        slide.append(cell if slides else 0)
        state.append((recurrent if letter in "RH" else 0) + cell * encoded)
    return CacheShape(
        full_sums=prefix_sums(full),
        slide_sums=prefix_sums(slide),
        slide_counts=prefix_sums([int(size > 0) for size in slide]),
        state_sums=prefix_sums(state),
        window=(shape.window or 0) if any(slide) else 0,
        approximate=_approximations(shape, layers),
        loose=max(shape.cache_loose, 0.5 if shape.encoder_positions == 0 and any(full) else 0.0),
    )


def _approximations(shape: Shape, layers: str) -> tuple[str, ...]:
    found = [_CROSS_ATTENTION] if "X" in layers else []
    if not shape.described:
        found.append(_ESTIMATED)
    if shape.cells:
        found.append(_COMPRESSED)
    if shape.encoder_positions == 0:
        found.append(_ENCODER)
    if shape.recurrent and shape.recurrent.kind == "rwkv":
        found.append(_RWKV)
    return tuple(found)


def _check(model: Model, layers: str, framework: Framework) -> None:
    shape = model.shape
    missing = ""
    unknown = shape.cache_unknown or unsized(framework, shape)
    if unknown and set(layers) != {"N"}:
        raise RequestError(
            f"the memory of {model.name} cannot be computed: {unknown}",
            hint="Only its parameters are known."
            if shape.cache_unknown
            else "Another framework may be known better: leave --framework out.",
        )
    if len(layers) != shape.layers:
        missing = "which of its layers cache keys and values"
    elif set(layers) & set("FHSC") and not shape.mla and shape.kv_heads * shape.head_dim <= 0:
        missing = "its number of key/value heads or their width"
    elif set(layers) & set("SC") and not shape.window:
        missing = "the length of its sliding window"
    elif set(layers) & set("RH") and shape.recurrent is None:
        missing = "the size of its recurrent state"
    if missing:
        raise RequestError(
            f"the memory of {model.name} cannot be computed: {missing} is not known",
            hint="Give a folder with its config.json.",
        )


def _cell_bytes(shape: Shape, index: int, key: KvType, value: KvType, runtime: Runtime) -> int:
    """Size one token's keys and values in one layer."""
    if shape.mla:
        indexed = shape.mla.index_layers[index : index + 1] == "F"
        latent = int((shape.mla.kv_lora_rank + shape.mla.rope_dim) * key.bits / 8)
        return latent + (runtime.index_bytes(shape.mla, key) if indexed else 0)
    width = runtime.cached_heads(shape, index) * shape.head_dim
    return int(width * key.bits / 8) + int(width * value.bits / 8)
