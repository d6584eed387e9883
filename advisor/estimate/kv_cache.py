"""Bytes of the key/value cache and of recurrent state, by runtime.

Sources: llama.cpp 0c1e57098 (``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp``), transformers
5.23.0 (``cache_utils.py``), vLLM 0.33.0 (``v1/core/kv_cache_planning.py``). The first two were
checked row by row (tests/data), vLLM's rules were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.errors import RequestError
from advisor.estimate.running_sums import prefix_sums
from advisor.knowledge.types import Framework, KvType
from advisor.memo import by_identity_up_to
from advisor.models.shape import Shape
from advisor.scenario.support import unsized

if TYPE_CHECKING:
    from advisor.models.model import Model
    from advisor.scenario.scenario import Scenario

PAD_TOKENS = 256
"""llama.cpp rounds the cells of a stream up to a multiple of this."""
LOGICAL_BATCH = 2048
"""llama.cpp's n_batch."""
VLLM_BLOCK_TOKENS = 16
VLLM_STEP_TOKENS = 2048
"""Tokens vLLM schedules in one step on most cards (max_num_batched_tokens)."""
_STEP_CACHE_TOKENS = 256
_SLIDING_EXTRA_BYTES = 8
_COUNTER_BYTES = 8
_LLAMACPP_WITHOUT_WINDOW = frozenset(
    {"mistral", "mixtral", "ministral", "phi3", "phi3_v", "phi4mm", "phimoe", "starcoder2"}
    | {"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"}
)
"""Architectures whose configured window llama.cpp does not use."""
_WINDOWED = frozenset({"llama.cpp", "transformers", "vllm", "mlx"})
_FLOAT32_BYTES = 4
_MOST_SHAPES = 8_192
_ENCODER = "KV cache: the encoder's input is taken to be as long as the context"
_RWKV = "KV cache: the recurrent state of RWKV-4 was read, not measured"
_CROSS_ATTENTION = "KV cache: what cross-attention layers keep of an image is left out"


class CacheShape(Struct, frozen=True):
    """Cache bytes per layer as prefix sums: layers a to b hold ``sums[b] - sums[a]``."""

    full_sums: Sequence[int]
    """Bytes per cell of the layers that keep the whole context."""
    slide_sums: Sequence[int]
    """Bytes per cell of the layers that keep a window."""
    slide_counts: Sequence[int]
    state_sums: Sequence[int]
    """Fixed bytes per sequence."""
    window: int
    """Tokens a sliding layer keeps; 0 without sliding layers."""
    approximate: tuple[str, ...]
    loose: float = 0.0
    """Part of it that is the most an encoder's input can take; it may be nothing."""


class Cells(Struct):
    """How many cells a scenario allocates, all sequences together."""

    full: int
    slide: int
    slide_extra: int
    """Bytes a sliding layer takes besides its cells."""
    sequences: int
    stream_full: int
    """Cells of one stream, what an attention mask spans."""
    stream_slide: int

    def bytes_of(self, shape: CacheShape, first: int, last: int) -> int:
        """Size the cache of layers ``first`` up to but without ``last``."""
        full, slide = shape.full_sums, shape.slide_sums
        counts, state = shape.slide_counts, shape.state_sums
        return (
            self.full * (full[last] - full[first])
            + self.slide * (slide[last] - slide[first])
            + self.slide_extra * (counts[last] - counts[first])
            + self.sequences * (state[last] - state[first])
        )


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
    return float(
        depth_tokens * shape.full_sums[-1] + slide * shape.slide_sums[-1] + shape.state_sums[-1]
    )


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
    kind = scenario.framework.memory_model
    if kind == "llama.cpp":
        return _llamacpp_cells(scenario, shape.window, held, streams)
    window = shape.window
    if kind == "transformers":
        kept = min(held, max(window - 1, 0))
        return Cells(streams * held, streams * kept, _SLIDING_EXTRA_BYTES, streams, held, kept)
    if kind == "vllm":
        full = _up(held, VLLM_BLOCK_TOKENS)
        span = min(window - 1 + VLLM_STEP_TOKENS, held)
        kept = min(_up(span, VLLM_BLOCK_TOKENS) + VLLM_BLOCK_TOKENS, full) if window else 0
    elif kind in {"exllama", "mlx"}:
        full = _up(held, _STEP_CACHE_TOKENS)
        kept = min(full, window)
    else:
        full = held
        kept = min(held, window)
    return Cells(streams * full, streams * kept, 0, streams, full, kept)


