"""The shape of a model: what every reader gives and the estimator sizes.

One home for architecture facts, whether they came from knowledge/, a config.json, or a
file header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import translate
from typing import Final, Literal

from msgspec import Struct, field

UNKNOWN = "unknown"
"""The architecture of what names none."""


class Mla(Struct, frozen=True):
    """Multi-head latent attention; element counts."""

    kv_lora_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    q_lora_rank: int | None
    index_dim: int = 0
    """Width of the keys by which sparse attention picks tokens, one for each token; 0 without."""
    index_heads: int = 0
    index_layers: str = ""
    """F for a layer with such keys of its own, S for one that shares the picks of one before."""
    index_pool: int = 1
    """Tokens that are picked as one."""


class Moe(Struct, frozen=True):
    """Mixture of experts."""

    experts: int
    used: int
    width: int
    """Intermediate width of one routed expert."""
    shared_width: int = 0
    """Summed intermediate width of the shared experts, 0 without."""


class Recurrent(Struct, frozen=True):
    """The fixed state of a recurrent, convolutional or linear-attention layer."""

    kind: Literal[
        "mamba", "mamba2", "deltanet", "conv", "lightning", "rglru", "rwkv", "kimi-delta", "mlstm"
    ]
    conv_elements: int
    """Elements of convolution state per sequence and layer (model dtype)."""
    state_elements: int
    """Elements of recurrent state per sequence and layer (float32)."""
    inner: int = 0
    groups: int = 0
    state: int = 0
    conv_kernel: int = 0
    dt_rank: int = 0
    heads: int = 0
    head_dim: int = 0


class Counts(Struct, frozen=True):
    """Parameter counts; ``None`` where no formula covers the architecture."""

    total: int
    active: int
    """Total less the routed experts that one token does not use; embeddings included."""
    vision: int
    """Image or audio tower and projector, 0 for text models."""
    embedding: int
    """The input embedding matrix."""
    output: int
    """The output matrix, 0 when tied."""
    layers: tuple[int, ...]
    """Every decoder layer, in order."""
    experts: tuple[int, ...]
    """Routed experts of every layer, 0 where dense."""

    def plus(self, beside: int) -> Counts:
        """Count parts beside the text model too."""
        more = (self.total + beside, self.active + beside, self.vision + beside)
        return Counts(*more, self.embedding, self.output, self.layers, self.experts)

    def scaled(self, factor: float) -> Counts:
        """Give so many times these."""
        figures = (self.total, self.active, self.vision, self.embedding, self.output)
        total, active, vision, embedding, output = (round(factor * n) for n in figures)
        layers = tuple(round(factor * n) for n in self.layers)
        experts = tuple(round(factor * n) for n in self.experts)
        return Counts(total, active, vision, embedding, output, layers, experts)


def in_layers(total: int, layers: int) -> Counts:
    """Count a model that holds no embedding and no output of its own: a head that drafts."""
    return Counts(total, total, 0, 0, 0, (total // layers,) * layers, (0,) * layers)


class Blocks(Struct, frozen=True, omit_defaults=True):
    """How llama.cpp stores the layers of an architecture, and how that differs from Llama's."""

    architecture: str
    """``general.architecture`` of the file."""
    qkv_bias: bool = False
    qk_norm: Literal["head", "whole", ""] = ""
    norms: tuple[str, ...] = ("attn_norm", "ffn_norm")
    fused_qkv: bool = False
    fused_up: bool = False
    every_bias: bool = False
    gated_query: bool = False
    """Queries are stored with the gate of the output behind them."""


LLAMA_BLOCKS = Blocks("llama")


