"""Gemma 3n and Gemma 4: per-layer embeddings, shared caches, wider full layers."""

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
    laid_out,
    one_hidden,
    projections,
)
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import full_every, stated_window
from advisor.models.parameter_terms import all_bias, experts, gated_expert, head_norms, router, when
from advisor.models.shape import FOUR_NORMS, Blocks
from advisor.models.vision_towers import NO_HEAD, Tower, Wrapper

_BOTH: Final = full_every("sliding_window_pattern")


def _reusing(a: Arch) -> str:
    """The last layers reuse the cache of an earlier one, so they keep none (X).

    Their key and value matrices are stored all the same: only with them do the published totals of
    both sizes of Gemma 3n leave one pair of towers (983.281 M), and those of Gemma 4 E2B and E4B
    (472.189 M beside the projections), to the last digit that is published.
    """
    shared = min(a.keys.number("num_kv_shared_layers", 0), a.layers)
    kinds = _BOTH(a) if a.family == "gemma3n" else _full_last(a)
    return kinds[: a.layers - shared] + "X" * shared


def _streams(a: Arch) -> int:
    """Alternating updates and the low-rank residual of a Gemma 3n layer."""
    n = a.keys.whole("altup_num_inputs")
    rank = a.keys.whole("laurel_rank")
    mixing = n * n + n**3 + n * a.hidden + 2 * a.hidden
    return mixing + 2 * a.hidden * rank + a.hidden


def _stream_ends(a: Arch) -> int:
    return 2 * (a.keys.whole("altup_num_inputs") - 1) * a.hidden * a.hidden


def _layer_input(a: Arch) -> int:
    """Gate, projection and norm of the per-layer embedding."""
    width = _input_width(a)
    return 2 * a.hidden * width + a.hidden if width else 0


def _layer_inputs(a: Arch) -> int:
    """The projection to the inputs of all layers, and its norm."""
    width = _input_width(a)
    return a.hidden * a.layers * width + width


def _layer_embeddings(a: Arch) -> int:
    """A row per token, with an input for every layer."""
    return a.keys.whole("vocab_size_per_layer_input") * a.layers * _input_width(a)


def _input_width(a: Arch) -> int:
    return a.keys.number("hidden_size_per_layer_input", 256)


def _full_last(a: Arch) -> str:
    """Gemma 4 has full attention in its last layer, whatever the pattern says."""
    return f"{_BOTH(a)[:-1]}F"


def _overrides(a: Arch) -> Keys | None:
    """What the full layers have of their own, as transformers 5 saves it layer by layer.

    Raises:
        SourceFileError: They differ among themselves.
    """
    by_layer = a.keys.section("per_layer_config")
    layers = list(by_layer.data) if by_layer else []
    if by_layer is None or not layers:
        return None
    if any(by_layer.data[layer] != by_layer.data[layers[0]] for layer in layers):
        raise a.keys.gap("per_layer_config differs from layer to layer, so it cannot be sized.")
    return by_layer.section(layers[0])


def _global_width(a: Arch) -> int:
    own = _overrides(a)
    return (own and own.maybe("head_dim", least=1)) or a.keys.whole("global_head_dim")


def _global_heads(a: Arch) -> int:
    own = _overrides(a)
    if own is not None:
        return own.maybe("num_key_value_heads", least=1) or a.kv_heads
    stated = a.keys.maybe("num_global_key_value_heads", least=1)
    return stated if stated and a.keys.flag("attention_k_eq_v") else a.kv_heads


def _global_attention(a: Arch) -> int:
    """Full layers have wider heads; their values may be the keys."""
    width = _global_width(a)
    parts = 1 if a.keys.flag("attention_k_eq_v") else 2
    keys = parts * a.hidden * _global_heads(a) * width
    return 2 * a.hidden * a.heads * width + keys + 2 * width


