"""State-space models, linear attention, and their mixes with attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    all_dense,
    four_hidden,
    four_hidden_width,
    gated,
    half_width,
    laid_out,
    no_experts,
    one_hidden,
    projections,
    stated_width,
    two_hidden,
)
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import (
    all_experts,
    always,
    experts_after,
    experts_if_any,
    full_every,
    griffin_layers,
    jamba_experts,
    jamba_layers,
    listed_attention,
    minimax_layers,
    must_state,
    no_ffn,
    one_block_ffn,
    sparse_steps,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    all_bias,
    double_query,
    experts,
    gate_bias,
    gated_expert,
    head_norms,
    latent_attention,
    latent_bias,
    out_bias,
    paired_streams,
    pooled_indexes,
    pooled_latents,
    router,
    shared,
    shared_gate,
    shared_ungated,
    up_down,
    up_down_bias,
    when,
    wide_norms,
)
from advisor.models.recurrent import (
    deltanet,
    deltanet_terms,
    kimi_delta,
    kimi_delta_terms,
    lightning,
    lightning_terms,
    mamba,
    mamba2,
    mamba2_bare,
    mamba2_terms,
    mamba_norms,
    mamba_terms,
    mlstm,
    mlstm_embedding,
    mlstm_terms,
    rglru,
    rglru_terms,
    rwkv,
    rwkv_terms,
    short_conv,
    short_conv_terms,
    state_width,
)
from advisor.models.shape import Blocks


def _lfm_width(keys: Keys, _: int) -> int:
    """LFM2 shrinks its stated width by a third and rounds it up."""
    stated = keys.uniform("intermediate_size", "block_ff_dim") or 0
    if not stated or not keys.flag("block_auto_adjust_ff_dim", default=True):
        return stated
    width = 2 * stated // 3
    factor = keys.stated("block_ffn_dim_multiplier")
    if isinstance(factor, int | float) and not isinstance(factor, bool):
        width = int(factor * width)
    step = keys.number("block_multiple_of", 256, least=1)
    return -(-width // step) * step


def _one_kv_head(keys: Keys, heads: int) -> int:
    """As stated; the class takes all heads where a whole file is silent, a record means one."""
    return keys.maybe("num_key_value_heads", least=1) or (heads if keys.of_class else 1)


def _gated_bias(a: Arch) -> int:
    """Biases of all four matrices, the gate of the query with them."""
    return all_bias(a) + a.query


def _projector_bias(a: Arch) -> int:
    """Falcon-H1 has a switch of its own for the output of the mixer."""
    own = a.keys.flag("projectors_bias") - a.keys.flag("mamba_proj_bias")
    return own * a.hidden


def _granite_dense(a: Arch) -> int:
    stated = a.keys.maybe("shared_intermediate_size", least=1)
    return 3 * a.hidden * (stated or a.intermediate)


def _latent(a: Arch) -> int:
    """Width that routed experts work in; 0 where it is the hidden width."""
    return a.keys.maybe("moe_latent_size") or 0


def _latent_ends(a: Arch) -> int:
    return 2 * a.hidden * _latent(a)


def _shared_bias(a: Arch) -> int:
    ends = _latent(a) and _latent(a) + a.hidden
    return ends + a.hidden + (a.moe.shared_width if a.moe else 0)


def _nemotron_expert(a: Arch) -> int:
    return 2 * (_latent(a) or a.hidden) * (a.moe.width if a.moe else 0)


_GLM5_LAYERS: Final = full_every("full_attention_interval", "R")


_PURE = Family(
    attends=False,
    norms=(one_hidden,),
    kinds=always("R"),
    ffn_kinds=no_ffn,
    recurrent=mamba,
    mixers={"R": (mamba_terms,)},
    tied=True,
    defaults={"state_size": 16, "expand": 2, "conv_kernel": 4},
)


_ONE: Final = ("attn_norm",)


def _delta(architecture: str) -> Gguf:
    norms = ("attn_norm", "post_attention_norm")
    blocks = Blocks(architecture, qk_norm="head", norms=norms, gated_query=True)
    return Gguf(architecture, recurrent="deltanet", blocks=blocks)


def _short(architecture: str, period: int | None = None) -> Gguf:
    blocks = Blocks(architecture, qk_norm="head")
    return Gguf(architecture, recurrent="conv", period=period, blocks=blocks)


QWEN3_NEXT: Final = Family(
    attention=(projections, double_query, head_norms, when("attention_bias", _gated_bias)),
    mixers={"R": (deltanet_terms,)},
    experts=(router, shared, shared_gate),
    expert=gated_expert,
    moe=experts(shared="width"),
    recurrent=deltanet,
    kinds=full_every("full_attention_interval", "R"),
    ffn_kinds=sparse_steps,
    defaults={
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "shared_expert_intermediate_size": 512,
    },
)
_LFM2 = Family(
    attention=(projections, head_norms),
    mixers={"R": (short_conv_terms,)},
    recurrent=short_conv,
    kinds=listed_attention("full_attn_idxs", "R", required=True),
    read_width=_lfm_width,
    tied=True,
    defaults={"conv_L_cache": 3},
)
_BAMBA = Family(
    attention=(projections, when("attention_bias", all_bias)),
    mixers={"R": (mamba2_terms,)},
    dense=(gated, when("mlp_bias", gate_bias)),
    recurrent=mamba2,
    kinds=listed_attention("attn_layer_indices", "R"),
    defaults={
        "mamba_d_conv": 4,
        "mamba_n_groups": 1,
        "mamba_d_state": 256,
        "mamba_expand": 2,
        "mamba_d_head": "auto",
    },
)

HYBRID: Final[Mapping[str, Family]] = {
    "mamba": replace(_PURE, gguf=(Gguf("mamba", recurrent="mamba"),)),
    "falcon_mamba": replace(_PURE, defaults={**_PURE.defaults}),
    "mamba2": replace(
        _PURE,
        recurrent=mamba2,
        mixers={"R": (mamba2_terms,)},
        tied=False,
        defaults={"conv_kernel": 4, "expand": 2, "n_groups": 8, "state_size": 128},
        gguf=(laid_out(Blocks("mamba2", norms=_ONE), recurrent="mamba2"),),
    ),
    "rwkv": Family(
        attends=False,
        mixers={"R": (rwkv_terms,)},
        norms=(four_hidden,),
        first=(two_hidden,),
        final=(two_hidden,),
        kinds=always("R"),
        ffn_kinds=no_ffn,
        recurrent=rwkv,
        read_width=four_hidden_width,
    ),
    "xlstm": Family(
        attends=False,
        mixers={"R": (mlstm_terms,)},
        kinds=always("R"),
        ffn_kinds=no_ffn,
        recurrent=mlstm,
        embedding=mlstm_embedding,
        ties_always=None,
    ),
    "recurrent_gemma": Family(
        attention=(projections, out_bias),
        mixers={"R": (rglru_terms,)},
        dense=(gated, gate_bias),
        recurrent=rglru,
        kinds=griffin_layers,
        window=stated_window,
        read_kv_heads=_one_kv_head,
        read_width=half_width,
        tied=True,
        unsupported=("attention_bias",),
        defaults={"attention_window_size": 2048},
    ),
    "jamba": Family(
        mixers={"R": (mamba_terms, mamba_norms)},
        experts=(router,),
        expert=gated_expert,
        moe=experts(),
        recurrent=mamba,
        kinds=stated_or(jamba_layers),
        ffn_kinds=jamba_experts,
        defaults={
            "attn_layer_period": 8,
            "attn_layer_offset": 4,
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
        },
        gguf=(Gguf("jamba", recurrent="mamba"),),
    ),
    "bamba": _BAMBA,
    "falcon_h1": replace(
        _BAMBA,
        mixers={
            "H": (
                projections,
                when("attention_bias", all_bias),
                mamba2_bare,
                _projector_bias,
                when("mamba_rms_norm", state_width),
            )
        },
        kinds=always("H"),
        gguf=(Gguf("falcon-h1", recurrent="mamba2", both=True),),
    ),
    "granitemoehybrid": replace(
        _BAMBA,
        dense=(_granite_dense,),
        experts=(router, shared),
        expert=gated_expert,
        moe=experts(shared="width"),
        kinds=stated_or(must_state),
        ffn_kinds=experts_if_any,
        gguf=(laid_out(Blocks("granitehybrid"), recurrent="mamba2"),),
    ),
    "nemotron_h": Family(
        mixers={"R": (mamba2_terms,), "N": ()},
        dense=(up_down, when("mlp_bias", up_down_bias)),
        experts=(router, shared_ungated, _latent_ends, when("mlp_bias", _shared_bias)),
        expert=_nemotron_expert,
        moe=experts(shared="count"),
        norms=(one_hidden,),
        unsupported=("attention_bias", "mamba_proj_bias", "use_bias", "tie_word_embeddings"),
        recurrent=mamba2,
        kinds=stated_or(must_state),
        ffn_kinds=one_block_ffn,
        gated=False,
        defaults={"conv_kernel": 4, "n_groups": 8, "ssm_state_size": 128, "head_dim": 128},
        gguf=(
            laid_out(Blocks("nemotron_h", norms=_ONE), recurrent="mamba2"),
            Gguf("nemotron_h_moe", recurrent="mamba2"),
        ),
        also=("nemotron_h_v2",),
    ),
    "qwen3_next": replace(QWEN3_NEXT, gguf=(_delta("qwen3next"),)),
    "qwen3_5_moe": replace(QWEN3_NEXT, gguf=(_delta("qwen35moe"),), also=("qwen3_5_moe_text",)),
    "qwen3_5": replace(
        QWEN3_NEXT,
        experts=(),
        moe=no_experts,
        ffn_kinds=all_dense,
        gguf=(_delta("qwen35"),),
        also=("qwen3_5_text",),
    ),
    "lfm2": replace(_LFM2, gguf=(_short("lfm2", period=0),)),
    "lfm2_moe": replace(
        _LFM2,
        experts=(router,),
        expert=gated_expert,
        moe=experts(),
        ffn_kinds=experts_after("num_dense_layers"),
        read_width=stated_width,
        defaults={"conv_L_cache": 3, "num_dense_layers": 2},
        gguf=(_short("lfm2moe"),),
    ),
    "minimax": Family(
        mixers={"R": (lightning_terms,)},
        experts=(router,),
        expert=gated_expert,
        moe=experts(),
        recurrent=lightning,
        kinds=stated_or(minimax_layers),
        ffn_kinds=all_experts,
    ),
    "glm5_next": Family(
        attention=(latent_attention, when("attention_bias", latent_bias)),
        mixers={"R": (kimi_delta_terms,)},
        irregular=pooled_indexes,
        norms=(two_hidden, paired_streams),
        experts=(router, shared),
        expert=gated_expert,
        moe=experts(shared="count"),
        mla=pooled_latents(_GLM5_LAYERS),
        recurrent=kimi_delta,
        kinds=_GLM5_LAYERS,
        ffn_kinds=experts_after("first_k_dense_replace"),
        defaults={
            "full_attention_interval": 4,
            "first_k_dense_replace": 3,
            "intermediate_size": 12288,
            "n_shared_experts": 1,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 0,
            "qk_nope_head_dim": 256,
            "v_head_dim": 256,
            "index_n_heads": 32,
            "index_head_dim": 128,
            "index_kpool": 16,
            "hc_mult": 4,
            "linear_num_heads": 64,
            "linear_head_dim": 128,
            "linear_conv_kernel_dim": 4,
        },
        also=("glm5_next_text",),
    ),
    "olmo_hybrid": Family(
        attention=(projections, wide_norms, when("attention_bias", all_bias)),
        mixers={"R": (deltanet_terms,)},
        recurrent=deltanet,
        kinds=stated_or(must_state),
    ),
}