class Shape(Struct, frozen=True, omit_defaults=True):
    """What the estimator needs to know of an architecture."""

    model_type: str
    """Of the text part: ``llama`` for a LLaVA built on Llama."""
    layers: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    tied: bool
    layer_kinds: str
    """One letter per layer: F full attention, S sliding window, C chunked attention,
    R recurrent (fixed state), X cross-attention or, at the end, reuse (no text KV), N no mixer,
    H full attention and a recurrent state side by side."""
    ffn_kinds: str
    """One letter per layer: D dense, E experts, - none."""
    window: int | None = None
    """Tokens a sliding or chunked layer keeps."""
    trained_context: int | None = None
    mla: Mla | None = None
    moe: Moe | None = None
    recurrent: Recurrent | None = None
    kv_heads_by_layer: tuple[int, ...] | None = None
    """Only where layers differ."""
    head_groups: tuple[int, ...] | None = None
    """By layer, the heads by which cards divide it, where those above stand for wider ones."""
    cells: tuple[tuple[int, int], ...] | None = None
    """Elements that a layer caches of every token, and more of one in the window; only where they
    are not keys and values of heads."""
    outer_type: str = ""
    """``model_type`` of the whole file when it wraps a text model (``llava``, ``gemma3``)."""
    dtype: str | None = None
    """Storage type the config names (``bfloat16``)."""
    quantization: Mapping[str, object] | None = None
    """``quantization_config`` of the file, as it stands."""
    config: Mapping[str, object] = field(default_factory=dict)
    """The text config as read, for rare keys of single architectures."""
    vision_config: Mapping[str, object] | None = None
    counts: Counts | None = None
    """Exact counts by formula; None for an architecture without one."""
    role: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    """An encoder keeps no cache."""
    lookup: int = 0
    """Elements of tables beside the embedding that are looked up by token (per-layer
    embeddings): they are held somewhere, but neither streamed nor multiplied."""
    encoder_positions: int | None = None
    """Outputs of an encoder that every decoder layer caches besides its own tokens: a fixed number
    (Whisper), 0 for as many as the input has tokens (T5), None where it reads no encoder."""
    mtp_layers: int = 0
    """Layers for multi-token prediction behind the others; they run only where they draft."""
    gated: bool = True
    """Whether the feed-forward blocks have a gate."""
    blocks: Blocks | None = None
    """None where the tensors of a GGUF file are not listed here."""
    windows: bool = True
    """Whether llama.cpp keeps to the window that is configured."""
    doubts: tuple[str, ...] = ()
    """Why its figures are approximate: keys that nothing here reads, an unknown architecture;
    one sentence each."""
    described: bool = True
    """Whether its architecture is; else the cache is an estimate."""
    outer_described: bool = True
    """Whether what wraps its text model is; else only code of its own can run it."""
    reads_unknown: bool = False
    """Whether nothing tells which share of its experts a token uses."""
    spread: float = 0.0
    """Share by which the parameters may be more or fewer."""
    cache_loose: float = 0.0
    """Share of the cache by which the true one may be smaller."""


_LISTS: Final = (
    "modules_to_not_convert",
    "ignore",
    "exclude_modules",
    "exclude",
    "ignored_layers",
    "llm_int8_skip_modules",
)
_PREFIXES: Final = ("model", "model.language_model", "language_model.model", "backbone")
_LAYER: Final = re.compile(r"(?:^|\.)layers\.\d+(?:\.|$)")
_FFN: Final = ("gate_proj", "up_proj", "down_proj")
_ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
_LATENT: Final = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
_RECURRENT: Final = ("in_proj_qkv", "in_proj_z", "out_proj")
_MAMBA: Final = ("in_proj", "out_proj")
_MIXTRAL: Final = re.compile(r"\.w([123])$")
_NESTED: Final = re.compile(r"[*+}]\)+[*+{?]")
"""A repeated group that repeats: such a pattern may take for ever."""
_LONGEST: Final = 300
_ONE_LAYER: Final = re.compile(r"[\d?]")
"""In names that may mean a single layer."""

Named = Callable[[str], bool]


