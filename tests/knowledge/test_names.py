from __future__ import annotations

import pickle

import pytest

from advisor.errors import RequestError
from advisor.knowledge import names
from advisor.knowledge.index import gpu_form, model_key
from advisor.knowledge.names import (
    backend_beside,
    find_format_candidates,
    find_framework,
    find_kv_type,
    find_model,
    sized_framework,
)
from advisor.knowledge.types import Knowledge
from advisor.reading import find_gpu
from advisor.reading.known import siblings

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RTX 4090", "GeForce RTX 4090"),
        ("4090", "GeForce RTX 4090"),
        ("rtx4090", "GeForce RTX 4090"),
        ("rtx-4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("RTX 4090 Laptop GPU", "GeForce RTX 4090 Mobile"),
        ("4090 laptop", "GeForce RTX 4090 Mobile"),
        ("RTX 4060", "GeForce RTX 4060"),
        ("3080 ti", "GeForce RTX 3080 Ti"),
        ("RTX 3060 12GB", "GeForce RTX 3060 12 GB"),
        ("RTX 3060 12 GB", "GeForce RTX 3060 12 GB"),
        ("RTX 3060 Max-Q", "GeForce RTX 3060 Max-Q"),
        ("RTX 3080", "GeForce RTX 3080"),
        ("RTX 4070", "GeForce RTX 4070"),
        ("4070 Ti SUPER", "GeForce RTX 4070 Ti SUPER"),
        ("7900xtx", "Radeon RX 7900 XTX"),
        ("AMD Radeon RX 7900 XTX", "Radeon RX 7900 XTX"),
        ("MI50", "Radeon Instinct MI50"),
        ("AMD Instinct MI300X", "Radeon Instinct MI300X"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80 GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80 GB"),
        ("Tesla V100-SXM2-16GB", "Tesla V100 SXM2 16 GB"),
        ("A6000", "RTX A6000"),
        ("RTX 6000 Ada", "RTX 6000 Ada Generation"),
        ("RTX PRO 6000", "RTX PRO 6000 Blackwell"),
        ("W7900", "Radeon PRO W7900"),
        ("A770", "Arc A770"),
        ("Gaudi3", "Intel Gaudi 3"),
        ("apple m2 max", "Apple M2 Max"),
        ("M3 Max 40-core:128GB", "Apple M3 Max (40-core GPU)"),
        ("dgx-spark", "DGX Spark (GB10)"),
        ("Ryzen AI Max+ 395", "Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)"),
        ("4090 24GB", "GeForce RTX 4090"),
    ],
)
def test_finds_the_card_people_mean(knowledge: Knowledge, text: str, name: str) -> None:
    assert find_gpu(knowledge, text).name == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("T4", "Tesla T4"),
        ("Jetson T4000", "Jetson T4000"),
        ("A10", "A10 PCIe"),
        ("A10M", "A10M"),
        ("A40", "A40 PCIe"),
        ("Arc Pro A40", "Arc Pro A40"),
        ("M2:16GB", "Apple M2"),
        ("M4:16GB", "Apple M4"),
        ("P100 SXM2", "Tesla P100 SXM2"),
        ("A800 SXM4 80 GB", "A800 SXM4 80 GB"),
        ("H800 SXM5", "H800 SXM5"),
        ("RTX 3050 8 GB GA107", "GeForce RTX 3050 8 GB GA107"),
        ("RTX 3060 8 GB", "GeForce RTX 3060 8 GB"),
        ("H100 PCIe 80 GB", "H100 PCIe 80 GB"),
        ("V100S", "Tesla V100S PCIe 32 GB"),
    ],
)
def test_a_part_of_a_word_never_matches(knowledge: Knowledge, text: str, name: str) -> None:
    assert find_gpu(knowledge, text).name == name


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("3060", ["GeForce RTX 3060 8 GB", "GeForce RTX 3060 12 GB"]),
        ("RTX 3050", ["GeForce RTX 3050 4 GB", "GeForce RTX 3050 6 GB"]),
        ("4060 Ti", ["GeForce RTX 4060 Ti 8 GB", "GeForce RTX 4060 Ti 16 GB"]),
        ("5060 Ti", ["GeForce RTX 5060 Ti 8 GB", "GeForce RTX 5060 Ti 16 GB"]),
        ("A100", ["A100 PCIe 40 GB", "A100 SXM4 80 GB"]),
        ("H100", ["H100 PCIe 80 GB", "H100 SXM5 80 GB", "H100 NVL 94 GB"]),
        ("V100", ["Tesla V100 SXM2 16 GB", "Tesla V100 SXM2 32 GB"]),
        ("P100", ["Tesla P100 PCIe 12 GB"]),
        ("M3 Max", ["Apple M3 Max (30-core GPU)", "Apple M3 Max (40-core GPU)"]),
        ("M4 Max", ["Apple M4 Max (32-core GPU)", "Apple M4 Max (40-core GPU)"]),
        ("M4", ["Apple M4"]),
    ],
)
def test_where_nothing_may_be_assumed_an_ambiguous_name_is_refused(
    knowledge: Knowledge, text: str, candidates: list[str]
) -> None:
    with pytest.raises(RequestError) as caught:
        find_gpu(knowledge, text)
    message = str(caught.value)
    assert f"'{text}' names several cards" in message
    assert all(name in message for name in candidates)


