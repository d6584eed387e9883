"""Decoder transformers with RMSNorm and gated feed-forward blocks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from advisor.models.architecture import (
    Arch,
    Family,
    four_hidden,
    gated,
    one_hidden,
    projections,
    two_hidden,
    vocabulary,
)
from advisor.models.layer_patterns import (
    cross_layers,
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
    gate_bias,
    head_norms,
    out_bias,
    qkv_bias,
    sinks,
    up_down,
    up_down_bias,
    when,
    wide_norms,
)

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
_GEMMA = Family(
    attention=(projections, when("attention_bias", all_bias)),
    tied=True,
    defaults={"head_dim": 256},
    sizes={
        "hidden_size": 3072,
        "intermediate_size": 24576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "vocab_size": 256000,
    },
)
_GEMMA2 = Family(
    attention=(projections, when("attention_bias", all_bias)),
    norms=(four_hidden,),
    tied=True,
    kinds=full_every("sliding_window_pattern"),
    window=stated_window,
    defaults={"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    sizes={
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 256000,
    },
)
_GEMMA3 = Family(
    attention=(projections, head_norms, when("attention_bias", all_bias)),
    norms=(four_hidden,),
    tied=True,
    kinds=full_every("sliding_window_pattern"),
    window=stated_window,
    defaults={"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 6},
    sizes={
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 262208,
    },
)
_GLM = Family(
    attention=(projections, when("attention_bias", qkv_bias)),
    defaults={"head_dim": 128, "attention_bias": True},
)
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


def _padded_vocabulary(a: Arch) -> int:
    """Llama 3.2 Vision adds eight rows for image tokens to the embedding."""
    return vocabulary(a) + 8 * a.hidden


def _cross_gates(_: Arch) -> int:
    return 2


def _vision_unknown(_: Arch) -> str:
    return "its image or audio tower has no formula here"


DENSE: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "llama": _LLAMA,
        "aquila": _LLAMA,
        "yi": _LLAMA,
        "iquestcoder": _LLAMA,
        "helium": Family(
            attention=(projections, when("attention_bias", qkv_bias)),
            dense=(gated, when("mlp_bias", gate_bias)),
        ),
        "cwm": Family(
            attention=(projections, when("attention_bias", all_bias)),
            dense=(gated, when("mlp_bias", gate_bias)),
            kinds=stated_or(sliding_everywhere),
            window=stated_window,
        ),
        "mistral": _MISTRAL,
        "ministral": _MISTRAL,
        "ministral3": _MISTRAL,
        "phi3": Family(kinds=stated_or(sliding_everywhere), window=stated_window),
        "phi3_v": Family(
            kinds=stated_or(sliding_everywhere), window=stated_window, uncounted=_vision_unknown
        ),
        "phi4mm": Family(
            kinds=stated_or(sliding_everywhere),
            window=stated_window,
            tied=True,
            uncounted=_vision_unknown,
        ),
        "molmo": Family(attention=(projections, qkv_bias), uncounted=_vision_unknown),
        "baichuan": Family(),
        "internlm2": Family(attention=(projections, when("bias", all_bias))),
        "internlm3": Family(unsupported=("qkv_bias", "bias", "attention_bias", "mlp_bias")),
        "exaone": Family(),
        "granite": Family(
            attention=(projections, when("attention_bias", all_bias)),
            dense=(gated, when("mlp_bias", gate_bias)),
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
        ),
        "smollm3": Family(
            attention=(projections, when("attention_bias", all_bias)),
            dense=(gated, when("mlp_bias", gate_bias)),
            tied=True,
            kinds=stated_or(sliding_above),
            window=stated_window,
        ),
        "seed_oss": Family(
            attention=(
                projections,
                when("attention_bias", qkv_bias),
                when("attention_out_bias", out_bias),
            ),
            dense=(gated, when("mlp_bias", gate_bias)),
            defaults={"head_dim": 128, "attention_bias": True},
        ),
        "ernie4_5": _ERNIE,
        "arcee": Family(
            attention=(projections, when("attention_bias", all_bias)),
            dense=(up_down, when("mlp_bias", up_down_bias)),
        ),
        "apertus": Family(
            attention=(projections, head_norms, when("attention_bias", all_bias)),
            dense=(up_down, activation_pair),
        ),
        "nanochat": Family(dense=(up_down,), norms=(), final=(), unsupported=("attention_bias",)),
        "qwen2": _QWEN2,
        "mimo": _QWEN2,
        "qwen2_vl": _QWEN2,
        "qwen2_5_vl": _QWEN2,
        "qwen3": _QWEN3,
        "qwen3_vl": _QWEN3,
        "gemma": _GEMMA,
        "gemma2": _GEMMA2,
        "gemma3": _GEMMA3,
        "glm": _GLM,
        "glm4": _GLM4,
        "glm4v": Family(attention=(projections, qkv_bias), norms=(four_hidden,)),
        "exaone4": Family(
            attention=(projections, head_norms),
            kinds=sliding_if_windowed(full_every("sliding_window_pattern")),
            window=stated_window,
            defaults={"sliding_window_pattern": 4},
        ),
        "olmo": Family(
            attention=(projections, when("attention_bias", all_bias)), norms=(), final=()
        ),
        "olmo2": _OLMO2,
        "olmo3": Family(
            attention=_OLMO2.attention,
            kinds=full_every("sliding_window_pattern"),
            window=stated_window,
            defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        ),
        "cohere": Family(
            attention=(
                projections,
                when("use_qk_norm", wide_norms),
                when("attention_bias", all_bias),
            ),
            norms=(one_hidden,),
            tied=True,
        ),
        "cohere2": Family(
            attention=(projections, when("attention_bias", all_bias)),
            norms=(one_hidden,),
            tied=True,
            kinds=full_every("sliding_window_pattern"),
            window=stated_window,
            defaults={"sliding_window": 4096, "sliding_window_pattern": 4},
        ),
        "hunyuan_v1_dense": Family(
            attention=(projections, head_norms, when("attention_bias", all_bias))
        ),
        "mllama": Family(
            kinds=cross_layers,
            mixers={"X": (projections, head_norms, _cross_gates)},
            embedding=_padded_vocabulary,
            sizes={
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 40,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
            },
        ),
    }
)
