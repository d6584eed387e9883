"""Weight bytes: file types against llama.cpp's quantiser, other formats by their rules."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.estimator.weights import weight_profile
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Format
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.scenario.figures import WeightProfile
from tests.estimate.builders import (
    FP16,
    GGML_TYPES,
    framework,
    gguf,
    model_of,
    plain,
    rows,
    text_model,
)


def profile(model: str | Model, precision: Format, runtime: str = "llama.cpp") -> WeightProfile:
    found = text_model(model) if isinstance(model, str) else model
    return weight_profile(found, precision, framework(runtime), GGML_TYPES)


@pytest.mark.parametrize(
    ("model", "ftype", "expected"),
    [
        ("llama-3-8b", "Q4_K_M", 4_912_898_048),
        ("qwen2.5-0.5b", "Q4_K_M", 391_859_712),
        ("mixtral-8x7b", "Q4_K_M", 28_447_727_616),
        ("gpt-oss-20b", "MXFP4_MOE", 12_096_558_336),
    ],
)
def test_worked_examples(model: str, ftype: str, expected: int) -> None:
    assert profile(model, gguf(ftype)).total_bytes == expected


def test_every_measured_file_type_is_exact() -> None:
    wrong = []
    measured = [row for row in rows("llamacpp_quant") if row["ftype"] != "IQ3_XXS"]
    assert len(measured) == 957
    for row in measured:
        found = profile(row["name"], gguf(row["ftype"]))
        if found.total_bytes != int(row["weight_bytes"]) or not found.exact:
            wrong.append((row["name"], row["ftype"], found.total_bytes, row["weight_bytes"]))
    assert wrong == []


@pytest.mark.parametrize(
    ("model", "gb"), [("llama-3.1-8b", 3.267), ("llama-3-8b", 3.267), ("llama-2-7b", 2.585)]
)
def test_iq3_xxs_is_sized_as_published_with_an_importance_matrix(model: str, gb: float) -> None:
    """bartowski's files; made without a matrix, as in the dry run, it is 4 % larger."""
    assert profile(model, gguf("IQ3_XXS")).total_bytes == pytest.approx(gb * 1e9, rel=5e-4)


def test_the_groups_add_up_to_the_whole() -> None:
    for model in ("llama-3-8b", "gemma-2-9b", "deepseek-v2-lite", "mamba-codestral-7b"):
        for precision in (gguf("Q4_K_M"), FP16, plain("awq", 4.156)):
            found = profile(model, precision, "vllm")
            output = 0 if found.tied else found.output_bytes
            parts = found.embedding_bytes + output + sum(found.layer_bytes) + found.other_bytes
            slack = found.output_bytes - found.embedding_bytes if found.tied else 0
            assert found.total_bytes == parts + slack + found.vision_bytes


def test_fp16_is_two_bytes_for_every_parameter() -> None:
    model = text_model("llama-3-8b")
    assert profile(model, FP16, "transformers").total_bytes == 2 * model.parameters


def test_fp16_on_llamacpp_keeps_norms_in_32_bits() -> None:
    model = text_model("llama-3-8b")
    extra = 2 * 4096 * (2 * 32 + 1)
    assert profile(model, FP16).total_bytes == 2 * model.parameters + extra


def test_vision_towers_stay_at_16_bits_on_llamacpp() -> None:
    model = model_of(
        {
            "model_type": "llava",
            "text_config": {
                "model_type": "llama",
                "hidden_size": 512,
                "intermediate_size": 1024,
                "num_hidden_layers": 2,
                "num_attention_heads": 8,
                "vocab_size": 1024,
            },
            "vision_config": {
                "model_type": "clip_vision_model",
                "hidden_size": 256,
                "intermediate_size": 512,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "image_size": 336,
                "patch_size": 14,
            },
        }
    )
    found = profile(model, gguf("Q4_K_M"))
    assert found.vision_bytes == 2 * model.vision_parameters > 0


def test_servers_keep_embedding_and_head_at_16_bits() -> None:
    full, small = profile("llama-3-8b", FP16, "vllm"), profile("llama-3-8b", plain("awq", 4.156))
    assert small.embedding_bytes == full.embedding_bytes
    assert small.output_bytes == full.output_bytes
    assert sum(small.layer_bytes) / sum(full.layer_bytes) == pytest.approx(4.156 / 16, rel=1e-3)
    assert not small.exact


