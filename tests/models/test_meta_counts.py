"""Configs as transformers reads them: defaults, one key left out, one changed; and what is said.

``tests/data/meta_counts.jsonl.gz`` holds what transformers 5.23.0 built of each on the meta device
(``benchmarks/meta_oracle.py``), models cut to eight layers.
"""

from __future__ import annotations

import gzip
import importlib
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.knowledge import load_knowledge
from advisor.models.any_config import read_any
from advisor.models.architectures import class_defaults
from advisor.models.config import read_config
from advisor.models.shape import Shape
from tests.models.conftest import is_one_sentence, read_or_refuse, reference_configs

TABLE = Path(__file__).parents[1] / "data" / "meta_counts.jsonl.gz"
REFUSED_AT_MOST = 0.08


@cache
def cases() -> list[dict[str, Any]]:
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_no_config_is_counted_wrong() -> None:
    how: Counter[str] = Counter()
    wrong = {}
    for case in cases():
        shape = read_or_refuse(case["config"], "config.json")
        if isinstance(shape, str):
            assert is_one_sentence(shape)
            how["refused"] += 1
        elif shape.counts is None:
            how["not counted"] += 1
        elif any(doubt.startswith("Approximate") for doubt in shape.doubts):
            how["approximate"] += 1
        else:
            how["exact"] += 1
            if shape.counts.total != case["parameters"]:
                wrong[case["name"]] = shape.counts.total - case["parameters"]
    assert wrong == {}
    assert how["refused"] < REFUSED_AT_MOST * how.total()
    assert how["exact"] > 9 * how["approximate"]


LLAMA = reference_configs()["llama-3-8b"]