def kept_in_full(stated: Mapping[str, object], shape: Shape) -> tuple[int, ...]:
    """Count what a ``quantization_config`` keeps in 16 bits of each layer; empty: nothing."""
    listed = [f"{name}" for key in _LISTS for name in items(stated.get(key))]
    packed, counts = packed_apart(stated), shape.counts
    if counts is None or not (listed or packed):
        return ()
    apart = [name for names, _ in packed for name in names]
    left, found = _matcher(listed), _matcher(apart)

    def named(name: str) -> bool:
        return left(name) or bool(packed and not found(name))

    kinds: list[tuple[object, ...]]
    kinds = [*zip(counts.layers, counts.experts, shape.ffn_kinds, shape.layer_kinds, strict=True)]
    if _ONE_LAYER.search(" ".join((*listed, *apart))):
        kinds = [(index, *kind) for index, kind in enumerate(kinds)]
    first = {kind: index for index, kind in reversed([*enumerate(kinds)])}
    share = {kind: round(_share(at, shape, counts, named)) for kind, at in first.items()}
    return tuple(share[kind] for kind in kinds) if any(share.values()) else ()


def mean_bits(stated: Mapping[str, object], shape: Shape) -> float | None:
    """Average the bits of the weights that modules packed apart have; None where there are none."""
    packed, counts = packed_apart(stated), shape.counts
    if counts is None or not packed:
        return None
    every = [_matcher(names) for names, _ in packed]

    def held_by(at: int) -> float:  # a module is of the first list that names it
        def named(name: str) -> bool:
            return every[at](name) and not any(other(name) for other in every[:at])

        return sum(_share(index, shape, counts, named) for index in range(shape.layers))

    held = [held_by(at) for at in range(len(packed))]
    weighed = sum(count * bits for count, (_, bits) in zip(held, packed, strict=True))
    return weighed / sum(held) if any(held) else None


def packs_head(stated: Mapping[str, object]) -> bool:
    """Whether the output matrix is packed too."""
    named = {name for names, _ in packed_apart(stated) for name in names}
    return stated.get("lm_head") is True or "lm_head" in named


Packed = tuple[tuple[str, ...], float]


def packed_apart(stated: Mapping[str, object]) -> tuple[Packed, ...]:
    """Give the modules that a mixed checkpoint packs, by bits per weight (ModelOpt's own lists)."""
    layers = stated.get("quantized_layers")
    found: dict[float, list[str]] = {}
    for name, how in layers.items() if isinstance(layers, Mapping) else ():
        told = how if isinstance(how, Mapping) else {}
        bits = told.get("bits") or ALGORITHMS.get(f"{told.get('quant_algo')}".upper())
        found.setdefault(bits or _PLAIN_BITS, []).append(f"{name}")
    return tuple((tuple(names), bits) for bits, names in found.items())


ALGORITHMS: Final[Mapping[str, float]] = {
    "FP8": 8.0, "FP8_PB_WO": 8.0, "FP8_PER_CHANNEL_PER_TOKEN": 8.0, "MXFP8": 8.25,
    "NVFP4": 4.5, "NVFP4_AWQ": 4.5, "W4A16_NVFP4": 4.5, "W4A8_NVFP4_FP8": 4.5, "W4A16_AWQ": 4.125,
}  # fmt: skip
"""Bits per weight of ModelOpt's algorithms (0.45), with the scales of their groups."""
_PLAIN_BITS: Final = 16


def items(value: object) -> Sequence[object]:
    """Give what a key of a config lists; nothing where it is no list."""
    return value if isinstance(value, list | tuple) else ()


def _matcher(listed: Sequence[str]) -> Named:
    patterns = [*_patterns(listed)]
    others = [one for one in listed if not one.startswith("re:")]
    globs = [f"{one}{end}" for one in others if "*" in one for end in ("", ".*")]
    patterns += [re.compile(f"^(?:{'|'.join(map(translate, globs))})")] if globs else []
    plain = {_inside(one) for one in others if "*" not in one}

    def named(name: str) -> bool:
        parts = name.split(".")
        steps = range(1, len(parts) + 1)
        if plain & {".".join(parts[:end]) for end in steps}:
            return True
        if plain & {".".join(parts[-count:]) for count in steps} or plain & {*parts[2:]}:
            return True
        whole = [f"{prefix}.{name}" for prefix in _PREFIXES]
        return any(pattern.search(one) for one in whole for pattern in patterns)

    # Qwen has one shared expert, and names it so.
    return lambda name: (
        named(name)
        or (
            ".shared_experts." in name
            and named(name.replace(".shared_experts.", ".shared_expert."))
        )
    )


