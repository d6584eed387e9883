"""GGUF architectures by name: those of the known families, and those that only files show."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from advisor.models.architecture import Gguf
from advisor.models.architectures import FAMILIES

_STATE = "its recurrent state is not described here"
_ONLY_FILES = (
    Gguf("bitnet", "bitnet"),
    Gguf("minicpm", "minicpm"),
    Gguf("mpt", "mpt"),
    Gguf("openelm", "openelm"),
    Gguf("orion", "orion"),
    Gguf("qwen", "qwen"),
    Gguf("xverse", "xverse"),
    Gguf("bailingmoe", "bailing_moe"),
    Gguf("grok", "grok-1"),
    Gguf("deci", "nemotron-nas"),
    Gguf("eurobert", "eurobert", role="encoder"),
    Gguf("modern-bert", "modernbert", role="encoder"),
    Gguf("afmoe", "afmoe", period=4),
    Gguf("cohere2moe", "cohere2_moe", period=4, full_first=True),
    Gguf("mimo2", "mimo_v2_flash", period=6),
    Gguf("plamo3", "plamo3", period=8),
    Gguf("smallthinker", "smallthinker", period=4, full_first=True),
    Gguf("step35", "step3p5", period=4),
    Gguf("plamo2", "plamo2", unknown=_STATE),
    Gguf("rwkv6", "rwkv6", unknown=_STATE),
    Gguf("rwkv6qwen2", "rwkv6qwen2", unknown=_STATE),
    Gguf("rwkv7", "rwkv7", unknown=_STATE),
    Gguf("arwkv7", "arwkv7", unknown=_STATE),
)
"""Architectures without a family here: sizes follow from the file alone."""


def gguf_families() -> Mapping[str, Gguf]:
    """Give every GGUF architecture that can be read, by name."""
    return {
        **{known.architecture: known for known in _ONLY_FILES},
        **{
            known.architecture: replace(known, model_type=name)
            for name, family in FAMILIES.items()
            for known in family.gguf
            if known.reads
        },
    }
