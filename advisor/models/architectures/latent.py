"""Models with multi-head latent attention; Kimi puts Kimi Delta Attention beside it.

Kimi Linear follows transformers 5.23.0. Of K3 transformers has no class: its parts are those that
readers of its config and file headers describe (``kimi-k3-layers`` in knowledge/sources.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import Arch, Family, Gguf, all_dense, gated, one_hidden
from advisor.models.layer_patterns import experts_after, must_state, stated_or
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
from advisor.models.recurrent import kimi_delta, kimi_delta_terms
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

LATENT: Final[Mapping[str, Family]] = {
    "deepseek_v3": replace(_V3, gguf=(Gguf("deepseek2", blocks=Blocks("deepseek2"), reads=False),)),
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


def _narrow(a: Arch) -> int:
    """The width at which routed experts of K3 run; 0 in Kimi Linear, whose experts have all."""
    return a.keys.maybe("routed_expert_hidden_size", least=1) or 0


def _ends(a: Arch) -> int:
    """To the narrow stream and back, and its norm."""
    return (2 * a.hidden + 1) * _narrow(a)


def _expert(a: Arch) -> int:
    return 3 * (_narrow(a) or a.hidden) * (a.moe.width if a.moe else 0)


def _attention_gate(a: Arch) -> int:
    """K3 weighs what attention gives by a full matrix before the output."""
    return a.hidden * a.heads * (a.mla.value_dim if a.mla else 0) if _narrow(a) else 0


def _delta_gate(a: Arch) -> int:
    """The gate of Kimi Delta Attention is one matrix in K3, and two thin ones before."""
    r = a.recurrent
    if r is None or not _narrow(a):
        return 0
    return a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim


KIMI: Final[Mapping[str, Family]] = {
    "kimi_linear": Family(
        attention=(latent_attention, _attention_gate),
        mixers={"R": (kimi_delta_terms, _delta_gate)},
        experts=(router, shared, _ends),
        expert=_expert,
        moe=experts(shared="count"),
        mla=latents,
        recurrent=kimi_delta,
        kinds=stated_or(must_state),
        ffn_kinds=experts_after("first_k_dense_replace"),
        unsupported=("attention_bias", "tie_word_embeddings"),
        defaults={"first_k_dense_replace": 1},
        gguf=(Gguf("kimi-linear", described=False),),
    )
}
