"""Shapes read from configs, and what is said about broken ones."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.errors import SourceFileError
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.models.any_config import load_config
from advisor.models.config import read_config
from advisor.models.shape import Mla, Moe, Shape
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.support import supports_model
from tests.models.conftest import is_one_sentence, read_or_refuse, reference_configs

LLAMA: Mapping[str, object] = reference_configs()["llama-3-8b"]


def shape_of(name: str) -> Shape:
    return read_config(reference_configs()[name], name)


def message_of(config: Mapping[str, object]) -> str:
    with pytest.raises(SourceFileError) as caught:
        read_config(config, "config.json")
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(reference_configs()))
def test_every_config_is_read_or_refused_in_one_sentence(name: str) -> None:
    shape = read_or_refuse(reference_configs()[name], name)
    if isinstance(shape, str):
        assert is_one_sentence(shape)
        return
    assert len(shape.layer_kinds) == len(shape.ffn_kinds) == shape.layers
    assert set(shape.layer_kinds) <= set("FSCRXNH")
    assert set(shape.ffn_kinds) <= set("DE-")
    assert (shape.window is not None) == bool(set(shape.layer_kinds) & set("SC"))
    assert (shape.recurrent is not None) == bool(set(shape.layer_kinds) & set("RH"))
    assert shape.moe is not None or "E" not in shape.ffn_kinds


@pytest.mark.parametrize(
    ("name", "kinds", "window"),
    [
        ("llama-3-8b", "F" * 32, None),
        ("gemma-2-2b", "SF" * 13, 4096),
        ("gemma-3-4b", "SSSSSF" * 5 + "SSSS", 1024),
        ("gpt-oss-20b", "SF" * 12, 128),
        ("command-r7b", "SSSF" * 8, 4096),
        ("olmo-3-7b", "SSSF" * 8, 4096),
        ("llama-4-scout-17b-16e", "CCCF" * 12, 8192),
        ("mistral-7b-v0.1", "S" * 32, 4096),
        ("mistral-7b-v0.3", "F" * 32, None),
        ("phi-3-mini-4k", "S" * 32, 2047),
        ("qwen2.5-7b", "F" * 28, None),
        ("jamba-v0.1", "RRRRFRRR" * 4, None),
        ("recurrentgemma-2b", ("RRS" * 9)[:26], 2048),
        ("mamba-2.8b", "R" * 64, None),
        ("lfm2-1.2b", "RRFRRFRRFRFRFRFR", None),
        ("bert-base-uncased", "N" * 12, None),
    ],
)
def test_which_layers_do_what(name: str, kinds: str, window: int | None) -> None:
    shape = shape_of(name)
    assert shape.layer_kinds == kinds
    assert shape.window == window


def test_blocks_of_a_hybrid_without_mixer_or_feed_forward() -> None:
    shape = shape_of("nemotron-h-8b")
    assert shape.layer_kinds.startswith("RNRNRNRFN")
    assert shape.ffn_kinds.startswith("-D-D-D--D")


def test_experts_and_latents() -> None:
    assert shape_of("deepseek-v2-lite").mla == Mla(512, 64, 128, 128, None)
    assert shape_of("deepseek-v2-lite").ffn_kinds == "D" + "E" * 26
    assert shape_of("mixtral-8x7b").moe == Moe(8, 2, 14336)
    assert shape_of("qwen1.5-moe-a2.7b").moe == Moe(60, 4, 1408, 5632)
    assert shape_of("llama-4-maverick-17b-128e").ffn_kinds == "DE" * 24
    assert shape_of("ernie-4.5-21b-a3b").ffn_kinds == "D" + "E" * 27


def test_the_state_of_recurrent_layers() -> None:
    codestral = shape_of("mamba-codestral-7b").recurrent
    assert codestral is not None
    assert codestral.conv_elements == 4 * 10_240
    assert codestral.state_elements == 128 * 8192
    jamba = shape_of("jamba-v0.1").recurrent
    assert jamba is not None
    assert (jamba.conv_elements, jamba.state_elements) == (8192 * 4, 8192 * 16)
    short = shape_of("lfm2-1.2b").recurrent
    assert short is not None
    assert (short.conv_elements, short.state_elements) == (2048 * 3, 0)


def test_a_wrapper_gives_the_shape_of_its_text_model() -> None:
    shape = shape_of("llava-1.6-mistral-7b")
    assert (shape.outer_type, shape.model_type) == ("llava_next", "mistral")
    assert shape.vision_config is not None
    assert shape_of("gemma-3-4b").model_type == "gemma3"


def test_a_nested_config_states_only_differences_from_its_class() -> None:
    config = {
        "model_type": "llava",
        "text_config": {"model_type": "llama", "vocab_size": 32064},
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 1024,
            "image_size": 336,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "patch_size": 14,
        },
    }
    shape = read_config(config, "config.json")
    assert shape.counts is not None
    assert shape.counts.total == 7_063_427_072
    assert shape.trained_context is None


def test_the_trained_length_is_never_a_class_default() -> None:
    assert read_config(LLAMA, "config.json").trained_context == 8192
    without = {k: v for k, v in LLAMA.items() if k != "max_position_embeddings"}
    assert read_config(without, "config.json").trained_context is None
    assert shape_of("distilbert-base").trained_context is None


def test_storage_type_and_quantisation_are_kept_as_stated() -> None:
    stated = {"quant_method": "gptq", "bits": 4}
    shape = read_config(
        {**LLAMA, "torch_dtype": "bfloat16", "quantization_config": stated}, "config.json"
    )
    assert shape.dtype == "bfloat16"
    assert shape.quantization == stated


def test_an_embedding_class_has_no_output_matrix() -> None:
    shape = read_config({**LLAMA, "architectures": ["LlamaModel"]}, "config.json")
    assert shape.counts is not None
    assert shape.counts.output == 0


def test_a_classifier_is_counted_without_its_head_and_says_so() -> None:
    shape = read_config({**LLAMA, "architectures": ["LlamaForTokenClassification"]}, "c")
    whole = read_config(LLAMA, "c").counts
    assert shape.counts
    assert whole
    assert shape.counts.total == whole.total - whole.output
    assert "in place of an output matrix is not counted" in shape.doubts[0]


def test_encoder_decoders_say_what_their_decoder_also_caches() -> None:
    shape = shape_of("whisper-base")
    assert shape.role == "encoder-decoder"
    assert shape.encoder_positions == 1500
    assert shape_of("flan-t5-xxl").encoder_positions == 0
    assert shape_of("llama-3-8b").encoder_positions is None


def test_layer_pattern_of_the_knowledge_base() -> None:
    config = {**LLAMA, "num_hidden_layers": 4, "sliding_window": 64, "layer_pattern": "SSFS"}
    assert read_config(config, "x").layer_kinds == "SSFS"
    assert "lists 3 layers" in message_of({**config, "layer_pattern": "SSF"})
    assert "'Q'" in message_of({**config, "layer_pattern": "SSFQ"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": None}, "model_type is missing"),
        ({"model_type": 7}, "model_type is 7; it must be a text"),
        ({"model_type": "lama"}, "'lama', which advisor cannot size yet. Did you mean 'llama'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0; it must be a whole number from 1"),
        ({"num_hidden_layers": -3}, "num_hidden_layers is -3"),
        ({"num_hidden_layers": 32.5}, "num_hidden_layers is 32.5"),
        ({"num_hidden_layers": 32.0}, "write it as a whole number (32)"),
        ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_hidden_layers": "32"}, "num_hidden_layers is '32'"),
        ({"num_hidden_layers": [32]}, "num_hidden_layers is [32]"),
        ({"hidden_size": 10**10}, "hidden_size is 10000000000"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": math.inf}, "hidden_size is inf"),
        ({"hidden_size": 8}, "hidden_size 8 is smaller than its 32 attention heads"),
        ({"vocab_size": {}}, "vocab_size is {}"),
        ({"num_key_value_heads": 5}, "does not divide the 32 attention heads"),
        ({"num_key_value_heads": 64}, "does not divide the 32 attention heads"),
        ({"tie_word_embeddings": "yes"}, "it must be true or false"),
        ({"quantization_config": 4}, "quantization_config is 4; it must be an object"),
        ({"intermediate_size": None}, "intermediate_size is missing"),
        ({"hidden_size": 10**8, "vocab_size": 10**8}, "more than 10^14"),
        ({"layer_types": ["full_attention"]}, "lists 1 layers, but num_hidden_layers is 32"),
        ({"layer_types": ["quantum"] * 32}, "'quantum', a layer that advisor cannot size"),
        ({"layer_types": "full"}, "layer_types is 'full'; it must be a list"),
        ({"max_position_embeddings": -1}, "max_position_embeddings is -1"),
        ({"text_config": {"model_type": "llama"}}, "'llama', which advisor cannot size yet"),
        ({"sliding_window": "long"}, "sliding_window is 'long'"),
    ],
)
def test_impossible_values_are_named(change: Mapping[str, object], said: str) -> None:
    message = message_of({**LLAMA, **change})
    assert said in message
    assert message.startswith("config.json: ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_experts_per_tok": 9}, "there are 8 experts"),
        ({"num_experts_per_tok": 0}, "there are 8 experts"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok is missing"),
        ({"num_local_experts": None}, "num_experts is missing"),
    ],
)
def test_impossible_experts_are_named(change: Mapping[str, object], said: str) -> None:
    assert said in message_of({**reference_configs()["mixtral-8x7b"], **change})


def test_a_pruned_llama_is_sized_by_its_blocks_and_not_without_them() -> None:
    config = {**LLAMA, "model_type": "nemotron-nas", "num_key_value_heads": None}
    assert "block_configs is missing" in message_of(config)
    layers = LLAMA["num_hidden_layers"]
    assert isinstance(layers, int)
    kept = {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}}
    cut = {"attention": {"no_op": True}, "ffn": {"no_op": True}}
    linear = {"attention": {"replace_with_linear": True}, "ffn": {"replace_with_linear": True}}
    blocks = [kept, cut, linear, *[kept] * (layers - 3)]
    shape = read_config({**config, "block_configs": blocks}, "x", whole=False)
    assert shape.layer_kinds == "FNN" + "F" * (layers - 3)
    assert shape.kv_heads_by_layer is not None
    assert shape.kv_heads_by_layer[:3] == (shape.heads // 4, 0, 0)
    assert shape.counts is not None
    assert shape.counts.layers[1:3] == (0, 2 * shape.hidden * (shape.hidden + 1))
    assert "describes the attention of 2 layers" in message_of(
        {**config, "block_configs": [kept, cut]}
    )


@pytest.mark.parametrize("model_type", ["grok-1", "minicpmv"])
def test_architectures_without_known_layers_are_refused(model_type: str) -> None:
    message = message_of({**LLAMA, "model_type": model_type})
    assert f"'{model_type}', which advisor cannot size yet." in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"{", "not valid JSON"),
        (b'{"hidden_size": 4096, "num_hi', "not valid JSON"),
        (b"model: llama", "not valid JSON"),
        (b"[1, 2]", "not an object"),
        (b"null", "not an object"),
        (b'{"rope_theta": NaN}', "NaN"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested deeper"),
        (b'{"a": ' + b"9" * 5000 + b"}", "integer"),
        (b"{" + b" " * 10_000_001 + b"}", "larger than 10 MB"),
    ],
)
def test_broken_files_are_explained(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(SourceFileError) as caught:
        load_config(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_file_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert load_config(tmp_path) == load_config(file)


def test_open_limits_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    config = {**reference_configs()["mamba-codestral-7b"], "time_step_limit": [0.0, math.inf]}
    file.write_text(json.dumps(config), encoding="utf-8")
    assert load_config(file).counts is not None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceFileError, match="no model lies in this folder"):
        load_config(tmp_path)
    with pytest.raises(SourceFileError, match="no such file"):
        load_config(tmp_path / "gone" / "config.json")


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(SourceFileError, match="not a plain file"):
        load_config(tmp_path)


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.lists(st.integers(0, 5), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
_SAMPLES = ("llama-3-8b", "mixtral-8x7b", "gemma-3-4b", "jamba-v0.1", "deepseek-v2", "qwen3-vl-8b")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_SAMPLES), st.data())
def test_any_value_of_any_key_gives_a_shape_or_one_sentence(name: str, data: st.DataObject) -> None:
    config = reference_configs()[name]
    key = data.draw(st.sampled_from(sorted(config)))
    nested = config[key]
    if isinstance(nested, dict) and nested:
        inner = data.draw(st.sampled_from(sorted(nested)))
        changed = {**config, key: {**nested, inner: data.draw(_VALUES)}}
    else:
        changed = {**config, key: data.draw(_VALUES)}
    shape = read_or_refuse(changed, "config.json")
    if isinstance(shape, str):
        assert is_one_sentence(shape)
        return
    assert shape.counts is None or 0 < shape.counts.active <= shape.counts.total <= 10**14


def test_a_model_with_an_encoder_caches_in_the_layers_of_its_decoder() -> None:
    """Names without ``decoder`` mean the encoder in such a config."""
    config = {
        "model_type": "whisper", "d_model": 1280, "vocab_size": 51866, "encoder_layers": 32,
        "num_hidden_layers": 32, "decoder_layers": 2, "num_attention_heads": 10,
        "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "encoder_ffn_dim": 5120,
        "num_mel_bins": 128,
    }  # fmt: skip
    shape = read_config(config, "config.json")
    assert shape.counts
    assert (shape.layers, shape.heads, shape.counts.total) == (2, 20, 756_405_760)


def test_kimi_k3_has_what_readers_of_its_files_describe() -> None:
    knowledge = load_knowledge()
    model = find_model_named("Kimi-K3", knowledge)
    assert (model.shape.layer_kinds.count("F"), model.shape.layer_kinds.count("R")) == (24, 69)
    found = weights_of(
        model, knowledge.formats["MXFP4"], knowledge.frameworks["vLLM"], knowledge.ggml_types
    )
    assert found.profile.total_bytes == pytest.approx(1.56e12, rel=0.002)


SPARSE = {
    "model_type": "minimax_m3", "hidden_size": 6144, "intermediate_size": 3072,
    "dense_intermediate_size": 12288, "shared_intermediate_size": 3072, "num_hidden_layers": 4,
    "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 200064,
    "num_local_experts": 128, "num_experts_per_tok": 4, "moe_layer_freq": [0, 1, 1, 1],
    "tie_word_embeddings": False,
    "sparse_attention_config": {
        "sparse_attention_freq": [0, 1, 1, 1], "sparse_num_index_heads": 4, "sparse_index_dim": 128
    },
}  # fmt: skip


def test_minimax_m3_keeps_a_key_for_picking_in_its_sparse_layers() -> None:
    shape = read_config(SPARSE, "x", whole=False)
    assert (shape.layer_kinds, shape.ffn_kinds) == ("FFFF", "DEEE")
    assert shape.cells == ((1024, 0), *[(1024 + 128, 0)] * 3)


@pytest.mark.parametrize(
    ("named", "runs"), [("minimax_m3", "llama.cpp"), ("minimax_m3_vl_text", "transformers")]
)
def test_a_runtime_may_list_a_family_by_the_name_in_the_file(named: str, runs: str) -> None:
    knowledge = load_knowledge()
    shape = read_config({**SPARSE, "model_type": named}, "x", whole=False)
    model = replace(find_model_named("MiniMax-M2", knowledge), shape=shape)
    listing = {
        name
        for name in ("llama.cpp", "transformers")
        if supports_model(knowledge.frameworks[name], model)
    }
    assert listing == {runs, "transformers"}


MIMO = {
    "model_type": "mimo_v2_flash", "hidden_size": 4096, "intermediate_size": 16384,
    "moe_intermediate_size": 2048, "num_hidden_layers": 3, "num_attention_heads": 64,
    "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "vocab_size": 152576,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_layer_freq": [0, 1, 1],
    "hybrid_layer_pattern": [0, 1, 0], "sliding_window": 128, "tie_word_embeddings": False,
}  # fmt: skip


def test_mimo_caches_values_narrower_than_keys_and_slides_with_twice_the_heads() -> None:
    shape = read_config(MIMO, "x", whole=False)
    assert (shape.layer_kinds, shape.ffn_kinds, shape.window) == ("FSF", "DEE", 128)
    assert shape.cells == ((4 * 320, 0), (0, 8 * 320), (4 * 320, 0))
    stated = read_config({**MIMO, "swa_num_key_value_heads": 4}, "x", whole=False)
    assert stated.cells == ((4 * 320, 0), (0, 4 * 320), (4 * 320, 0))


def test_step_has_more_query_heads_where_it_slides() -> None:
    config = {
        **MIMO, "model_type": "step3p5", "num_attention_groups": 8, "num_key_value_heads": None,
        "head_dim": 128, "moe_num_experts": 8, "moe_top_k": 2, "moe_layers_enum": "1,2",
        "share_expert_dim": 1280, "num_nextn_predict_layers": 1,
        "layer_types": ["full_attention", *["sliding_attention"] * 2, "full_attention"],
    }  # fmt: skip
    same = read_config(config, "x", whole=False)
    other = {"attention_other_setting": {"num_attention_heads": 96}}
    wider = read_config({**config, **other}, "x", whole=False)
    assert (same.layer_kinds, same.ffn_kinds, same.kv_heads) == ("FSS", "DEE", 8)
    assert same.counts is not None
    assert wider.counts is not None
    more = [b - a for a, b in zip(same.counts.layers, wider.counts.layers, strict=True)]
    assert more == [0, *[32 * 4096 * (2 * 128 + 1)] * 2]


def test_kimi_lists_its_full_layers_counted_from_one() -> None:
    config = {
        "model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 4, "num_attention_heads": 32, "vocab_size": 163840,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "num_experts": 256, "num_experts_per_token": 8, "moe_intermediate_size": 1024,
        "num_shared_experts": 1, "linear_attn_config": {
            "full_attn_layers": [4], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4
        },
    }  # fmt: skip
    assert read_config(config, "x", whole=False).layer_kinds == "RRRF"
