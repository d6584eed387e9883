"""The shape of a model: what every reader gives and the estimator sizes.

One home for architecture facts, whether they came from knowledge/, a config.json, or a
file header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from math import prod
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

    kind: Literal["mamba", "mamba2", "deltanet", "conv", "lightning", "rglru", "rwkv", "kimi-delta"]
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


def in_layers(total: int, layers: int) -> Counts:
    """Count a model that holds no embedding and no output of its own: a head that drafts."""
    return Counts(total, total, 0, 0, 0, (total // layers,) * layers, (0,) * layers)


POST_NORMS = ("post_attention_norm", "post_ffw_norm")
FOUR_NORMS = ("attn_norm", "ffn_norm", *POST_NORMS)


class Blocks(Struct, frozen=True, omit_defaults=True):
    """How llama.cpp stores the layers of an architecture, and how that differs from Llama's."""

    architecture: str
    """``general.architecture`` of the file."""
    exact: bool = False
    """Whether it was checked against llama.cpp itself."""
    qkv_bias: bool = False
    qk_norm: Literal["head", "whole", ""] = ""
    norms: tuple[str, ...] = ("attn_norm", "ffn_norm")
    fused_qkv: bool = False
    fused_up: bool = False
    every_bias: bool = False
    gated_query: bool = False
    """Queries are stored with the gate of the output behind them."""
    most_vocab: int | None = None
    """Rows of the embedding that are stored at most."""


LLAMA_BLOCKS = Blocks("llama", exact=True)


class Shape(Struct, frozen=True):
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
    R recurrent (fixed state), X cross-attention (no text KV), N no token mixer,
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
    (Whisper), 0 for as many as the input has tokens (T5), None without cross-attention to an
    encoder."""
    mtp_layers: int = 0
    """Layers for multi-token prediction behind the others; they run only where they draft."""
    cache_unknown: str = ""
    """Why the cache cannot be sized although the parameters can; a clause for a message,
    empty where it can."""
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
    reads_unknown: bool = False
    """Whether nothing tells which share of its experts a token uses."""
    spread: float = 0.0
    """Share by which the parameters may be more or fewer."""
    cache_loose: float = 0.0
    """Share of the cache by which the true one may be smaller."""

    @property
    def full_layers(self) -> int:
        """Layers whose cache grows with the whole context."""
        return sum(kind in "FH" for kind in self.layer_kinds)


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
_NESTED: Final = re.compile(r"[*+}]\)+[*+{?]")
"""A repeated group that repeats: such a pattern may take for ever."""
_LONGEST: Final = 300

Named = Callable[[str], bool]


def kept_in_full(stated: Mapping[str, object], shape: Shape) -> tuple[int, ...]:
    """Count the weights of every layer that stay in 16 bits; empty where the config names none.

    Args:
        stated: A ``quantization_config``.
        shape: The model that it belongs to, with its parameters counted.
    """
    listed = [f"{name}" for key in _LISTS for name in _items(stated.get(key))]
    counts = shape.counts
    if not listed or counts is None:
        return ()
    named = _matcher(listed)
    kept = tuple(_kept(index, shape, counts, named) for index in range(shape.layers))
    return kept if any(kept) else ()


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _matcher(listed: Sequence[str]) -> Named:
    patterns = [*_patterns(listed)]
    others = [one for one in listed if not one.startswith("re:")]
    globs = [f"{one}{end}" for one in others if "*" in one for end in ("", ".*")]
    plain = {_inside(one) for one in others if "*" not in one}

    def named(name: str) -> bool:
        parts = name.split(".")
        steps = range(1, len(parts) + 1)
        if plain & {".".join(parts[:end]) for end in steps}:
            return True
        if plain & {".".join(parts[-count:]) for count in steps} or plain & {*parts[2:]}:
            return True
        whole = [f"{prefix}.{name}" for prefix in _PREFIXES]
        if any(fnmatchcase(one, glob) for one in whole for glob in globs):
            return True
        return any(pattern.search(one) for one in whole for pattern in patterns)

    return named


def _patterns(listed: Sequence[str]) -> Iterator[re.Pattern[str]]:
    for text in listed:
        if text.startswith("re:") and len(text) < _LONGEST and not _NESTED.search(text):
            with suppress(re.error):
                yield re.compile(text[3:])


def _inside(name: str) -> str:
    """Cut what stands before ``layers.N``: it differs from class to class."""
    found = _LAYER.search(name)
    return name[found.start() :].lstrip(".") if found else name


def _kept(index: int, shape: Shape, counts: Counts, named: Named) -> int:
    return round(
        sum(
            elements * sum(map(named, names)) / len(names)
            for elements, names in _parts(index, shape, counts)
        )
    )


def _parts(index: int, shape: Shape, counts: Counts) -> Iterator[tuple[int, Sequence[str]]]:
    """Give the parts of a layer: weights, and the modules among which they are divided."""
    at = f"layers.{index}"
    routed, matrices = counts.experts[index], 3 if shape.gated else 2
    ffn = _FFN if shape.gated else _FFN[1:]
    dense = matrices * shape.hidden * shape.intermediate if shape.ffn_kinds[index] == "D" else 0
    wide = shape.moe.shared_width if shape.moe and shape.ffn_kinds[index] == "E" else 0
    together = matrices * shape.hidden * wide
    yield routed, [f"{at}.mlp.experts.0.{name}" for name in ffn]
    yield dense, [f"{at}.mlp.{name}" for name in ffn]
    yield together, [f"{at}.mlp.shared_expert.{name}" for name in ffn]
    rest = max(counts.layers[index] - routed - dense - together, 0)
    yield rest, [f"{at}.{name}" for name in _mixer(index, shape)]


def _mixer(index: int, shape: Shape) -> Iterator[str]:
    """Give the modules of a layer's attention, or of what stands in its place."""
    recurrent = shape.recurrent if shape.layer_kinds[index] == "R" else None
    names: Sequence[str]
    if recurrent is None:
        block, names = "self_attn", _LATENT if shape.mla else _ATTENTION
    elif recurrent.kind == "deltanet":
        block, names = "linear_attn", _RECURRENT
    else:
        block, names = "mamba", _MAMBA
    block = "mixer" if shape.model_type == "nemotron_h" else block
    yield from (f"{block}.{name}" for name in names)


