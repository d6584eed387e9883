"""Mixtures of experts with ordinary attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    Term,
    four_hidden,
    gated,
    laid_out,
    projections,
    two_hidden,
)
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import (
    all_experts,
    chunk,
    ernie_experts,
    experts_after,
    full_every,
    full_first,
    heads_that_slide,
    llama4_experts,
    llama4_layers,
    sliding_above,
    sliding_everywhere,
    sparse_steps,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    all_bias,
    biased_expert,
    dbrx_moe,
    experts,
    gated_expert,
    head_gate,
    head_norms,
    llama4_moe,
    output_bias,
    own_heads,
    qkv_bias,
    router,
    router_bias,
    shared,
    shared_gate,
    sinks,
    square_projections,
    when,
    wide_norms,
)
from advisor.models.shape import Blocks, Moe


def _dbrx_kv(keys: Keys, heads: int) -> int:
    inner = keys.section("attn_config") or keys
    return inner.maybe("kv_n_heads", "num_key_value_heads", least=1) or heads


def _dense_llama4(a: Arch) -> int:
    return 3 * a.hidden * a.keys.whole("intermediate_size_mlp")


def _inkling(a: Arch, kind: str) -> tuple[int, int, int]:
    """Heads, elements of a token's keys, and width of a head; their own where it slides."""
    own = "swa_" if kind == "S" else ""
    width = a.keys.number(f"{own}head_dim", a.head_dim)
    heads = a.keys.number(f"{own}num_attention_heads", a.heads)
    return heads, a.keys.number(f"{own}num_key_value_heads", a.kv_heads) * width, width


def _inkling_attention(kind: str) -> Term:
    """Keys and values pass a short convolution, queries make relative positions."""

    def count(a: Arch) -> int:
        heads, kv, width = _inkling(a, kind)
        reach = a.window if kind == "S" else a.keys.number("rel_extent", 1024)
        places = (a.hidden * heads + (reach or 0)) * a.keys.number("d_rel", 16)
        convolved = 2 * _kernel(a) * (kv + a.hidden)
        return 2 * a.hidden * (heads * width + kv) + places + convolved + 2 * width

    return count


def _kernel(a: Arch) -> int:
    return a.keys.maybe("conv_kernel_size", "sconv_kernel_size", least=1) or 4


def _inkling_layers(a: Arch) -> str:
    words, listed = a.keys.items("layer_types"), a.keys.wholes("local_layer_ids")
    if words is not None and len(words) == a.layers:
        return "".join("S" if f"{word}".endswith("sliding") else "F" for word in words)
    slides = (i in listed if listed is not None else (i + 1) % 6 for i in range(a.layers))
    return "".join("S" if one else "F" for one in slides)


def _inkling_blocks(a: Arch) -> str:
    """The release begins with two dense blocks, of which its class knows nothing."""
    keys = a.keys if a.keys.of_class else a.keys.with_defaults({"dense_mlp_idx": 2})
    return experts_after("dense_mlp_idx")(replace(a, keys=keys))


