"""Architecture tables: one ``Family`` per ``model_type``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from advisor.models.architecture import Family
from advisor.models.architectures.classic import CLASSIC
from advisor.models.architectures.dense import DENSE
from advisor.models.architectures.encoders import ENCODERS
from advisor.models.architectures.gemma import GEMMA
from advisor.models.architectures.hybrid import HYBRID
from advisor.models.architectures.latent import LATENT
from advisor.models.architectures.mixtures import MIXTURES

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {**DENSE, **CLASSIC, **GEMMA, **MIXTURES, **LATENT, **HYBRID, **ENCODERS}
)

SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gemma3_text": "gemma3",
        "gemma3n_text": "gemma3n",
        "gemma4_text": "gemma4",
        "llama4_text": "llama4",
        "mllama_text_model": "mllama",
        "qwen2_vl_text": "qwen2_vl",
        "qwen2_5_vl_text": "qwen2_5_vl",
        "qwen3_vl_text": "qwen3_vl",
        "qwen3_vl_moe_text": "qwen3_vl_moe",
        "qwen3_5_text": "qwen3_5",
        "qwen3_5_moe_text": "qwen3_5_moe",
        "glm4v_text": "glm4v",
        "glm4v_moe_text": "glm4v_moe",
        "smolvlm_text": "llama",
        "gpt-sw3": "gpt2",
        "nemotron_h_v2": "nemotron_h",
    }
)
"""Names of text parts -> the name their family has here and in ``Shape.model_type``."""