def test_mlx_shrinks_the_embedding_and_exl_the_head() -> None:
    full = profile("llama-3-8b", FP16, "mlx")
    mlx = profile("llama-3-8b", plain("mlx", 4.5), "mlx")
    exl = profile("llama-3-8b", plain("exl2", 4.0), "exllama")
    assert mlx.embedding_bytes < full.embedding_bytes / 3
    assert exl.embedding_bytes == full.embedding_bytes
    assert exl.output_bytes < full.output_bytes / 3


def test_mxfp4_of_the_servers_shrinks_experts_only() -> None:
    found = profile("gpt-oss-20b", load_knowledge().formats["MXFP4"], "vllm")
    full = profile("gpt-oss-20b", FP16, "vllm")
    dense = sum(found.layer_bytes) - sum(found.expert_bytes)
    assert dense == sum(full.layer_bytes) - sum(full.expert_bytes)
    assert sum(found.expert_bytes) == pytest.approx(sum(full.expert_bytes) * 4.25 / 16)


def test_fp8_beside_experts_in_fp4_is_sized_as_fp8() -> None:
    known = load_knowledge()
    model = model_from_record(known.models["DeepSeek-V4-Flash"], known)
    mixed, fp8, fp4 = (
        profile(model, known.formats[name], "vllm") for name in ("FP4+FP8", "FP8", "MXFP4")
    )
    assert sum(mixed.expert_bytes) == sum(fp4.expert_bytes)
    beside = [sum(one.layer_bytes) - sum(one.expert_bytes) for one in (mixed, fp8)]
    assert beside[0] == pytest.approx(beside[1], rel=0.01)
    assert mixed.embedding_bytes == fp8.embedding_bytes


def test_idle_experts_are_not_read() -> None:
    found = profile("qwen3-30b-a3b", gguf("Q4_K_M"))
    assert found.experts == 128
    assert found.experts_used == 8
    assert found.read_bytes < found.total_bytes / 5


def test_an_architecture_without_a_tensor_list_is_marked() -> None:
    knowledge = load_knowledge()
    model = model_from_record(knowledge.models["gpt-j-6b"], knowledge)
    found = profile(model, gguf("Q4_K_M"))
    assert not found.exact
    assert 4.3 < 8 * found.total_bytes / model.parameters < 6.5


def test_gguf_types_without_a_file_type_use_it_for_every_block() -> None:
    found = profile("llama-3-8b", gguf("TQ2_0"))
    assert not found.exact
    assert sum(found.layer_bytes) == pytest.approx(32 * 218_112_000 * 2.0625 / 8, rel=1e-3)


def test_the_ggml_name_of_mxfp4_is_understood() -> None:
    both = profile("gpt-oss-20b", gguf("MXFP4 (GGUF)")), profile("gpt-oss-20b", gguf("MXFP4_MOE"))
    assert both[0].total_bytes == both[1].total_bytes


def test_unknown_bits_are_refused_by_name() -> None:
    hqq = Format("HQQ 4-bit", (), "hqq", "plain", None, None, None, None)
    with pytest.raises(RequestError, match="bits per weight of HQQ 4-bit"):
        profile("llama-3-8b", hqq, "transformers")


def test_parts_no_tensor_list_holds_are_taken_at_16_bits() -> None:
    known = text_model("llama-3-8b")
    wide = replace(
        known,
        parameters=known.parameters + 10**9,
        shape=replace(known.shape, counts=None),
    )
    plain_text, whole = profile(known, gguf("Q4_K_M")), profile(wide, gguf("Q4_K_M"))
    assert whole.total_bytes == plain_text.total_bytes + 2 * 10**9
    assert not whole.exact


def test_a_profile_is_made_once() -> None:
    assert profile("llama-3-8b", gguf("Q6_K")) is profile("llama-3-8b", gguf("Q6_K"))


def test_a_model_without_a_head_stores_none() -> None:
    config = {
        "model_type": "mistral",
        "architectures": ["MistralModel"],
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 1024,
        "tie_word_embeddings": False,
    }
    found = profile(model_of(config), gguf("Q8_0"))
    assert found.output_bytes == 4 * 512
    assert not found.tied