def _global_cache(a: Arch) -> tuple[int, ...] | None:
    """Key-value heads per layer, counted in heads of the sliding width."""
    elements = _global_heads(a) * _global_width(a)
    if elements % a.head_dim:
        raise a.keys.gap("global_head_dim is no multiple of head_dim, so it cannot be sized.")
    by_kind = {"F": elements // a.head_dim}
    return tuple(by_kind.get(kind, a.kv_heads) for kind in a.kinds)


def _global_groups(a: Arch) -> tuple[int, ...]:
    """The wide heads of full layers as they are: a card holds a whole one."""
    return tuple(_global_heads(a) if kind == "F" else a.kv_heads for kind in a.kinds)


def _double_blocks(a: Arch) -> str:
    """Every layer has a dense block; mixtures add routed experts to it."""
    return ("E" if a.moe and a.keys.flag("enable_moe_block", default=True) else "D") * a.layers


def _expert_scales(a: Arch) -> int:
    """Scales of the router and three further norms."""
    return 4 * a.hidden + (a.moe.experts if a.moe else 0)


def _of_reusing(a: Arch) -> tuple[int, ...]:
    """Attention of the layers that reuse a cache; a doubled feed-forward width is theirs too."""
    wider = gated(a) if a.keys.flag("use_double_wide_mlp") else 0
    full, sliding = _global_attention(a) + wider, projections(a) + head_norms(a) + wider
    return tuple(
        (full if kind == "F" else sliding) if held == "X" else 0
        for held, kind in zip(a.kinds, _full_last(a), strict=True)
    )


def _gemma4_gaps(a: Arch) -> str:
    if a.keys.stated("hidden_size_per_layer_input") is None:
        text = "hidden_size_per_layer_input is missing, so the model cannot be sized."
        raise a.keys.error(text)
    return ""


def _self_conditioning(a: Arch) -> int:
    """What takes in the last step of a diffusion: a block with a norm."""
    return gated(a) + a.hidden


_DEFAULTS: Final = {"head_dim": 256, "vocab_size_per_layer_input": 262144}

_GEMMA = Family(
    attention=(projections, when("attention_bias", all_bias)),
    tied=True,
    defaults={"head_dim": 256},
    sizes=class_sizes(3072, 24576, 28, 16, num_key_value_heads=16, vocab_size=256000),
)
_GEMMA2 = Family(
    attention=(projections, when("attention_bias", all_bias)),
    norms=(four_hidden,),
    tied=True,
    kinds=full_every("sliding_window_pattern"),
    window=stated_window,
    defaults={"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    sizes=class_sizes(2304, 9216, 26, 8, num_key_value_heads=4, vocab_size=256000),
)


def _layer_heads(a: Arch) -> int:
    """A score for each layer from the first that may answer (BGE's lightweight reranker)."""
    return a.hidden * (a.layers - a.keys.number("start_layer", a.layers, most=a.layers) + 1)


_GEMMA3 = Family(
    attention=(projections, head_norms, when("attention_bias", all_bias)),
    norms=(four_hidden,),
    tied=True,
    kinds=full_every("sliding_window_pattern"),
    window=stated_window,
    defaults={"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 6},
    sizes=class_sizes(2304, 9216, 26, 8, num_key_value_heads=4, vocab_size=262208),
)

_GEMMA4 = Family(
    attention=(projections, head_norms),
    mixers={"F": (_global_attention,), "X": ()},
    by_layer=_of_reusing,
    experts=(gated, router, _expert_scales),
    expert=gated_expert,
    moe=experts(),
    norms=(four_hidden, _layer_input),
    final=(one_hidden,),
    extras=(_layer_inputs,),
    lookups=(_layer_embeddings,),
    kinds=_reusing,
    ffn_kinds=_double_blocks,
    window=stated_window,
    kv_heads_by_layer=_global_cache,
    head_groups=_global_groups,
    tied=True,
    unsupported=("attention_bias",),
    uncounted=_gemma4_gaps,
    defaults={
        **_DEFAULTS,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
        "global_head_dim": 512,
    },
    gguf=(Gguf("gemma4", period=6),),
    also=("gemma4_text",),
)

GEMMA: Final[Mapping[str, Family]] = {
    "gemma": replace(_GEMMA, gguf=(laid_out(Blocks("gemma")),)),
    "gemma2": replace(
        _GEMMA2,
        gguf=(laid_out(Blocks("gemma2", norms=FOUR_NORMS), period=2, window=4096),),
    ),
    "cost_wise_gemma": replace(_GEMMA2, extras=(_layer_heads,)),
    "gemma3": replace(
        _GEMMA3,
        gguf=(
            laid_out(Blocks("gemma3", qk_norm="head", norms=FOUR_NORMS), period=6),
            Gguf("gemma-embedding", role="encoder"),
        ),
        also=("gemma3_text",),
    ),
    "gemma3n": Family(
        attention=(projections, head_norms),
        norms=(four_hidden, _streams, _layer_input),
        extras=(_layer_inputs, _stream_ends),
        lookups=(_layer_embeddings,),
        kinds=_reusing,
        window=stated_window,
        tied=True,
        unsupported=("attention_bias",),
        defaults={
            **_DEFAULTS,
            "sliding_window": 512,
            "sliding_window_pattern": 5,
            "num_kv_shared_layers": 15,
            "altup_num_inputs": 4,
            "laurel_rank": 64,
        },
        gguf=(Gguf("gemma3n", period=5, caching=20),),
        also=("gemma3n_text",),
    ),
    "gemma4": _GEMMA4,
    "diffusion_gemma": replace(
        _GEMMA4,
        extras=(_self_conditioning,),
        lookups=(),
        norms=(four_hidden,),
        uncounted=None,
        defaults={**_GEMMA4.defaults, "attention_k_eq_v": True},
        gguf=(),
        also=("diffusion_gemma_text",),
    ),
    "gemma4_unified": replace(
        _GEMMA4,
        uncounted=None,
        defaults={
            **_GEMMA4.defaults,
            "hidden_size_per_layer_input": 0,
            "sliding_window": 1024,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
        },
        gguf=(),
        also=("gemma4_unified_text",),
    ),
}


def _gemma3(_: Keys, t: Tower, a: Arch) -> int:
    return t.hidden * a.hidden + t.hidden


def _plain(_: Keys, t: Tower, a: Arch) -> int:
    """One matrix (Gemma 4)."""
    return t.hidden * a.hidden


def _paligemma(outer: Keys, t: Tower, a: Arch) -> int:
    out = t.keys.maybe("projection_dim", least=1) or outer.maybe("projection_dim") or a.hidden
    return t.hidden * out + out


GEMMA_WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "gemma3": Wrapper("gemma3", "siglip_vision_model", _gemma3, tied=True, tower_defaults=NO_HEAD),
    "paligemma": Wrapper(
        "gemma", "siglip_vision_model", _paligemma, tied=True, tower_defaults=NO_HEAD
    ),
    "gemma3n": Wrapper("gemma3n", "", tied=True, counted=False),
    "gemma4": Wrapper("gemma4", "gemma4_vision", _plain, tied=True),
    "diffusion_gemma": Wrapper("diffusion_gemma", "gemma4_vision", _plain, tied=True),
    "gemma4_unified": Wrapper("gemma4_unified", "", tied=True, counted=False),
}
