"""Decoder transformers with RMSNorm and gated feed-forward blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    class_sizes,
    four_hidden,
    gated,
    half_width,
    laid_out,
    one_hidden,
    projections,
    two_hidden,
)
from advisor.models.layer_patterns import (
    full_every,
    must_state,
    sliding_above,
    sliding_everywhere,
    sliding_if_windowed,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    activation_pair,
    all_bias,
    gate_bias,
    head_norms,
    out_bias,
    qkv_bias,
    sinks,
    square_output,
    up_down,
    up_down_bias,
    when,
    wide_norms,
)
from advisor.models.recurrent import sala, sala_terms
from advisor.models.shape import FOUR_NORMS, POST_NORMS, Blocks


def _inner_norm(a: Arch) -> int:
    return a.intermediate


def _gate(a: Arch) -> int:
    return a.hidden * a.query


def _elm_kv(a: Arch) -> tuple[int, ...]:
    """Key-value heads of each layer of OpenELM."""
    return _heads_of(a, "num_kv_heads")


def _elm_layers(a: Arch) -> tuple[int, ...]:
    """OpenELM: heads and width grow from layer to layer."""
    if len(times := a.keys.items("ffn_multipliers") or ()) != a.layers:
        raise a.keys.gap("ffn_multipliers does not list every layer, so their widths are unknown.")
    queries = _heads_of(a, "num_query_heads")
    normed = 2 * a.head_dim * a.keys.flag("normalize_qk_projections")
    return tuple(
        2 * a.hidden * a.head_dim * (q + kv) + normed + 3 * a.hidden * _elm_width(a, more)
        for q, kv, more in zip(queries, _elm_kv(a), times, strict=True)
    )


def _elm_width(a: Arch, times: object) -> int:
    """The multiple of the divisor that is nearest, never a tenth below what is meant."""
    if not isinstance(times, int | float) or not 0 < times < a.vocab:
        raise a.keys.error("ffn_multipliers must hold a number for each layer.")
    step, meant = a.keys.number("ffn_dim_divisor", 256, least=1), a.hidden * times
    found = max(step, int(meant + step / 2) // step * step)
    return found + step * (found < 0.9 * meant)


def _heads_of(a: Arch, name: str) -> tuple[int, ...]:
    listed = a.keys.wholes(name) or ()
    if len(listed) != a.layers:
        raise a.keys.gap(f"{name} does not list the heads of every layer, so they are unknown.")
    return listed


_LLAMA = Family(
    attention=(projections, when("attention_bias", all_bias)),
    dense=(gated, when("mlp_bias", gate_bias)),
    kinds=stated_or(sliding_everywhere),
    window=stated_window,
    sizes=class_sizes(4096, 11008, 32, 32, vocab_size=32000),
)
_MISTRAL = Family(
    kinds=stated_or(sliding_everywhere),
    window=stated_window,
    sizes=class_sizes(4096, 14336, 32, 32, num_key_value_heads=8, vocab_size=32000),
)
_QWEN2 = Family(
    attention=(projections, qkv_bias),
    kinds=stated_or(sliding_above),
    window=stated_window,
    sizes=class_sizes(4096, 22016, 32, 32, num_key_value_heads=32, vocab_size=151936),
)
_QWEN3 = Family(
    attention=(projections, head_norms, when("attention_bias", all_bias)),
    kinds=stated_or(sliding_above),
    window=stated_window,
    defaults={"head_dim": 128},
)
_GLM = Family(
    attention=(projections, when("attention_bias", qkv_bias)),
    defaults={"head_dim": 128, "attention_bias": True},
)
_GLM4_BLOCKS = Blocks("glm4", qkv_bias=True, norms=FOUR_NORMS, fused_up=True)
_GLM4 = Family(
    attention=(projections, when("attention_bias", qkv_bias)),
    norms=(four_hidden,),
    defaults={"head_dim": 128, "attention_bias": True},
)
_OLMO2 = Family(attention=(projections, wide_norms, when("attention_bias", all_bias)))
_ERNIE = Family(
    attention=(projections, when("use_bias", all_bias)),
    dense=(gated, when("use_bias", gate_bias)),
    tied=True,
    defaults={"head_dim": 128},
)


def _pruned_output(a: Arch) -> int:
    """Apertus 1.5 reads tokens of images and sound that it does not write."""
    return a.hidden * (a.keys.maybe("output_vocab_size", least=1) or a.vocab)


def _more_tokens(a: Arch) -> int:
    """Molmo 2 reads tokens of images that it does not write."""
    return a.hidden * (a.vocab + a.keys.number("additional_vocab_size", 128))


def _molmo_norms(a: Arch) -> int:
    return wide_norms(a) if a.keys.word("qk_norm_type") == "olmo" else head_norms(a)


def _vision_unknown(_: Arch) -> str:
    return "its image or audio tower has no formula here"


DENSE: Final[Mapping[str, Family]] = {
    "llama": replace(
        _LLAMA,
        gguf=(
            laid_out(Blocks("llama"), moe_type="mixtral"),
            Gguf("llama-embed"),
        ),
        also=("smolvlm_text",),
    ),
    "aquila": replace(_LLAMA, gguf=(laid_out(Blocks("llama"), reads=False),)),
    "yi": replace(_LLAMA, gguf=(laid_out(Blocks("llama"), reads=False),)),
    "iquestcoder": _LLAMA,
    "bitnet": Family(
        attention=(projections, one_hidden, when("attention_bias", all_bias)),
        dense=(gated, _inner_norm),
        gguf=(Gguf("bitnet"),),
    ),
    "helium": Family(
        attention=(square_output, when("attention_bias", qkv_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        gguf=(laid_out(Blocks("llama"), reads=False),),
    ),
    "cwm": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        gguf=(laid_out(Blocks("llama"), reads=False),),
    ),
    "mistral": replace(
        _MISTRAL,
        gguf=(laid_out(Blocks("llama"), reads=False, windows=False),),
    ),
    "ministral": replace(_MISTRAL, gguf=(laid_out(Blocks("llama"), reads=False, windows=False),)),
    "ministral3": replace(_MISTRAL, gguf=(laid_out(Blocks("mistral3")),)),
    "phi3": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        gguf=(laid_out(Blocks("phi3", fused_qkv=True, fused_up=True), windows=False),),
    ),
    "phi3_v": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        uncounted=_vision_unknown,
        gguf=(laid_out(Blocks("phi3", fused_qkv=True, fused_up=True), reads=False, windows=False),),
    ),
    "phi4mm": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        tied=True,
        uncounted=_vision_unknown,
        gguf=(laid_out(Blocks("phi3", fused_qkv=True, fused_up=True), reads=False, windows=False),),
    ),
    "molmo2_text": Family(
        attention=(projections, _molmo_norms, when("attention_bias", qkv_bias)),
        embedding=_more_tokens,
        ties_always=None,
        defaults={"head_dim": 128, "additional_vocab_size": 128},
    ),
    "molmo": Family(attention=(projections, qkv_bias), uncounted=_vision_unknown),
    "baichuan": Family(gguf=(laid_out(Blocks("baichuan")),)),
    "internlm2": Family(
        attention=(projections, when("bias", all_bias)),
        gguf=(laid_out(Blocks("internlm2")),),
    ),
    "internlm3": Family(
        unsupported=("qkv_bias", "bias", "attention_bias", "mlp_bias"),
        gguf=(laid_out(Blocks("llama"), reads=False),),
    ),
    "exaone": Family(gguf=(laid_out(Blocks("exaone")),)),
    "granite": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        gguf=(laid_out(Blocks("granite")),),
    ),
    "granite_swa": Family(
        attention=(projections, sinks, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        tied=True,
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
    ),
    "hyperclovax": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        norms=(two_hidden, when("use_post_norm", two_hidden)),
        gguf=(laid_out(Blocks("llama"), reads=False),),
    ),
    "smollm3": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        tied=True,
        kinds=stated_or(sliding_above),
        window=stated_window,
        gguf=(laid_out(Blocks("smollm3")),),
    ),
    "seed_oss": Family(
        attention=(
            projections,
            when("attention_bias", qkv_bias),
            when("attention_out_bias", out_bias),
        ),
        dense=(gated, when("mlp_bias", gate_bias)),
        defaults={"head_dim": 128, "attention_bias": True},
        gguf=(laid_out(Blocks("seed_oss", qkv_bias=True)),),
    ),
    "ernie4_5": replace(_ERNIE, gguf=(laid_out(Blocks("ernie4_5")),), also=("paddleocr_vl_text",)),
    "arcee": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(up_down, when("mlp_bias", up_down_bias)),
        gguf=(laid_out(Blocks("arcee")),),
        gated=False,
    ),
    "apertus": Family(
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        dense=(up_down, activation_pair),
        gguf=(laid_out(Blocks("apertus", qk_norm="head")),),
        gated=False,
    ),
    "apertus1p5_text": Family(
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        dense=(up_down, activation_pair),
        output=_pruned_output,
        gated=False,
        also=("apertus1p5",),
    ),
    "nanochat": Family(dense=(up_down,), norms=(), final=(), unsupported=("attention_bias",)),
    "qwen2": replace(
        _QWEN2,
        gguf=(laid_out(Blocks("qwen2", qkv_bias=True), windows=False),),
    ),
    "qwen": replace(_QWEN2, read_width=half_width),
    "mimo": replace(_QWEN2, gguf=(laid_out(Blocks("qwen2", qkv_bias=True), reads=False),)),
    "qwen2_vl": replace(
        _QWEN2,
        gguf=(laid_out(Blocks("qwen2vl", qkv_bias=True)),),
        also=("qwen2_vl_text",),
    ),
    "qwen2_5_vl": replace(
        _QWEN2,
        gguf=(laid_out(Blocks("qwen2vl", qkv_bias=True), reads=False),),
        also=("qwen2_5_vl_text",),
    ),
    "qwen3": replace(
        _QWEN3,
        gguf=(laid_out(Blocks("qwen3", qk_norm="head"), windows=False),),
    ),
    "qwen3_vl": replace(
        _QWEN3,
        gguf=(laid_out(Blocks("qwen3vl", qk_norm="head")),),
        also=("qwen3_vl_text",),
    ),
    "glm": replace(_GLM, gguf=(laid_out(Blocks("chatglm", qkv_bias=True, fused_up=True)),)),
    "glm4": replace(_GLM4, gguf=(Gguf("glm4", blocks=_GLM4_BLOCKS),)),
    "glm_ocr": Family(norms=(four_hidden,), also=("glm_ocr_text",)),
    "glm4v": Family(
        attention=(projections, qkv_bias),
        norms=(four_hidden,),
        gguf=(Gguf("glm4", blocks=_GLM4_BLOCKS, reads=False),),
        also=("glm4v_text",),
    ),
    "exaone4": Family(
        attention=(projections, head_norms),
        kinds=sliding_if_windowed(full_every("sliding_window_pattern")),
        window=stated_window,
        defaults={"sliding_window_pattern": 4},
        gguf=(
            laid_out(Blocks("exaone4", qk_norm="head", norms=POST_NORMS), period=4, slides_with=64),
        ),
    ),
    "olmo": Family(
        attention=(projections, when("attention_bias", all_bias)),
        norms=(),
        final=(),
        gguf=(laid_out(Blocks("olmo", norms=())),),
    ),
    "olmo2": replace(
        _OLMO2,
        gguf=(laid_out(Blocks("olmo2", qk_norm="whole", norms=POST_NORMS), period=4),),
    ),
    "olmo3": Family(
        attention=_OLMO2.attention,
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        gguf=(laid_out(Blocks("olmo2", qk_norm="whole", norms=POST_NORMS), reads=False),),
    ),
    "cohere": Family(
        attention=(projections, when("use_qk_norm", wide_norms), when("attention_bias", all_bias)),
        norms=(one_hidden,),
        tied=True,
        gguf=(laid_out(Blocks("command-r", norms=("attn_norm",))),),
    ),
    "cohere2": Family(
        attention=(projections, when("attention_bias", all_bias)),
        norms=(one_hidden,),
        tied=True,
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        gguf=(laid_out(Blocks("cohere2", norms=("attn_norm",)), period=4),),
    ),
    "hunyuan_v1_dense": Family(
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        gguf=(laid_out(Blocks("hunyuan-dense", qk_norm="head")),),
    ),
    "openelm": Family(
        attention=(),
        dense=(),
        irregular=_elm_layers,
        kv_heads_by_layer=_elm_kv,
        read_kv_heads=lambda keys, _: keys.most_of("num_kv_heads", "num_key_value_heads"),
        tied=True,
        gguf=(Gguf("openelm"),),
    ),
    "minicpm_sala": Family(
        attention=(projections, when("attn_use_output_gate", _gate)),
        mixers={"R": (sala_terms,)},
        recurrent=sala,
        kinds=stated_or(must_state),
    ),
}
