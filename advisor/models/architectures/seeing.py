"""Image towers that one architecture has, readers of pages among them, and what joins them to text.

Formulas follow the module classes of transformers 5.23.0 and, where they are new in it, 5.24.0.
"""

from __future__ import annotations

from math import prod
from typing import Final

from advisor.models.architecture import Arch
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import (
    Tower,
    biased_block,
    clip,
    idefics,
    merged_width,
    merger,
    patches_of,
)


def resampler(outer: Keys, t: Tower, a: Arch) -> int:
    """MiniCPM-V: queries that attend to patches, with three norms, and a last square matrix."""
    queries = outer.whole("query_num") + t.hidden + 10 + 5 * a.hidden
    dropped = biased_block(t) if outer.flag("drop_vision_last_layer") else 0
    return queries * a.hidden - dropped


def segmenter(t: Tower) -> int:
    """GOT-OCR 2.0: SAM's tower, whose blocks have positions relative to their window, or to all."""
    side, window = t.keys.whole("image_size") // t.patch, t.keys.number("window_size", 14)
    whole = {*(t.keys.wholes("global_attn_indexes") or (2, 5, 8, 11))}
    out, width = t.keys.number("output_channels", 256, least=1), t.keys.number("mlp_dim", t.width)
    seen = [window if window and n not in whole else side for n in range(t.layers)]
    each = t.hidden // t.keys.whole("num_attention_heads")
    found = sum(2 * (2 * size - 1) * each for size in seen) if _is_on(t, "use_rel_pos") else 0
    found += side**2 * t.hidden if _is_on(t, "use_abs_pos") else 0
    bias = 4 * t.hidden if _is_on(t, "qkv_bias") else t.hidden
    block = 4 * t.hidden**2 + bias + 2 * t.hidden * width + width + 5 * t.hidden
    neck = t.hidden * out + 9 * out**2 + 4 * out
    return found + t.pixels * t.hidden + t.hidden + t.layers * block + neck


def _is_on(t: Tower, switch: str) -> bool:
    return t.keys.flag(switch, default=True)


def halved_twice(_: Keys, t: Tower, a: Arch) -> int:
    """GOT-OCR 2.0: two convolutions that halve the sides, and a layer."""
    out = t.keys.number("output_channels", 256, least=1)
    return 18 * out**2 + 18 * out * a.hidden + a.hidden * (a.hidden + 1)


def eva(t: Tower) -> int:
    """BLIP-2: CLIP's tower without the norm before its blocks, its patches with a bias."""
    return clip(t) - t.hidden - (0 if _is_on(t, "qkv_bias") else 3 * t.layers * t.hidden)


