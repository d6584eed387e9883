"""A model that one of several cards holds: the others only take turns with it."""

from __future__ import annotations

import pytest

import advisor as package
from advisor.advice.command_check import check_command
from advisor.advice.document import Advice
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.report.prose import report
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor


def _made(gpu: str = "2x RTX 3090", model: str = "Qwen3-8B", **asked: object) -> Advice:
    return document(advised(gpu=gpu, model=model, **asked))


@pytest.mark.parametrize(
    ("framework", "told"), [("llama.cpp", "-sm none"), ("transformers", "CUDA_VISIBLE_DEVICES=0 ")]
)
def test_the_command_leaves_the_other_cards_alone(framework: str, told: str) -> None:
    made = _made(framework=framework, precision="FP16", context=8192)
    assert (made.scenario.gpus, made.scenario.idle_cards) == (1, ("GeForce RTX 3090",))
    assert told in made.commands[0].text
    assert "-ts" not in made.commands[0].text
    assert "one of the 2 GeForce RTX 3090 cards" in made.verdict.sentence
    assert "One of the 2 cards is enough" in made.scenario.read_as[-1]


def test_the_fewest_cards_that_hold_it_with_room_are_taken_and_named() -> None:
    made = _made(
        "6x RTX 3090", "mistral-small-3.2-24b-instruct-2506", precision="Q6_K", context=65536
    )
    assert "2 of the 6 GeForce RTX 3090 cards" in made.verdict.sentence
    assert made.commands[0].text.startswith("CUDA_VISIBLE_DEVICES=0,1 llama-server")


def test_all_cards_are_taken_where_their_split_is_stated() -> None:
    assert _made(precision="FP16", split="layer").scenario.gpus == 2


def test_a_pasted_command_is_sized_as_it_stands() -> None:
    text = "llama-server -hf Qwen/Qwen3-8B-GGUF:Q4_K_M -c 8192 -np 1 -ngl all -sm layer -ts 1,1"
    found = check_command(text, Request(gpu="2x RTX 3090"), advisor())
    assert found.advice.scenario.gpus == 2


def test_what_a_change_needs_of_the_other_cards_it_takes() -> None:
    """One card holds Q4_K_M with 4,096 tokens; 32,768 take a second one."""
    [longer] = [
        option
        for option in advised(gpu="4x RTX 3090", model="qwen3-32b", precision="Q4_K_M").options
        if option.change == {"context": 32768}
    ]
    assert (longer.scenario.gpus, len(longer.scenario.idle_cards)) == (2, 2)


def test_a_server_that_shares_every_tensor_keeps_its_cards() -> None:
    made = _made(framework="vLLM", precision="AWQ")
    assert made.scenario.gpus == 2
    assert made.recommendations[0].action != "fewer-gpus"


def test_a_server_leaves_out_cards_that_make_a_small_model_slower() -> None:
    made = _made("4x RTX 4090", "qwen3-0.6b", framework="vLLM")
    assert made.commands[0].text.startswith("CUDA_VISIBLE_DEVICES=0 vllm serve")


@pytest.mark.parametrize("gpu", ["RTX 3090 + RTX 3060:12GB", "RTX 3060:12GB + RTX 3090"])
def test_of_unequal_cards_the_faster_that_holds_it_works_alone(gpu: str) -> None:
    made = _made(gpu, "gemma-4-26b-a4b-it")
    assert made.scenario.gpus == 1
    assert "the GeForce RTX 3090 alone" in made.verdict.sentence
    assert "-sm none" in made.commands[0].text


def test_the_smaller_of_unequal_cards_stays_where_it_is_needed() -> None:
    found = package.advise(gpu="RTX 3090 + RTX 3060:12GB", model="Qwen3-32B", precision="Q6_K")
    assert "fewer-gpus" not in {row["action"] for row in found.rows()}


def test_of_unequal_cards_that_cannot_share_every_tensor_one_may_hold_it() -> None:
    """An equal part of each tensor is too much for the smaller; the larger has room for all."""
    first = package.advise(
        gpu="RTX 3090 + RTX 3060:12GB",
        model="qwen3-coder-30b-a3b-instruct",
        precision="INT4",
        context=32768,
        framework="vLLM",
    ).rows()[0]
    assert first["action"] == "fewer-gpus"
    assert first["change"] == {"gpu": "GeForce RTX 3090", "gpus": 1}


LONG = {"gpu": "RTX 3090 + RTX 3060:12GB", "model": "qwen3-30b-a3b-instruct-2507",
        "precision": "AWQ", "context": 65536, "framework": "vLLM"}  # fmt: skip


def test_the_larger_alone_keeps_a_smaller_cache_where_it_then_holds_what_was_asked() -> None:
    first = package.advise(**LONG).rows()[0]
    assert first["action"] == "fewer-gpus"
    assert first["change"] == {"gpu": "GeForce RTX 3090", "gpus": 1, "kv_cache": "fp8"}
    assert "--kv-cache-dtype fp8" in str(first["command"])


def test_a_shorter_context_is_that_of_the_card_that_holds_more_alone() -> None:
    answer = advised(**LONG)
    shared = answer.break_even.max_context_tokens or 0
    alone = advised(**{**LONG, "gpu": "RTX 3090"}).break_even.max_context_tokens or 0
    [shorter] = [option for option in answer.options if option.action == "shrink-context"]
    assert shared < shorter.scenario.context_tokens < alone
    assert shorter.change["gpu"] == "GeForce RTX 3090"
    said = " ".join(render_markdown(document(answer)).split())
    assert "In equal shares it only just fits with at most" in said


def test_a_smaller_model_may_be_dealt_out_where_a_server_shares_unequal_cards_alike() -> None:
    first = package.advise(
        gpu="RTX 3090 + RTX 3060:12GB", model="mistral-large-instruct-2411", framework="SGLang"
    ).rows()[0]
    assert first["action"] == "smaller-model"
    assert "'framework': 'llama.cpp'" in str(first["change"])
    assert "-sm layer" in str(first["command"])


def test_a_format_that_moves_to_one_card_or_into_stages_says_so() -> None:
    """What gains by other cards than the request's is not put down to the format."""
    given = {"gpu": "RTX 3090 + RTX 3060:12GB", "model": "qwen3.6-27b", "precision": "AWQ"}
    made = report(document(advised(**given, batch=8, framework="vLLM")), "standard")
    assert "the GeForce RTX 3090 alone" in made.verdict
    assert not any("GPTQ" in remedy.title for remedy in made.remedies)
    staged = {"gpu": "6x RTX 3090", "model": "llama-3.3-70b-instruct", "precision": "AWQ"}
    made = report(document(advised(**staged, context=65536, framework="vLLM")), "standard")
    titles = [remedy.title for remedy in made.remedies]
    assert "Use INT8 W8A8 weights, tensors shared in 3 stages" in titles