NEO = {
    "model_type": "gpt_neo",
    "architectures": ["GPTNeoForCausalLM"],
    "num_layers": 12,
    "num_heads": 12,
    "hidden_size": 768,
    "intermediate_size": None,
    "max_position_embeddings": 2048,
    "vocab_size": 50257,
    "window_size": 256,
    "attention_types": [[["global", "local"], 6]],
    "attention_layers": ["global", "local"] * 6,
}
CONVOLVED = {
    "model_type": "convbert",
    "architectures": ["ConvBertModel"],
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
MASKED = {"architectures": ["ConvBertForMaskedLM"], "embedding_size": 128}
SHARED = {
    "model_type": "albert",
    "architectures": ["AlbertModel"],
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "embedding_size": 128,
    "vocab_size": 30000,
}
HEARD = {
    "model_type": "wavlm",
    "architectures": ["WavLMModel"],
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "intermediate_size": 3072,
}
LARGE = {
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "feat_extract_norm": "layer",
}
TWO = {"conv_dim": [512, 256], "conv_kernel": [10, 3]}
HUBERT = {"model_type": "hubert", "architectures": ["HubertModel"]}
SCANNED = {"model_type": "got_ocr2", "architectures": ["GotOcr2ForConditionalGeneration"]}
OPT = {
    "model_type": "opt",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_size": 2560,
    "word_embed_proj_dim": 2560,
    "ffn_dim": 10240,
    "vocab_size": 50304,
    "max_position_embeddings": 2048,
}
ASKED = {
    "model_type": "blip-2",
    "architectures": ["Blip2ForConditionalGeneration"],
    "text_config": OPT,
}


def eyes(kind: str, **change: object) -> dict[str, Any]:
    return {"vision_config": {"model_type": kind, **change}}


def asks(**change: object) -> dict[str, Any]:
    return {"qformer_config": {"model_type": "blip_2_qformer", **change}}


@pytest.mark.parametrize(
    ("config", "change", "parameters"),
    [
        (NEO, {}, 125_198_592),
        (NEO, {"intermediate_size": 1000}, 86_982_624),
        (NEO, {"max_position_embeddings": 512}, 124_018_944),
        (NEO, {"tie_word_embeddings": False}, 163_795_968),
        (CONVOLVED, {}, 105_680_520),
        (CONVOLVED, {"embedding_size": 128}, 85_915_272),
        (CONVOLVED, {"head_ratio": 4}, 105_555_780),
        (CONVOLVED, {"head_ratio": 3}, 105_597_360),
        (CONVOLVED, {"num_groups": 2}, 77_368_968),
        (CONVOLVED, {"conv_kernel_size": 7}, 105_606_648),
        (CONVOLVED, {"type_vocab_size": 1}, 105_679_752),
        (CONVOLVED, MASKED, 86_044_482),
        (CONVOLVED, MASKED | {"tie_word_embeddings": False}, 89_951_298),
        (HEARD, {}, 94_381_936),
        (HEARD, {"conv_bias": True}, 94_385_520),
        (HEARD, LARGE, 315_453_120),
        (HEARD, {"num_buckets": 100}, 94_379_296),
        (HEARD, {"num_conv_pos_embeddings": 64}, 92_022_576),
        (HEARD, {"num_conv_pos_embedding_groups": 8}, 99_100_528),
        (HEARD, TWO, 90_383_728),
        (HEARD, {"mask_time_prob": 0.0}, 94_381_168),
        (HEARD, {"mask_time_prob": 0.0, "mask_feature_prob": 0.1}, 94_381_936),
        (HEARD, {"intermediate_size": 1000}, 56_165_968),
        (HEARD, HUBERT, 94_371_712),
        (HEARD, HUBERT | {"feat_proj_layer_norm": False}, 94_370_688),
        (SHARED, {}, 11_683_584),
        (SHARED, {"num_hidden_groups": 2}, 18_771_456),
        (SHARED, {"inner_group_num": 2}, 18_771_456),
        (SHARED, {"embedding_size": 768}, 31_705_344),
        (SHARED, {"type_vocab_size": 1}, 11_683_456),
        (SHARED, {"max_position_embeddings": 100}, 11_630_848),
        (SHARED, {"num_hidden_layers": 12}, 11_683_584),
        (SHARED, {"intermediate_size": 1000}, 8_498_920),
        (SHARED, {"vocab_size": 1000}, 7_971_584),
        (SHARED, {"architectures": ["AlbertForMaskedLM"]}, 11_221_680),
        (SCANNED, {}, 560_528_640),
        (SCANNED, eyes("got_ocr2_vision", image_size=512), 558_136_576),
        (SCANNED, eyes("got_ocr2_vision", window_size=7), 560_514_304),
        (SCANNED, eyes("got_ocr2_vision", global_attn_indexes=[2]), 560_490_240),
        (SCANNED, eyes("got_ocr2_vision", output_channels=128), 556_743_424),
        (SCANNED, eyes("got_ocr2_vision", qkv_bias=False), 560_500_992),
        (SCANNED, eyes("got_ocr2_vision", use_rel_pos=False), 560_435_968),
        (SCANNED, eyes("got_ocr2_vision", use_abs_pos=False), 557_382_912),
        (SCANNED, eyes("got_ocr2_vision", mlp_dim=1000), 522_312_672),
        (SCANNED, eyes("got_ocr2_vision", num_hidden_layers=6), 517_955_072),
        (ASKED, {}, 3_744_761_856),
        (ASKED, eyes("blip_2_vision_model", image_size=364), 3_745_353_216),
        (ASKED, eyes("blip_2_vision_model", qkv_bias=False), 3_744_597_120),
        (ASKED, eyes("blip_2_vision_model", num_hidden_layers=3), 2_835_755_520),
        (ASKED, asks(cross_attention_frequency=3), 3_738_067_968),
        (ASKED, asks(num_hidden_layers=5), 3_685_105_920),
        (ASKED, asks(use_qformer_text_input=True), 3_801_449_472),
        (ASKED, {"num_query_tokens": 10}, 3_744_744_960),
        (ASKED, asks(intermediate_size=1000), 3_706_545_888),
        (ASKED, asks(hidden_size=384), 3_682_368_768),
    ],
)
def test_classes_that_the_table_does_not_build_are_counted_as_it_would(
    config: dict[str, Any], change: dict[str, Any], parameters: int
) -> None:
    """Built by transformers 5.23.0 on the meta device, of these very configs."""
    shape = read_config({**config, **change}, "config.json")
    assert shape.counts is not None
    assert shape.counts.total == parameters
    assert not any(doubt.startswith("Approximate") for doubt in shape.doubts)


@pytest.mark.parametrize("key", ["num_key_value_heads", "intermediate_size", "vocab_size"])
def test_a_size_that_is_not_stated_is_the_default_of_its_class_and_said(key: str) -> None:
    mistral = reference_configs()["mistral-7b-v0.1"]
    shape = read_config({k: v for k, v in mistral.items() if k != key}, "config.json")
    expected = class_defaults("mistral")[key]
    assert any(f"does not state {key} {expected}" in doubt for doubt in shape.doubts)


def test_null_is_not_the_default_of_the_class() -> None:
    assert read_config({**LLAMA, "num_key_value_heads": None}, "c").kv_heads == 32
    mistral = reference_configs()["mistral-7b-v0.1"]
    assert read_config({**mistral, "sliding_window": None}, "c").window is None
    without = {k: v for k, v in mistral.items() if k != "sliding_window"}
    assert read_config(without, "c").window == class_defaults("mistral")["sliding_window"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"compress_ratios": [4, 128]}, "compress_ratios"),
        ({"num_global_memory_slots": 64}, "num_global_memory_slots"),
        ({"use_memory_experts": True}, "use_memory_experts"),
        ({"per_layer_config": {"3": {"head_dim": 64}}}, "per_layer_config"),
    ],
)
def test_a_structural_key_that_is_not_read_is_named(change: dict[str, object], named: str) -> None:
    shape = read_config({**LLAMA, **change}, "config.json")
    (said,) = shape.doubts
    assert said.startswith("Approximate: its config states")
    assert named in said


