"""The tensors of a GGUF file, by architecture: names and dimensions, no types.

Source: tensor lists of llama.cpp 0c1e57098 (``src/llama-model.cpp``, gguf 0.19.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from advisor.models.shape import Blocks, Mla, Moe, Recurrent, Shape

_LLAMA_3_VOCAB = 128_256
_BALANCED: Final = frozenset({"deepseek_v3", "kimi_k2", "nemotron_h", "lfm2_moe"})
_GATED_SHARED: Final = frozenset({"qwen2moe", "qwen3next", "qwen35moe"})


class Tensor(Struct, frozen=True):
    """One tensor; ``ne0`` is the contiguous dimension, ``ne1`` and ``ne2`` the others."""

    name: str
    ne0: int
    ne1: int = 1
    ne2: int = 1

    @property
    def elements(self) -> int:
        """Number of weights."""
        return self.ne0 * self.ne1 * self.ne2


class Layout(Struct, frozen=True):
    """All tensors of a model.

    ``blocks`` maps a block kind to its tensors in name order; ``kinds`` names every block's
    kind. ``exact`` says whether the architecture was checked against llama.cpp itself.
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
    exact: bool

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
    traits = shape.blocks
    if traits is None or not _covered(shape, traits):
        return None
    vocab = _stored_vocab(shape, traits)
    kinds = tuple(
        f"{mixer}{ffn}" for mixer, ffn in zip(_mixers(shape), shape.ffn_kinds, strict=True)
    )
    bias = (Tensor("output_norm.bias", shape.hidden),) if traits.every_bias else ()
    norm = (Tensor("output_norm.weight", shape.hidden), *bias) if traits.norms else ()
    return Layout(
        architecture=traits.architecture,
        embedding=Tensor("token_embd.weight", shape.hidden, vocab),
        output=Tensor("output.weight", shape.hidden, vocab) if _has_output(shape) else None,
        tied=shape.tied,
        outside=norm,
        rope=Tensor("rope_freqs.weight", shape.head_dim // 2) if _scales_rope(shape) else None,
        blocks={kind: _block(shape, traits, kind) for kind in dict.fromkeys(kinds)},
        kinds=kinds,
        exact=traits.exact,
    )


def _covered(shape: Shape, traits: Blocks) -> bool:
    listed = shape.recurrent.kind in _STATES if shape.recurrent else True
    narrow = traits.architecture == "nemotron_h" and shape.config.get("moe_latent_size")
    alike = not shape.kv_heads_by_layer and not narrow
    return listed and set(shape.layer_kinds) <= set("FSCRN") and alike


def _has_output(shape: Shape) -> bool:
    return not shape.tied and (shape.counts is None or shape.counts.output > 0)


def _stored_vocab(shape: Shape, traits: Blocks) -> int:
    return min(shape.vocab, traits.most_vocab or shape.vocab)


def _scales_rope(shape: Shape) -> bool:
    """Whether the file carries Llama 3.1's frequency factors."""
    if shape.model_type != "llama":
        return False
    for key in ("rope_scaling", "rope_parameters"):
        scaling = shape.config.get(key)
        if isinstance(scaling, Mapping):
            kind = scaling.get("rope_type", scaling.get("type"))
            if kind == "llama3":
                return True
    return shape.vocab == _LLAMA_3_VOCAB and (shape.trained_context or 0) >= 2**17


def _mixers(shape: Shape) -> str:
    return "".join(kind if kind in "RN" else "F" for kind in shape.layer_kinds)


def _block(shape: Shape, traits: Blocks, kind: str) -> tuple[Tensor, ...]:
    found = [*_norms(shape, traits)]
    if kind[0] == "R" and shape.recurrent:
        found += _STATES[shape.recurrent.kind](shape, shape.recurrent)
    elif kind[0] == "F":
        found += _attention(shape, traits)
    if kind[1] == "D":
        found += _dense(shape, traits)
    elif kind[1] == "E" and shape.moe:
        found += _experts(shape, shape.moe, traits)
    return tuple(sorted(found, key=lambda tensor: tensor.name))


def _norms(shape: Shape, traits: Blocks) -> Iterator[Tensor]:
    for name in traits.norms:
        yield Tensor(f"{name}.weight", shape.hidden)
        if traits.every_bias:
            yield Tensor(f"{name}.bias", shape.hidden)


def _attention(shape: Shape, traits: Blocks) -> Iterator[Tensor]:
    if shape.mla:
        yield from _latent_attention(shape, shape.mla)
        return
    h, q, kv = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
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
    if traits.architecture == "gpt-oss":
        yield Tensor("attn_sinks.weight", shape.heads)
    if traits.every_bias or traits.architecture == "gpt-oss":
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


def _dense(shape: Shape, traits: Blocks) -> Iterator[Tensor]:
    own = shape.config.get("intermediate_size_mlp") if shape.model_type == "llama4" else None
    h, ff = shape.hidden, own if isinstance(own, int) else shape.intermediate
    if shape.gated and not traits.fused_up:
        yield Tensor("ffn_gate.weight", h, ff)
    yield Tensor("ffn_up.weight", h, 2 * ff if traits.fused_up else ff)
    yield Tensor("ffn_down.weight", ff, h)
    if traits.every_bias:
        yield Tensor("ffn_up.bias", ff)
        yield Tensor("ffn_down.bias", h)


def _experts(shape: Shape, moe: Moe, traits: Blocks) -> Iterator[Tensor]:
    h, experts, width = shape.hidden, moe.experts, moe.width
    yield Tensor("ffn_gate_inp.weight", h, experts)
    if shape.gated:
        yield Tensor("ffn_gate_exps.weight", h, width, experts)
    yield Tensor("ffn_up_exps.weight", h, width, experts)
    yield Tensor("ffn_down_exps.weight", width, h, experts)
    if traits.architecture == "gpt-oss":
        yield Tensor("ffn_gate_inp.bias", experts)
        yield Tensor("ffn_gate_exps.bias", width, experts)
        yield Tensor("ffn_up_exps.bias", width, experts)
        yield Tensor("ffn_down_exps.bias", h, experts)
    if shape.model_type in _BALANCED or traits.architecture == "glm4moe":
        yield Tensor("exp_probs_b.bias", experts)
    if moe.shared_width:
        if shape.gated:
            yield Tensor("ffn_gate_shexp.weight", h, moe.shared_width)
        yield Tensor("ffn_up_shexp.weight", h, moe.shared_width)
        yield Tensor("ffn_down_shexp.weight", moe.shared_width, h)
        if traits.architecture in _GATED_SHARED:
            yield Tensor("ffn_gate_inp_shexp.weight", h)


def _mamba2(shape: Shape, state: Recurrent) -> Iterator[Tensor]:
    hidden, inner, steps = shape.hidden, state.inner, state.dt_rank or state.heads
    mixed = inner + 2 * state.groups * state.state
    yield Tensor("ssm_in.weight", hidden, inner + mixed + steps)
    yield Tensor("ssm_conv1d.weight", state.conv_kernel, mixed)
    yield Tensor("ssm_conv1d.bias", mixed)
    yield Tensor("ssm_dt.bias", steps)
    yield Tensor("ssm_a", 1, steps)
    yield Tensor("ssm_d", 1, steps)
    yield Tensor("ssm_norm.weight", inner // state.groups, state.groups)
    yield Tensor("ssm_out.weight", inner, hidden)


def _deltanet(shape: Shape, state: Recurrent) -> Iterator[Tensor]:
    hidden, heads = shape.hidden, state.heads
    mixed = state.conv_elements // state.conv_kernel
    yield Tensor("attn_qkv.weight", hidden, mixed)
    yield Tensor("attn_gate.weight", hidden, state.inner)
    yield Tensor("ssm_conv1d.weight", state.conv_kernel, mixed)
    yield Tensor("ssm_dt.bias", heads)
    yield Tensor("ssm_a", heads)
    if shape.model_type == "qwen3_next":
        yield Tensor("ssm_ba.weight", hidden, 2 * heads)
    else:
        yield Tensor("ssm_alpha.weight", hidden, heads)
        yield Tensor("ssm_beta.weight", hidden, heads)
    yield Tensor("ssm_norm.weight", state.head_dim)
    yield Tensor("ssm_out.weight", state.inner, hidden)


def _short_conv(shape: Shape, state: Recurrent) -> Iterator[Tensor]:
    hidden = shape.hidden
    yield Tensor("shortconv.in_proj.weight", hidden, 3 * hidden)
    yield Tensor("shortconv.conv.weight", state.conv_kernel, hidden)
    yield Tensor("shortconv.out_proj.weight", hidden, hidden)


_STATES: Final = {"mamba2": _mamba2, "deltanet": _deltanet, "conv": _short_conv}
