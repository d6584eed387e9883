"""Multimodal models: parameter counts of image towers and projectors, from their configs.

Formulas follow the module classes of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from advisor.models.architecture import Arch
from advisor.models.config_keys import Keys

_WIDEST: Final = 64
"""Times the hidden width that a feed-forward block of a tower may have."""


class Tower(Struct, frozen=True):
    """Common sizes of an image tower."""

    keys: Keys
    hidden: int
    width: int
    layers: int
    patch: int

    @property
    def colours(self) -> int:
        """Channels of a picture."""
        return self.keys.maybe("num_channels", "in_channels", "in_chans", least=1) or 3

    @property
    def pixels(self) -> int:
        """Values of a patch."""
        return self.colours * self.patch**2

    @property
    def patches(self) -> int:
        """Patches of the tower's image size."""
        side = self.keys.uniform("image_size")
        if side is None:
            raise self.keys.error("vision_config.image_size is missing, so it cannot be sized.")
        return (side // self.patch) ** 2


def read_tower(keys: Keys) -> Tower:
    """Read the sizes of a ``vision_config``."""
    hidden = keys.maybe("embed_dim", "width", least=1) or keys.whole("hidden_size")
    return Tower(
        keys,
        hidden,
        _tower_width(keys, hidden),
        keys.whole("num_hidden_layers", "depth", "layers", most=10_000),
        keys.uniform("patch_size") or keys.whole("patch_size"),
    )


def _tower_width(keys: Keys, hidden: int) -> int:
    """As stated, else as a multiple of the hidden width, which need not be whole."""
    _, ratio = keys.find("mlp_ratio")
    if keys.stated("intermediate_size") is None and isinstance(ratio, int | float):
        if not 0 < ratio <= _WIDEST:
            raise keys.error(f"vision_config.mlp_ratio is {ratio}; it must be at most {_WIDEST}.")
        return int(ratio * hidden)
    return keys.whole("intermediate_size")


def biased_block(t: Tower) -> int:
    """A transformer block with LayerNorms and biases throughout."""
    return 4 * t.hidden**2 + 2 * t.hidden * t.width + t.width + 9 * t.hidden


def clip(t: Tower) -> int:
    """CLIP: class token, learned positions, norms before and after."""
    ends = t.pixels * t.hidden + t.hidden + (t.patches + 1) * t.hidden
    return ends + 4 * t.hidden + t.layers * biased_block(t)


def siglip(t: Tower) -> int:
    """SigLIP: learned positions, norm after, an optional attention-pooling head."""
    blocks = idefics(t)
    headed = t.keys.flag("vision_use_head", default=True)
    return blocks + biased_block(t) - t.hidden if headed else blocks


def idefics(t: Tower) -> int:
    """The SigLIP variant of Idefics 3 and SmolVLM, without head."""
    ends = t.pixels * t.hidden + t.hidden + t.patches * t.hidden + 2 * t.hidden
    return ends + t.layers * biased_block(t)


def pixtral(t: Tower) -> int:
    """Pixtral: rotary positions, gated blocks, no biases."""
    heads = t.keys.whole("num_attention_heads")
    inner = heads * (t.keys.maybe("head_dim", least=1) or t.hidden // heads)
    block = 4 * t.hidden * inner + 3 * t.hidden * t.width + 2 * t.hidden
    return t.pixels * t.hidden + t.hidden + t.layers * block


def merged_width(t: Tower) -> int:
    """Width of the patches that are merged into one."""
    return t.hidden * t.keys.number("spatial_merge_size", 2, least=1) ** 2


def _frames(t: Tower) -> int:
    return t.keys.number("temporal_patch_size", 2, least=1)


def patches_of(t: Tower) -> int:
    """The convolution over patches of several frames."""
    return _frames(t) * t.pixels * t.hidden


def merger(width: int, out: int) -> int:
    """Two layers with biases, a square one first."""
    return width * width + width + width * out + out


def qwen2_vl(t: Tower) -> int:
    """Qwen2-VL: rotary positions and a patch merger."""
    out = t.keys.whole("hidden_size")
    return patches_of(t) + t.layers * biased_block(t) + 2 * t.hidden + merger(merged_width(t), out)


def qwen2_5_vl(t: Tower) -> int:
    """Qwen2.5-VL: gated blocks with biases and RMSNorms, a patch merger.

    EXAONE 4.5 has the same with fewer key-value heads.
    """
    heads = t.keys.maybe("num_heads", least=1) or 1
    kv = t.hidden * (t.keys.maybe("num_key_value_heads", least=1) or heads) // heads
    attention = 2 * (t.hidden + 1) * (t.hidden + kv)
    mlp = 3 * t.hidden * t.width + 2 * t.width + t.hidden
    block = attention + mlp + 2 * t.hidden
    out = t.keys.whole("out_hidden_size")
    return patches_of(t) + t.layers * block + t.hidden + merger(merged_width(t), out)


def qwen3_vl(t: Tower) -> int:
    """Qwen3-VL: learned positions, a patch merger and deep-stack mergers."""
    out = t.keys.whole("out_hidden_size")
    deep = len(t.keys.wholes("deepstack_visual_indexes") or ())
    width = merged_width(t)
    places = t.keys.number("num_position_embeddings", 2304, least=1) * t.hidden
    mergers = merger(width, out) * (1 + deep) + 2 * t.hidden + 2 * width * deep
    return patches_of(t) + t.hidden + places + t.layers * biased_block(t) + mergers


def glm4v(t: Tower) -> int:
    """GLM-4.1V: gated blocks of the output width, a downsampler and a gated merger."""
    out = t.keys.whole("out_hidden_size")
    bias = 3 * t.hidden if t.keys.flag("attention_bias") else 0
    block = 4 * t.hidden**2 + 3 * t.hidden * out + 2 * t.hidden + bias
    merger = out * out + 3 * out + 3 * out * t.width + merged_width(t) * out
    ends = patches_of(t) + t.hidden + t.patches * t.hidden + 2 * t.hidden
    return ends + t.layers * block + merger


def internvit(t: Tower) -> int:
    """InternViT: class token, learned positions, layer scales; its own files have other names."""
    attention = 4 * t.hidden**2 + t.hidden
    attention += 3 * t.hidden if t.keys.flag("attention_bias") or t.keys.flag("qkv_bias") else 0
    normed = t.keys.flag("use_qk_norm") or t.keys.flag("qk_normalization")
    attention += 2 * t.hidden if normed else 0
    norms = 4 if t.keys.word("norm_type") == "rms_norm" else 6
    block = attention + 2 * t.hidden * t.width + t.width + t.hidden + norms * t.hidden
    ends = t.pixels * t.hidden + t.hidden + (t.patches + 2) * t.hidden
    final = 0 if t.keys.flag("use_mean_pooling", default=True) else 2 * t.hidden
    return ends + t.layers * block + final


def gemma4(t: Tower) -> int:
    """Gemma 4: two-axis position tables, gated blocks with four norms."""
    heads = t.keys.whole("num_attention_heads")
    key_heads = t.keys.maybe("num_key_value_heads", least=1) or heads
    width = t.keys.maybe("head_dim", least=1) or t.hidden // heads
    attention = 2 * t.hidden * width * (heads + key_heads) + 2 * width
    block = attention + 3 * t.hidden * t.width + 4 * t.hidden
    places = 2 * t.keys.number("position_embedding_size", 10240, least=1) * t.hidden
    return places + t.pixels * t.hidden + t.layers * block


class VisionFamily(Struct, frozen=True):
    """How the tower of one vision ``model_type`` is counted."""

    count: Callable[[Tower], int]
    sizes: Mapping[str, object]
    """Class sizes: a nested config states only differences."""
    read: Callable[[Keys], Tower] = read_tower


Projector = Callable[[Keys, Tower, Arch], int]


def inside_tower(_: Keys, __: Tower, ___: Arch) -> int:
    """The tower already counts its merger."""
    return 0


def two_layers(outer: Keys, t: Tower, a: Arch) -> int:
    """LLaVA: two layers, with biases."""
    bias = 2 * a.hidden if outer.flag("multimodal_projector_bias", default=True) else 0
    stated = outer.stated("vision_feature_layer")
    features = outer.items("vision_feature_layer") if isinstance(stated, list) else None
    return t.hidden * len(features or (0,)) * a.hidden + a.hidden**2 + bias


def with_newline(outer: Keys, t: Tower, a: Arch) -> int:
    """LLaVA-NeXT and OneVision: a learned line break besides."""
    return two_layers(outer, t, a) + a.hidden


def mistral3_join(outer: Keys, t: Tower, a: Arch) -> int:
    """A norm, a patch merger and two layers."""
    merged = t.hidden**2 * outer.number("spatial_merge_size", 2, least=1) ** 2
    bias = 2 * a.hidden if outer.flag("multimodal_projector_bias") else 0
    return t.hidden + merged + t.hidden * a.hidden + a.hidden**2 + bias


def llama4_join(_: Keys, t: Tower, a: Arch) -> int:
    """One matrix from the adapter."""
    return t.keys.number("vision_output_dim", 4096) * a.hidden


def idefics3_join(outer: Keys, t: Tower, a: Arch) -> int:
    """One matrix after a pixel shuffle."""
    return t.hidden * outer.number("scale_factor", 2, least=1) ** 2 * a.hidden


def internvl_join(outer: Keys, t: Tower, a: Arch) -> int:
    """A norm and two layers after a pixel shuffle."""
    ratio = outer.stated("downsample_ratio")
    step = 2 if not isinstance(ratio, float) or ratio <= 0 else round(1 / ratio)
    width = t.hidden * step**2
    return 2 * width + width * a.hidden + a.hidden + a.hidden**2 + a.hidden


def kimi_join(_: Keys, t: Tower, a: Arch) -> int:
    """A norm and two layers after a 2 x 2 merge."""
    width = t.hidden * 4
    return 2 * t.hidden + width * width + width + width * a.hidden + a.hidden


def cohere2_join(outer: Keys, t: Tower, a: Arch) -> int:
    """Two layers around a gated activation after a pixel shuffle."""
    width = t.hidden * outer.number("downsample_factor", 2, least=1) ** 2
    inner = outer.number("alignment_intermediate_size", 36864, least=2)
    return width * inner + inner + inner // 2 * a.hidden + a.hidden


class Wrapper(Struct, frozen=True):
    """One multimodal ``model_type``."""

    text: str
    """``model_type`` of the text part when its config does not say."""
    vision: str = ""
    """``model_type`` of the tower when its config does not say."""
    projector: Projector = inside_tower
    tied: bool = False
    """What an absent ``tie_word_embeddings`` means; the text family may say true as well."""
    text_may_tie: bool = False
    """True in the text part counts even against false outside (files from before 2026)."""
    tower_defaults: Mapping[str, object] = field(default_factory=dict)
    counted: bool = True
    """False where no formula covers the towers."""
    hears: bool = False
    """Whether the projector counts what hears, too."""
    tower: VisionFamily | None = None
    """The tower that its class makes, whatever ``model_type`` the file gives it."""