@pytest.mark.parametrize("name", sorted(reference_configs()))
def test_configs_that_are_read_whole_leave_no_doubt(name: str) -> None:
    shape = read_or_refuse(reference_configs()[name], name)
    if isinstance(shape, Shape):
        assert not [doubt for doubt in shape.doubts if doubt.startswith("Approximate")]


def test_a_record_is_a_choice_of_keys_and_takes_no_defaults() -> None:
    part = {k: v for k, v in LLAMA.items() if k != "vocab_size"}
    assert "vocab_size is missing" in str(read_or_refuse(part, "c", whole=False))
    assert read_config(LLAMA, "c", whole=False).doubts == ()


@pytest.mark.parametrize("architecture", ["XLMRobertaModel", "XLMModel", "BertModel"])
def test_an_encoder_alone_has_a_pooler_and_no_head(architecture: str) -> None:
    bert = reference_configs()["bert-base-uncased"]
    whole = read_config({**bert, "architectures": ["BertForMaskedLM"]}, "c").counts
    alone = read_config({**bert, "architectures": [architecture]}, "c").counts
    assert whole
    assert alone
    assert whole.total - alone.total == 2 * 768 + 30522


GEMMA4 = {
    "model_type": "gemma4_unified_text", "hidden_size": 1024, "intermediate_size": 2048,
    "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 1000, "attention_k_eq_v": False,
}  # fmt: skip


def test_full_layers_of_gemma_4_are_read_as_transformers_saves_them() -> None:
    stated = read_config({**GEMMA4, "global_head_dim": 512}, "c")
    saved = read_config({**GEMMA4, "per_layer_config": {"5": {"head_dim": 512}}}, "c")
    assert stated.counts == saved.counts
    assert stated.kv_heads_by_layer == saved.kv_heads_by_layer == (4, 4, 4, 4, 4, 16)
    differing = {"4": {"head_dim": 512}, "5": {"head_dim": 256}}
    said = read_or_refuse({**GEMMA4, "per_layer_config": differing}, "c")
    assert "per_layer_config differs from layer to layer" in str(said)


ESTIMATED = TABLE.with_name("estimated_counts.jsonl.gz")


def test_what_no_table_describes_is_estimated_within_its_range() -> None:
    """Inkling's class makes a tower of 765 billion parameters, which no release has."""
    outside, apart = [], {}
    with gzip.open(ESTIMATED, "rt", encoding="utf-8") as lines:
        every = [case for case in map(json.loads, lines) if "inkling" not in case["name"]]
    for case in every:
        shape = read_any(case["config"], "config.json")
        assert shape.counts
        off = abs(shape.counts.total / case["parameters"] - 1)
        if off > shape.spread:
            outside.append(case["name"])
        if case["name"].startswith("default ") and off > 0.01:
            apart[case["name"]] = off
    assert len(outside) < 0.02 * len(every)
    assert len(apart) < 0.1 * len(every)


def test_the_page_says_how_many_models_are_listed_tensor_by_tensor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    found = importlib.import_module("meta_oracle").listed()
    page = " ".join((root / "docs" / "architectures.md").read_text("utf-8").split())
    known, listed = len(load_knowledge().models), found["tensor by tensor"]
    assert f"Of {known} models {listed} are sized tensor by tensor" in page
    assert f"The {found['by average']} that are sized by average" in page
