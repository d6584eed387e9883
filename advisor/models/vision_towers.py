"""Multimodal models: parameter counts of image towers and projectors, from their configs.

Formulas follow the module classes of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from advisor.models.architecture import Arch, class_sizes
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


def llama4(t: Tower) -> int:
    """Llama 4: class token, learned positions and a pixel-shuffle adapter."""
    tower, inner = clip(t), t.keys.whole("projector_input_dim")
    return tower + t.width * inner + inner * t.keys.whole("projector_output_dim")


def glm4v(t: Tower) -> int:
    """GLM-4.1V: gated blocks of the output width, a downsampler and a gated merger."""
    out = t.keys.whole("out_hidden_size")
    bias = 3 * t.hidden if t.keys.flag("attention_bias") else 0
    block = 4 * t.hidden**2 + 3 * t.hidden * out + 2 * t.hidden + bias
    merger = out * out + 3 * out + 3 * out * t.width + merged_width(t) * out
    ends = patches_of(t) + t.hidden + t.patches * t.hidden + 2 * t.hidden
    return ends + t.layers * block + merger


def moonvit(t: Tower) -> int:
    """MoonViT: a learned grid of positions and biased blocks (Kimi)."""
    side = t.keys.number("init_pos_emb_height", 64) * t.keys.number("init_pos_emb_width", 64)
    ends = t.pixels * t.hidden + t.hidden + side * t.hidden + 2 * t.hidden
    return ends + t.layers * biased_block(t)


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


_SIGLIP = class_sizes(768, 3072, 12, 12, image_size=224, patch_size=16)
_IDEFICS = class_sizes(1152, 3072, 12, 16, image_size=224, patch_size=32)
_QWEN_OUT = {"depth": 32, "patch_size": 14, "out_hidden_size": 3584}
_QWEN25 = VisionFamily(
    qwen2_5_vl, {**_QWEN_OUT, "hidden_size": 3584, "intermediate_size": 3420, "num_heads": 16}
)
_QWEN3 = VisionFamily(
    qwen3_vl,
    {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "patch_size": 16,
        "out_hidden_size": 3584,
        "deepstack_visual_indexes": (8, 16, 24),
    },
)
_QWEN35 = VisionFamily(
    qwen3_vl, {k: v for k, v in _QWEN3.sizes.items() if k != "deepstack_visual_indexes"}
)
_GLM4V = VisionFamily(
    glm4v,
    {
        "depth": 24,
        "hidden_size": 1536,
        "intermediate_size": 13696,
        "patch_size": 14,
        "image_size": 336,
        "out_hidden_size": 4096,
    },
)
_MOON = VisionFamily(moonvit, class_sizes(1152, 4304, 27, 16, patch_size=14))

TOWERS: Final[Mapping[str, VisionFamily]] = {
    "clip_vision_model": VisionFamily(
        clip, class_sizes(768, 3072, 12, 12, image_size=224, patch_size=32)
    ),
    "siglip_vision_model": VisionFamily(siglip, _SIGLIP),
    "idefics3_vision": VisionFamily(idefics, _IDEFICS),
    "idefics3": VisionFamily(idefics, _IDEFICS),
    "smolvlm_vision": VisionFamily(idefics, _IDEFICS),
    "pixtral": VisionFamily(
        pixtral, class_sizes(1024, 4096, 24, 16, image_size=1024, patch_size=16)
    ),
    "qwen2_vl_vision": VisionFamily(
        qwen2_vl, {**_QWEN_OUT, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584}
    ),
    **dict.fromkeys(("qwen2_5_vl_vision", "exaone4_5_vision"), _QWEN25),
    "qwen3_vl_vision": _QWEN3,
    "qwen3_vl_moe_vision": _QWEN3,
    **dict.fromkeys(("qwen3_5_vision", "qwen3_5_moe_vision", "qwen4_exp_vision"), _QWEN35),
    "llama4_vision_model": VisionFamily(
        llama4,
        {
            **class_sizes(768, 5632, 34, 16, image_size=448, patch_size=14),
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
        },
    ),
    "glm4v_vision": _GLM4V,
    "glm4v_moe_vision": _GLM4V,
    "kimi_k25_vision": _MOON,
    "gemma4_vision": VisionFamily(gemma4, class_sizes(768, 3072, 16, 12, patch_size=16)),
    "internvl_vision": VisionFamily(
        internvit, class_sizes(1024, 4096, 24, 16, image_size=448, patch_size=14)
    ),
}


Projector = Callable[[Keys, Tower, Arch], int]


def _inside_tower(_: Keys, __: Tower, ___: Arch) -> int:
    """The tower already counts its merger."""
    return 0


def _two_layers(outer: Keys, t: Tower, a: Arch) -> int:
    """LLaVA: two layers, with biases."""
    bias = 2 * a.hidden if outer.flag("multimodal_projector_bias", default=True) else 0
    stated = outer.stated("vision_feature_layer")
    features = outer.items("vision_feature_layer") if isinstance(stated, list) else None
    return t.hidden * len(features or (0,)) * a.hidden + a.hidden**2 + bias


def _with_newline(outer: Keys, t: Tower, a: Arch) -> int:
    """LLaVA-NeXT and OneVision: a learned line break besides."""
    return _two_layers(outer, t, a) + a.hidden


def _mistral3(outer: Keys, t: Tower, a: Arch) -> int:
    """A norm, a patch merger and two layers."""
    merged = t.hidden**2 * outer.number("spatial_merge_size", 2, least=1) ** 2
    bias = 2 * a.hidden if outer.flag("multimodal_projector_bias") else 0
    return t.hidden + merged + t.hidden * a.hidden + a.hidden**2 + bias


def _llama4(_: Keys, t: Tower, a: Arch) -> int:
    return t.keys.number("vision_output_dim", 4096) * a.hidden


def _idefics3(outer: Keys, t: Tower, a: Arch) -> int:
    return t.hidden * outer.number("scale_factor", 2, least=1) ** 2 * a.hidden


def _internvl(outer: Keys, t: Tower, a: Arch) -> int:
    """A norm and two layers after a pixel shuffle."""
    ratio = outer.stated("downsample_ratio")
    step = 2 if not isinstance(ratio, float) or ratio <= 0 else round(1 / ratio)
    width = t.hidden * step**2
    return 2 * width + width * a.hidden + a.hidden + a.hidden**2 + a.hidden


def _kimi(_: Keys, t: Tower, a: Arch) -> int:
    """A norm and two layers after a 2 x 2 merge."""
    width = t.hidden * 4
    return 2 * t.hidden + width * width + width + width * a.hidden + a.hidden


def _cohere2(outer: Keys, t: Tower, a: Arch) -> int:
    """Two layers around a gated activation after a pixel shuffle."""
    width = t.hidden * outer.number("downsample_factor", 2, least=1) ** 2
    inner = outer.number("alignment_intermediate_size", 36864, least=2)
    return width * inner + inner + inner // 2 * a.hidden + a.hidden


class Wrapper(Struct, frozen=True):
    """One multimodal ``model_type``."""

    text: str
    """``model_type`` of the text part when its config does not say."""
    vision: str
    """``model_type`` of the tower when its config does not say."""
    projector: Projector = _inside_tower
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


NO_HEAD: Final = MappingProxyType({"vision_use_head": False})

OTHER_WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "llava": Wrapper("llama", "clip_vision_model", _two_layers, text_may_tie=True),
    "llava_next": Wrapper("llama", "clip_vision_model", _with_newline),
    "llava_onevision": Wrapper(
        "qwen2", "siglip_vision_model", _with_newline, tower_defaults=NO_HEAD, text_may_tie=True
    ),
    "mistral3": Wrapper("mistral", "pixtral", _mistral3),
    "idefics3": Wrapper("llama", "idefics3_vision", _idefics3),
    "smolvlm": Wrapper("llama", "smolvlm_vision", _idefics3),
    "internvl": Wrapper("qwen2", "internvl_vision", _internvl),
    "internvl_chat": Wrapper(
        "qwen2", "internvl_vision", _internvl, tower=TOWERS["internvl_vision"]
    ),
    "qwen2_vl": Wrapper("qwen2_vl", "qwen2_vl_vision", text_may_tie=True),
    "qwen2_5_vl": Wrapper("qwen2_5_vl", "qwen2_5_vl_vision", text_may_tie=True),
    "qwen3_vl": Wrapper("qwen3_vl", "qwen3_vl_vision"),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe", "qwen3_vl_moe_vision"),
    "qwen3_5": Wrapper("qwen3_5", "qwen3_5_vision"),
    "qwen3_5_moe": Wrapper("qwen3_5_moe", "qwen3_5_moe_vision"),
    "qwen4_exp": Wrapper("qwen4_exp", "qwen4_exp_vision"),
    "llama4": Wrapper("llama4", "llama4_vision_model", _llama4, text_may_tie=True),
    "glm4v": Wrapper("glm4v", "glm4v_vision", text_may_tie=True),
    "glmga": Wrapper("glm4v", "glm4v_vision", text_may_tie=True),
    "glm4v_moe": Wrapper("glm4v_moe", "glm4v_moe_vision", text_may_tie=True),
    "kimi_k25": Wrapper("deepseek_v3", "kimi_k25_vision", _kimi),
    "exaone4_5": Wrapper("exaone4", "exaone4_5_vision"),
    "cohere2_vision": Wrapper("cohere2", "siglip_vision_model", _cohere2, tied=True),
}


def count_vision(outer: Keys, vision: Keys, wrapper: Wrapper, a: Arch) -> int | None:
    """Count tower and projector; None where no formula covers them."""
    kind = vision.stated("model_type") or wrapper.vision
    # Early Qwen2-VL files name the tower like the whole model.
    family = wrapper.tower or TOWERS.get(f"{kind}") or TOWERS.get(f"{kind}_vision")
    if not wrapper.counted or family is None:
        return None
    usual = {} if outer.of_class else wrapper.tower_defaults
    tower = family.read(vision.with_defaults(family.sizes).with_defaults(usual))
    return family.count(tower) + wrapper.projector(outer, tower, a)