_NUMBER: Final = re.compile(r"\.(\d+)\.")
_HEAD: Final = 64
"""Width of a head; with as many key-value heads the cache is the same whatever it is."""
_BY_TENSORS: Final = (
    "Approximate: no config.json describes it: weights are those of the files, the cache is at "
    "most that of full attention in every layer."
)


def plain_blocks(matrices: Mapping[str, tuple[int, ...]]) -> Shape:
    """Take tensors that nothing describes for plain blocks: at most so much cache do they keep.

    The width that most matrices share is that of a token, the longest matrix of it the embedding.
    """
    total = sum(prod(dims) for dims in matrices.values())
    layers = len({found[1] for name in matrices if (found := _NUMBER.search(name))}) or 1
    sides = Counter(side for dims in matrices.values() if len(dims) > 1 for side in dims[-2:])
    hidden = max(sides or (1,), key=lambda side: (sides[side], side))
    vocab = max((max(dims) for dims in matrices.values() if hidden in dims[-2:]), default=0)
    each = max(total - vocab * hidden, 0) // layers
    counts = Counts(total, total, 0, vocab * hidden, 0, (each,) * layers, (0,) * layers)
    return Shape(
        model_type=UNKNOWN,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        heads=max(1, hidden // _HEAD),
        kv_heads=max(1, hidden // _HEAD),
        head_dim=min(_HEAD, hidden),
        intermediate=0,
        tied=False,
        layer_kinds="F" * layers,
        ffn_kinds="D" * layers,
        counts=counts,
        described=False,
        doubts=(_BY_TENSORS,),
        cache_loose=1.0,
        reads_unknown=any("expert" in name for name in matrices),
    )
