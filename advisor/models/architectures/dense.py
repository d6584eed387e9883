"""Decoder transformers with RMSNorm and gated feed-forward blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    four_hidden,
    gated,
    one_hidden,
    projections,
    stated_width,
    two_hidden,
)
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import (
    full_every,
    sliding_above,
    sliding_everywhere,
    sliding_if_windowed,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    activation_pair,
    all_bias,
    double_query,
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
from advisor.models.shape import FOUR_NORMS, POST_NORMS, Blocks

_LLAMA = Family(
    attention=(projections, when("attention_bias", all_bias)),
    dense=(gated, when("mlp_bias", gate_bias)),
    kinds=stated_or(sliding_everywhere),
    window=stated_window,
    sizes={
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
    },
)
_MISTRAL = Family(
    kinds=stated_or(sliding_everywhere),
    window=stated_window,
    sizes={
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
    },
)
_QWEN2 = Family(
    attention=(projections, qkv_bias),
    kinds=stated_or(sliding_above),
    window=stated_window,
    sizes={
        "hidden_size": 4096,
        "intermediate_size": 22016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 151936,
    },
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


def _half_width(keys: Keys, hidden: int) -> int:
    """The first Qwen states the width of gate and up together."""
    return stated_width(keys, hidden) // 2


def _vision_unknown(_: Arch) -> str:
    return "its image or audio tower has no formula here"


DENSE: Final[Mapping[str, Family]] = {
    "llama": replace(
        _LLAMA,
        gguf=(
            Gguf("llama", moe_type="mixtral", blocks=Blocks("llama", exact=True)),
            Gguf("llama-embed", role="encoder"),
        ),
        also=("smolvlm_text",),
    ),
    "aquila": replace(_LLAMA, gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),)),
    "yi": replace(_LLAMA, gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),)),
    "iquestcoder": _LLAMA,
    "helium": Family(
        attention=(square_output, when("attention_bias", qkv_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),),
    ),
    "cwm": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),),
    ),
    "mistral": replace(
        _MISTRAL,
        gguf=(Gguf("llama", blocks=Blocks("llama", exact=True), reads=False, windows=False),),
    ),
    "ministral": replace(
        _MISTRAL, gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False, windows=False),)
    ),
    "ministral3": replace(_MISTRAL, gguf=(Gguf("mistral3", blocks=Blocks("mistral3")),)),
    "phi3": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        gguf=(
            Gguf(
                "phi3",
                blocks=Blocks("phi3", exact=True, fused_qkv=True, fused_up=True),
                windows=False,
            ),
        ),
    ),
    "phi3_v": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        uncounted=_vision_unknown,
        gguf=(
            Gguf(
                "phi3",
                blocks=Blocks("phi3", fused_qkv=True, fused_up=True),
                reads=False,
                windows=False,
            ),
        ),
    ),
    "phi4mm": Family(
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        tied=True,
        uncounted=_vision_unknown,
        gguf=(
            Gguf(
                "phi3",
                blocks=Blocks("phi3", fused_qkv=True, fused_up=True),
                reads=False,
                windows=False,
            ),
        ),
    ),
    "molmo": Family(attention=(projections, qkv_bias), uncounted=_vision_unknown),
    "baichuan": Family(gguf=(Gguf("baichuan", blocks=Blocks("baichuan")),)),
    "internlm2": Family(
        attention=(projections, when("bias", all_bias)),
        gguf=(Gguf("internlm2", blocks=Blocks("internlm2")),),
    ),
    "internlm3": Family(
        unsupported=("qkv_bias", "bias", "attention_bias", "mlp_bias"),
        gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),),
    ),
    "exaone": Family(gguf=(Gguf("exaone", blocks=Blocks("exaone")),)),
    "granite": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        gguf=(Gguf("granite", blocks=Blocks("granite", exact=True)),),
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
        gguf=(Gguf("llama", blocks=Blocks("llama"), reads=False),),
    ),
    "smollm3": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(gated, when("mlp_bias", gate_bias)),
        tied=True,
        kinds=stated_or(sliding_above),
        window=stated_window,
        gguf=(Gguf("smollm3", blocks=Blocks("smollm3")),),
    ),
    "seed_oss": Family(
        attention=(
            projections,
            when("attention_bias", qkv_bias),
            when("attention_out_bias", out_bias),
        ),
        dense=(gated, when("mlp_bias", gate_bias)),
        defaults={"head_dim": 128, "attention_bias": True},
        gguf=(Gguf("seed_oss", blocks=Blocks("seed_oss", qkv_bias=True)),),
    ),
    "ernie4_5": replace(_ERNIE, gguf=(Gguf("ernie4_5", blocks=Blocks("ernie4_5")),)),
    "arcee": Family(
        attention=(projections, when("attention_bias", all_bias)),
        dense=(up_down, when("mlp_bias", up_down_bias)),
        gguf=(Gguf("arcee", blocks=Blocks("arcee")),),
        gated=False,
    ),
    "apertus": Family(
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        dense=(up_down, activation_pair),
        gguf=(Gguf("apertus", blocks=Blocks("apertus", qk_norm="head")),),
        gated=False,
    ),
    "nanochat": Family(dense=(up_down,), norms=(), final=(), unsupported=("attention_bias",)),
    "qwen2": replace(
        _QWEN2,
        gguf=(Gguf("qwen2", blocks=Blocks("qwen2", exact=True, qkv_bias=True), windows=False),),
    ),
    "qwen": replace(_QWEN2, read_width=_half_width),
    "muse_glimmer": Family(
        attention=(projections, double_query, head_norms),
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window_pattern": 4, "sliding_window": 2048},
    ),
    "mimo": replace(
        _QWEN2, gguf=(Gguf("qwen2", blocks=Blocks("qwen2", qkv_bias=True), reads=False),)
    ),
    "qwen2_vl": replace(
        _QWEN2,
        gguf=(Gguf("qwen2vl", blocks=Blocks("qwen2vl", qkv_bias=True)),),
        also=("qwen2_vl_text",),
    ),
    "qwen2_5_vl": replace(
        _QWEN2,
        gguf=(Gguf("qwen2vl", blocks=Blocks("qwen2vl", qkv_bias=True), reads=False),),
        also=("qwen2_5_vl_text",),
    ),
    "qwen3": replace(
        _QWEN3,
        gguf=(Gguf("qwen3", blocks=Blocks("qwen3", exact=True, qk_norm="head"), windows=False),),
    ),
    "qwen3_vl": replace(
        _QWEN3,
        gguf=(Gguf("qwen3vl", blocks=Blocks("qwen3vl", qk_norm="head")),),
        also=("qwen3_vl_text",),
    ),
    "glm": replace(
        _GLM, gguf=(Gguf("chatglm", blocks=Blocks("chatglm", qkv_bias=True, fused_up=True)),)
    ),
    "glm4": replace(_GLM4, gguf=(Gguf("glm4", blocks=replace(_GLM4_BLOCKS, exact=True)),)),
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
            Gguf("exaone4", period=4, blocks=Blocks("exaone4", qk_norm="head", norms=POST_NORMS)),
        ),
    ),
    "olmo": Family(
        attention=(projections, when("attention_bias", all_bias)),
        norms=(),
        final=(),
        gguf=(Gguf("olmo", blocks=Blocks("olmo", norms=())),),
    ),
    "olmo2": replace(
        _OLMO2,
        gguf=(
            Gguf(
                "olmo2",
                period=4,
                blocks=Blocks("olmo2", exact=True, qk_norm="whole", norms=POST_NORMS),
            ),
        ),
    ),
    "olmo3": Family(
        attention=_OLMO2.attention,
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        gguf=(
            Gguf("olmo2", blocks=Blocks("olmo2", qk_norm="whole", norms=POST_NORMS), reads=False),
        ),
    ),
    "cohere": Family(
        attention=(projections, when("use_qk_norm", wide_norms), when("attention_bias", all_bias)),
        norms=(one_hidden,),
        tied=True,
        gguf=(Gguf("command-r", blocks=Blocks("command-r", exact=True, norms=("attn_norm",))),),
    ),
    "cohere2": Family(
        attention=(projections, when("attention_bias", all_bias)),
        norms=(one_hidden,),
        tied=True,
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        gguf=(Gguf("cohere2", period=4, blocks=Blocks("cohere2", norms=("attn_norm",))),),
    ),
    "hunyuan_v1_dense": Family(
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        gguf=(Gguf("hunyuan-dense", blocks=Blocks("hunyuan-dense", qk_norm="head")),),
    ),
}
