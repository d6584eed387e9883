"""Decoder transformers with LayerNorm: GPT-2, OPT, BLOOM, Falcon and their relatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    four_hidden,
    four_hidden_width,
    gated,
    projections,
    two_hidden,
)
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import sliding_everywhere, stated_or, stated_window
from advisor.models.parameter_terms import (
    all_bias,
    gate_bias,
    out_bias,
    output_bias,
    positions,
    qkv_bias,
    unless,
    up_down,
    up_down_bias,
    when,
    wide_norms,
)
from advisor.models.shape import Blocks


def _multi_query(keys: Keys, heads: int) -> int:
    """The class goes by the switch alone, whatever number of heads the file states."""
    return 1 if keys.flag("multi_query", default=True) else heads


def _falcon_kv(keys: Keys, heads: int) -> int:
    stated = keys.maybe("num_kv_heads", "n_head_kv", "num_key_value_heads", least=1)
    if _new_falcon(keys, stated, heads):
        return stated or heads
    return 1 if keys.flag("multi_query", default=True) else heads


def _new_falcon(keys: Keys, kv_heads: int | None, heads: int) -> bool:
    grouped = kv_heads is not None and 1 < kv_heads < heads
    return keys.flag("new_decoder_architecture", default=grouped)


def _falcon_norms(a: Arch) -> int:
    if _new_falcon(a.keys, a.kv_heads, a.heads):
        return 2 * a.hidden * a.keys.number("num_ln_in_parallel_attn", 2, least=1, most=2)
    return (2 if a.keys.flag("parallel_attn", default=True) else 4) * a.hidden


def _head_layer_norms(a: Arch) -> int:
    return 4 * a.head_dim


def _opt_embedding(a: Arch) -> int:
    return a.vocab * _opt_width(a)


def _opt_projection(a: Arch) -> int:
    return 0 if _opt_width(a) == a.hidden else 2 * a.hidden * _opt_width(a)


def _opt_norms(a: Arch) -> int:
    return 4 * a.hidden if a.keys.flag("layer_norm_elementwise_affine", default=True) else 0


def _opt_final(a: Arch) -> int:
    last = a.keys.flag("do_layer_norm_before") and not a.keys.flag("_remove_final_layer_norm")
    return _opt_norms(a) // 2 if last else 0


def _opt_width(a: Arch) -> int:
    return a.keys.maybe("word_embed_proj_dim", least=1) or a.hidden


_GPT = Family(
    attention=(projections, all_bias),
    dense=(up_down, up_down_bias),
    norms=(four_hidden,),
    final=(two_hidden,),
    tied=True,
    read_width=four_hidden_width,
)

_GPT_J = Family(
    dense=_GPT.dense,
    norms=(two_hidden,),
    final=_GPT.final,
    extras=(output_bias,),
    read_width=four_hidden_width,
    gated=False,
)

CLASSIC: Final[Mapping[str, Family]] = {
    "gpt2": replace(
        _GPT,
        extras=(positions("n_positions"),),
        defaults={"n_positions": 1024},
        gguf=(Gguf("gpt2"),),
        gated=False,
        also=("gpt-sw3",),
    ),
    "gpt_bigcode": replace(
        _GPT,
        extras=(positions("n_positions"),),
        read_kv_heads=_multi_query,
        gguf=(Gguf("starcoder"),),
        gated=False,
    ),
    "bloom": replace(_GPT, extras=(two_hidden,), gguf=(Gguf("bloom"),), gated=False),
    "gpt_neox": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=_GPT.dense,
        norms=_GPT.norms,
        final=_GPT.final,
        defaults={"attention_bias": True},
        gguf=(Gguf("gptneox"),),
        gated=False,
    ),
    "opt": Family(
        attention=(projections, when("enable_bias", all_bias)),
        dense=(up_down, when("enable_bias", up_down_bias)),
        norms=(_opt_norms,),
        final=(_opt_final,),
        embedding=_opt_embedding,
        output=_opt_embedding,
        extras=(positions("max_position_embeddings", 2), _opt_projection),
        tied=True,
        defaults={"enable_bias": True, "do_layer_norm_before": True},
        gated=False,
    ),
    "biogpt": Family(
        attention=_GPT.attention,
        dense=_GPT.dense,
        norms=_GPT.norms,
        final=_GPT.final,
        extras=(positions("max_position_embeddings", 2),),
        tied=True,
    ),
    "xglm": _GPT,
    "codegen": _GPT_J,
    "gptj": _GPT_J,
    "phi": replace(
        _GPT_J,
        attention=(projections, all_bias, when("qk_layernorm", _head_layer_norms)),
        gguf=(Gguf("phi2"),),
    ),
    "persimmon": Family(
        attention=(projections, all_bias, when("qk_layernorm", _head_layer_norms)),
        dense=_GPT.dense,
        norms=_GPT.norms,
        final=_GPT.final,
        defaults={"qk_layernorm": True},
    ),
    "phi3small": Family(
        attention=_GPT.attention,
        dense=(gated, gate_bias),
        norms=_GPT.norms,
        final=_GPT.final,
        tied=True,
    ),
    "starcoder2": Family(
        attention=(projections, when("use_bias", all_bias)),
        dense=(up_down, when("use_bias", up_down_bias)),
        norms=_GPT.norms,
        final=_GPT.final,
        tied=True,
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        defaults={"use_bias": True},
        gguf=(
            Gguf(
                "starcoder2",
                blocks=Blocks("starcoder2", exact=True, qkv_bias=True, every_bias=True),
                windows=False,
            ),
        ),
        gated=False,
    ),
    "stablelm": Family(
        attention=(projections, when("use_qkv_bias", qkv_bias), when("qk_layernorm", wide_norms)),
        norms=(two_hidden, unless("use_parallel_residual", two_hidden)),
        final=_GPT.final,
        gguf=(Gguf("stablelm", blocks=Blocks("stablelm")),),
    ),
    "nemotron": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(up_down, when("mlp_bias", up_down_bias)),
        norms=_GPT.norms,
        final=_GPT.final,
        gguf=(Gguf("nemotron", blocks=Blocks("nemotron")),),
        gated=False,
    ),
    "falcon": replace(
        _GPT,
        attention=(projections, when("bias", qkv_bias), when("bias", out_bias)),
        dense=(up_down, when("bias", up_down_bias)),
        norms=(_falcon_norms,),
        read_kv_heads=_falcon_kv,
        gguf=(Gguf("falcon"),),
        gated=False,
    ),
}