@pytest.mark.parametrize(
    ("text", "name", "gib"),
    [
        ("3060:12GB", "GeForce RTX 3060 12 GB", 12),
        ("3060:8", "GeForce RTX 3060 8 GB", 8),
        ("RTX 3060:8 GiB", "GeForce RTX 3060 8 GB", 8),
        ("RTX 3080:12GB", "GeForce RTX 3080 12 GB", 12),
        ("RTX 3080:10GB", "GeForce RTX 3080", 10),
        ("RTX 4090:24GB", "GeForce RTX 4090", 24),
        ("A100 SXM4:80GB", "A100 SXM4 80 GB", 80),
        ("Apple M2 Max:32GB", "Apple M2 Max", 32),
        ("M3 Ultra:512GB", "Apple M3 Ultra", 512),
        ("M5:16GB", "Apple M5", 16),
        ("Radeon 8050S:64GB", "Radeon 8050S (Ryzen AI Max, Strix Halo)", 64),
    ],
)
def test_a_size_picks_or_sets_the_memory(
    knowledge: Knowledge, text: str, name: str, gib: int
) -> None:
    card = find_gpu(knowledge, text)
    assert (card.name, card.vram_bytes) == (name, gib * GIB)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("Apple M5", "names several cards: Apple M5 (16 GB), Apple M5 (24 GB)"),
        ("Arc Graphics 112EU Mobile", "NAME:SIZE"),
        ("RTX 4090:40GB", "no such card has 40 GB"),
        ("A100:80GB", "A100 SXM4 80 GB, A100 PCIe 80 GB"),
        ("RTX 4090:lots", "not a memory size"),
        ("RTX 4090:", "not a memory size"),
        ("RTX 4091", "Did you mean 'GeForce RTX 4090'"),
        ("RX 4090", "Did you mean 'GeForce RTX 4090'"),
        ("RTX 4090 Ti", "unknown GPU 'RTX 4090 Ti'"),
        ("RTX 3070 20GB", "known: GeForce RTX 3070 (8 GB)"),
        ("NVIDIA", "Write the model too"),
        ("", "unknown GPU"),
        ("Voodoo 5", "unknown GPU 'Voodoo 5'"),
    ],
)
def test_what_cannot_be_settled_says_what_to_write(
    knowledge: Knowledge, text: str, fragment: str
) -> None:
    with pytest.raises(RequestError) as caught:
        find_gpu(knowledge, text)
    assert fragment in str(caught.value)


def test_every_card_is_found_by_its_own_name_and_aliases(knowledge: Knowledge) -> None:
    lost = []
    for card in knowledge.gpus.values():
        for spelling in (card.name, *card.aliases):
            size = min(card.vram_sizes, default=64 * GIB) // GIB
            asked = spelling if card.vram_bytes else f"{spelling}:{size}GB"
            if find_gpu(knowledge, asked).name != card.name:
                lost.append((card.name, spelling))
    assert lost == []


def test_names_and_aliases_of_cards_are_unique(knowledge: Knowledge) -> None:
    owner: dict[str, str] = {}
    for card in knowledge.gpus.values():
        keys = {gpu_form(t, card.vendor, card.name).bare for t in (card.name, *card.aliases)}
        for key in keys:
            assert owner.setdefault(key, card.name) == card.name


def test_cards_with_several_sizes_have_no_bare_alias(knowledge: Knowledge) -> None:
    bare = {"3060", "3050", "4060 ti", "5060 ti", "a100", "h100", "v100", "p100"}
    aliases = {alias.casefold() for card in knowledge.gpus.values() for alias in card.aliases}
    assert not bare & aliases