def _inkling_moe(a: Arch) -> Moe | None:
    """Files that state the width of dense blocks apart mean the experts' by the other key."""
    found = experts(shared="count")(a)
    if found is None or a.keys.stated("dense_intermediate_size") is None:
        return found
    width = a.keys.whole("intermediate_size")
    return replace(found, width=width, shared_width=found.shared_width // found.width * width)


def _inkling_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Keys and values; the ends of four convolutions, some kB a layer, are left out."""
    full, sliding = (2 * _inkling(a, kind)[1] for kind in "FS")
    return tuple((0, sliding) if kind == "S" else (full, 0) for kind in a.kinds)


def _scored_too(a: Arch) -> int:
    """The router scores shared experts as well, and has a scale."""
    return a.hidden * a.keys.number("n_shared_experts", 2) + 1


def _normed_vocabulary(a: Arch) -> int:
    return (a.vocab + 1) * a.hidden


ROUTED = Family(
    attention=(projections, when("attention_bias", all_bias)),
    experts=(router,),
    expert=gated_expert,
    moe=experts(),
    ffn_kinds=all_experts,
)
_SHARED = replace(
    ROUTED,
    experts=(router, shared),
    moe=experts(shared="count"),
    ffn_kinds=experts_after("first_k_dense_replace"),
)
_MIXTRAL = replace(
    ROUTED, attention=(projections,), kinds=stated_or(sliding_everywhere), window=stated_window
)
_QWEN3_MOE = Family(
    attention=(projections, head_norms, when("attention_bias", all_bias)),
    experts=(router,),
    expert=gated_expert,
    moe=experts(),
    ffn_kinds=sparse_steps,
    kinds=stated_or(sliding_above),
    window=stated_window,
)
_GLM4_MOE = Family(
    attention=(projections, when("attention_bias", qkv_bias), when("use_qk_norm", head_norms)),
    experts=(router, shared),
    expert=gated_expert,
    moe=experts(shared="count"),
    ffn_kinds=experts_after("first_k_dense_replace"),
    defaults={"first_k_dense_replace": 1, "n_shared_experts": 1},
)


def _olmoe_norms(a: Arch) -> int:
    """Over the hidden width, whatever the heads' own is."""
    return a.hidden + a.hidden // a.heads * a.kv_heads


_OLMOE = Family(
    attention=(projections, _olmoe_norms, when("attention_bias", all_bias)),
    experts=(router,),
    expert=gated_expert,
    moe=experts(),
    ffn_kinds=all_experts,
)
MIXTURES: Final[Mapping[str, Family]] = {
    "mixtral": replace(
        _MIXTRAL,
        gguf=(laid_out(Blocks("llama"), reads=False, windows=False),),
    ),
    "minimax_m2": replace(
        ROUTED,
        attention=(projections, wide_norms),
        defaults={"head_dim": 128},
        gguf=(laid_out(Blocks("minimax-m2", qk_norm="whole")),),
    ),
    "granitemoe": replace(ROUTED, gguf=(laid_out(Blocks("granitemoe")),)),
    "granitemoe_swa": replace(
        _MIXTRAL,
        attention=(projections, sinks, when("attention_bias", all_bias)),
        experts=(router, shared),
        moe=experts(shared="width"),
    ),
    "granitemoeshared": replace(
        ROUTED,
        experts=(router, shared),
        moe=experts(shared="width"),
        gguf=(laid_out(Blocks("granitemoe"), reads=False),),
    ),
    "olmoe": replace(_OLMOE, gguf=(laid_out(Blocks("olmoe", qk_norm="whole")),)),
    "flex_olmo": _OLMOE,
    "phimoe": replace(
        ROUTED,
        norms=(four_hidden,),
        final=(two_hidden,),
        extras=(when("lm_head_bias", output_bias),),
        kinds=stated_or(sliding_everywhere),
        window=stated_window,
        gguf=(Gguf("phimoe", windows=False),),
    ),
    "qwen2_moe": replace(
        _QWEN3_MOE,
        attention=(projections, when("qkv_bias", qkv_bias)),
        experts=(router, shared, shared_gate),
        moe=experts(shared="width"),
        defaults={"qkv_bias": True, "shared_expert_intermediate_size": 5632},
        gguf=(laid_out(Blocks("qwen2moe", qkv_bias=True), windows=False),),
    ),
    "qwen3_moe": replace(
        _QWEN3_MOE,
        gguf=(laid_out(Blocks("qwen3moe", qk_norm="head"), windows=False),),
    ),
    "qwen3_vl_moe": replace(
        _QWEN3_MOE,
        gguf=(laid_out(Blocks("qwen3vlmoe", qk_norm="head")),),
        also=("qwen3_vl_moe_text",),
    ),
    "mellum": replace(_QWEN3_MOE, defaults={"head_dim": 128}, gguf=(Gguf("mellum", period=4),)),
    "dbrx": replace(
        ROUTED,
        attention=(square_projections,),
        moe=dbrx_moe,
        read_kv_heads=_dbrx_kv,
        gguf=(Gguf("dbrx"),),
    ),
    "gpt_oss": replace(
        _MIXTRAL,
        attention=(projections, when("attention_bias", all_bias), sinks),
        experts=(router, router_bias),
        expert=biased_expert,
        kinds=full_every("sliding_window_pattern"),
        defaults={
            "head_dim": 64,
            "attention_bias": True,
            "sliding_window": 128,
            "sliding_window_pattern": 2,
        },
        gguf=(
            laid_out(
                Blocks("gpt-oss", qkv_bias=True, norms=("attn_norm", "post_attention_norm")),
                period=2,
            ),
        ),
    ),
    "llama4": replace(
        _SHARED,
        dense=(_dense_llama4,),
        moe=llama4_moe,
        ffn_kinds=llama4_experts,
        kinds=llama4_layers,
        window=chunk,
        defaults={
            "head_dim": 128,
            "no_rope_layer_interval": 4,
            "attention_chunk_size": 8192,
            "intermediate_size_mlp": 16384,
        },
        gguf=(laid_out(Blocks("llama4"), period=4, window=8192, chunked=True, fixed_window=True),),
        also=("llama4_text",),
    ),
    "glm4_moe": replace(
        _GLM4_MOE,
        gguf=(
            laid_out(Blocks("glm4moe", qkv_bias=True, norms=("attn_norm", "post_attention_norm"))),
        ),
    ),
    "solar_open": replace(
        _GLM4_MOE, defaults={"head_dim": 128, "first_k_dense_replace": 0, "n_shared_experts": 1}
    ),
    "sarvam_moe": replace(
        _GLM4_MOE,
        defaults={
            "head_dim": 64,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
            "use_qk_norm": True,
        },
    ),
    "glm4v_moe": replace(
        _GLM4_MOE,
        defaults={"first_k_dense_replace": 1, "n_shared_experts": 1, "attention_bias": True},
        gguf=(
            laid_out(
                Blocks("glm4moe", qkv_bias=True, norms=("attn_norm", "post_attention_norm")),
                reads=False,
            ),
        ),
        also=("glm4v_moe_text",),
    ),
    "dots1": replace(
        _SHARED,
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        kinds=stated_or(sliding_above),
        window=stated_window,
        gguf=(laid_out(Blocks("dots1", qk_norm="head")),),
    ),
    "deepseek": replace(_SHARED, gguf=(laid_out(Blocks("deepseek")),)),
    "exaone_moe": replace(
        _SHARED,
        attention=(projections, head_norms),
        kinds=full_every("sliding_window_pattern"),
        window=stated_window,
        defaults={"sliding_window_pattern": 4, "first_k_dense_replace": 1},
        gguf=(Gguf("exaone-moe", period=4, window=128),),
    ),
    "hy_v3": replace(
        _SHARED,
        attention=(projections, head_norms),
        unsupported=("attention_bias", "mlp_bias"),
        defaults={
            "first_k_dense_replace": 1,
            "head_dim": 128,
            "intermediate_size": 13312,
            "num_shared_experts": 1,
        },
    ),
    "inkling": replace(
        _SHARED,
        attention=(_inkling_attention("F"),),
        mixers={"S": (_inkling_attention("S"),)},
        dense=(gated, lambda _: 1),
        experts=(router, shared, _scored_too),
        moe=_inkling_moe,
        ffn_kinds=_inkling_blocks,
        kinds=_inkling_layers,
        window=stated_window,
        cells=_inkling_cells,
        head_groups=heads_that_slide,
        embedding=_normed_vocabulary,
        read_width=lambda keys, _: keys.whole("dense_intermediate_size", "intermediate_size"),
        ties_always=None,
        defaults={
            "sliding_window": 512,
            "intermediate_size": 24576,
            "n_shared_experts": 2,
            "swa_num_key_value_heads": 16,
        },
        also=("inkling_text",),
    ),
    "laguna": Family(
        attention=(projections, head_norms, head_gate),
        irregular=own_heads,
        experts=(router, router_bias, shared),
        expert=gated_expert,
        moe=experts(shared="width"),
        ffn_kinds=experts_after("first_k_dense_replace"),
        kinds=stated_or(full_first),
        window=stated_window,
        defaults={
            "sliding_window_pattern": 4,
            "sliding_window": 512,
            "first_k_dense_replace": 1,
            "intermediate_size": 8192,
        },
    ),
    "hunyuan_v1_moe": replace(
        _SHARED,
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        ffn_kinds=all_experts,
        defaults={"num_shared_expert": 1},
        gguf=(laid_out(Blocks("hunyuan-moe", qk_norm="head")),),
    ),
    "ernie4_5_moe": Family(
        experts=(router, router_bias, shared),
        expert=gated_expert,
        moe=experts(shared="count"),
        ffn_kinds=ernie_experts,
        tied=True,
        unsupported=("use_bias",),
        defaults={"moe_layer_start_index": 1, "moe_num_shared_experts": 2},
        gguf=(laid_out(Blocks("ernie4_5-moe")),),
    ),
    "kolibri1": replace(
        _MIXTRAL,
        attention=(projections, head_norms, when("attention_bias", all_bias)),
        experts=(router, shared),
        moe=experts(shared="width"),
        norms=(four_hidden,),
        defaults={"shared_expert_intermediate_size": 512, "head_dim": 128},
    ),
}
