"""Multimodal configs: which text model, tower and projector a wrapper holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from advisor.models.architecture import Arch
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import TOWERS, Tower, read_tower

Projector = Callable[[Keys, Tower, Arch], int]


def _inside_tower(_: Keys, __: Tower, ___: Arch) -> int:
    """The tower already counts its merger."""
    return 0


def _two_layers(outer: Keys, t: Tower, a: Arch) -> int:
    """LLaVA: two layers, with biases."""
    bias = 2 * a.hidden if outer.flag("multimodal_projector_bias", default=True) else 0
    features = outer.items("vision_feature_layer") if _is_list(outer) else None
    return t.hidden * len(features or (0,)) * a.hidden + a.hidden**2 + bias


def _is_list(outer: Keys) -> bool:
    return isinstance(outer.stated("vision_feature_layer"), list)


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


def _mllama(_: Keys, t: Tower, a: Arch) -> int:
    """One layer from the final and the intermediate features of the tower."""
    taps = t.keys.items("intermediate_layers_indices")
    features = t.hidden * (1 + (5 if taps is None else len(taps)))
    return features * a.hidden + a.hidden


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
    outer_defaults: Mapping[str, object] = field(default_factory=dict)
    text_defaults: Mapping[str, object] = field(default_factory=dict)
    counted: bool = True
    """False where no formula covers the towers."""


NO_HEAD: Final = MappingProxyType({"vision_use_head": False})

OTHER_WRAPPERS: Final[Mapping[str, Wrapper]] = MappingProxyType(
    {
        "llava": Wrapper("llama", "clip_vision_model", _two_layers, text_may_tie=True),
        "llava_next": Wrapper("llama", "clip_vision_model", _with_newline),
        "llava_onevision": Wrapper(
            "qwen2",
            "siglip_vision_model",
            _with_newline,
            tower_defaults=NO_HEAD,
            text_may_tie=True,
        ),
        "mistral3": Wrapper("mistral", "pixtral", _mistral3),
        "idefics3": Wrapper("llama", "idefics3_vision", _idefics3),
        "smolvlm": Wrapper("llama", "smolvlm_vision", _idefics3),
        "internvl": Wrapper("qwen2", "internvl_vision", _internvl),
        "qwen2_vl": Wrapper("qwen2_vl", "qwen2_vl_vision", text_may_tie=True),
        "qwen2_5_vl": Wrapper("qwen2_5_vl", "qwen2_5_vl_vision", text_may_tie=True),
        "qwen3_vl": Wrapper("qwen3_vl", "qwen3_vl_vision"),
        "qwen3_vl_moe": Wrapper("qwen3_vl_moe", "qwen3_vl_moe_vision"),
        "qwen3_5": Wrapper("qwen3_5", "qwen3_5_vision"),
        "qwen3_5_moe": Wrapper("qwen3_5_moe", "qwen3_5_moe_vision"),
        "llama4": Wrapper("llama4", "llama4_vision_model", _llama4, text_may_tie=True),
        "glm4v": Wrapper("glm4v", "glm4v_vision", text_may_tie=True),
        "glmga": Wrapper("glm4v", "glm4v_vision", text_may_tie=True),
        "glm4v_moe": Wrapper("glm4v_moe", "glm4v_moe_vision", text_may_tie=True),
        "kimi_k25": Wrapper("deepseek_v3", "kimi_k25_vision", _kimi),
        "mllama": Wrapper("mllama", "mllama_vision_model", _mllama),
        "cohere2_vision": Wrapper("cohere2", "siglip_vision_model", _cohere2, tied=True),
    }
)


def count_vision(outer: Keys, vision: Keys, wrapper: Wrapper, a: Arch) -> int | None:
    """Count tower and projector; None where no formula covers them."""
    kind = vision.stated("model_type") or wrapper.vision
    # Early Qwen2-VL files name the tower like the whole model.
    family = TOWERS.get(f"{kind}") or TOWERS.get(f"{kind}_vision")
    if not wrapper.counted or family is None:
        return None
    keys = vision.with_defaults(family.sizes).with_defaults(wrapper.tower_defaults)
    tower = read_tower(keys)
    return family.count(tower) + wrapper.projector(outer, tower, a)
