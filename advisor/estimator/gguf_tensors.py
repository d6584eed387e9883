"""The tensors of a GGUF file, by architecture: names and dimensions, no types.

What Llama has is said here with the traits of ``Blocks``; what an architecture has besides, or
otherwise, stands in ``knowledge/gguf_tensors.tsv``. Source: tensor lists of llama.cpp 0c1e57098
(``src/llama-model.cpp``, gguf 0.19.0), and what llama.cpp b11739 demands of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from msgspec import Struct

from advisor.files import table_rows
from advisor.models.shape import Blocks, Mla, Moe, Shape, items

_LLAMA_3_VOCAB = 128_256
_FILE: Final = "gguf_tensors.tsv"
_HASH_LAYERS: Final = 3
_OUTSIDE: Final = "-"
_EVERYWHERE: Final = "*"
_STORED_AS: Final = "="
_EMBEDDING: Final = "token_embd.weight"
_ATTENDS: Final = frozenset("FSCHXY")


class Tensor(Struct, frozen=True):
    """One tensor; ``ne0`` is the contiguous dimension, ``ne1`` and ``ne2`` the others."""

    name: str
    ne0: int
    ne1: int = 1
    ne2: int = 1
    kind: str = ""
    """The type that the quantiser gives it in whatever file type, where one is fixed."""

    @property
    def elements(self) -> int:
        """Number of weights."""
        return self.ne0 * self.ne1 * self.ne2


class _Row(NamedTuple):
    """A line of the table."""

    layers: str
    name: str
    sizes: str
    switch: str
    kind: str


Rows = Sequence[_Row]


def _rows(*names: str) -> list[_Row]:
    """Read what the table says of architectures, a ``model_type`` or kinds of state, in order."""
    rows = [line for name in dict.fromkeys(names) for line in table_rows(_FILE) if line[0] == name]
    return [_Row(*[*line[1:], "", "", ""][:5]) for line in rows]


class _Sizes:
    """The sizes of one kind of layer by their names in the table; a key of the config is one."""

    def __init__(self, shape: Shape, kv: int) -> None:
        self._shape, mla, moe, state = shape, shape.mla, shape.moe, shape.recurrent
        known = {
            "h": shape.hidden, "v": shape.vocab, "layers": shape.layers, "d": shape.head_dim,
            "n": shape.heads, "g": shape.kv_heads, "q": shape.heads * shape.head_dim, "kv": kv,
            "ff": shape.intermediate, "lookup": shape.lookup,
        }  # fmt: skip
        if mla:
            known |= {
                "r": mla.kv_lora_rank, "rope": mla.rope_dim, "nope": mla.nope_dim,
                "vd": mla.value_dim, "ih": mla.index_heads, "id": mla.index_dim,
                "qr": mla.q_lora_rank or 0, "pool": mla.index_pool,
            }  # fmt: skip
        if moe:
            known |= {"e": moe.experts, "u": moe.used, "w": moe.width, "s": moe.shared_width}
        if state:
            known |= {
                "inner": state.inner or state.heads * state.head_dim, "state": state.state,
                "groups": state.groups, "conv": state.conv_kernel, "rd": state.head_dim,
                "mixed": state.conv_elements, "rows": state.dt_rank,
                "rn": state.dt_rank or state.heads,
            }  # fmt: skip
        self._known = known

    def tensor(self, row: _Row) -> Tensor:
        """Give a tensor of the table.

        Raises:
            LookupError: A size is not known.
        """
        first, second, third, *_ = (*map(self._size, row.sizes.split(" ")), 1, 1)
        return Tensor(row.name, first, second, third, row.kind)

    def _size(self, text: str) -> int:
        return sum(prod(map(self._one, term.split("*"))) for term in text.split("+"))

    def _one(self, name: str) -> int:
        name, _, by = name.partition("/")
        if name.lstrip("-").isdigit():
            return int(name)
        size = self._known.get(name)
        stated = self._shape.config.get(name) if size is None else size
        if type(stated) is not int:
            raise LookupError(name)
        return stated // max(1, self._one(by)) if by else stated

    def holds(self, row: _Row) -> bool:
        """Whether the switch of a row is as it says."""
        name = row.switch.removeprefix("!")
        on = bool(self._known.get(name) or self._shape.config.get(name))
        return not name or on is (name == row.switch)


class Layout(Struct, frozen=True):
    """All tensors of a model.

    ``blocks`` maps a block kind to its tensors in name order; ``kinds`` names every block's
    kind.
    """

    architecture: str
    embedding: Tensor
    output: Tensor | None
    """None when tied, and for a model without a head."""
    tied: bool
    outside: tuple[Tensor, ...]
    rope: Tensor | None
    blocks: Mapping[str, tuple[Tensor, ...]]
    kinds: tuple[str, ...]

    def block_elements(self, kind: str) -> int:
        """Count the weights of one block."""
        return sum(tensor.elements for tensor in self.blocks[kind])

    @property
    def elements(self) -> int:
        """Number of weights of all tensors, rope factors left out."""
        outside = sum(tensor.elements for tensor in self.outside)
        matrices = self.embedding.elements + (self.output.elements if self.output else 0)
        return outside + matrices + sum(self.block_elements(kind) for kind in self.kinds)


def gguf_layout(shape: Shape) -> Layout | None:
    """List the tensors llama.cpp stores for a model; None for an architecture without a list."""
    traits = shape.blocks or _stored_as(shape)
    state = shape.recurrent.kind if shape.recurrent else ""
    if traits is None or (state and not _rows(state)):
        return None
    try:
        return _listed(shape, traits, _rows(state, traits.architecture, shape.model_type))
    except LookupError:
        return None


def _stored_as(shape: Shape) -> Blocks | None:
    """The architecture that the table names for a ``model_type``."""
    rows = _rows(shape.outer_type, shape.model_type)
    return next((Blocks(row.name) for row in rows if row.layers == _STORED_AS), None)


def _listed(shape: Shape, traits: Blocks, rows: Rows) -> Layout:
    kinds = _kinds(shape)
    first = {kind: index for index, kind in reversed([*enumerate(kinds)])}
    bias = (Tensor("output_norm.bias", shape.hidden),) if traits.every_bias else ()
    norm = (Tensor("output_norm.weight", shape.hidden), *bias) if traits.norms else ()
    outside = {t.name: t for t in _with_rows(norm, shape, rows, _OUTSIDE, 0)}
    words = min(shape.vocab, outside.pop(_EMBEDDING).ne1 if _EMBEDDING in outside else shape.vocab)
    return Layout(
        architecture=traits.architecture,
        embedding=Tensor(_EMBEDDING, shape.hidden, words),
        output=Tensor("output.weight", shape.hidden, words) if _has_output(shape) else None,
        tied=shape.tied,
        outside=tuple(outside.values()),
        rope=Tensor("rope_freqs.weight", shape.head_dim // 2) if _scales_rope(shape) else None,
        blocks={kind: _block(shape, traits, rows, kind, index) for kind, index in first.items()},
        kinds=kinds,
    )


def _has_output(shape: Shape) -> bool:
    return not shape.tied and (shape.counts is None or shape.counts.output > 0)


def _scales_rope(shape: Shape) -> bool:
    """Whether the file carries Llama 3.1's frequency factors."""
    if shape.model_type not in {"llama", "nemotron-nas"}:
        return False
    for key in ("rope_scaling", "rope_parameters"):
        scaling = shape.config.get(key)
        if isinstance(scaling, Mapping):
            kind = scaling.get("rope_type", scaling.get("type"))
            if kind == "llama3":
                return True
    return shape.vocab == _LLAMA_3_VOCAB and (shape.trained_context or 0) >= 2**17


