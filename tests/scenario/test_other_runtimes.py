"""What runtimes beside vLLM, SGLang and llama.cpp refuse, as it was read in their source."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.report.assembly import document
from advisor.scenario import support
from advisor.scenario.asked_model import model_named
from advisor.scenario.resolve import problems_of
from advisor.scenario.settings import Request
from tests.remedies.asking import advised


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge()


def _why(knowledge: Knowledge, **asked: Any) -> str:
    """Say what is wrong with a request; empty where nothing is."""
    return " ".join(map(str, problems_of(Request(**asked), knowledge)))


@pytest.mark.parametrize("bits", ["mlx-8bit", "mlx-4bit"])
@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gemma-3-12b", "cache of a sliding window"), ("gpt-oss-20b", "cache of a sliding window"),
        ("gemma-4-31b-it", "cache of a sliding window"), ("glm-4.7-flash", "a latent cache"),
        ("deepseek-v3.2", "stay in 16 bits"), ("llama-4-scout", "stay in 16 bits"),
        ("phi-3-mini", "groups of 64"), ("qwen3-14b", ""), ("llama-3.1-8b", ""),
        ("qwen3-next-80b", ""), ("deepseek-v2-lite", ""),
    ],
)  # fmt: skip
def test_mlx_quantises_plain_caches_of_even_heads_alone(
    knowledge: Knowledge, model: str, said: str, bits: str
) -> None:
    asked = {"gpu": "M3 Ultra:512GB", "model": model, "framework": "MLX-LM"}
    why = _why(knowledge, **asked, kv_cache=bits)
    assert said in why
    assert bool(why) == bool(said)
    assert not _why(knowledge, **asked)


@pytest.mark.parametrize(
    ("framework", "model", "splits"),
    [
        ("ExLlamaV3", "qwen3-next-80b", False), ("ExLlamaV3", "glm-4.7-flash", False),
        ("ExLlamaV3", "olmo-3-32b", False), ("ExLlamaV3", "qwen3-32b", True),
        ("ExLlamaV3", "gpt-oss-20b", True), ("ExLlamaV2", "gemma-2-27b", False),
        ("ExLlamaV2", "mixtral-8x7b", False), ("ExLlamaV2", "qwen2.5-32b", True),
        ("ExLlamaV2", "llama-3-70b", True),
    ],
)  # fmt: skip
def test_exllama_splits_every_tensor_of_some_classes(
    knowledge: Knowledge, framework: str, model: str, *, splits: bool
) -> None:
    asked = {"gpu": "2x RTX 3090", "model": model, "framework": framework}
    why = _why(knowledge, **asked, split="tensor")
    assert bool(why) != splits
    assert not why or (f"{framework} does not split" in why and "--split layer" in why)
    assert "cards can" not in why
    assert not _why(knowledge, **asked, split="layer")


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ("W7900", ""), ("RX 9070 XT", ""), ("RTX 3090", ""),
        ("RX 6800", "run from RDNA 3 on"), ("MI300X", "32 lanes"), ("Radeon VII", "32 lanes"),
    ],
)  # fmt: skip
def test_exllamav3_runs_on_the_cards_of_amd_that_its_build_has_been_run_on(
    knowledge: Knowledge, card: str, reason: str
) -> None:
    why = _why(knowledge, gpu=card, model="qwen3-8b", framework="ExLlamaV3", precision="INT4")
    assert reason in why
    assert bool(why) == bool(reason)


def test_exllamav3_splits_layers_alone_over_cards_of_amd(knowledge: Knowledge) -> None:
    asked = {"gpu": "2x RX 7900 XTX", "model": "qwen3-32b", "framework": "ExLlamaV3"}
    asked["precision"] = "INT4"
    assert "not been validated" in _why(knowledge, **asked, split="tensor")
    assert not _why(knowledge, **asked, split="layer")
    assert "architecture 'llama4'" in _why(knowledge, **(asked | {"model": "llama-4-scout"}))


def test_exllama_has_no_inputs_per_layer_and_of_llava_pixtral_alone(knowledge: Knowledge) -> None:
    card = knowledge.gpus["GeForce RTX 3090"]

    def why(framework: str, precision: str, name: str) -> str:
        known, model = knowledge, model_named(name, knowledge).model
        return support.why_not(known.frameworks[framework], known.formats[precision], card, model)

    for name in ("gemma-4-E2B-it", "gemma-4-E4B-it"):
        assert "inputs per layer" in why("ExLlamaV3", "EXL3 4.0bpw", name)
    for name in ("gemma-4-31b-it", "gemma-4-26b-a4b-it"):
        assert not why("ExLlamaV3", "EXL3 4.0bpw", name)
    assert "Pixtral alone" in why("ExLlamaV2", "EXL2 4.0bpw", "llava-1.5-7b")
    assert not why("ExLlamaV2", "EXL2 4.0bpw", "pixtral-12b")


@pytest.mark.parametrize("precision", ["NVFP4", "INT8 W8A8"])
@pytest.mark.parametrize("card", ["RTX 4090", "H100", "RTX 5090", "B200"])
def test_transformers_keeps_neither_nvfp4_nor_int8_files_small(
    knowledge: Knowledge, precision: str, card: str
) -> None:
    asked = {"gpu": card, "model": "qwen3-8b", "framework": "transformers"}
    assert f"does not load {precision} checkpoints" in _why(knowledge, **asked, precision=precision)
    assert not _why(knowledge, **asked, precision="NF4")


@pytest.mark.parametrize(
    ("model", "runs"),
    [
        ("qwen3.6-27b", True), ("qwen3-vl-32b", True), ("minimax-m2", True), ("seed-oss-36b", True),
        ("kimi-linear", True), ("qwen3-embedding-8b", True), ("bge-large-en-v1.5", False),
        ("glm-4.7-flash", False), ("granite-4.0-h-small", False), ("gemma-3n-e4b", False),
    ],
)  # fmt: skip
def test_tensorrt_llm_runs_the_classes_of_its_own_registry(
    knowledge: Knowledge, model: str, *, runs: bool
) -> None:
    assert bool(_why(knowledge, gpu="8x H100", model=model, framework="TensorRT-LLM")) != runs


def test_tensorrt_llm_keeps_16_bits_and_fp8(knowledge: Knowledge) -> None:
    asked = {"gpu": "H100", "model": "llama-3.1-8b", "framework": "TensorRT-LLM"}
    assert "as int8" in _why(knowledge, **asked, kv_cache="int8")
    assert not _why(knowledge, **asked, kv_cache="fp8")


@pytest.mark.parametrize(
    ("framework", "known", "unknown"),
    [
        ("LMDeploy", ("qwen3.6-35b-a3b", "Kimi-K2-Instruct", "deepseek-v3.2"), ("gemma-4-31b-it",)),
        ("MLC-LLM", ("qwen3.6-27b", "llama-3-8b"), ("gemma-4-31b-it", "qwen3.6-35b-a3b")),
        ("KTransformers", ("deepseek-v3.2", "qwen3-next-80b"), ("llama-3-8b", "qwen3-32b")),
    ],
)
def test_the_lists_of_programs_known_by_name(
    knowledge: Knowledge, framework: str, known: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    runtime = knowledge.frameworks[framework]
    for names, listed in ((known, True), (unknown, False)):
        for name in names:
            assert support.supports_model(runtime, model_named(name, knowledge).model) == listed


@pytest.mark.parametrize(
    ("framework", "model", "batch", "said"),
    [
        ("Ollama", "qwen3.5-9b", 8, True), ("Ollama", "qwen3-vl-8b", 2, True),
        ("Ollama", "qwen3.5-9b", 1, False), ("Ollama", "qwen3-8b", 8, False),
        ("llama.cpp", "qwen3.5-9b", 8, False),
    ],
)  # fmt: skip
def test_ollama_answers_some_architectures_one_request_at_a_time(
    framework: str, model: str, batch: int, *, said: bool
) -> None:
    found = advised(gpu="RTX 3090", model=model, framework=framework, batch=batch)
    assert any("OLLAMA_NUM_PARALLEL as 1" in line for line in document(found).warnings) == said
    alone = framework == "Ollama" and model != "qwen3-8b"
    assert alone != any(one.action == "grow-batch" for one in found.options)
