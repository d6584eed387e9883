"""A format of which name and flag each tell a part, or that a runtime has under another name."""

from __future__ import annotations

import pytest

from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.reading.known import read_format
from advisor.scenario.resolve import resolve
from advisor.scenario.setting_kinds import stated
from advisor.scenario.settings import Request
from advisor.scenario.support import family_bits

KNOWN = load_knowledge()


@pytest.mark.parametrize(
    ("model", "precision", "taken"),
    [
        ("llama 3.1 8b 6bpw", "exl2", "EXL2 6.0bpw"),
        ("glm 4.5 air 3.0bpw", "exl3", "EXL3 3.0bpw"),
        ("qwen3 8b q8_0", "gguf", "Q8_0"),
        ("qwen2.5 32b 8bit", "gptq", "GPTQ 8-bit"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "gptq", "GPTQ 8-bit"),
        ("qwen3 8b q8_0", "exl2", "EXL2 4.0bpw"),
        ("qwen3 8b", "exl2", "EXL2 4.0bpw"),
    ],
)
def test_a_family_takes_its_bits_from_the_name(model: str, precision: str, taken: str) -> None:
    found = resolve(Request(gpu="2x RTX PRO 6000", model=model, precision=precision), KNOWN)
    assert found.precision.name == taken


@pytest.mark.parametrize(
    ("precision", "framework", "family"),
    [
        ("3.5bpw", "llama.cpp", "gguf"),
        ("3.5bpw", "ExLlamaV2", "exl2"),
        ("3.5bpw", None, "exl"),
        ("q4", "MLX-LM", "mlx"),
        ("3.3bpw", "MLX-LM", "mlx"),
        ("2.7 bits", "ExLlamaV2", "exl2"),
        ("2bit", "ExLlamaV2", "exl2"),
        ("3.5 bits", "ExLlamaV3", "exl3"),
        ("2.7 bits", "llama.cpp", "gguf"),
        ("EXL2 4.0bpw", "TabbyAPI", "exl2"),
        ("4.0bpw", "TabbyAPI", "exl3"),
    ],
)
def test_bits_are_those_of_the_runtime(precision: str, framework: str | None, family: str) -> None:
    card = "Apple M4 Max (40-core GPU):64GB" if framework == "MLX-LM" else "RTX 4090"
    request = Request(gpu=card, model="qwen3 8b", precision=precision, framework=framework)
    found = resolve(request, KNOWN)
    assert found.precision.family.startswith(family)


@pytest.mark.parametrize(
    ("precision", "framework", "taken"),
    [
        ("2.3bpw", "ExLlamaV2", "EXL2 2.3bpw"),
        ("2.51bit-IQ2_M", None, "IQ2_M"),
        ("int4 (gptq)", None, "GPTQ 4-bit"),
        ("AMXINT4", "llama.cpp", "Q4_0"),
        ("AMXINT8", "llama.cpp", "Q8_0"),
        ("4-bit (AWQ)", "vLLM", "AWQ 4-bit"),
        ("quantized to 8 bits", "llama.cpp", "Q8_0"),
        ("sym_int4", "vLLM", "AWQ 4-bit"),
        ("sym_int8", "llama.cpp", "Q8_0"),
        ("int8dq", "SGLang", "INT8 W8A8"),
        ("int8wo", "SGLang", "GPTQ 8-bit"),
        ("int4wo-128", "SGLang", "AWQ 4-bit"),
        ("fp8dq-per_row", "SGLang", "FP8"),
        ("int4_awq", "TensorRT-LLM", "INT4 AWQ (ModelOpt)"),
        ("int4_awq", "vLLM", "AWQ 4-bit"),
        ("int8 weight-only", "TensorRT-LLM", "INT8 (ModelOpt)"),
        ("int4-int8mix", "vLLM", "GPTQ 4-bit"),
        ("q8f16_0", "MLC-LLM", "Q8_0"),
        ("q0f32", "MLC-LLM", "F32"),
    ],
)
def test_words_of_each_runtime(precision: str, framework: str | None, taken: str) -> None:
    request = Request(gpu="L40S", model="qwen3 8b", precision=precision, framework=framework)
    assert resolve(request, KNOWN).precision.name == taken


