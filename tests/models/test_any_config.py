"""Configs of architectures that no table has: an answer with a range, and what it rests on."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from advisor.errors import SourceFileError
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.models import any_config, model_from_path
from advisor.models.any_config import SPREAD, read_any
from advisor.models.shape import Shape
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.models.test_meta_counts import TABLE

NOVEL: Mapping[str, object] = {
    "model_type": "novel", "architectures": ["NovelForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 1000, "rms_norm_eps": 1e-6,
}  # fmt: skip


def read(**more: object) -> Shape:
    return read_any({**NOVEL, **more}, "config.json")


def test_a_plain_description_is_counted_and_said_to_be_an_estimate() -> None:
    shape = read()
    assert shape.counts
    assert shape.counts.total == 2 * 1000 * 1024 + 1024 + 4 * (
        2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 4096 + 2 * 1024
    )
    assert (shape.layer_kinds, shape.cache_loose, shape.spread) == ("FFFF", 0.0, SPREAD)
    assert "architecture 'novel' not described: weights and cache estimated" in shape.doubts[0]


def test_a_config_that_names_its_class_alone_is_estimated() -> None:
    shape = read(model_type=None, architectures=["NovelForCausalLM"])
    assert shape.counts == read().counts
    assert shape.spread == SPREAD


def test_an_unknown_type_is_read_by_the_class_that_the_file_names() -> None:
    shape = read(model_type="house_ref", architectures=["Qwen3ForCausalLM"])
    as_itself = read(model_type="qwen3", architectures=["Qwen3ForCausalLM"])
    assert (shape.model_type, shape.counts, shape.spread) == ("qwen3", as_itself.counts, 0.0)
    assert "'house_ref' is not known: read as 'qwen3'" in shape.doubts[-1]
    nameless = read(model_type=None, architectures=["Qwen3ForCausalLM"])
    assert nameless.counts == as_itself.counts


@pytest.mark.parametrize("part", ["vision_config", "text_config"])
def test_a_part_that_is_not_there_is_that_of_the_class(part: str) -> None:
    whole = {
        "model_type": "ovis2", "text_config": {**NOVEL, "model_type": "qwen2"},
        "vision_config": {"model_type": "ovis2_vit", "hidden_size": 64, "num_hidden_layers": 1},
    }  # fmt: skip
    usual = {name: value for name, value in whole.items() if name != part}
    more, most = read_any(whole, "x").counts, read_any(usual, "x").counts
    assert more
    assert most
    assert most.total > 3 * more.total


def test_a_text_model_two_parts_deep_is_found_by_its_words() -> None:
    talker = {"text_config": {"hidden_size": 64, "vocab_size": 10, "num_hidden_layers": 2}}
    omni = {"model_type": "omni", "talker_config": talker, "thinker_config": {"text_config": NOVEL}}
    shape = read_any(omni, "x")
    assert (shape.layers, shape.vocab) == (4, 1000)


@pytest.mark.parametrize(
    ("metadata", "counted"),
    [
        ({"total_size": 240_000_000}, 120_000_000),
        ({"total_size": 240_000_000, "total_parameters": 110_000_000}, 110_000_000),
        ({"total_size": "240000000"}, None),
        ({"total_size": 24_000_000_000_000}, None),
        ({}, None),
    ],
)
def test_an_index_beside_the_config_counts_what_no_table_describes(
    tmp_path: Path, metadata: object, counted: int | None
) -> None:
    config = json.dumps({**NOVEL, "torch_dtype": "bfloat16"})
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    estimated = model_from_path(tmp_path)
    index = json.dumps({"metadata": metadata, "weight_map": {"a": "model-1-of-1.safetensors"}})
    (tmp_path / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    model = model_from_path(tmp_path / "config.json")
    assert model.parameters == pytest.approx(counted or estimated.parameters, abs=20)
    assert model.shape.spread == (0.0 if counted else SPREAD)


def test_what_states_its_own_sizes_is_not_its_smaller_part() -> None:
    part = {"hidden_size": 64, "vocab_size": 2000, "num_hidden_layers": 2}
    assert read(depth_decoder_config=part).layers == 4


def test_what_hears_needs_no_vocabulary() -> None:
    shape = read(
        model_type="wav2vec2-conformer", architectures=["Wav2Vec2ConformerModel"], vocab_size=None
    )
    assert (shape.role, shape.vocab) == ("encoder", 1)


@pytest.mark.parametrize(
    ("more", "kinds", "loose"),
    [
        ({"sliding_window": 512}, "FFFF", 1.0),
        ({"compress_ratios": [4, 128, 4, 128]}, "FFFF", 1.0),
        ({"sliding_window": 512, "layer_types": ["local", "full"] * 2}, "SFSF", 0.0),
        ({"layer_types": ["gated_ssm", "attention"] * 2}, "RFRF", 1.0),
        ({"num_attention_heads": None}, "RRRR", 1.0),
        ({"num_key_value_heads": 5}, "FFFF", 0.0),
        ({"num_key_value_heads": [4, 2, 2, 2], "intermediate_size": [4096] * 4}, "FFFF", 0.0),
    ],
)
def test_what_is_left_open_widens_the_cache(
    more: dict[str, object], kinds: str, loose: float
) -> None:
    shape = read(**more)
    assert (shape.layer_kinds, shape.cache_loose) == (kinds, loose)


@pytest.mark.parametrize("key", ["hidden_size", "vocab_size", "num_hidden_layers"])
def test_a_size_that_is_missing_is_named(key: str) -> None:
    with pytest.raises(SourceFileError, match=key):
        read_any({k: v for k, v in NOVEL.items() if k != key}, "config.json")


def test_a_known_text_model_inside_an_unknown_wrapper_is_exact_beside_its_tower() -> None:
    text = {**NOVEL, "model_type": "qwen3", "head_dim": 64}
    tower = {"hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 1024}
    alone = read_any({**text}, "c").counts
    shape = read_any({"model_type": "novel_vl", "text_config": text, "vision_config": tower}, "c")
    assert alone
    assert shape.counts
    assert shape.described
    assert shape.counts.total - alone.total == 2 * 256 * (4 * 256 + 2 * 1024)
    assert "its text model is sized as 'qwen3'" in shape.doubts[0]
    assert not shape.outer_described


def test_what_a_part_does_not_state_is_told_as_its_class_has_it() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 640}
    (said,) = read_any({"model_type": "gemma3", "text_config": text}, "c").doubts
    assert "text_config.num_hidden_layers 26" in said
    assert "text_config.hidden_size" not in said


def test_what_is_in_an_unknown_wrapper_runs_by_its_own_code(tmp_path: Path) -> None:
    text = {**NOVEL, "model_type": "qwen3", "head_dim": 64}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "novel_vl", "text_config": text}), encoding="utf-8")
    scenario = resolve(Request(gpu="RTX 4090", model=str(path)), load_knowledge())
    assert scenario.framework.name == "transformers"


_VARIATION = re.compile(r" -|=|vision_config| outer | without ")
"""In the name of a configuration that differs from a class's own in one key."""


def test_seven_in_eight_of_the_known_families_are_within_the_spread_without_their_entry() -> None:
    off = []
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            if _VARIATION.search(case["name"]):
                continue
            with patch.object(any_config, "family_of", lambda _: "nobody's"):
                found = any_config._estimated(case["config"], "c").counts
            assert found
            off.append(abs(found.total / case["parameters"] - 1))
    assert len(off) > 50
    assert sorted(off)[len(off) * 7 // 8] <= SPREAD
    assert sorted(off)[len(off) // 2] < 0.02


def test_the_report_has_a_range_of_both(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**NOVEL, "sliding_window": 512}), encoding="utf-8")
    known = load_knowledge()
    scenario = resolve(Request(model=str(path), context=4096), known)
    memory = estimate_memory(scenario, known)
    weights, cache = memory.weights_bytes, memory.kv_cache_bytes
    assert memory.low_bytes <= memory.required_bytes - SPREAD * weights - cache + 2
    assert "KV cache: architecture not described: cache estimated" in memory.approximate
    assert model_from_path(path).notes[0].startswith("Approximate: architecture 'novel'")
