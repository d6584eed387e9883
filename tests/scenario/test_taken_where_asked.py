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
GEMMA = "https://huggingface.co/unsloth/gemma-3-12b-it-GGUF"
VLLM = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": "vLLM"}
LLAMA = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": "llama.cpp", "precision": "q4"}


def taken(asked: dict[str, str]) -> tuple[str, str, str]:
    found = resolve(request_from(asked), KNOWN)
    return found.framework.name, found.precision.name, found.kv_cache_k.name


def instead(asked: dict[str, str]) -> str:
    """What a report of it begins with."""
    return " ".join(Session(files=False).advise(**asked).to_dict()["scenario"]["read_as"])


def said(asked: dict[str, str]) -> str:
    base = Session(files=False).advisor.estimate(request_from(asked))
    return " ".join((*base.scenario.read_as, *request_warnings(base)))


@pytest.mark.parametrize(
    ("asked", "found", "line"),
    [
        (VLLM | {"gpu": "V100 32GB", "precision": "half"}, "FP16", "that has dropped Volta"),
        (VLLM | {"gpu": "MI50", "precision": "gptq"}, "GPTQ 4-bit", "the fork vllm-gfx906"),
        (
            VLLM | {"gpu": "P40", "precision": "gptq", "model": "qwen3-14b"},
            "GPTQ 4-bit",
            "not built for Pascal",
        ),
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
        ("unquantized", "BF16"), ("full precision", "BF16"), ("none", "Q4_K_M"),
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
    titles = [[one["title"] for one in report["recommendations"]] for report in reports]
    assert titles[0] == titles[1]
    assert [one["memory"]["certainty"] for one in reports] == ["unverified", "sure"]
    inside = Session(files=False).advise(**asked | {"framework": "koboldcpp"}).to_dict()
    assert inside["memory"]["certainty"] == "sure"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Gemma-3n", "gemma-3n-E4B-it"), ("qwen3 coder", "Qwen3-Coder-30B-A3B-Instruct"),
        ("llava 1.5", "llava-1.5-7b-hf"),
        ("nemotron 3 nano", "NVIDIA-Nemotron-3-Nano-30B-A3B"), ("qwen36-27b", "Qwen3.6-27B"),
        ("llama31 8b", "Llama-3.1-8B-Instruct"),
    ],
)  # fmt: skip
def test_a_name_that_leaves_the_size_open_is_the_usual_one_with_the_others(
    text: str, name: str
) -> None:
    found = resolve(Request(gpu="RTX 4090", model=text), KNOWN)
    assert found.model.name == name
    assert found.read_as[0].startswith(f"'{text}' is read as {name}")


@pytest.mark.parametrize(
    ("text", "billions", "line"),
    [
        ("13b modelo", 13, "names a size and no model"),
        ("8B", 8, "names a size and no model"),
        ("a 70b model", 70, "names a size and no model"),
        ("32B+ models, Q4_K_M", 32, "names a size and no model"),
        ("Qwen3 {1.7B,4B}", 4, "names 2 sizes: Qwen3-4B, the largest"),
        ("gemma-3 4b/12b/27b", 27, "names 3 sizes"),
        ("gemma3 flavour of your choice", 4, "Ollama's gemma3"),
        ("Qwen2.5-14B Twilight Q5_K_M", 14, "whose name it bears"),
        ("Llama-3.3-70B-Meadow GGUF (IQ4_XS)", 70, "whose name it bears"),
    ],
)
def test_all_that_is_said_of_a_model_is_taken_and_told(text: str, billions: int, line: str) -> None:
    found = resolve(Request(gpu="RTX 4090", model=text), KNOWN)
    assert found.model.label_parameters_b == billions or "bears" in line
    assert found.model.parameters == pytest.approx(billions * 1e9, rel=0.12)
    assert line in " ".join(found.read_as)


def test_a_board_with_other_memory_is_told_louder_where_the_verdict_differs() -> None:
    line = said({"gpu": "RTX 2060", "model": "llama-3.1-8b", "precision": "Q6_K"})
    assert "Taken as GeForce RTX 2060 (6 GB); there is also GeForce RTX 2060 12 GB." in line
    assert "it fits on GeForce RTX 2060 12 GB, and not on GeForce RTX 2060 with 6 GB" in line
    line = said({"gpu": "Arc A770", "model": "llama-3.1-8b", "precision": "Q4_K_M"})
    assert "there is also Arc A770 8 GB" in line
    assert "decides" not in line