@pytest.mark.parametrize(
    ("cache", "framework", "taken"),
    [
        ("8,4", "ExLlamaV3", ("exl-q8", "exl-q4")),
        ("cq4", "ExLlamaV2", ("exl-q4", "exl-q4")),
        ("q8_0/q4_0", "llama.cpp", ("q8_0", "q4_0")),
        ("K q8_0 V q5_1", "llama.cpp", ("q8_0", "q5_1")),
        ("q8/q8", "llama.cpp", ("q8_0", "q8_0")),
        ("int8", "LMDeploy", ("int8_per_token_head", "int8_per_token_head")),
        ("quant_policy=4", "LMDeploy", ("int4_per_token_head", "int4_per_token_head")),
        ("int8", "vLLM", ("int8_per_token_head", "int8_per_token_head")),
        ("fp8_ds_mla", "vLLM", ("fp8", "fp8")),
    ],
)
def test_keys_and_values_of_their_own(cache: str, framework: str, taken: tuple[str, str]) -> None:
    request = Request(gpu="L40S", model="qwen3 8b", kv_cache=cache, framework=framework)
    found = resolve(request, KNOWN)
    assert (found.kv_cache_k.name, found.kv_cache_v.name) == taken


@pytest.mark.parametrize(
    ("card", "framework", "taken"),
    [
        ("M3 Max 64GB", "Ollama", "MLX NVFP4"),
        ("M3 Max 64GB", "MLX-LM", "MLX NVFP4"),
        ("RTX 5090", "vLLM", "NVFP4"),
        ("RTX 5090", "llama.cpp", "NVFP4 (GGUF)"),
    ],
)
def test_nvfp4_is_that_of_the_runtime(card: str, framework: str, taken: str) -> None:
    request = Request(gpu=card, model="qwen3.6 27b", precision="nvfp4", framework=framework)
    assert resolve(request, KNOWN).precision.name == taken


def test_a_mix_of_int4_and_int8_is_said_in_a_name() -> None:
    found = resolve(Request(gpu="8x H100", model="QuantTrio/GLM-4.6-GPTQ-Int4-Int8Mix"), KNOWN)
    assert (found.model.name, found.precision.name) == ("GLM-4.6", "GPTQ 4-bit")


@pytest.mark.parametrize(
    ("precision", "taken"),
    [
        ("2.5 bit EXL2", "EXL2 2.5bpw"),
        ("5bit exl2", "EXL2 5.0bpw"),
        ("exl3 at 3.5 bits", "EXL3 3.5bpw"),
        ("4.0 bpw (exl3)", "EXL3 4.0bpw"),
        ("awq 4bit group size 128", "AWQ 4-bit"),
        ("gptq-4bit-32g-actorder_True", "GPTQ 4-bit"),
        ("4bit group size 32 mlx", "MLX 4-bit"),
        ("MLX mixed 4_6", "MLX mixed"),
        ("bitsandbytes-fp4", "NF4"),
        ("load_in_4bit nf4", "NF4"),
        ("double quantized nf4", "NF4 double quant"),
        ("4-bit bitsandbytes", "NF4"),
        ("HQQ", "HQQ 4-bit"),
        ("hqq 3bit", "HQQ 3-bit"),
        ("fp8-w8a16", "FP8"),
        ("modelopt fp8", "FP8"),
        ("W4A8", "GPTQ 4-bit"),
        ("int8 smoothquant", "INT8 W8A8"),
        ("unsloth 1.58bit", "IQ1_M"),
        ("GGML 4bit", "Q4_K_M"),
        ("4bit (Q4_K_M)", "Q4_K_M"),
        ("Q4_K_M, 4.8bpw", "Q4_K_M"),
        ("q5_k_m / 5bit", "Q5_K_M"),
        ("MOSTLY_Q4_K_M", "Q4_K_M"),
        ("q4f16", "Q4_0"),
        ("i2_s", "TQ2_0"),
    ],
)
def test_a_format_in_other_words_and_another_order(precision: str, taken: str) -> None:
    assert [one.name for one in read_format(KNOWN, precision).formats] == [taken]


@pytest.mark.parametrize(
    "precision",
    ["quant 4", "--quant 4", "unsloth dynamic 4bit", "ipex int4", "INT4 g128 asym", "QAT 4bit"],
)
def test_four_bits_that_name_no_format_are_four_bits(precision: str) -> None:
    assert family_bits(stated(precision)) == 4


@pytest.mark.parametrize("precision", ["ollama default", "default", "none"])
def test_a_default_is_nothing_said(precision: str) -> None:
    assert stated(precision) == ""


@pytest.mark.parametrize(
    ("precision", "nearest"), [("AQLM", "HQQ 2-bit"), ("AQLM 4bit", "HQQ 4-bit"), ("fp6", "Q6_K")]
)
def test_a_format_that_nothing_here_reads_is_answered_with_the_nearest(
    precision: str, nearest: str
) -> None:
    with pytest.raises(RequestError, match="cannot be sized") as refused:
        read_format(KNOWN, precision)
    assert refused.value.instead is not None
    assert refused.value.instead[1] == {"precision": nearest}
