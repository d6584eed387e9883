"""What is sized only where it is asked for, and what is taken for a word that leaves it open."""

from __future__ import annotations

import pytest

from advisor.advice.preparation import request_warnings
from advisor.api import Session
from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request, request_from

KNOWN = load_knowledge()
VLLM = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": "vLLM"}
LLAMA = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": "llama.cpp", "precision": "q4"}


def taken(asked: dict[str, str]) -> tuple[str, str, str]:
    found = resolve(request_from(asked), KNOWN)
    return found.framework.name, found.precision.name, found.kv_cache_k.name


def said(asked: dict[str, str]) -> str:
    base = Session(files=False).advisor.estimate(request_from(asked))
    return " ".join((*base.scenario.read_as, *request_warnings(base)))


@pytest.mark.parametrize(
    ("asked", "found", "line"),
    [
        (VLLM | {"gpu": "V100 32GB", "precision": "half"}, "FP16", "which has dropped Volta"),
        (VLLM | {"gpu": "MI50", "precision": "gptq"}, "GPTQ 4-bit", "the fork vllm-gfx906"),
        (VLLM | {"gpu": "P40", "precision": "gptq"}, "GPTQ 4-bit", "not built for Pascal"),
        (VLLM | {"precision": "Q4_K_M"}, "Q4_K_M", "through a plugin"),
        (VLLM | {"gpu": "A100 80GB", "model": "Qwen-14B"}, "FP16", "in the releases before"),
    ],
)
def test_what_another_release_or_build_runs_is_sized_as_there(
    asked: dict[str, str], found: str, line: str
) -> None:
    assert taken(asked)[:2] == ("vLLM", found)
    assert line in said(asked)


@pytest.mark.parametrize(
    "asked",
    [
        VLLM | {"gpu": "V100 32GB", "precision": "awq"},  # its kernels begin with Turing
        VLLM | {"gpu": "P40", "precision": "fp8"},
        VLLM | {"gpu": "RX 6800"},
        LLAMA | {"kv_cache": "turboquant_3bit_nc"},
        VLLM | {"kv_cache": "turbo3"},
    ],
)
def test_what_no_release_runs_stays_refused(asked: dict[str, str]) -> None:
    with pytest.raises(UserError):
        taken(asked)


def test_nothing_of_it_is_a_default_or_a_remedy() -> None:
    for asked in ({"gpu": "V100 32GB", "model": "qwen3-8b"}, LLAMA | {"context": "131072"}):
        found = Session(files=False).advise(**asked).to_dict()
        changes = [item["change"] for item in found["recommendations"]]
        assert found["scenario"]["framework"] != "vLLM"
        assert not any("turbo" in str(change) for change in changes)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (LLAMA | {"kv_cache": "8bit"}, "q8_0"), (LLAMA | {"kv_cache": "fp8"}, "q8_0"),
        (LLAMA | {"kv_cache": "int4"}, "q4_0"), (LLAMA | {"kv_cache": "auto"}, "f16"),
        (VLLM | {"kv_cache": "q8"}, "fp8"), (VLLM | {"kv_cache": "bf16"}, "f16"),
        (LLAMA | {"kv_cache": "tq3_0"}, "turbo3"),
        (VLLM | {"kv_cache": "turboquant_3bit_nc"}, "turboquant_3bit_nc"),
    ],
)  # fmt: skip
def test_a_cache_told_by_its_bits_is_the_runtimes_own(asked: dict[str, str], kind: str) -> None:
    assert taken(asked)[2] == kind
    assert kind in said(asked) or "TurboQuant" in said(asked)


def test_exact_types_of_another_runtime_are_not_taken_for_its_own() -> None:
    for kind in ("q8_0", "q4_1", "exl-q6"):
        with pytest.raises(UserError, match="cannot keep"):
            taken(VLLM | {"kv_cache": kind})


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("unquantized", "FP16"), ("full precision", "FP16"), ("none", "Q4_K_M"),
        ("default", "Q4_K_M"), ("gguf q5", "Q5_K_M"), ("Q4 QAT", "Q4_K_M"), ("Q4_0_4_4", "Q4_0"),
    ],
)  # fmt: skip
def test_words_for_no_format_and_for_a_usual_one(text: str, precision: str) -> None:
    assert taken({"gpu": "RTX 4090", "model": "qwen3-8b", "precision": text})[1] == precision


def test_mlx_takes_its_own_format_of_as_many_bits() -> None:
    asked = {"gpu": "M4 Max 64GB", "model": "qwen3-32b", "framework": "MLX", "precision": "Q5_K_M"}
    assert taken(asked)[1] == "MLX 5-bit"
    assert "Q5_K_M is a type of GGUF files: MLX 5-bit" in said(asked)


def test_a_program_that_nothing_describes_is_sized_as_what_runs_the_format() -> None:
    asked = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": "FreeToken"}
    plain = {name: text for name, text in asked.items() if name != "framework"}
    assert taken(asked) == taken(plain)
    assert "Nothing here describes FreeToken: it is sized as llama.cpp" in said(asked)
    assert "whose name it bears" in said(asked | {"framework": "nano-vllm"})
    reports = [Session(files=False).advise(**one).to_dict() for one in (asked, plain)]
    assert reports[0]["recommendations"] == reports[1]["recommendations"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Gemma-3n", "gemma-3n-E4B-it"), ("qwen3 coder", "Qwen3-Coder-30B-A3B-Instruct"),
        ("llava 1.5", "llava-1.5-7b-hf"),
        ("nemotron 3 nano", "NVIDIA-Nemotron-3-Nano-30B-A3B"), ("qwen36-27b", "Qwen3.6-27B"),
        ("llama31 8b", "Llama-3.1-8B"),
    ],
)  # fmt: skip
def test_a_name_that_leaves_the_size_open_is_the_usual_one_with_the_others(
    text: str, name: str
) -> None:
    found = resolve(Request(gpu="RTX 4090", model=text), KNOWN)
    assert found.model.name == name
    assert found.read_as[0].startswith(f"'{text}' is read as {name}")


def test_a_size_or_words_of_no_family_are_not_taken_for_one() -> None:
    for text in ("small 24b", "nano 99b", "3n", "flash"):
        with pytest.raises(UserError):
            resolve(Request(gpu="RTX 4090", model=text), KNOWN)


def test_the_format_of_ollamas_library_is_not_another_runtimes() -> None:
    for text in ("llama3.3", "llama3.3:70b"):
        asked = {"gpu": "RTX PRO 6000", "model": text}
        assert taken(asked | {"framework": "vLLM"})[1] == "BF16"
        assert taken(asked | {"framework": "Ollama"})[1] == "Q4_K_M"
    file = {"gpu": "RTX 4090", "model": "bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M"}
    assert taken(file | {"framework": "vLLM"})[1] == "Q4_K_M"