def _kinds(shape: Shape) -> tuple[str, ...]:
    """Name the kind of every layer: the letters of the table, and what else tells it apart."""
    same = ("",) * shape.layers
    heads = shape.kv_heads_by_layer or same
    picks = (shape.mla and shape.mla.index_layers) or same
    cells = [held for held, _ in shape.cells] if shape.cells else [0] * shape.layers
    most = max(cells)
    looking = {*items(shape.config.get("ple_layer_ids"))}
    hashed = _hash_layers(shape) if shape.cells else 0
    uneven = same if shape.intermediate or not shape.counts else shape.counts.layers
    more = (
        "I" * (pick == "F")
        + ("P" if held == most else "G") * (held > 0)
        + "J" * (at < hashed)
        + "L" * (at + 1 in looking)
        for at, (pick, held) in enumerate(zip(picks, cells, strict=True))
    )
    layers = zip(_mixers(shape), shape.ffn_kinds, more, heads, uneven, strict=True)
    return tuple(
        f"{mixer}{ffn}{letters} {kv} {size if ffn == 'D' else ''}".rstrip()
        for mixer, ffn, letters, kv, size in layers
    )


def _hash_layers(shape: Shape) -> int:
    """Layers of DeepSeek V4 whose experts follow from the token."""
    stated = shape.config.get("num_hash_layers", _HASH_LAYERS)
    return stated if isinstance(stated, int) else _HASH_LAYERS


