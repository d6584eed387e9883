"""Gemma 3n and Gemma 4: per-layer embeddings, shared caches, wider full layers."""

from __future__ import annotations

from typing import Final

from advisor.models.architecture import Arch, gated, projections
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import full_every
from advisor.models.parameter_terms import head_norms
from advisor.models.vision_towers import Tower

_BOTH: Final = full_every("sliding_window_pattern")


def reusing(a: Arch) -> str:
    """The last layers reuse the cache of an earlier one, so they keep none (X).

    Their key and value matrices are stored all the same: only with them do the published totals of
    both sizes of Gemma 3n leave one pair of towers (983.281 M), and those of Gemma 4 E2B and E4B
    (472.189 M beside the projections), to the last digit that is published.
    """
    shared = min(a.keys.number("num_kv_shared_layers", 0), a.layers)
    kinds = _BOTH(a) if a.family == "gemma3n" else _full_last(a)
    return kinds[: a.layers - shared] + "X" * shared


def layer_input(a: Arch) -> int:
    """Gate, projection and norm of the per-layer embedding."""
    width = _input_width(a)
    return 2 * a.hidden * width + a.hidden if width else 0


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


def global_attention(a: Arch) -> int:
    """Full layers have wider heads; their values may be the keys."""
    width = _global_width(a)
    parts = 1 if a.keys.flag("attention_k_eq_v") else 2
    keys = parts * a.hidden * _global_heads(a) * width
    return 2 * a.hidden * a.heads * width + keys + 2 * width


def global_cache(a: Arch) -> tuple[int, ...] | None:
    """Key-value heads per layer, counted in heads of the sliding width."""
    elements = _global_heads(a) * _global_width(a)
    if elements % a.head_dim:
        raise a.keys.gap("global_head_dim is no multiple of head_dim, so it cannot be sized.")
    by_kind = {"F": elements // a.head_dim}
    return tuple(by_kind.get(kind, a.kv_heads) for kind in a.kinds)


def global_groups(a: Arch) -> tuple[int, ...]:
    """The wide heads of full layers as they are: a card holds a whole one."""
    return tuple(_global_heads(a) if kind == "F" else a.kv_heads for kind in a.kinds)


def double_blocks(a: Arch) -> str:
    """Every layer has a dense block; mixtures add routed experts to it."""
    return ("E" if a.moe and a.keys.flag("enable_moe_block", default=True) else "D") * a.layers


def reusing_layers(a: Arch) -> tuple[int, ...]:
    """Attention of the layers that reuse a cache; a doubled feed-forward width is theirs too."""
    wider = gated(a) if a.keys.flag("use_double_wide_mlp") else 0
    full, sliding = global_attention(a) + wider, projections(a) + head_norms(a) + wider
    return tuple(
        (full if kind == "F" else sliding) if held == "X" else 0
        for held, kind in zip(a.kinds, _full_last(a), strict=True)
    )


def gemma4_gaps(a: Arch) -> str:
    """Nothing is uncounted, but the width of the inputs of layers must be stated."""
    if a.keys.stated("hidden_size_per_layer_input") is None:
        text = "hidden_size_per_layer_input is missing, so the model cannot be sized."
        raise a.keys.error(text)
    return ""


def layer_heads(a: Arch) -> int:
    """A score for each layer from the first that may answer (BGE's lightweight reranker)."""
    return a.hidden * (a.layers - a.keys.number("start_layer", a.layers, most=a.layers) + 1)


def gemma3_join(_: Keys, t: Tower, a: Arch) -> int:
    """One matrix and a norm."""
    return t.hidden * a.hidden + t.hidden


def one_matrix(_: Keys, t: Tower, a: Arch) -> int:
    """One matrix (Gemma 4)."""
    return t.hidden * a.hidden


def paligemma_join(outer: Keys, t: Tower, a: Arch) -> int:
    """One matrix with a bias."""
    out = t.keys.maybe("projection_dim", least=1) or outer.maybe("projection_dim") or a.hidden
    return t.hidden * out + out
