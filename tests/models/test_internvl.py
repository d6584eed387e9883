"""InternVL as its own repositories ship it: parameters as the public list counts their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.models import model_from_path
from advisor.reading.public_list import exact

_SMALL_TOWER = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
    "num_hidden_layers": 24, "qk_normalization": False, "qkv_bias": True,
    "norm_type": "layer_norm",
}  # fmt: skip
_LARGE_TOWER = {
    "hidden_size": 3200, "intermediate_size": 12800, "num_attention_heads": 25,
    "num_hidden_layers": 45, "qk_normalization": True, "qkv_bias": False,
    "norm_type": "rms_norm",
}  # fmt: skip
# Hidden width, feed-forward width, heads, KV heads, layers, vocabulary.
RELEASES = {
    "InternVL2-1B": ("Qwen2", (896, 4864, 14, 2, 24, 151655), _SMALL_TOWER),
    "InternVL2-2B": ("InternLM2", (2048, 8192, 16, 8, 24, 92553), _SMALL_TOWER),
    "InternVL2-26B": ("InternLM2", (6144, 16384, 48, 8, 48, 92553), _LARGE_TOWER),
    "InternVL3-2B": ("Qwen2", (1536, 8960, 12, 2, 28, 151674), _SMALL_TOWER),
    "InternVL3-14B": ("Qwen2", (5120, 13824, 40, 8, 48, 151674), _SMALL_TOWER),
    "InternVL3-38B": ("Qwen2", (5120, 27648, 40, 8, 64, 151674), _LARGE_TOWER),
    "InternVL3_5-1B": ("Qwen3", (1024, 3072, 16, 8, 28, 151936), _SMALL_TOWER),
    "InternVL3_5-14B": ("Qwen3", (5120, 17408, 40, 8, 40, 151936), _SMALL_TOWER),
}
_SIZES = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
    "num_hidden_layers", "vocab_size",
)  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_every_parameter_is_counted(tmp_path: Path, name: str) -> None:
    kind, sizes, tower = RELEASES[name]
    text = dict(zip(_SIZES, sizes, strict=True))
    text |= {"head_dim": 128} if kind == "Qwen3" else {}
    config = {
        "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
        "downsample_ratio": 0.5,
        "dynamic_image_size": True,
        "force_image_size": 448,
        "max_dynamic_patch": 12,
        "use_thumbnail": True,
        "llm_config": {
            **text, "model_type": kind.lower(), "architectures": [f"{kind}ForCausalLM"],
            "tie_word_embeddings": False, "max_position_embeddings": 32768,
        },
        "vision_config": {
            **tower, "model_type": "intern_vit_6b", "architectures": ["InternVisionModel"],
            "image_size": 448, "patch_size": 14,
        },
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model, listed = model_from_path(tmp_path), exact(f"OpenGVLab/{name}")
    assert listed
    assert model.parameters == listed.parameters_raw
    assert model.vision_parameters > 300e6
    assert not model.notes
