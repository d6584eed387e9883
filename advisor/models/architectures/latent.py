"""Models with multi-head latent attention; Kimi puts Kimi Delta Attention beside it.

Kimi Linear follows transformers 5.23.0. Of K3 transformers has no class: its parts are those that
readers of its config and file headers describe (``kimi-k3-layers`` in knowledge/sources.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    all_dense,
    gated,
    laid_out,
    one_hidden,
    two_hidden,
)
from advisor.models.layer_patterns import (
    always,
    experts_after,
    full_every,
    kimi_layers,
    sparse_steps,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    experts,
    gated_expert,
    head_gate,
    indexed_latents,
    latent_attention,
    latent_bias,
    latents,
    output_gate,
    paired_streams,
    router,
    shared,
    stream_end,
    token_indexes,
    when,
)
from advisor.models.recurrent import kimi_delta, kimi_delta_state, kimi_delta_terms
from advisor.models.shape import Blocks, Recurrent

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
INDEXED = replace(
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
    "deepseek_v3": replace(_V3, gguf=(laid_out(Blocks("deepseek2"), reads=False),)),
    "kimi_k2": replace(_V3, gguf=(laid_out(Blocks("deepseek2"), reads=False),)),
    "deepseek_v2": replace(
        _V3,
        defaults={
            **_V3_SIZES,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "first_k_dense_replace": 0,
            "n_shared_experts": 2,
        },
        gguf=(laid_out(Blocks("deepseek2")),),
    ),
    "deepseek_v32": INDEXED,
    "glm_moe_dsa": replace(
        INDEXED,
        defaults={
            **INDEXED.defaults,
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
    "sarvam_mla": replace(
        _V3,
        defaults={
            **_V3_SIZES,
            "kv_lora_rank": 512,
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
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
    return output_gate(a) if _narrow(a) else 0


def _delta_gate(a: Arch) -> int:
    """The gate of Kimi Delta Attention is one matrix in K3, and two thin ones before."""
    r = a.recurrent
    if r is None or not _narrow(a):
        return 0
    return a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim


def _ling_delta(a: Arch) -> Recurrent:
    """Ling 3.0: Kimi Delta Attention with as many heads as the others, and whole gates."""
    heads = a.keys.whole("linear_num_heads", "num_attention_heads")
    kernel = a.keys.whole("linear_conv_kernel_dim", "short_conv_kernel_size")
    width = a.keys.whole("linear_head_dim", "head_dim")
    return kimi_delta_state(heads, width, kernel)


def _whole_gates(a: Arch) -> int:
    r = a.recurrent
    return 2 * (a.hidden * r.inner - (a.hidden + r.inner) * r.head_dim) if r else 0


def _other_state(a: Arch) -> str:
    """Ling 2.5 has the same name, and states of another kind."""
    other = any(a.keys.stated(key) is not None for key in ("group_norm_size", "linear_silu"))
    return "its linear attention is not modelled" if other else ""


KIMI: Final[Mapping[str, Family]] = {
    "bailing_hybrid": Family(
        attention=(latent_attention, head_gate),
        mixers={"R": (kimi_delta_terms, _whole_gates)},
        experts=(router, shared),
        expert=gated_expert,
        moe=experts(shared="count"),
        mla=latents,
        recurrent=_ling_delta,
        kinds=full_every("layer_group_size", "R"),
        ffn_kinds=experts_after("first_k_dense_replace"),
        ties_always=None,
        uncounted=_other_state,
        unsupported=("attention_bias",),
        defaults={"first_k_dense_replace": 2},
    ),
    "kimi_linear": Family(
        attention=(latent_attention, _attention_gate),
        mixers={"R": (kimi_delta_terms, _delta_gate)},
        experts=(router, shared, _ends),
        expert=_expert,
        moe=experts(shared="count"),
        mla=latents,
        recurrent=kimi_delta,
        kinds=stated_or(kimi_layers),
        ffn_kinds=experts_after("first_k_dense_replace"),
        unsupported=("attention_bias", "tie_word_embeddings"),
        defaults={"first_k_dense_replace": 1},
        gguf=(Gguf("kimi-linear", recurrent="kda"),),
    ),
}


_CSA: Final = "compressed_sparse_attention"
_HCA: Final = "heavily_compressed_attention"
_RATES: Final = {_CSA: 4, _HCA: 128}
_BY_RATIO: Final = {0: "sliding_attention", 4: _CSA, 128: _HCA}


def _layers(a: Arch) -> tuple[str, ...]:
    """What each layer does with the tokens before its window."""
    stated = a.keys.items("layer_types")
    ratios = a.keys.wholes("compress_ratios") if stated is None else None
    if ratios is not None:
        stated = tuple(_BY_RATIO.get(ratio, f"compression by {ratio}") for ratio in ratios)
    if stated is None:
        turns = (_CSA if layer % 2 else _HCA for layer in range(a.layers - 2))
        stated = (_HCA, _HCA, *turns)
    found = tuple(f"{word}" for word in stated[: a.layers])
    strange = next((word for word in found if word not in {*_RATES, _BY_RATIO[0]}), None)
    if strange or len(found) != a.layers:
        said = f"names {strange!r}, which advisor cannot size yet" if strange else "is too short"
        raise a.keys.gap(f"layer_types {said}.")
    return found


def _rate(a: Arch, kind: str) -> int:
    rates = a.keys.section("compress_rates")
    own = "compress_rate_csa" if kind == _CSA else "compress_rate_hca"
    return (rates and rates.maybe(kind, least=1)) or a.keys.number(own, _RATES[kind], least=1)


def _attention(a: Arch) -> int:
    rank, groups = a.keys.whole("q_lora_rank"), a.keys.whole("o_groups")
    output = groups * a.keys.whole("o_lora_rank")
    query = rank * (a.hidden + 1 + a.query)
    return (
        query
        + a.hidden * a.head_dim
        + a.head_dim
        + a.heads
        + output * (a.query // groups + a.hidden)
    )


def _compressors(a: Arch) -> tuple[int, ...]:
    """What layers have besides to compress, and to pick from what is compressed."""
    by_kind = {kind: _compressor(a, kind) for kind in {*_layers(a)}}
    return tuple(by_kind[kind] for kind in _layers(a))


def _compressor(a: Arch, kind: str) -> int:
    if kind not in _RATES:
        return 0
    rate = _rate(a, kind)
    if kind == _HCA:
        return (2 * a.hidden + rate + 1) * a.head_dim
    heads, width = a.keys.whole("index_n_heads"), a.keys.whole("index_head_dim")
    both = (4 * a.hidden + 2 * rate + 1) * (a.head_dim + width)
    return both + heads * (a.keys.whole("q_lora_rank") * width + a.hidden)


def _shared_bias(a: Arch) -> int:
    a.keys.stated("attention_bias")  # its class has none
    width = a.moe.shared_width if a.moe else 0
    return (a.hidden + 2 * width) * a.keys.flag("mlp_bias")


def _cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Elements of every token, and of those in the window, by layer.

    The window holds the key that is the value too, and of HCA the tokens that wait to be merged.
    """
    index, width = a.keys.whole("index_head_dim"), a.head_dim
    by_kind = {
        _BY_RATIO[0]: (0, width),
        _CSA: (-(-(width + index) // _rate(a, _CSA)), width),
        _HCA: (-(-width // _rate(a, _HCA)), 3 * width),
    }
    return tuple(by_kind[kind] for kind in _layers(a))


def _listed(a: Arch, name: str) -> frozenset[int]:
    return frozenset(a.keys.wholes(name) or ())


def _shared_rates(a: Arch) -> tuple[int, ...]:
    """By layer: how many tokens it merges into the cache that later layers read too; 0: none."""
    rates, sources = a.keys.wholes("compress_ratios") or (), _listed(a, "kv_source_layer_ids")
    if len(rates) < a.layers or not sources:
        missing = "compress_ratios" if sources else "kv_source_layer_ids"
        raise a.keys.gap(f"{missing} is missing or too short.")
    return tuple(rates[layer] if layer in sources else 0 for layer in range(a.layers))


def _shared_compressors(a: Arch) -> tuple[int, ...]:
    """What layers merge with, what they pick by, and what mixes looked up n-grams in."""
    heads, width = a.keys.whole("index_n_heads"), a.keys.whole("index_head_dim")
    picking = heads * (a.keys.whole("q_lora_rank") * width + a.hidden)
    picks, looks = _listed(a, "index_source_layer_ids"), _listed(a, "engram_layer_ids")
    columns = a.keys.number("engram_n_heads", 8) * (a.keys.number("engram_max_ngram_size", 4) - 1)
    streams = a.keys.whole("hc_mult")
    wide = columns * a.keys.number("engram_head_dim", 256) * (streams + 1) + 2 * streams
    return tuple(
        (rate and (min(rate, 2) * a.hidden + 1 + width) * a.head_dim + width)
        + (layer in picks and picking)
        + (layer in looks and wide * a.hidden)
        for layer, rate in enumerate(_shared_rates(a))
    )


def _shared_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """As vLLM 0.33.0 keeps it: a window in each layer, merged tokens and index in few."""
    held = a.head_dim + a.keys.whole("index_head_dim")
    return tuple((rate and -(-held // rate), a.head_dim) for rate in _shared_rates(a))


def _ngram_tables(a: Arch) -> int:
    rows = sum(a.keys.wholes("engram_num_embeddings") or ())
    return rows * a.keys.number("engram_head_dim", 256)


COMPRESSED: Final[dict[str, Family]] = {
    "deepseek_v4": Family(
        attention=(_attention,),
        irregular=_compressors,
        experts=(router, shared, _shared_bias),
        expert=gated_expert,
        moe=experts(shared="count"),
        norms=(two_hidden, paired_streams),
        extras=(stream_end,),
        kinds=always("S"),
        cells=_cells,
        ffn_kinds=sparse_steps,
        window=stated_window,
        defaults={
            "num_key_value_heads": 1,
            "head_dim": 512,
            "q_lora_rank": 1024,
            "o_groups": 8,
            "o_lora_rank": 1024,
            "index_n_heads": 64,
            "index_head_dim": 128,
            "n_shared_experts": 1,
            "hc_mult": 4,
            "sliding_window": 128,
        },
    ),
}
COMPRESSED["deepseek_v41"] = replace(
    COMPRESSED["deepseek_v4"],
    irregular=_shared_compressors,
    extras=(),
    lookups=(_ngram_tables,),
    cells=_shared_cells,
    defaults={**COMPRESSED["deepseek_v4"].defaults, "q_lora_rank": 1280, "index_n_heads": 32},
    also=("deepseek_v41_text",),
)