def _llamacpp_cells(scenario: Scenario, window: int, tokens: int, sequences: int) -> Cells:
    context = tokens * sequences
    unified = scenario.kv_unified
    full = _up(context, PAD_TOKENS)
    streams = 1
    if not unified:
        full = _up(full // sequences, PAD_TOKENS)
        streams = sequences
    slide = 0
    if window:
        slide = full
        if not scenario.swa_full:
            windows = window * (sequences if unified else 1)
            ubatch = min(context, LOGICAL_BATCH, scenario.ubatch)
            slide = _up(min(full, windows + ubatch), PAD_TOKENS)
    return Cells(streams * full, streams * slide, 0, sequences, full, slide)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@by_identity_up_to(_MOST_SHAPES)
def _cache_shape(model: Model, key: KvType, value: KvType, framework: Framework) -> CacheShape:
    shape, kind = model.shape, framework.memory_model
    layers = "N" * shape.layers if shape.role == "encoder" else shape.layer_kinds
    _check(model, layers, framework)
    sliding = _sliding_letters(shape, kind)
    full, slide, state = [], [], []
    for index, letter in enumerate(layers):
        cell = _cell_bytes(shape, index, key, value, kind) if letter in "FHSC" else 0
        slides = letter in sliding
        full.append(0 if slides else cell + (cell if shape.encoder_positions == 0 else 0))
        slide.append(cell if slides else 0)
        held = _state_bytes(shape, key, kind) if letter in "RH" else 0
        state.append(held + cell * _encoder_cells(shape, kind))
    return CacheShape(
        full_sums=prefix_sums(full),
        slide_sums=prefix_sums(slide),
        slide_counts=prefix_sums([int(size > 0) for size in slide]),
        state_sums=prefix_sums(state),
        window=(shape.window or 0) if any(slide) else 0,
        approximate=_approximations(shape, layers),
        loose=0.5 if shape.encoder_positions == 0 and any(full) else 0.0,
    )


def _encoder_cells(shape: Shape, kind: str) -> int:
    """Count the cells that a fixed encoder output takes in one decoder layer."""
    positions = shape.encoder_positions or 0
    return _up(positions, VLLM_BLOCK_TOKENS) if kind == "vllm" else positions


def _approximations(shape: Shape, layers: str) -> tuple[str, ...]:
    found = [_CROSS_ATTENTION] if "X" in layers else []
    if shape.encoder_positions == 0:
        found.append(_ENCODER)
    if shape.recurrent and shape.recurrent.kind == "rwkv":
        found.append(_RWKV)
    return tuple(found)


def _sliding_letters(shape: Shape, kind: str) -> str:
    if kind not in _WINDOWED:
        return ""
    if kind == "llama.cpp" and shape.model_type in _LLAMACPP_WITHOUT_WINDOW:
        return ""
    return "SC"


def _check(model: Model, layers: str, framework: Framework) -> None:
    shape = model.shape
    missing = ""
    unknown = shape.cache_unknown or unsized(framework, shape)
    if unknown and set(layers) != {"N"}:
        raise RequestError(
            f"the memory of {model.name} cannot be computed: {unknown}",
            hint="Only its parameters are known."
            if shape.cache_unknown
            else "With transformers it can be.",
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


def _cell_bytes(shape: Shape, index: int, key: KvType, value: KvType, kind: str) -> int:
    """Size one token's keys and values in one layer."""
    if shape.mla:
        return int((shape.mla.kv_lora_rank + shape.mla.rope_dim) * key.bits / 8)
    heads = shape.kv_heads_by_layer[index] if shape.kv_heads_by_layer else shape.kv_heads
    if kind == "transformers" and shape.model_type == "falcon" and _expands(shape):
        heads = shape.heads
    width = heads * shape.head_dim
    return int(width * key.bits / 8) + int(width * value.bits / 8)


def _expands(shape: Shape) -> bool:
    return bool(shape.config.get("new_decoder_architecture"))


def _state_bytes(shape: Shape, key: KvType, kind: str) -> int:
    """Size one sequence's recurrent state in one layer."""
    state = shape.recurrent
    if state is None:
        return 0
    if kind == "llama.cpp":
        kernel = state.conv_kernel or 1
        held = state.conv_elements * (kernel - 1) // kernel if kernel > 1 else state.conv_elements
        return _FLOAT32_BYTES * (held + state.state_elements)
    width = key.bits / 8 if key.bits >= 16 else 2  # noqa: PLR2004  only KV is quantised
    return int(state.conv_elements * width) + _FLOAT32_BYTES * state.state_elements
