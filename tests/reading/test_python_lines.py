"""Python that loads a model, as people paste it."""

from __future__ import annotations

import pytest

from advisor.errors import RequestError
from advisor.reading.meanings import not_sized
from advisor.reading.pasted_request import asked_by, read_pasted
from tests.reading.test_command_lines import known

LOADED = """
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")
model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen3-8B", torch_dtype=torch.bfloat16, quantization_config=config,
    attn_implementation="eager", device_map="auto", max_memory={0: "20GiB"},
)
print(model.generate(**inputs, max_length=2048))
"""


def test_from_pretrained() -> None:
    pasted = read_pasted(LOADED)
    found = asked_by(pasted, known())
    assert dict(found.settings) == {
        "model": "Qwen/Qwen3-8B", "precision": "NF4 double quant", "framework": "transformers",
        "context": 2048, "flash_attention": False,
    }  # fmt: skip
    assert not_sized(pasted) == ["max_memory"]
    assert found.places_itself


def test_one_line_of_from_pretrained() -> None:
    line = ">>> m = AutoModel.from_pretrained('Qwen/Qwen3-8B', load_in_8bit=True)"
    assert asked_by(read_pasted(line), known()).settings["precision"] == "INT8 (bitsandbytes)"


def test_the_llm_class_of_vllm_takes_the_flags_of_its_server() -> None:
    text = "llm = LLM('Qwen/Qwen3-8B', tensor_parallel_size=2, max_model_len=8192, no_such=1)"
    pasted = read_pasted(text)
    found = asked_by(pasted, known())
    assert (found.framework, found.cards, found.settings["context"]) == ("vLLM", 2, 8192)
    assert [one.name for one in pasted.unknown] == ["no_such"]


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(RequestError, match="neither a command nor Python"):
        read_pasted("model = AutoModel.from_pretrained('Qwen/Qwen3-8B'")


@pytest.mark.parametrize(
    "text",
    [
        "pipe = pipeline('text-generation', model='Qwen/Qwen3-8B', torch_dtype=torch.bfloat16)",
        "p = transformers.pipeline('text-generation', 'Qwen/Qwen3-8B', device_map='auto')",
    ],
)
def test_a_pipeline_names_its_model_behind_the_task(text: str) -> None:
    assert asked_by(read_pasted(text), known()).settings["model"] == "Qwen/Qwen3-8B"


def test_a_value_may_stand_without_a_space_behind_a_capital() -> None:
    pasted = read_pasted("vllm serve openai/gpt-oss-20b -O3")
    assert not pasted.unknown
    assert not_sized(pasted) == ["-O3"]


@pytest.mark.parametrize(
    ("text", "framework", "settings"),
    [
        (
            'model_id = "Qwen/Qwen3-8B"\nm = AutoModelForCausalLM.from_pretrained(model_id)',
            "transformers",
            {"model": "Qwen/Qwen3-8B"},
        ),
        (
            (
                'from vllm import LLM\nNAME = "Qwen/Qwen3-8B"\nCTX = 8192\n'
                "llm = LLM(model=NAME, max_model_len=CTX)"
            ),
            "vLLM",
            {"model": "Qwen/Qwen3-8B", "context": 8192},
        ),
        (
            (
                "from llama_cpp import Llama\n"
                'llm = Llama(model_path="./m/Qwen3-8B-Q8_0.gguf", n_gpu_layers=-1, n_ctx=8192, '
                "flash_attn=True, type_k=8, type_v=8)"
            ),
            "llama.cpp",
            {"precision": "Q8_0", "context": 8192, "gpu_layers": "all", "kv_cache_k": "q8_0"},
        ),
        (
            'Llama.from_pretrained(repo_id="Qwen/Qwen2.5-7B-Instruct-GGUF", filename="*q8_0.gguf")',
            "llama.cpp",
            {"model": "Qwen2.5-7B-Instruct", "precision": "Q8_0", "context": 2048},
        ),
        (
            (
                "import sglang as sgl\n"
                'llm = sgl.Engine(model_path="Qwen/Qwen3-8B", mem_fraction_static=0.8, tp_size=2)'
            ),
            "SGLang",
            {"gpu_memory_utilization": 0.8, "split": "tensor"},
        ),
        (
            (
                "from mlx_lm import load, generate\n"
                'model, tokenizer = load("mlx-community/Qwen3-32B-4bit")\n'
            ),
            "MLX-LM",
            {"model": "mlx-community/Qwen3-32B-4bit"},
        ),
    ],
)
def test_calls_that_load_a_model_are_read_with_the_names_put_in(
    text: str, framework: str, settings: dict[str, object]
) -> None:
    pasted = read_pasted(text)
    found = asked_by(pasted, known())
    assert not pasted.unknown
    assert found.framework == framework
    assert settings.items() <= found.settings.items()
