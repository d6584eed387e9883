"""MiniCPM-V, whose files say by their version which text model they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.errors import UserError
from advisor.models import model_from_path
from advisor.models.config import read_config
from advisor.reading.public_list import exact

# Hidden width, feed-forward width, heads, KV heads, layers, vocabulary, version.
RELEASES = {
    "MiniCPM-V-2_6": (3584, 18944, 28, 4, 28, 151666, 2.6),
    "MiniCPM-V-4": (2560, 10240, 32, 2, 32, 73448, 4.0),
    "MiniCPM-V-4_5": (4096, 12288, 32, 8, 36, 151748, 4.5),
}
_SIZES = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
    "num_hidden_layers", "vocab_size", "version",
)  # fmt: skip


def config_of(name: str) -> dict[str, object]:
    return {
        **dict(zip(_SIZES, RELEASES[name], strict=True)),
        "architectures": ["MiniCPMV"],
        "model_type": "minicpmv",
        "head_dim": 128,
        "query_num": 64,
        "batch_vision_input": True,
        "drop_vision_last_layer": False,
        "image_size": 448,
        "max_position_embeddings": 32768,
        "slice_mode": True,
        "tie_word_embeddings": False,
        "vision_batch_size": 16,
        "vision_config": {
            "hidden_size": 1152, "image_size": 980, "intermediate_size": 4304,
            "model_type": "siglip", "num_attention_heads": 16, "num_hidden_layers": 27,
            "patch_size": 14,
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_every_parameter_is_counted(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config_of(name)), encoding="utf-8")
    model, listed = model_from_path(tmp_path), exact(f"openbmb/{name}")
    assert listed
    assert model.parameters == listed.parameters_raw
    assert model.vision_parameters > 417e6
    assert not model.notes


def test_the_last_block_of_the_tower_may_be_left_out() -> None:
    config = config_of("MiniCPM-V-4")
    whole, cut = (
        read_config({**config, "drop_vision_last_layer": cut}, "here").counts
        for cut in (False, True)
    )
    assert whole
    assert cut
    assert whole.total - cut.total == 4 * 1152**2 + 2 * 1152 * 4304 + 4304 + 9 * 1152


def test_a_version_whose_text_model_is_not_known_is_not_guessed() -> None:
    config = {**config_of("MiniCPM-V-4"), "version": 9.9}
    with pytest.raises(UserError, match="'minicpmv', which advisor cannot size yet"):
        read_config(config, "here")
