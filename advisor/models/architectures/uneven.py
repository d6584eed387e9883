"""Models whose layers attend unlike each other, with their image towers.

MiniMax-M3 picks blocks of tokens in most layers, MiMo-V2, Step and Muse Spark slide in most, Llama
3.2 Vision crosses to the picture in some, and Nemotron pruned each of its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.models.architecture import Arch, Term
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import Tower


def more_queries_where_sliding(a: Arch) -> tuple[int, ...]:
    """Step: sliding layers have query heads of their own number, each with its gate."""
    nested = a.keys.section("attention_other_setting") or a.keys
    names = ("num_attention_heads", "num_sliding_attention_heads")
    heads = nested.maybe(names[nested is a.keys], least=1) or a.heads
    more = (heads - a.heads) * a.hidden * (2 * a.head_dim + 1)
    return tuple(more if kind == "S" else 0 for kind in a.kinds)


def every_head(keys: Keys, heads: int) -> int:
    """Latents are spread to every head, whatever the file states."""
    keys.stated("num_key_value_heads")
    return heads


def step_kv(keys: Keys, heads: int) -> int:
    """Key-value heads, under the name of Step too."""
    return keys.maybe("num_key_value_heads", "num_attention_groups", least=1) or heads


def _mimo(a: Arch, before: str) -> tuple[int, int, int]:
    """Heads, elements of keys and values of a token, width of a value; ``swa_`` where it slides."""
    kv = a.keys.number(f"{before}num_key_value_heads", 2 * a.kv_heads if before else a.kv_heads)
    value = a.keys.number(f"{before}v_head_dim", a.keys.whole("v_head_dim"))
    heads = a.keys.number(f"{before}num_attention_heads", a.heads)
    return heads, kv * (a.keys.number(f"{before}head_dim", a.head_dim) + value), value


def mimo_attention(before: str, *, sink: bool) -> Term:
    """MiMo: values have a width of their own, sliding layers twice the key-value heads."""

    def count(a: Arch) -> int:
        heads, both, value = _mimo(a, before)
        query = heads * a.keys.number(f"{before}head_dim", a.head_dim)
        rows = a.hidden + a.keys.flag("attention_bias")
        key = f"add_{'swa' if before else 'full'}_attention_sink_bias"
        sinks = heads * a.keys.flag(key, default=sink)
        return rows * (query + both) + a.hidden * heads * value + sinks

    return count


def mimo_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Keys and values, of other widths where a layer slides."""
    full, sliding = _mimo(a, "")[1], _mimo(a, "swa_")[1]
    return tuple((0, sliding) if kind == "S" else (full, 0) for kind in a.kinds)


def mimo_layers(a: Arch) -> str:
    """Full attention in the first layer and every sixth."""
    return "".join("F" if not i or (i + 1) % 6 == 0 else "S" for i in range(a.layers))


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


def indexers(a: Arch) -> tuple[int, ...]:
    """Keys and queries by which some layers pick blocks of tokens."""
    if not any(_sparse(a)):
        return (0,) * a.layers
    heads, width = _index(a)
    return tuple(((heads + 1) * a.hidden + 2) * width * picks for picks in _sparse(a))


def index_cells(a: Arch) -> tuple[tuple[int, int], ...]:
    """Keys and values, and beside them one key for the picking."""
    width = _index(a)[1] if any(_sparse(a)) else 0
    return tuple((2 * a.kv + width * picks, 0) for picks in _sparse(a))


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


def deci_kv(a: Arch) -> tuple[int, ...]:
    """Key-value heads by layer, 0 without attention."""
    grouped = (one.get("n_heads_in_group") for one in _deci(a, "attention"))
    return tuple(a.heads // n if type(n) is int and 0 < n <= a.heads else 0 for n in grouped)


def _deci_width(a: Arch, ffn: Mapping[str, object]) -> int:
    """Two thirds of a multiple of the hidden width, rounded up to 256."""
    ratio = ffn.get("ffn_mult")
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < _MOST_WIDE:
        return 0
    return -(-int(2 * ratio * a.hidden / 3) // 256) * 256


def deci_layers(a: Arch) -> tuple[int, ...]:
    """What each layer of a pruned model has left."""
    mixers = [
        2 * a.hidden * (a.query + kv * a.head_dim) if kv else _linear(a, one)
        for kv, one in zip(deci_kv(a), _deci(a, "attention"), strict=True)
    ]
    blocks = [3 * a.hidden * _deci_width(a, one) or _linear(a, one) for one in _deci(a, "ffn")]
    return tuple(
        sum(part + a.hidden for part in layer if part) for layer in zip(mixers, blocks, strict=True)
    )


def _linear(a: Arch, part: Mapping[str, object]) -> int:
    return a.hidden**2 if part.get("replace_with_linear") is True else 0


def full_from_the_last(a: Arch) -> str:
    """Full attention in every fourth layer, counted from the last."""
    return "".join("S" if (a.layers - 1 - i) % 4 else "F" for i in range(a.layers))


_MOST_WIDE: Final = 100


def minimax_join(outer: Keys, t: Tower, a: Arch) -> int:
    """Two layers for every patch, two for every four of them."""
    inner = outer.whole("projector_hidden_size")
    merged = a.hidden * t.keys.number("spatial_merge_size", 2, least=1) ** 2
    return (t.hidden + merged + 2 * a.hidden) * inner + 2 * inner + 2 * a.hidden


def step_join(outer: Keys, t: Tower, a: Arch) -> int:
    """One matrix from four times the width."""
    return (4 * t.hidden + outer.flag("projector_bias")) * a.hidden


def mllama_tower(t: Tower) -> int:
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


def mllama_join(_: Keys, t: Tower, a: Arch) -> int:
    """One layer from the final and the intermediate features of the tower."""
    taps = t.keys.items("intermediate_layers_indices")
    features = t.hidden * (1 + (5 if taps is None else len(taps)))
    return features * a.hidden + a.hidden


def deci_kinds(a: Arch) -> str:
    """Attention where a layer has key-value heads left."""
    return "".join("F" if kv else "N" for kv in deci_kv(a))


def deci_blocks(a: Arch) -> str:
    """A dense block where a layer has a width left."""
    return "".join("D" if _deci_width(a, one) else "-" for one in _deci(a, "ffn"))
