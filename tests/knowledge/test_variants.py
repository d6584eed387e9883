"""Programs that are built on another are sized as that, and what differs is said."""

from __future__ import annotations

import pytest

from tests.commands.test_shown import doc


@pytest.mark.parametrize("name", ["koboldcpp", "KoboldCpp", "ik-llama.cpp", "llamafile"])
def test_a_variant_is_sized_as_what_it_is_built_on(name: str) -> None:
    asked = {"gpu": "RTX 3060 12GB", "model": "llama-3-8b", "precision": "Q4_K_M"}
    base = doc(**asked, framework="llama.cpp")
    found = doc(**asked, framework=name)
    assert found.memory == base.memory
    said = [line for line in found.warnings if "is built on llama.cpp" in line]
    assert len(said) == 1
    assert not [line for line in base.warnings if "is built on" in line]


@pytest.mark.parametrize(
    ("name", "base", "model", "precision"),
    [
        ("ktransformers", "llama.cpp", "deepseek-v2-lite", "Q4_K_M"),
        ("MLC", "llama.cpp", "llama-2-7b", "4bit"),
        ("lmdeploy", "vLLM", "internlm2_5-7b-chat", "AWQ"),
    ],
)
def test_a_program_known_by_name_is_sized_as_what_is_nearest(
    name: str, base: str, model: str, precision: str
) -> None:
    asked = {"gpu": "RTX 4090", "model": model, "precision": precision}
    found = doc(**asked, framework=name)
    nearest = doc(**asked, framework=base).memory
    assert (found.memory.required_bytes, found.memory.per_gpu) == (
        nearest.required_bytes, nearest.per_gpu
    )  # fmt: skip
    assert (found.memory.certainty, nearest.certainty) == ("unverified", "sure")
    assert [line for line in found.warnings if f" is sized as {base}: " in line]


@pytest.mark.parametrize(
    ("name", "gpu", "model", "said"),
    [
        ("LMDeploy", "H100", "gemma-4-31b-it", "to run the architecture 'gemma4'"),
        ("LMDeploy", "RX 7900 XTX", "llama-3.1-8b", "does not run on AMD cards"),
        ("KTransformers", "RTX 2080 Ti", "DeepSeek-V3", "built for Ampere and newer"),
        ("MLC", "RTX 4090", "qwen3.6-35b-a3b", "to run the architecture 'qwen3_5_moe'"),
        ("LMDeploy", "H100", "qwen3-32b", ""),
        ("KTransformers", "RTX 4090", "DeepSeek-V3", ""),
        ("llamafile", "RTX 4090", "llama-3-8b", ""),
    ],
)
def test_what_its_own_record_keeps_it_from_is_said_of_a_program_sized_as_another(
    name: str, gpu: str, model: str, said: str
) -> None:
    found = doc(gpu=gpu, model=model, framework=name)
    limits = [line for line in found.warnings if " alone." in line and "what is said here" in line]
    assert len(limits) == bool(said)
    assert all(said in line and found.scenario.framework in line for line in limits)


@pytest.mark.parametrize(
    ("gpu", "model", "said"),
    [
        ("RTX 5090", "unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "reads bitsandbytes through a plugin"),
        ("MI100", "Qwen2.5-7B-Instruct-GPTQ-Int4", "does not list the MI100"),
    ],
)
def test_what_another_release_runs_is_sized_where_it_is_asked_for(
    gpu: str, model: str, said: str
) -> None:
    found = doc(gpu=gpu, model=model, framework="vLLM")
    assert found.scenario.framework == "vLLM"
    assert [line for line in found.warnings if said in line]
    assert doc(gpu=gpu, model=model).scenario.framework != "vLLM"
