"""Architecture tables: one ``Family`` per ``model_type``."""

from __future__ import annotations

from typing import Final

from advisor.models.architecture import Arch, Family
from advisor.models.architectures.classic import CLASSIC, HASHED
from advisor.models.architectures.dense import DENSE
from advisor.models.architectures.encoders import ENCODERS
from advisor.models.architectures.gemma import GEMMA, GEMMA_WRAPPERS
from advisor.models.architectures.hybrid import HYBRID
from advisor.models.architectures.latent import COMPRESSED, KIMI, LATENT
from advisor.models.architectures.mixtures import MIXTURES
from advisor.models.architectures.uneven import UNEVEN, UNEVEN_WRAPPERS
from advisor.models.config_keys import Keys
from advisor.models.vision_towers import (
    NO_HEAD,
    OTHER_WRAPPERS,
    Tower,
    VisionFamily,
    Wrapper,
    biased_block,
    siglip,
    tower_sizes,
)

FAMILIES: Final[dict[str, Family]] = {
    **DENSE, **CLASSIC, **GEMMA, **MIXTURES, **LATENT, **COMPRESSED, **HYBRID, **HASHED, **KIMI,
    **ENCODERS, **UNEVEN,
}  # fmt: skip
_TEXT_ALONE: Final = {
    "deepseek_vl_v2": "deepseek",
    "dots_ocr": "qwen2",
    "florence2": "bart",
    "glm5_next": "glm5_next",
    "glm_ocr": "glm_ocr",
    "hunyuan_vl": "hunyuan_v1_dense",
    "inkling_mm_model": "inkling",
    "kimi_k3": "kimi_linear",
    "moondream1": "phi",
    "muse_glimmer": "muse_glimmer",
    "unlimited-ocr": "deepseek",
}
"""Multimodal ``model_type`` -> its text model, where no formula counts the towers."""
_MINICPM_TEXTS: Final = {"2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}
"""The text model by ``version`` of the file."""


def _resampler(outer: Keys, t: Tower, a: Arch) -> int:
    """MiniCPM-V: queries that attend to patches, with three norms, and a last square matrix."""
    queries = outer.whole("query_num") + t.hidden + 10 + 5 * a.hidden
    dropped = biased_block(t) if outer.flag("drop_vision_last_layer") else 0
    return queries * a.hidden - dropped


_MINICPM_TOWER: Final = VisionFamily(
    siglip, {**tower_sizes(1152, 4304, 27, 16, patch_size=14), **NO_HEAD}
)
WRAPPERS: Final[dict[str, Wrapper]] = {
    **OTHER_WRAPPERS,
    **GEMMA_WRAPPERS,
    **UNEVEN_WRAPPERS,
    **{name: Wrapper(text, "", counted=False) for name, text in _TEXT_ALONE.items()},
    **{
        f"minicpmv {version}": Wrapper(text, "siglip", _resampler, tower=_MINICPM_TOWER)
        for version, text in _MINICPM_TEXTS.items()
    },
}
"""Multimodal ``model_type``, with its ``version`` where that tells, -> text model and tower."""


def family_of(name: str) -> str:
    """The name that a text part's family has here and in ``Shape.model_type``."""
    return next((known for known, family in FAMILIES.items() if name in family.also), name)


def is_known(name: str) -> bool:
    """Whether a ``model_type``, of a text model or of a wrapper, is in the tables."""
    return name in WRAPPERS or family_of(name) in FAMILIES