def _patterns(listed: Sequence[str]) -> Iterator[re.Pattern[str]]:
    for text in listed:
        if text.startswith("re:") and len(text) < _LONGEST and not _NESTED.search(text):
            with suppress(re.error):
                yield re.compile(text[3:])


def _inside(name: str) -> str:
    """Cut what stands before ``layers.N``: it differs from class to class."""
    name = _MIXTRAL.sub(_matrix, name)
    found = _LAYER.search(name)
    return name[found.start() :].lstrip(".") if found else name


def _matrix(found: re.Match[str]) -> str:
    return f".{_FFN['132'.index(found[1])]}"


def _share(index: int, shape: Shape, counts: Counts, named: Named) -> float:
    """Count the weights of a layer that lie in modules of these names."""
    return sum(
        elements * sum(map(named, names)) / len(names)
        for elements, names in _parts(index, shape, counts)
    )


class _Homes(Struct, frozen=True):
    """Where the modules of a layer stand."""

    attention: str = "self_attn"
    ffn: str = "mlp"
    experts: str = "mlp.experts"
    shared: str = "mlp.shared_experts"


_SPARSE: Final = "block_sparse_moe.experts", "block_sparse_moe.shared_experts"
_BLOCK_SPARSE: Final = _Homes("self_attn", "mlp", *_SPARSE)
_SHORT: Final = _Homes("attn", "ffn", "ffn.experts", "ffn.shared_experts")
_HOMES: Final = {
    "nemotron_h": _Homes("mixer", "mixer", "mixer.experts", "mixer.shared_experts"),
    "gemma4": _Homes(experts="experts"),
    **dict.fromkeys(("deepseek_v4", "deepseek_v41"), _SHORT),
    **dict.fromkeys(("mixtral", "minimax_m2", "minimax_m3_vl_text"), _BLOCK_SPARSE),
}
_USUAL_HOMES: Final = _Homes()


def _parts(index: int, shape: Shape, counts: Counts) -> Iterator[tuple[int, Sequence[str]]]:
    """Give the parts of a layer: weights, and the modules among which they are divided."""
    at, home = f"layers.{index}", _HOMES.get(shape.model_type, _USUAL_HOMES)
    routed, matrices = counts.experts[index], 3 if shape.gated else 2
    ffn = _FFN if shape.gated else _FFN[1:]
    dense = matrices * shape.hidden * shape.intermediate if shape.ffn_kinds[index] == "D" else 0
    wide = shape.moe.shared_width if shape.moe and shape.ffn_kinds[index] == "E" else 0
    together = matrices * shape.hidden * wide
    yield routed, [f"{at}.{home.experts}.0.{name}" for name in ffn]
    yield dense, [f"{at}.{home.ffn}.{name}" for name in ffn]
    yield together, [f"{at}.{home.shared}.{name}" for name in ffn]
    rest = max(counts.layers[index] - routed - dense - together, 0)
    yield rest, [f"{at}.{name}" for name in _mixer(index, shape, home)]


def _mixer(index: int, shape: Shape, home: _Homes) -> Iterator[str]:
    """Give the modules of a layer's attention, or of what stands in its place."""
    recurrent = shape.recurrent if shape.layer_kinds[index] == "R" else None
    names: Sequence[str]
    if recurrent is None:
        block, names = home.attention, _LATENT if shape.mla else _ATTENTION
    elif recurrent.kind == "deltanet":
        block, names = "linear_attn", _RECURRENT
    else:
        block, names = home.attention if home.attention == "mixer" else "mamba", _MAMBA
    yield from (f"{block}.{name}" for name in names)
