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