def test_of_a_size_the_verdict_that_hangs_on_the_model_is_said() -> None:
    line = said({"gpu": "RTX 4090", "model": "30b"})
    assert "Others of that size" in line
    assert "The name decides the verdict" in line


@pytest.mark.parametrize(
    "text",
    [
        "7b.gguf", "org/7b", "8B\u6a21\u578b", "99b", "llama 3/8b", "Qwen3-8B and Phi Q4_K_M",
        "Qwen3-8B tiny Q4_K_M", "Qwen2.5-14B Twilight", "models/7B/ggml-model-q4_0.bin",
    ],
)  # fmt: skip
def test_what_may_be_another_model_is_not_taken_for_a_size(text: str) -> None:
    with pytest.raises(UserError):
        resolve(Request(gpu="RTX 4090", model=text), KNOWN)


@pytest.mark.parametrize(
    ("text", "name", "held"),
    [
        ("https://huggingface.co/Qwen/Qwen3-14B/discussions/4#66f", "Qwen3-14B", None),
        ("huggingface.co/Qwen/Qwen3-14B/blob/main/README.md", "Qwen3-14B", None),
        ("https://huggingface.co/Qwen/Qwen3-14B/blob/main/config.json", "Qwen3-14B", None),
        (f"{GEMMA}?show_file_info=gemma-3-12b-it-Q6_K.gguf", "gemma-3-12b-it", "Q6_K"),
        ("https://modelscope.cn/models/Qwen/Qwen3-14B/summary", "Qwen3-14B", None),
        ("https://ollama.com/library/gemma3:12b/blobs/e8ad13eff07a", "gemma-3-12b-it", "Q4_K_M"),
        ("lmstudio-community - Qwen3-14B-GGUF - Q8_0 - 15.7 GB", "Qwen3-14B", "Q8_0"),
        ("Qwen3-14B-Q6_K.gguf (12.1 GB)", "Qwen3-14B", "Q6_K"),
    ],
)  # fmt: skip
def test_pages_and_lists_of_files_name_their_model(text: str, name: str, held: str | None) -> None:
    model = resolve(Request(gpu="RTX 4090", model=text), KNOWN).model
    assert (model.name, model.told_format) == (name, held)


@pytest.mark.parametrize(
    ("text", "name"),
    [("sglang.rs", "SGLang"), ("Ollama.js", "Ollama"), ("ooba (ExLlamav3)", "ExLlamaV3")],
)
def test_a_program_with_a_word_of_its_own_is_no_slip(text: str, name: str) -> None:
    asked = {"gpu": "RTX 4090", "model": "qwen3-8b", "framework": text}
    assert taken(asked)[0] == name
    for slip in ("sglangg", "olama"):
        with pytest.raises(UserError):
            taken(asked | {"framework": slip})


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


@pytest.mark.parametrize(("framework", "kept"), [("SGLang", "fp8_e4m3"), ("vLLM", "fp8")])
def test_a_cache_in_fp8_is_the_type_that_the_server_has(framework: str, kept: str) -> None:
    assert taken({**VLLM, "framework": framework, "kv_cache": "fp8"})[2] == kept


def test_a_model_newer_than_the_last_build_for_a_card_does_not_run_there() -> None:
    """The builds of vLLM for Pascal end with 0.10.0, its releases on Volta with 0.19.1."""
    note = instead(VLLM | {"gpu": "P40", "model": "gemma-4-e4b-it"})
    assert "cannot run on Tesla P40 in vLLM: the builds for Pascal" in note
    assert "What follows is of Q4_K_M in llama.cpp" in note
    assert taken(VLLM | {"gpu": "V100 32GB", "model": "gemma-4-e4b-it"})[0] == "vLLM"
    assert "0.19.1, has no class" in instead(VLLM | {"gpu": "V100 32GB", "model": "gemma-4-12b-it"})


def test_what_is_taken_instead_says_what_the_stated_one_holds_and_what_was_passed_over() -> None:
    two = VLLM | {"gpu": "2x RTX 4090", "model": "qwen3.6-35b-a3b", "precision": "Q6_K"}
    assert "What follows is of Q6_K in llama.cpp. vLLM runs FP8, with " in instead(two)
    air = {"model": "glm-4.5-air", "precision": "Q4_K_M", "context": "131072", "ram": "64GB"}
    note = instead(VLLM | air | {"gpu": "RX 7900 XTX"})
    assert "What follows is of IQ4_XS in llama.cpp; Q4_K_M does not fit there." in note
