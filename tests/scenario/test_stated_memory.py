"""What is stated of the memory beside a model: every command takes it, and the report says it."""

from __future__ import annotations

import pytest

from advisor.advice.command_check import check_command
from advisor.bulk.reverse.answers import Settings
from advisor.bulk.reverse.cards import CardFilter, gpus_for
from advisor.reading.sentences import read_sentence
from advisor.scenario.settings import Request
from tests.remedies.asking import advisor

VISION = {"gpu": "RTX 4090", "model": "Qwen2.5-VL-7B-Instruct", "precision": "FP16"}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"reserve_gib": 2.0}, "2 GiB of each card is left to other programs"),
        ({"text_only": True}, "part that reads images is left out"),
        ({"framework": "vLLM", "eager": True}, "without CUDA graphs"),
        ({"framework": "vLLM", "gpu_memory_utilization": 0.8}, "claims 0.8 of each card"),
        ({"framework": "vLLM", "max_num_batched_tokens": 4096}, "up to 4,096 tokens in one step"),
        ({"framework": "llama.cpp", "eager": True}, "changes nothing in llama.cpp"),
        ({"framework": "TGI", "eager": True}, "changes nothing in TGI"),
        ({"framework": "SGLang", "gpu_memory_utilization": 0.8}, "claims 0.8 of each card"),
    ],
)
def test_the_report_says_what_was_stated(stated: dict[str, object], said: str) -> None:
    lines = advisor().estimate(Request(**VISION, **stated)).scenario.read_as  # type: ignore[arg-type]
    assert any(said in line for line in lines), lines
    plain = advisor().estimate(Request(**VISION)).scenario.read_as  # type: ignore[arg-type]
    assert not any(said in line for line in plain)


def test_a_model_without_its_images_uses_no_more_than_it_has() -> None:
    model = advisor().estimate(Request(**VISION, text_only=True)).scenario.model  # type: ignore[arg-type]
    assert model.active_parameters <= model.parameters


def test_a_question_says_them_too() -> None:
    text = "Qwen2.5-VL-7B on a 4090 with vllm, text only, eager, reserve 2GB"
    found = read_sentence(text, advisor().knowledge).settings
    assert (found["text_only"], found["eager"], found["reserve"]) == ("on", "on", "2GB")


def test_other_programs_count_beside_a_pasted_command() -> None:
    machine = Request(gpu="RTX 4090", reserve_gib=3.0)
    checked = check_command("vllm serve Qwen/Qwen3-8B --max-model-len 4096", machine, advisor())
    assert checked.advice.scenario.reserve_gib == 3.0


def test_cards_are_looked_for_with_what_others_take() -> None:
    def fitting(**stated: object) -> int:
        settings = Settings(Request(**stated), precisions=("Q4_K_M",))  # type: ignore[arg-type]
        found = gpus_for("Qwen2.5-VL-7B-Instruct", settings, CardFilter(), advisor().knowledge)
        return found[1].fitting

    assert fitting(reserve_gib=4.0) < fitting() < fitting(text_only=True)