def learned_queries(outer: Keys, _: Tower, a: Arch) -> int:
    """BLIP-2: learned queries that attend to the patches in every other block, then a layer."""
    keys = outer.section("qformer_config") or outer.part("qformer_config", {})
    hidden, width = keys.number("hidden_size", 768), keys.number("intermediate_size", 3072)
    seen, layers = keys.number("encoder_hidden_size", 1408), keys.number("num_hidden_layers", 12)
    every = keys.number("cross_attention_frequency", 2, least=1)
    ffn, attention = 2 * hidden * width + width + 3 * hidden, 4 * hidden**2 + 6 * hidden
    crossed = -(-layers // every) * (2 * hidden**2 + 2 * hidden * seen + 6 * hidden)
    blocks = layers * (attention + (1 + keys.flag("use_qformer_text_input")) * ffn) + crossed
    queries = outer.number("num_query_tokens", 32) * hidden
    return blocks + 2 * hidden + queries + (hidden + 1) * a.hidden


def muse_tower(t: Tower) -> int:
    """Muse: a learned grid of positions, norms before and after."""
    side = t.keys.number("pos_emb_height", 32) * t.keys.number("pos_emb_width", 32)
    frames = t.keys.number("patch_temporal", 2, least=1)
    ends = frames * t.pixels * t.hidden + side * t.hidden + 4 * t.hidden
    return ends + t.layers * biased_block(t)


def glimmer_join(outer: Keys, _: Tower, a: Arch) -> int:
    """Three layers for four patches."""
    inner = outer.number("projector_hidden_size", 4096, least=1)
    return (outer.number("out_hidden_size", 6144, least=1) + inner + a.hidden) * inner


def muse_join(outer: Keys, t: Tower, a: Arch) -> int:
    """The same, and a pyramid of convolutions that hears."""
    audio = outer.section("audio_config") or outer.part("audio_config", {})
    return glimmer_join(outer, t, a) + _hearing(audio, a)


def _hearing(keys: Keys, a: Arch) -> int:
    """Every stage: patches of the one before, then blocks of a convolution and two layers."""
    widths = keys.wholes("hidden_sizes") or (256, 512, 1024, 2048)
    patches, depths = keys.wholes("patch_sizes") or (16, 6, 5, 4), keys.wholes("depths") or (2,) * 4
    kernel, ratio = keys.number("conv_kernel_size", 7, least=1), keys.ratio("mlp_ratio", 4.0)
    found = widths[-1] * (1 + a.hidden) + 2 * a.hidden
    for before, width, patch, depth in zip((1, *widths), widths, patches, depths, strict=False):
        inner = int(width * ratio)
        block = width * (kernel + 3) + 2 * inner * width + inner
        found += (before * patch + 2) * width + depth * block
    return found


def glm_tower(t: Tower) -> int:
    """GLM-OCR and GLM-5.3: gated blocks with norms of a head, no positions, a gated merger."""
    out, bias = t.keys.whole("out_hidden_size"), t.keys.flag("attention_bias", default=True)
    wide = t.keys.maybe("projection_intermediate_size", least=1) or t.colours * out
    norms = 2 * t.hidden + 2 * (t.hidden // t.keys.whole("num_heads"))
    biases = bias * (5 * t.hidden + 2 * t.width)
    block = 4 * t.hidden**2 + 3 * t.hidden * t.width + norms + biases
    joined = out * (out + 3 + 3 * wide + merged_width(t))
    return patches_of(t) + 2 * t.hidden + t.layers * block + joined


def paddle_join(_: Keys, t: Tower, a: Arch) -> int:
    """PaddleOCR-VL: a norm, then two layers for every four patches."""
    return 2 * t.hidden + merger(merged_width(t), a.hidden)


def windowed(t: Tower) -> int:
    """MiniCPM-V 4.6: among the blocks one attends inside windows and merges them."""
    merged = prod(t.keys.wholes("window_kernel_size") or (2, 2))
    attends, wide = 4 * t.hidden * (t.hidden + 1), merged * t.width
    narrowed = (2 + wide) * merged * t.hidden + wide + (wide + 1) * t.hidden
    return idefics(t) + attends + 2 * t.hidden + narrowed


def merging_rounds(outer: Keys, t: Tower, a: Arch) -> int:
    """MiniCPM-V 4.6: patches are merged in rounds, at last into the width of the text."""
    outer.stated("patch_size", "insert_layer_id", "merge_kernel_size")  # change no matrix
    wide = 4 * t.hidden
    rounds = outer.number("merger_times", 1, least=1)
    return sum(2 * wide + merger(wide, out) for out in (*[t.hidden] * (rounds - 1), a.hidden))


def molmo_tower(t: Tower) -> int:
    """Molmo 2: heads of a width of their own, one matrix for the colours of a patch."""
    heads, width = t.keys.whole("num_attention_heads"), t.keys.number("head_dim", 72, least=1)
    kv = t.keys.number("num_key_value_heads", heads, least=1)
    bias = t.keys.flag("attention_bias", default=True)
    attends = 2 * t.hidden * width * (heads + kv)
    attends += bias * (width * (heads + 2 * kv) + t.hidden)
    block = attends + 2 * t.hidden * t.width + t.width + 5 * t.hidden
    places = t.keys.maybe("num_position_embeddings", "image_num_pos", least=1) or t.patches
    return (t.pixels + 1 + places) * t.hidden + t.layers * block


def molmo_join(outer: Keys, _: Tower, __: Arch) -> int:
    """Molmo 2: patches attend to the mean of their window; a gated layer reaches the text."""
    keys = outer.section("adapter_config") or outer.part("adapter_config", {})
    taken = keys.items("vision_feature_layer", "vit_layers") or (24, 18)
    heads, each = keys.number("num_attention_heads", 16), keys.number("head_dim", 72)
    kv, hidden = keys.number("num_key_value_heads", heads), keys.number("hidden_size", 1152)
    pooled = len(taken) * hidden * each * (heads + 2 * kv) + heads * each * hidden
    pooled += keys.flag("attention_bias", default=True) * (each * (heads + 2 * kv) + hidden)
    wide, out = keys.number("intermediate_size", 18944), keys.number("text_hidden_size", 3584)
    return pooled + wide * (2 * hidden + out) + 2 * wide * keys.flag("mlp_bias")


_LISTED: Final = ("embed_dim", "dim_embed"), ("depths",), ("patch_size",), ("patch_prenorm",)
_DAVIT: Final = (128, 256, 512, 1024), (1, 1, 9, 1), (7, 3, 3, 3), (0, 1, 1, 1)


def _stages(keys: Keys) -> tuple[tuple[int, ...], ...]:
    """Widths, depths, patches, and whether the norm comes before the patches, by stage."""
    found = (keys.items(*names) or usual for names, usual in zip(_LISTED, _DAVIT, strict=True))
    return tuple(tuple(n for n in one if isinstance(n, int)) for one in found)


def read_davit(keys: Keys) -> Tower:
    """The sizes of its last stage, and the layers of all."""
    widths, depths, patches, _ = _stages(keys)
    return Tower(keys, widths[-1], int(widths[-1] * 4), sum(depths), patches[0])


def davit(t: Tower) -> int:
    """DaViT: in stages, blocks that attend in windows and blocks that attend to channels."""
    found, before = 0, t.colours
    ratio, bias = t.keys.ratio("mlp_ratio", 4.0), t.keys.flag("qkv_bias", default=True)
    for width, depth, patch, early in zip(*_stages(t.keys), strict=True):
        inner = int(width * ratio)
        block = 4 * width**2 + 2 * inner * width + inner + (26 + 3 * bias) * width
        found += (patch**2 * before + 1) * width + 2 * (before if early else width)
        found, before = found + 2 * depth * block, width
    return found


def florence_join(_: Keys, t: Tower, a: Arch) -> int:
    """Florence-2: a matrix, a norm, and where a patch lies in its row and column.

    Where its text model says so, encoder and decoder have embeddings of their own.
    """
    own = 0 if a.keys.flag("tie_word_embeddings", default=True) else 2 * a.vocab * a.hidden
    out = t.keys.number("projection_dim", 1024, least=1)
    places = t.keys.number("max_position_embeddings", 50, least=1)
    return t.hidden * (out + places) + 2 * out + own


def hunyuan_tower(t: Tower) -> int:
    """HY-V4-VL: learned positions up to its largest picture, no norm after the blocks."""
    places = (t.keys.number("max_image_size", 2048) // t.patch) ** 2 + 1
    ends = t.pixels + 1 + places
    return ends * t.hidden + t.layers * biased_block(t)


def hunyuan_join(_: Keys, t: Tower, a: Arch) -> int:
    """A norm, a convolution that halves the sides, a layer and a line break."""
    out = t.keys.number("out_hidden_size", a.hidden, least=1)
    return t.hidden + merger(merged_width(t), out) + out
