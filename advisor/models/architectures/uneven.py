"""Models whose layers attend unlike each other, with their image towers.

MiniMax-M3 picks blocks of tokens in most layers, MiMo-V2, Step and Muse Spark slide in most, Llama
3.2 Vision crosses to the picture in some, and Nemotron pruned each of its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from advisor.models.architecture import (
    Arch,
    Family,
    Gguf,
    Term,
    all_full,
    class_sizes,
    four_hidden,
    projections,
    two_hidden,
    vectors,
    vocabulary,
)
from advisor.models.architectures.latent import INDEXED
from advisor.models.architectures.mixtures import ROUTED
from advisor.models.config_keys import Keys
from advisor.models.layer_patterns import (
    by_number,
    cross_layers,
    experts_after,
    full_every,
    heads_that_slide,
    stated_or,
    stated_window,
)
from advisor.models.parameter_terms import (
    all_bias,
    double_query,
    experts,
    head_gate,
    head_norms,
    output_gate,
    router,
    router_bias,
    shared,
    sinks,
    stream_end,
    streams,
    when,
)
from advisor.models.vision_towers import Tower, VisionFamily, Wrapper, biased_block, patches_of


def _more_queries_where_sliding(a: Arch) -> tuple[int, ...]:
    """Step: sliding layers have query heads of their own number, each with its gate."""
    nested = a.keys.section("attention_other_setting") or a.keys
    names = ("num_attention_heads", "num_sliding_attention_heads")
    heads = nested.maybe(names[nested is a.keys], least=1) or a.heads
    more = (heads - a.heads) * a.hidden * (2 * a.head_dim + 1)
    return tuple(more if kind == "S" else 0 for kind in a.kinds)


def _every_head(keys: Keys, heads: int) -> int:
    """Latents are spread to every head, whatever the file states."""
    keys.stated("num_key_value_heads")
    return heads


def _step_kv(keys: Keys, heads: int) -> int:
    return keys.maybe("num_key_value_heads", "num_attention_groups", least=1) or heads


def _mimo(a: Arch, before: str) -> tuple[int, int, int]:
    """Heads, elements of keys and values of a token, width of a value; ``swa_`` where it slides."""
    kv = a.keys.number(f"{before}num_key_value_heads", 2 * a.kv_heads if before else a.kv_heads)
    value = a.keys.number(f"{before}v_head_dim", a.keys.whole("v_head_dim"))
    heads = a.keys.number(f"{before}num_attention_heads", a.heads)
    return heads, kv * (a.keys.number(f"{before}head_dim", a.head_dim) + value), value


def _mimo_attention(before: str, *, sink: bool) -> Term:
    """MiMo: values have a width of their own, sliding layers twice the key-value heads."""

    def count(a: Arch) -> int:
        heads, both, value = _mimo(a, before)
        query = heads * a.keys.number(f"{before}head_dim", a.head_dim)
        rows = a.hidden + a.keys.flag("attention_bias")
        key = f"add_{'swa' if before else 'full'}_attention_sink_bias"
        sinks = heads * a.keys.flag(key, default=sink)
        return rows * (query + both) + a.hidden * heads * value + sinks

    return count


def _mimo_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    full, sliding = _mimo(a, "")[1], _mimo(a, "swa_")[1]
    return tuple((0, sliding) if kind == "S" else (full, 0) for kind in a.kinds)


def _mimo_layers(a: Arch) -> str:
    """Full attention in the first layer and every sixth."""
    return "".join("F" if not i or (i + 1) % 6 == 0 else "S" for i in range(a.layers))


def _wide_dense(a: Arch) -> int:
    return 3 * a.hidden * a.keys.whole("dense_intermediate_size")


def _sparse(a: Arch) -> tuple[bool, ...]:
    """MiniMax-M3: whether a layer picks the blocks of tokens that it attends to."""
    words, nested = a.keys.items("layer_types"), a.keys.section("sparse_attention_config")
    if words is not None:
        return tuple(word == "minimax_m3_sparse" for word in words)
    listed = nested.wholes("sparse_attention_freq") if nested else None
    return tuple(map(bool, listed or (0,) * a.layers))


def _index(a: Arch) -> tuple[int, int]:
    """Heads and width of the keys by which blocks are picked."""
    nested = a.keys.section("sparse_attention_config") or a.keys
    heads = nested.whole("sparse_num_index_heads", "index_n_heads")
    return heads, nested.whole("sparse_index_dim", "index_head_dim")


def _indexers(a: Arch) -> tuple[int, ...]:
    if not any(_sparse(a)):
        return (0,) * a.layers
    heads, width = _index(a)
    return tuple(((heads + 1) * a.hidden + 2) * width * picks for picks in _sparse(a))


def _index_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Keys and values, and beside them one key for the picking."""
    width = _index(a)[1] if any(_sparse(a)) else 0
    return tuple((2 * a.kv + width * picks, 0) for picks in _sparse(a))


def _cross_gates(_: Arch) -> int:
    return 2


def _padded_vocabulary(a: Arch) -> int:
    """Llama 3.2 Vision adds eight rows for image tokens to the embedding."""
    return vocabulary(a) + 8 * a.hidden


