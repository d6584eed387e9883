"""GGUF architectures: which Hugging Face family they are, and which of their layers slide.

The period of a sliding window mostly stands in llama.cpp's code, not in the file.
Source: ``src/models/*.cpp`` of llama.cpp (``set_swa_pattern``), names from gguf 0.19.0. Periods of
families that no measured model in ``tests/data`` stands for are unconfirmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

_KINDS = Literal["mamba", "mamba2", "deltanet", "conv"]


class GgufFamily(Struct, frozen=True):
    """One ``general.architecture``."""

    model_type: str
    """The ``model_type`` of the same architecture in a config.json."""
    moe_type: str = ""
    """The same where the file holds experts."""
    period: int | None = None
    """One layer in so many has full attention where a window is stated; 0: none has,
    None: windows are not used."""
    full_first: bool = False
    """The full layer opens its period instead of closing it."""
    window: int | None = None
    """Tokens where the file states none."""
    chunked: bool = False
    caching: int | None = None
    """Layers that keep a cache where the file states no shared ones; None: all."""
    recurrent: _KINDS | None = None
    both: bool = False
    """Attention and recurrence stand side by side in a layer."""
    role: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    unknown: str = ""
    """Why its cache cannot be sized."""


_STATE = "its recurrent state is not described here"
_CROSS = "its cross-attention is not modelled"
_INDEX = "it keeps a token index beside its cache whose size is not established"

_PLAIN: Final = """
apertus arcee baichuan bitnet bloom dbrx deepseek dots1 falcon gemma gpt2 granite internlm2 minicpm
mpt nemotron olmo olmoe openelm orion phi3 phimoe qwen qwen2 qwen3 seed_oss smollm3 stablelm
starcoder2 xverse ernie4_5 exaone glm4 minicpm3
"""
_RENAMED: Final = {
    "bailingmoe": "bailing_moe",
    "chatglm": "glm",
    "command-r": "cohere",
    "ernie4_5-moe": "ernie4_5_moe",
    "glm4moe": "glm4_moe",
    "gptneox": "gpt_neox",
    "grok": "grok-1",
    "hunyuan-dense": "hunyuan_v1_dense",
    "hunyuan-moe": "hunyuan_v1_moe",
    "minimax-m2": "minimax_m2",
    "mistral3": "ministral3",
    "deci": "nemotron-nas",
    "phi2": "phi",
    "qwen2moe": "qwen2_moe",
    "qwen2vl": "qwen2_vl",
    "qwen3moe": "qwen3_moe",
    "qwen3vl": "qwen3_vl",
    "qwen3vlmoe": "qwen3_vl_moe",
    "starcoder": "gpt_bigcode",
}
_ENCODERS: Final = {
    "bert": "bert",
    "eurobert": "eurobert",
    "jina-bert-v2": "bert",
    "jina-bert-v3": "xlm-roberta",
    "modern-bert": "modernbert",
    "neo-bert": "bert",
    "nomic-bert": "nomic_bert",
    "nomic-bert-moe": "nomic_bert",
    "gemma-embedding": "gemma3",
    "llama-embed": "llama",
}
_WINDOWED: Final = {
    "afmoe": GgufFamily("afmoe", period=4),
    "cohere2": GgufFamily("cohere2", period=4),
    "cohere2moe": GgufFamily("cohere2_moe", period=4, full_first=True),
    "exaone-moe": GgufFamily("exaone_moe", period=4, window=128),
    "exaone4": GgufFamily("exaone4", period=4),
    "gemma2": GgufFamily("gemma2", period=2, window=4096),
    "gemma3": GgufFamily("gemma3", period=6),
    "gemma3n": GgufFamily("gemma3n", period=5, caching=20),
    "gemma4": GgufFamily("gemma4", period=6),
    "gpt-oss": GgufFamily("gpt_oss", period=2),
    "llama4": GgufFamily("llama4", period=4, window=8192, chunked=True),
    "mellum": GgufFamily("mellum", period=4),
    "mimo2": GgufFamily("mimo_v2_flash", period=6),
    "olmo2": GgufFamily("olmo2", period=4),
    "plamo3": GgufFamily("plamo3", period=8),
    "smallthinker": GgufFamily("smallthinker", period=4, full_first=True),
    "step35": GgufFamily("step3p5", period=4),
}
_RECURRENT: Final = {
    "falcon-h1": GgufFamily("falcon_h1", recurrent="mamba2", both=True),
    "granitehybrid": GgufFamily("granitemoehybrid", recurrent="mamba2"),
    "jamba": GgufFamily("jamba", recurrent="mamba"),
    "lfm2": GgufFamily("lfm2", recurrent="conv"),
    "lfm2moe": GgufFamily("lfm2_moe", recurrent="conv"),
    "mamba": GgufFamily("mamba", recurrent="mamba"),
    "mamba2": GgufFamily("mamba2", recurrent="mamba2"),
    "nemotron_h": GgufFamily("nemotron_h", recurrent="mamba2"),
    "nemotron_h_moe": GgufFamily("nemotron_h", recurrent="mamba2"),
    "qwen35": GgufFamily("qwen3_5", recurrent="deltanet"),
    "qwen35moe": GgufFamily("qwen3_5_moe", recurrent="deltanet"),
    "qwen3next": GgufFamily("qwen3_next", recurrent="deltanet"),
    "kimi-linear": GgufFamily("kimi_linear", unknown=_STATE),
    "plamo2": GgufFamily("plamo2", unknown=_STATE),
    "rwkv6": GgufFamily("rwkv6", unknown=_STATE),
    "rwkv6qwen2": GgufFamily("rwkv6qwen2", unknown=_STATE),
    "rwkv7": GgufFamily("rwkv7", unknown=_STATE),
    "arwkv7": GgufFamily("arwkv7", unknown=_STATE),
}

GGUF_FAMILIES: Final[Mapping[str, GgufFamily]] = MappingProxyType(
    {
        **{name: GgufFamily(name) for name in _PLAIN.split()},
        **{name: GgufFamily(kind) for name, kind in _RENAMED.items()},
        **{name: GgufFamily(kind, role="encoder") for name, kind in _ENCODERS.items()},
        **_WINDOWED,
        **_RECURRENT,
        "llama": GgufFamily("llama", moe_type="mixtral"),
        "granitemoe": GgufFamily("granitemoe"),
        "deepseek2": GgufFamily("deepseek_v2"),
        "glm-dsa": GgufFamily("glm_moe_dsa", unknown=_INDEX),
        "t5": GgufFamily("t5", role="encoder-decoder", unknown=_CROSS),
    }
)