def _mixers(shape: Shape) -> str:
    """Letters of the layers; those that reuse a cache are full (Y) as the period goes on."""
    kinds = shape.layer_kinds
    if "X" not in kinds or "F" not in kinds:
        return kinds
    period = kinds.index("F") + 1
    full = {*range(period - 1, shape.layers, period), shape.layers - 1}
    return "".join("Y" if kind == "X" and at in full else kind for at, kind in enumerate(kinds))


def _block(shape: Shape, traits: Blocks, rows: Rows, kind: str, index: int) -> tuple[Tensor, ...]:
    found = [*_norms(shape, traits)]
    if kind[0] in _ATTENDS:
        found += _attention(shape, traits, _kv(shape, kind, index))
    if kind[1] == "D" and shape.intermediate:
        found += _dense(shape, traits, shape.intermediate)
    elif kind[1] == "E" and shape.moe:
        found += _experts(shape, shape.moe)
    listed = _with_rows(found, shape, rows, kind, index)
    if kind[1] == "D" and not shape.intermediate and shape.counts:
        rest = shape.counts.layers[index] - sum(tensor.elements for tensor in listed)
        listed += (*_dense(shape, traits, rest // (3 if shape.gated else 2) // shape.hidden),)
    return tuple(sorted(listed, key=lambda tensor: tensor.name))


def _kv(shape: Shape, kind: str, index: int) -> int:
    """Width of the keys of a layer; one that reuses a cache has those of its kind."""
    heads = shape.kv_heads_by_layer
    at = shape.layer_kinds.index("F") if kind[0] == "Y" else index
    return (heads[at] if heads else shape.kv_heads) * shape.head_dim


def _with_rows(
    found: Iterable[Tensor], shape: Shape, rows: Rows, kind: str, index: int
) -> tuple[Tensor, ...]:
    """Add what the table says, which is stronger, and take out what it says is not stored."""
    letters = {*kind.partition(" ")[0], "A" if kind[0] in _ATTENDS else ""}
    letters.add(_EVERYWHERE if kind != _OUTSIDE else "")
    listed = {tensor.name: tensor for tensor in found}
    sizes = _Sizes(shape, _kv(shape, kind, index))
    for row in rows:
        if letters & {*row.layers} and sizes.holds(row):
            listed.pop(row.name, None)
            if row.sizes:
                listed[row.name] = sizes.tensor(row)
    return tuple(listed.values())


def _norms(shape: Shape, traits: Blocks) -> Iterator[Tensor]:
    for name in traits.norms:
        yield Tensor(f"{name}.weight", shape.hidden)
        if traits.every_bias:
            yield Tensor(f"{name}.bias", shape.hidden)


def _attention(shape: Shape, traits: Blocks, kv: int) -> Iterator[Tensor]:
    if shape.mla:
        yield from _latent_attention(shape, shape.mla)
        return
    h, q = shape.hidden, shape.heads * shape.head_dim
    if traits.fused_qkv:
        yield Tensor("attn_qkv.weight", h, q + 2 * kv)
    else:
        yield Tensor("attn_q.weight", h, 2 * q if traits.gated_query else q)
        yield Tensor("attn_k.weight", h, kv)
        yield Tensor("attn_v.weight", h, kv)
    yield Tensor("attn_output.weight", q, h)
    yield from _attention_vectors(shape, traits, q, kv)


def _attention_vectors(shape: Shape, traits: Blocks, q: int, kv: int) -> Iterator[Tensor]:
    if traits.qkv_bias and shape.config.get("attention_bias") is not False:
        yield Tensor("attn_q.bias", q)
        yield Tensor("attn_k.bias", kv)
        yield Tensor("attn_v.bias", kv)
    if traits.every_bias:
        yield Tensor("attn_output.bias", shape.hidden)
    qk_norm = traits.qk_norm or ("head" if shape.config.get("use_qk_norm") else "")
    if qk_norm:
        per_head = traits.qk_norm != "whole"
        yield Tensor("attn_q_norm.weight", shape.head_dim if per_head else q)
        yield Tensor("attn_k_norm.weight", shape.head_dim if per_head else kv)


def _latent_attention(shape: Shape, mla: Mla) -> Iterator[Tensor]:
    h, heads = shape.hidden, shape.heads
    queries = heads * (mla.nope_dim + mla.rope_dim)
    yield Tensor("attn_kv_a_mqa.weight", h, mla.kv_lora_rank + mla.rope_dim)
    yield Tensor("attn_kv_a_norm.weight", mla.kv_lora_rank)
    yield Tensor("attn_k_b.weight", mla.nope_dim, mla.kv_lora_rank, heads)
    yield Tensor("attn_v_b.weight", mla.kv_lora_rank, mla.value_dim, heads)
    yield Tensor("attn_output.weight", heads * mla.value_dim, h)
    if mla.q_lora_rank is None:
        yield Tensor("attn_q.weight", h, queries)
    else:
        yield Tensor("attn_q_a.weight", h, mla.q_lora_rank)
        yield Tensor("attn_q_a_norm.weight", mla.q_lora_rank)
        yield Tensor("attn_q_b.weight", mla.q_lora_rank, queries)


def _dense(shape: Shape, traits: Blocks, ff: int) -> Iterator[Tensor]:
    h = shape.hidden
    if shape.gated and not traits.fused_up:
        yield Tensor("ffn_gate.weight", h, ff)
    yield Tensor("ffn_up.weight", h, 2 * ff if traits.fused_up else ff)
    yield Tensor("ffn_down.weight", ff, h)
    if traits.every_bias:
        yield Tensor("ffn_up.bias", ff)
        yield Tensor("ffn_down.bias", h)


def _experts(shape: Shape, moe: Moe) -> Iterator[Tensor]:
    h, experts, width = shape.hidden, moe.experts, moe.width
    yield Tensor("ffn_gate_inp.weight", h, experts)
    if shape.gated:
        yield Tensor("ffn_gate_exps.weight", h, width, experts)
    yield Tensor("ffn_up_exps.weight", h, width, experts)
    yield Tensor("ffn_down_exps.weight", width, h, experts)
    if moe.shared_width:
        if shape.gated:
            yield Tensor("ffn_gate_shexp.weight", h, moe.shared_width)
        yield Tensor("ffn_up_shexp.weight", h, moe.shared_width)
        yield Tensor("ffn_down_shexp.weight", moe.shared_width, h)