def _deci(a: Arch, part: str) -> list[Mapping[str, object]]:
    """Nemotron's pruned Llamas: what every layer has for its attention, or for its ``ffn``."""
    blocks = a.keys.items("block_configs")
    if blocks is None:
        raise a.keys.gap("block_configs is missing, so its layers are unknown.")
    parts = [block.get(part) for block in blocks if isinstance(block, Mapping)]
    found = [one for one in parts if isinstance(one, Mapping)]
    if len(found) != a.layers:
        raise a.keys.error(f"block_configs describes the {part} of {len(found)} layers, not all.")
    return found


def _deci_kv(a: Arch) -> tuple[int, ...]:
    """Key-value heads by layer, 0 without attention."""
    grouped = (one.get("n_heads_in_group") for one in _deci(a, "attention"))
    return tuple(a.heads // n if type(n) is int and 0 < n <= a.heads else 0 for n in grouped)


def _deci_width(a: Arch, ffn: Mapping[str, object]) -> int:
    """Two thirds of a multiple of the hidden width, rounded up to 256."""
    ratio = ffn.get("ffn_mult")
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < _MOST_WIDE:
        return 0
    return -(-int(2 * ratio * a.hidden / 3) // 256) * 256


def _deci_layers(a: Arch) -> tuple[int, ...]:
    mixers = [
        2 * a.hidden * (a.query + kv * a.head_dim) if kv else _linear(a, one)
        for kv, one in zip(_deci_kv(a), _deci(a, "attention"), strict=True)
    ]
    blocks = [3 * a.hidden * _deci_width(a, one) or _linear(a, one) for one in _deci(a, "ffn")]
    return tuple(
        sum(part + a.hidden for part in layer if part) for layer in zip(mixers, blocks, strict=True)
    )


def _linear(a: Arch, part: Mapping[str, object]) -> int:
    return a.hidden**2 if part.get("replace_with_linear") is True else 0


def _pooled(a: Arch) -> int:
    """Width of what the experts of Muse Spark read."""
    return a.keys.number("moe_hidden_size", 4096, least=1)


def _pooling(a: Arch) -> int:
    """The matrices around the experts, each with its norm."""
    return 2 * (a.hidden + 1) * _pooled(a)


def _pooled_expert(a: Arch) -> int:
    return 3 * _pooled(a) * (a.moe.width if a.moe else 0)


def _full_from_the_last(a: Arch) -> str:
    """Full attention in every fourth layer, counted from the last."""
    return "".join("S" if (a.layers - 1 - i) % 4 else "F" for i in range(a.layers))


_MOST_WIDE: Final = 100
UNEVEN: Final[Mapping[str, Family]] = {
    "afmoe": replace(
        ROUTED,
        attention=(projections, double_query, head_norms, when("attention_bias", all_bias)),
        experts=(router, router_bias, shared),
        moe=experts(shared="count"),
        norms=(four_hidden,),
        kinds=full_every("global_attn_every_n_layers"),
        ffn_kinds=experts_after("num_dense_layers"),
        window=stated_window,
        defaults={"head_dim": 128, "global_attn_every_n_layers": 4, "num_dense_layers": 1},
        gguf=(Gguf("afmoe", period=4),),
    ),
    "minimax_m3_vl_text": replace(
        ROUTED,
        attention=(projections, head_norms),
        irregular=_indexers,
        dense=(_wide_dense,),
        experts=(router, shared),
        moe=experts(shared="width"),
        ffn_kinds=experts_after("first_k_dense_replace"),
        kinds=stated_or(all_full),
        cells=_index_cells,
        also=("minimax_m3",),
    ),
    "mimo_v2_flash": replace(
        ROUTED,
        attention=(_mimo_attention("", sink=False),),
        mixers={"S": (_mimo_attention("swa_", sink=True),)},
        ffn_kinds=experts_after("first_k_dense_replace"),
        kinds=by_number("hybrid_layer_pattern", "FS", stated_or(_mimo_layers)),
        window=stated_window,
        cells=_mimo_cells,
        head_groups=heads_that_slide,
        defaults={"first_k_dense_replace": 1, "head_dim": 192, "v_head_dim": 128},
        also=("mimo_v2",),
        gguf=(Gguf("mimo2", period=6),),
    ),
    "step3p5": replace(
        ROUTED,
        attention=(projections, head_norms, head_gate),
        irregular=_more_queries_where_sliding,
        experts=(router, shared),
        moe=experts(shared="width"),
        ffn_kinds=experts_after("first_k_dense_replace"),
        kinds=stated_or(all_full),
        window=stated_window,
        read_kv_heads=_step_kv,
        ties_always=None,
        unsupported=("attention_bias", "mlp_bias"),
        defaults={"first_k_dense_replace": 3, "head_dim": 128},
        gguf=(Gguf("step35", period=4),),
    ),
    "muse_spark_text": replace(
        ROUTED,
        attention=(projections, double_query, when("attention_bias", all_bias)),
        experts=(router, _pooling),
        expert=_pooled_expert,
        norms=(vectors(5),),  # three norms and the gates of both residuals
        moe=experts(),
        ffn_kinds=experts_after("first_k_dense_replace"),
        kinds=stated_or(_full_from_the_last),
        window=stated_window,
        ties_always=None,
        also=("muse_spark",),
    ),
    "muse_glimmer": Family(
        attention=(projections, double_query, when("attention_bias", all_bias)),
        norms=(four_hidden,),
        kinds=stated_or(_full_from_the_last),
        window=stated_window,
        ties_always=None,
        defaults={"sliding_window": 2048, "head_dim": 128},
        also=("muse_glimmer_text",),
    ),
    "hy_v4": replace(
        INDEXED,
        attention=(*INDEXED.attention, sinks, output_gate),
        norms=(two_hidden, streams),
        extras=(stream_end,),
        kinds=stated_or(all_full),
        read_kv_heads=_every_head,
        defaults={
            **INDEXED.defaults,
            "qk_nope_head_dim": 192,
            "v_head_dim": 256,
            "index_n_heads": 16,
            "index_topk_freq": 4,
            "first_k_dense_replace": 1,
            "hc_mult": 4,
        },
        also=("hy_v4_vl_text",),
    ),
    "nemotron-nas": Family(
        attention=(),
        dense=(),
        norms=(),
        irregular=_deci_layers,
        kinds=lambda a: "".join("F" if kv else "N" for kv in _deci_kv(a)),
        ffn_kinds=lambda a: "".join("D" if _deci_width(a, one) else "-" for one in _deci(a, "ffn")),
        kv_heads_by_layer=_deci_kv,
        gguf=(Gguf("deci"),),
    ),
    "mllama": Family(
        kinds=cross_layers,
        mixers={"X": (projections, head_norms, _cross_gates)},
        embedding=_padded_vocabulary,
        ties_always=None,
        sizes=class_sizes(4096, 14336, 40, 32, num_key_value_heads=8, vocab_size=128256),
        also=("mllama_text_model",),
    ),
}


def _minimax_tower(t: Tower) -> int:
    """MiniMax-M3: rotary positions, a norm before the blocks."""
    return patches_of(t) + 2 * t.hidden + t.layers * biased_block(t)


def _step_tower(t: Tower) -> int:
    """Step 3.7: learned positions, scaled blocks, two convolutions that halve the sides."""
    ends = t.pixels * t.hidden + t.patches * t.hidden + 2 * t.hidden
    halves = 9 * t.hidden * 2 * t.hidden + 9 * 2 * t.hidden * 4 * t.hidden + 6 * t.hidden
    return ends + halves + t.layers * (biased_block(t) + 2 * t.hidden)


def _minimax(outer: Keys, t: Tower, a: Arch) -> int:
    """Two layers for every patch, two for every four of them."""
    inner = outer.whole("projector_hidden_size")
    merged = a.hidden * t.keys.number("spatial_merge_size", 2, least=1) ** 2
    return (t.hidden + merged + 2 * a.hidden) * inner + 2 * inner + 2 * a.hidden


def _step(outer: Keys, t: Tower, a: Arch) -> int:
    return (4 * t.hidden + outer.flag("projector_bias")) * a.hidden


def _mllama_tower(t: Tower) -> int:
    """Llama 3.2 Vision: two encoders, gated tile and position embeddings."""
    tiles = t.keys.number("max_num_tiles", 4, least=1)
    ratios = len(t.keys.items("supported_aspect_ratios") or range(8)) + 1
    block = 4 * t.hidden**2 + 2 * t.hidden * t.width + t.width + t.hidden + 4 * t.hidden
    deep = t.keys.number("num_global_layers", 8)
    places = t.patches + 1
    tables = places * t.hidden + 1 + ratios * tiles * places * t.hidden
    gates = 2 * (ratios * tiles * t.hidden + 1)
    ends = t.pixels * t.hidden + t.hidden + 4 * t.hidden
    return ends + tables + gates + t.layers * block + deep * (block + 2)


def _mllama(_: Keys, t: Tower, a: Arch) -> int:
    """One layer from the final and the intermediate features of the tower."""
    taps = t.keys.items("intermediate_layers_indices")
    features = t.hidden * (1 + (5 if taps is None else len(taps)))
    return features * a.hidden + a.hidden


UNEVEN_WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "minimax_m3_vl": Wrapper(
        "minimax_m3_vl_text",
        "minimax_m3_vl_vision",
        _minimax,
        text_may_tie=True,
        tower=VisionFamily(_minimax_tower, class_sizes(1280, 5120, 32, 16, patch_size=14)),
    ),
    "step3p7": Wrapper(
        "step3p5",
        "step3p5_vision",
        _step,
        tower=VisionFamily(
            _step_tower, class_sizes(1536, 8960, 47, 16, image_size=728, patch_size=14)
        ),
    ),
    "mllama": Wrapper(
        "mllama",
        "mllama_vision_model",
        _mllama,
        tower=VisionFamily(
            _mllama_tower, class_sizes(1280, 5120, 32, 16, image_size=448, patch_size=14)
        ),
    ),
}
