"""Architecture tables: one ``Family`` per ``model_type``."""

from __future__ import annotations

from typing import Final

from advisor.models.architecture import Family
from advisor.models.architectures.classic import CLASSIC
from advisor.models.architectures.dense import DENSE
from advisor.models.architectures.encoders import ENCODERS
from advisor.models.architectures.gemma import GEMMA, GEMMA_WRAPPERS
from advisor.models.architectures.hybrid import HYBRID
from advisor.models.architectures.latent import LATENT
from advisor.models.architectures.mixtures import MIXTURES
from advisor.models.vision_towers import OTHER_WRAPPERS, Wrapper

FAMILIES: Final[dict[str, Family]] = {
    **DENSE, **CLASSIC, **GEMMA, **MIXTURES, **LATENT, **HYBRID, **ENCODERS,
}  # fmt: skip
WRAPPERS: Final[dict[str, Wrapper]] = {**OTHER_WRAPPERS, **GEMMA_WRAPPERS}
"""Multimodal ``model_type`` -> the text model and tower that it holds."""


def family_of(name: str) -> str:
    """The name that a text part's family has here and in ``Shape.model_type``."""
    return next((known for known, family in FAMILIES.items() if name in family.also), name)
