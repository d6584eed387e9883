"""Decoder transformers with LayerNorm: GPT-2, OPT, BLOOM, Falcon and their relatives."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    all_full,
    four_hidden,
    four_hidden_width,
    gated,
    laid_out,
    projections,
    two_hidden,
)
from advisor.models.architectures.hybrid import QWEN3_NEXT
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import all_experts, sliding_everywhere, stated_or, stated_window
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


def _all_kept(a: Arch) -> str:
    """All full: a local layer of GPT-Neo masks what lies outside its window, and keeps it."""
    for name in ("attention_types", "attention_layers"):
        a.keys.items(name)
    return all_full(a)


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
    "gpt_neo": replace(
        _GPT,
        attention=(projections, out_bias),
        extras=(positions("max_position_embeddings"),),
        kinds=_all_kept,
        defaults={"max_position_embeddings": 2048},
        gated=False,
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
        gguf=(laid_out(Blocks("starcoder2", qkv_bias=True, every_bias=True), windows=False),),
        gated=False,
    ),
    "stablelm": Family(
        attention=(projections, when("use_qkv_bias", qkv_bias), when("qk_layernorm", wide_norms)),
        norms=(two_hidden, unless("use_parallel_residual", two_hidden)),
        final=_GPT.final,
        gguf=(laid_out(Blocks("stablelm")),),
    ),
    "nemotron": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(up_down, when("mlp_bias", up_down_bias)),
        norms=_GPT.norms,
        final=_GPT.final,
        gguf=(laid_out(Blocks("nemotron")),),
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


_PER_RESIDUAL: Final = 2
"""Of attention and of the experts."""
_LEAST_PRIMES: Final = 10**9
"""More than the largest table that a config may state; it bounds the search."""


def _streams(a: Arch) -> int:
    """The mixers before and after both parts of a layer."""
    wide = a.keys.whole("hc_count") * a.hidden
    return _PER_RESIDUAL * (_mixer(a) + wide * a.keys.whole("hc_count"))


def _mixer(a: Arch) -> int:
    wide = a.keys.whole("hc_count") * a.hidden
    return wide + 2 * wide * a.keys.whole("hc_lowrank")


def _index(a: Arch) -> int:
    """Keys and queries by which full attention picks tokens; 0 where the config has none."""
    width = a.keys.maybe("indexer_head_dim", least=1)
    if width is None:
        return 0
    heads = a.keys.whole("indexer_n_heads") + a.keys.whole("indexer_kv_heads")
    return a.hidden * heads * width + 2 * width


def _looking(a: Arch) -> tuple[int, ...]:
    """What layers that look up n-grams have besides their tables."""
    wide, held = a.keys.whole("hc_count") * a.hidden, _table_width(a)
    each = held * (wide + a.hidden) + wide * (3 + a.keys.whole("ple_conv_kernel_size"))
    numbers = a.keys.wholes("ple_layer_ids") or ()
    return tuple(each if layer + 1 in numbers else 0 for layer in range(a.layers))


def _tables(a: Arch) -> int:
    """Rows of all tables: for every hash a prime of its own, padded."""
    orders = a.keys.whole("ngram_size") - 1
    hashes = orders * a.keys.whole("heads_per_ngram")
    start, step = (
        a.keys.whole(k) for k in ("ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by")
    )
    layers = len(set(a.keys.wholes("ple_layer_ids") or ()))
    if layers * hashes > a.layers * a.hidden or start > _LEAST_PRIMES:
        raise a.keys.gap("its n-gram tables are too large to be counted.")
    sizes = _primes(start, layers * hashes)
    rows = (sum(sizes[n * hashes : (n + 1) * hashes]) for n in range(layers))
    return sum(-(-count // step) * step for count in rows) * (_table_width(a) // hashes)


def _table_width(a: Arch) -> int:
    return a.keys.maybe("ple_embed_dim", least=1) or a.hidden


def _primes(start: int, count: int) -> tuple[int, ...]:
    """The first primes from a number on."""
    found: list[int] = []
    number = max(start, 2)
    while len(found) < count:
        if all(number % divisor for divisor in range(2, isqrt(number) + 1)):
            found.append(number)
        number += 1
    return tuple(found)


def _cells(a: Arch) -> tuple[tuple[int, int], ...] | None:
    """Keys and values of full attention, and the key of its index, for every token."""
    index = a.keys.maybe("indexer_head_dim", least=1)
    if index is None:
        return None
    full = 2 * a.kv_heads * a.head_dim + index
    return tuple((full if kind == "F" else 0, 0) for kind in a.kinds)


HASHED: Final[Mapping[str, Family]] = {
    "qwen4_exp": replace(
        QWEN3_NEXT,
        attention=(*QWEN3_NEXT.attention, _index),
        norms=(_streams,),
        final=(_mixer,),
        irregular=_looking,
        lookups=(_tables,),
        cells=_cells,
        ffn_kinds=all_experts,
        defaults={
            **QWEN3_NEXT.defaults,
            "hc_count": 4,
            "hc_lowrank": 320,
            "ple_conv_kernel_size": 4,
            "ngram_size": 3,
            "heads_per_ngram": 8,
            "ngram_vocab_size_base": 20_000_000,
            "make_ngram_vocab_size_divisible_by": 128,
        },
        also=("qwen4_exp_text",),
        gguf=(Gguf("qwen4exp", recurrent="deltanet", indexed=(1, 0)),),
    )
}