def test_siblings_are_boards_of_one_name_that_differ(knowledge: Knowledge) -> None:
    found = {
        name: {(one.name, one.vram_bytes) for one in siblings(knowledge, find_gpu(knowledge, name))}
        for name in ("RTX 3080", "RTX 4070", "RTX 4090", "Arc A770", "RX 5500 XT")
    }
    assert found == {
        "RTX 3080": {("GeForce RTX 3080 12 GB", 12 * GIB)},
        "RTX 4070": set(),
        "RTX 4090": set(),
        "Arc A770": {("Arc A770 8 GB", 8 * GIB)},
        "RX 5500 XT": {("Radeon RX 5500 XT", 8 * GIB)},
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("phi-3-medium", "Phi-3-medium-4k-instruct"),
        ("Phi 3 Medium", "Phi-3-medium-4k-instruct"),
        ("phi3:medium", "Phi-3-medium-4k-instruct"),
        ("microsoft/Phi-3-medium-4k-instruct", "Phi-3-medium-4k-instruct"),
        ("phi-3-medium-128k", "Phi-3-medium-128k-instruct"),
        ("phi-3-small", "Phi-3-small-8k-instruct"),
        ("phi-3-mini", "Phi-3-mini-4k-instruct"),
        ("llava-1.6-13b", "llava-v1.6-vicuna-13b-hf"),
        ("llama-3-8b", "Meta-Llama-3-8B"),
        ("llama-3.1-8b", "Llama-3.1-8B"),
        ("Llama 3.1 8B Instruct", "Llama-3.1-8B"),
        ("llama3.1:8b", "Llama-3.1-8B"),
        ("gemma-2-27b", "gemma-2-27b"),
        ("mixtral-8x7b", "Mixtral-8x7B-Instruct-v0.1"),
        ("qwen2.5-7b", "Qwen2.5-7B-Instruct"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("deepseek-r1", "DeepSeek-R1"),
        ("deepseek-v2-lite", "DeepSeek-V2-Lite"),
        ("gpt-oss-20b", "gpt-oss-20b"),
        ("tinyllama", "TinyLlama-1.1B-Chat-v1.0"),
        ("command-r", "c4ai-command-r-08-2024"),
        ("qwen3-4b", "Qwen3-4B"),
        ("phi-1.5", "phi-1_5"),
        ("llama_3_8b", "Meta-Llama-3-8B"),
        ("llama_3_1_70b", "Llama-3.1-70B"),
        ("gemma_2_27b", "gemma-2-27b"),
        ("qwen2.5_32b", "Qwen2.5-32B-Instruct"),
        ("Qwen3_30B_A3B", "Qwen3-30B-A3B"),
        ("stablelm-2-1.6b", "stablelm-2-1_6b-chat"),
    ],
)
def test_finds_the_model_people_mean(knowledge: Knowledge, text: str, name: str) -> None:
    assert find_model(knowledge, text).name == name


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("gpt-oss", "'gpt-oss' names several models: gpt-oss-20b, gpt-oss-120b."),
        ("lama-3.1-8b", "Did you mean 'Llama-3.1-8B'"),
        ("llama-3.1-9b", "unknown model 'llama-3.1-9b'"),
        ("phi-5", "unknown model 'phi-5'. Did you mean 'phi-1_5', 'phi-4' or 'phi-2'?"),
        ("bert-base", "unknown model 'bert-base'. Try 'advisor knowledge find WORD', give"),
        ("someone/Phi-3-medium-4k-instruct", "'microsoft/Phi-3-medium-4k-instruct'"),
        ("someone/nothing-like-it", "config.json"),
        ("", "unknown model"),
        ("instruct", "unknown model"),
    ],
)
def test_an_unknown_model_says_what_to_write(
    knowledge: Knowledge, text: str, fragment: str
) -> None:
    with pytest.raises(RequestError) as caught:
        find_model(knowledge, text)
    assert fragment in str(caught.value)


def test_every_model_is_found_by_its_names_and_id(knowledge: Knowledge) -> None:
    for model in knowledge.models.values():
        for spelling in (model.name, *model.aliases, *([model.hf_id] if model.hf_id else [])):
            assert find_model(knowledge, spelling).name == model.name


def test_names_and_aliases_of_models_are_unique(knowledge: Knowledge) -> None:
    owner: dict[str, str] = {}
    for model in knowledge.models.values():
        for key in {model_key(text) for text in (model.name, *model.aliases)}:
            assert owner.setdefault(key, model.name) == model.name


@pytest.mark.parametrize("text", ["Q4_K_M", "q4_k_m", "q4-k-m", "Q4KM"])
def test_formats_are_blind_to_case_and_punctuation(knowledge: Knowledge, text: str) -> None:
    assert [f.name for f in find_format_candidates(knowledge, text)] == ["Q4_K_M"]


def test_an_unknown_format_framework_or_cache_type_names_the_nearest(knowledge: Knowledge) -> None:
    with pytest.raises(RequestError, match=r"unknown weight format 'Q4_K_X'.*Q4_K"):
        find_format_candidates(knowledge, "Q4_K_X")
    with pytest.raises(RequestError, match=r"unknown framework 'lama.cpp'.*llama\.cpp"):
        find_framework(knowledge, "lama.cpp")
    with pytest.raises(RequestError, match="unknown KV-cache type 'q8_1x'"):
        find_kv_type(knowledge, "q8_1x")


