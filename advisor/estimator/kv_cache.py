"""Bytes of the key/value cache, of recurrent state and of a trained draft head, by runtime."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Framework, KvType
from advisor.memo import by_identity_up_to
from advisor.models.shape import Counts, Mla, Shape
from advisor.runtimes import runtime_of
from advisor.runtimes.base import CacheShape, Cells, Range, Runtime, prefix_sums, up
from advisor.scenario import divides_requests, sequences_of_a_rank, split_of, tensor_ranks
from advisor.scenario.figures import CacheRoom
from advisor.scenario.support import unsized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.models.stored_tensors import Model
    from advisor.scenario import Scenario
    from advisor.scenario.figures import CardMemory

_MOST_SHAPES = 8_192
"""Without what is kept a plan takes 1.34 times as long, lines of ``estimate`` 1.89."""
_ENCODER = "KV cache: the encoder's input is taken to be as long as the context"
_RWKV = "KV cache: the recurrent state of RWKV-4 was read, not measured"
_ESTIMATED = "KV cache: architecture not described: cache estimated"
_COMPRESSED = "KV cache: with index or compression as transformers keeps it, read and not measured"
_CROSS_ATTENTION = "KV cache: what cross-attention layers keep of an image is left out"


def kv_read_bytes(scenario: Scenario, depth_tokens: int) -> float:
    """Size what one decoded token of one sequence reads from the cache, on all cards together.

    Gives bytes, recurrent state and copies of heads that the cards share included.

    Raises:
        RequestError: A figure of the architecture is missing.
    """
    states = cache_shape_of(scenario).state_sums[-1]
    return grown_read_bytes(scenario, depth_tokens) + float(states)


def grown_read_bytes(scenario: Scenario, depth_tokens: int) -> float:
    """Size the same without recurrent state: what grows with every token."""
    shape = cache_shape_of(scenario)
    slide = min(depth_tokens, shape.window)
    whole = depth_tokens * shape.full_sums[-1] - _passed_over(scenario, shape, depth_tokens)
    return float((whole + slide * shape.slide_sums[-1]) * _read_again(scenario))


def _read_again(scenario: Scenario) -> float:
    """Count how often shards of a tensor read the same: each its latent, or a head of its own."""
    shape, ranks = scenario.model.shape, tensor_ranks(scenario)
    if split_of(scenario) != "tensor":
        return 1.0
    heads = 1 if shape.mla else shape.kv_heads or 1
    return -(-heads // ranks) * ranks / heads


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


def kept_by_shard(
    scenario: Scenario, cache: CacheShape, cells: Cells, first: int, last: int
) -> int:
    """Size the cache of every shard of a tensor split, of layers from one up to another, bytes.

    A latent is kept whole by each, and so is a head: eight cards keep each of four heads twice.
    Recurrent states are divided, as their heads are many.
    """
    shape, cards = scenario.model.shape, tensor_ranks(scenario)
    states = replace(cells, full=0, slide=0, slide_extra=0) if shape.recurrent else None
    divided = -(-states.bytes_of(cache, first, last) // cards) if states else 0
    kept = replace(cells, sequences=0) if states else cells
    if shape.mla:
        return divided + kept.bytes_of(cache, first, last)
    by_layer = shape.head_groups
    ends = range(first, last + 1) if by_layer else (first, last)
    groups = by_layer[first:last] if by_layer else (shape.kv_heads or 1,)
    sizes = (kept.bytes_of(cache, *pair) for pair in pairwise(ends))
    each = (-(-size * -(-n // cards) // n) for size, n in zip(sizes, groups, strict=True))
    return divided + sum(each)


def cache_room(
    scenario: Scenario,
    shape: CacheShape,
    cells: Cells,
    each: Sequence[CardMemory],
    policy: Mapping[str, float],
) -> CacheRoom | None:
    """Count what fits into the memory that a server has left for its cache.

    vLLM, SGLang, TGI and TensorRT-LLM fill their share of each card at start-up: what is left
    beside weights, buffers and the runtime becomes cache, whatever the request needs. A block is
    counted whole, as vLLM does, and a token as if every request's prompt were being read.
    """
    runtime = runtime_of(scenario.framework)
    if any(card.kv_cache_bytes <= 0 for card in each):
        return None
    batch, cards = sequences_of_a_rank(scenario), scenario.gpus
    if divides_requests(scenario):
        batch, cards = batch * cards, 1
    shares = [
        (max(card.usable_bytes - card.required_bytes + taken, 0) * batch, taken)
        for card in each
        if (taken := card.kv_cache_bytes)
    ]
    room, taken = min(shares, key=lambda share: share[0] / share[1])
    last = len(shape.full_sums) - 1
    of_state = -(-shape.state_sums[-1] // cards)
    slots, tokens, held = _state_slots(scenario, of_state, each), None, room // taken
    of_all = cells.bytes_of(shape, 0, last)
    if shape.window or slots:  # the first request takes more than each that follows
        some = (runtime.cells(replace(scenario, batch=n), shape.window, policy) for n in (1, 2))
        one, two = (each.bytes_of(shape, 0, last) * batch * taken for each in some)
        ranks, pool_of_each = batch // sequences_of_a_rank(scenario), room * of_all
        held = ranks * (max(pool_of_each - one, one - two) // (two - one) + 1)
    if cells.full and (shape.full_sums[-1] or shape.window):
        states = cells.sequences * shape.state_sums[-1] // cards if slots else 0
        all_states = states + of_state * (slots - (runtime.state_slots(scenario) or 0))
        block, left = runtime.page_tokens, max(room - all_states * batch, 0)
        tokens = left * cells.stream_full // (taken - states) // block * block
        if shape.window:
            tokens = ranks * pool_of_each * cells.stream_full // one // block * block
    whole = sum(taken for _, taken in shares)
    surely = min((card.usable_bytes - card.high_bytes) / card.kv_cache_bytes + 1 for card in each)
    pool = Range(of_all * room // (batch * taken), round(of_all * surely), 0)
    told = runtime.most_at_start(scenario, shape, pool, policy)
    return CacheRoom(whole * room // (batch * taken), tokens, held, told, slots or None)


def _state_slots(scenario: Scenario, of_state: int, each: Sequence[CardMemory]) -> int:
    """Count the recurrent states to keep: of all requests stated, as far as free memory goes.

    Fewer would cap how many requests run at once, however short. Source: ``resolve_max_num_reqs``
    of SGLang 0.5.23 (``mem_cache/kv_cache_configurator.py``, line 3137).
    """
    of_held, of_one, of_all = (
        runtime_of(scenario.framework).state_slots(replace(scenario, batch=batch)) or 0
        for batch in (scenario.batch, 1, max(scenario.batch, scenario.slots))
    )
    free = min(card.usable_bytes - card.required_bytes for card in each)
    more = max(free, 0) // (of_state * of_one) * of_one if of_state and of_one else 0
    return min(of_all, of_held + more)


@by_identity_up_to(_MOST_SHAPES)  # 1.22 of an advice, 1.28 of reports, 1.13 of questions
def _cache_shape(model: Model, key: KvType, value: KvType, framework: Framework) -> CacheShape:
    shape, runtime = model.shape, runtime_of(framework)
    layers = "N" * shape.layers if shape.role == "encoder" else shape.layer_kinds
    _check(model, layers, framework)
    types = (key, value)
    sliding, wide = "SC" if runtime.uses_window(shape) else "", runtime.plain_bits
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
        slides = letter in sliding
        kinds = (replace(key, bits=wide), replace(value, bits=wide)) if slides and wide else types
        cell = _cell_bytes(shape, index, *kinds, runtime) if letter in "FHSC" else 0
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
    found = [_CROSS_ATTENTION] if "X" in layers.rstrip("X") else []
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
    unknown = unsized(framework, shape)
    if unknown and set(layers) != {"N"}:
        raise RequestError(
            f"the memory of {model.name} cannot be computed: {unknown}",
            hint="Another framework may be known better: leave --framework out.",
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
    if shape.mla and shape.model_type in runtime.expands_latents:
        return _expanded_bytes(shape.heads, shape.mla, key, value)
    if shape.mla:
        indexed = shape.mla.index_layers[index : index + 1] == "F"
        latent = runtime.latent_bytes(shape.mla, key)
        return latent + (runtime.index_bytes(shape.mla, key) if indexed else 0)
    width = runtime.cached_heads(shape, index) * shape.head_dim
    return int(width * key.bits / 8) + int(width * value.bits / 8)


def _expanded_bytes(heads: int, mla: Mla, key: KvType, value: KvType) -> int:
    """Size one token's keys and values where every head's are cached, not their latent."""
    keys = heads * (mla.nope_dim + mla.rope_dim) * key.bits
    return int(keys / 8) + int(heads * mla.value_dim * value.bits / 8)


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


def head_memory(
    scenario: Scenario, bits_per_weight: float, policy: Mapping[str, float]
) -> HeadMemory:
    """Size the draft head of a scenario's model.

    GGUF files hold it like the rest; other quantised checkpoints mostly leave it at 16 bits, so
    each is the other's end of the range.

    ``mtp`` tokens are drafted at once; the bits per weight are those of the main model, on average.
    """
    parameters = head_parameters(scenario.model.shape) or 0
    packed = round(parameters * bits_per_weight / _BYTE)
    plain = round(parameters * max(bits_per_weight, _FULL_BITS) / _BYTE)
    weights = packed if _like_the_rest(scenario) else plain
    kv_cache, compute = _working_memory(scenario, policy)
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


def _working_memory(scenario: Scenario, policy: Mapping[str, float]) -> tuple[int, Range]:
    """Size cache and compute buffer."""
    block = replace(scenario, model=_block_model(scenario.model), mtp=0)
    cache = cache_shape_of(block)
    runtime = runtime_of(scenario.framework)
    cells = runtime.cells(block, cache.window, policy)
    held = cells.bytes_of(cache, 0, len(cache.full_sums) - 1)
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
