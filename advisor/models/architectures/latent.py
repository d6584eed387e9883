"""Models with multi-head latent attention."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import Family, Gguf, all_dense, gated, one_hidden
from advisor.models.layer_patterns import experts_after
from advisor.models.parameter_terms import (
    experts,
    gated_expert,
    indexed_latents,
    latent_attention,
    latent_bias,
    latents,
    router,
    shared,
    token_indexes,
    when,
)
from advisor.models.shape import Blocks

_V3_SIZES = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
_V3 = Family(
    attention=(latent_attention, when("attention_bias", latent_bias)),
    experts=(router, shared),
    expert=gated_expert,
    moe=experts(shared="count"),
    mla=latents,
    ffn_kinds=experts_after("first_k_dense_replace"),
    unsupported=("mlp_bias",),
    defaults={
        **_V3_SIZES,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "first_k_dense_replace": 3,
        "n_shared_experts": 1,
    },
)
_INDEXED = replace(
    _V3,
    irregular=token_indexes,
    mla=indexed_latents,
    defaults={**_V3.defaults, "index_n_heads": 64, "index_head_dim": 128},
)
_DENSE = Family(
    attention=(latent_attention, when("attention_bias", latent_bias)),
    dense=(gated,),
    mla=latents,
    ffn_kinds=all_dense,
    tied=True,
    unsupported=("mlp_bias",),
)

LATENT: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "deepseek_v3": replace(
            _V3, gguf=(Gguf("deepseek2", blocks=Blocks("deepseek2"), reads=False),)
        ),
        "kimi_k2": replace(_V3, gguf=(Gguf("deepseek2", blocks=Blocks("deepseek2"), reads=False),)),
        "deepseek_v2": replace(
            _V3,
            defaults={
                **_V3_SIZES,
                "kv_lora_rank": 512,
                "q_lora_rank": 1536,
                "first_k_dense_replace": 0,
                "n_shared_experts": 2,
            },
            gguf=(Gguf("deepseek2", blocks=Blocks("deepseek2", exact=True)),),
        ),
        "deepseek_v32": _INDEXED,
        "glm_moe_dsa": replace(
            _INDEXED,
            defaults={
                **_INDEXED.defaults,
                "qk_nope_head_dim": 192,
                "v_head_dim": 256,
                "q_lora_rank": 2048,
                "index_n_heads": 32,
            },
            gguf=(Gguf("glm-dsa"),),
        ),
        "glm4_moe_lite": replace(
            _V3,
            defaults={
                **_V3.defaults,
                "qk_nope_head_dim": 192,
                "v_head_dim": 256,
                "q_lora_rank": 768,
                "first_k_dense_replace": 1,
            },
        ),
        "axk1": replace(
            _V3,
            experts=(router, shared, one_hidden),
            defaults={**_V3.defaults, "first_k_dense_replace": 1},
        ),
        "mistral4": replace(
            _V3,
            defaults={
                **_V3.defaults,
                "first_k_dense_replace": 0,
                "kv_lora_rank": 256,
                "q_lora_rank": 1024,
                "qk_nope_head_dim": 64,
            },
        ),
        "minicpm3": replace(
            _DENSE, defaults={"kv_lora_rank": 256, "q_lora_rank": 768}, gguf=(Gguf("minicpm3"),)
        ),
        "youtu": replace(_DENSE, defaults={**_V3_SIZES, "kv_lora_rank": 512, "q_lora_rank": 1536}),
    }
)