BESIDE = {
    "vLLM V1": "vLLM",
    "vllm 0.11.0": "vLLM",
    "Ollama v0.6.8": "Ollama",
    "ollama (docker)": "Ollama",
    "lm studio 0.3.16": "LM Studio",
    "llama.cpp server": "llama.cpp",
    "llama.cpp Vulkan": "llama.cpp",
    "KoboldCpp 1.83": "llama.cpp",
    "lmdeploy turbomind": "vLLM",
    "transformers + bitsandbytes": "transformers",
    "exllamav2-0.0.18+cu121": "ExLlamaV2",
    "ollama v0.16.0-rocm": "Ollama",
    "vllm v0.10.1.dev101+gbda9d0535": "vLLM",
    "exui": "ExLlamaV2",
    "oMLX": "MLX-LM",
    "rapid-mlx 0.7.26": "MLX-LM",
    "Aphrodite Engine": "vLLM",
    "oobabooga": "text-generation-webui",
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm-gfx906", "vLLM"), ("Jan.ai", "llama.cpp"), ("nano-vllm", "vLLM"),
        ("open-webui + ollama", "Ollama"), ("mlx_lm.server", "MLX-LM"), ("TEI", "transformers"),
        ("FreeToken", None), ("mistral.rs", None), ("DeepSpeed", None),
    ],
)  # fmt: skip
def test_a_program_is_sized_as_what_its_name_bears_or_as_any(
    knowledge: Knowledge, text: str, name: str | None
) -> None:
    found = sized_framework(knowledge, text)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("olama", "Did you mean 'Ollama'"), ("koboltcpp", "unknown framework"),
        ("axolotl", "trains models"), ("LLaMA-Factory", "trains models"), ("0.11", "unknown"),
    ],
)  # fmt: skip
def test_slips_and_trainers_are_no_other_program(
    knowledge: Knowledge, text: str, said: str
) -> None:
    with pytest.raises(RequestError) as refused:
        sized_framework(knowledge, text)
    assert said in str(refused.value)


def test_frameworks_and_cache_types_are_found_by_name(knowledge: Knowledge) -> None:
    assert find_framework(knowledge, "LLAMA.CPP").name == "llama.cpp"
    for text, name in BESIDE.items():
        found = sized_framework(knowledge, text)
        assert found is not None
        assert found.name == name, text
    for text in ("vllm sglang", "ollama vllm", "foo vllm", "0.11"):
        with pytest.raises(RequestError):
            find_framework(knowledge, text)
    assert backend_beside("llama.cpp (Vulkan, b6500)") == "Vulkan"
    assert find_kv_type(knowledge, "Q8_0").name == "q8_0"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("EXL2", "'EXL2 4.0bpw', 'EXL2 5.0bpw' or 'EXL2 6.0bpw'"),
        ("exl 3", "'EXL3 4.0bpw', 'EXL3 5.0bpw' or 'EXL3 6.0bpw'"),
        ("MLX", "'MLX 4-bit', 'MLX 6-bit' or 'MLX 8-bit'"),
        ("IQ2_X", "'IQ2_XS' or 'IQ2_XXS'"),
        ("Q4_K_N", "'Q4_K_"),  # nothing begins so: near names
    ],
)
def test_a_family_of_formats_is_told_its_sizes(knowledge: Knowledge, text: str, names: str) -> None:
    with pytest.raises(RequestError, match=r"unknown weight format") as found:
        find_format_candidates(knowledge, text)
    assert f"Did you mean {names}" in str(found.value)


@pytest.mark.parametrize(
    ("text", "framework", "name"),
    [
        ("q4", None, "q4_0"),
        ("q4", "llama.cpp", "q4_0"),
        ("q4", "ExLlamaV2", "exl-q4"),
        ("fp8", "vLLM", "fp8"),
        ("fp8", "ExLlamaV2", "exl-8bit"),
        ("8bit", "MLX-LM", "mlx-8bit"),
        ("fp16", "vLLM", "f16"),
        ("BFloat16", None, "bf16"),
    ],
)
def test_one_word_for_a_cache_is_the_framework_s_own(
    knowledge: Knowledge, text: str, framework: str | None, name: str
) -> None:
    runtime = knowledge.frameworks[framework] if framework else None
    assert find_kv_type(knowledge, text, runtime).name == name


def test_nearest_names_are_looked_for_where_somebody_reads_them(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is tried in many ways before it is refused; another process has to get the hint."""
    asked: list[str] = []

    def nearest(text: str, *_: object) -> list[str]:
        asked.append(text)
        return []

    monkeypatch.setattr(names, "nearest", nearest)
    error = names.unknown_model(knowledge, "llama-9-sparkle")
    assert asked == []
    assert "knowledge find" in pickle.loads(pickle.dumps(error)).hint  # noqa: S301  our own
    assert error.hint == error.hint
    assert asked == ["llama-9-sparkle"]
