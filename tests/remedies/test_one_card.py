"""A model that one of several cards holds: the others only take turns with it."""

from __future__ import annotations

import pytest

import advisor
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.report.prose import report
from tests.remedies.asking import advised


def _first(**asked: object) -> dict[str, object]:
    rows = advisor.advise(gpu="RTX 3090", gpus=2, model="Qwen3-8B", **asked).rows()
    return rows[0] if rows else {}


@pytest.mark.parametrize(
    ("framework", "told"), [("llama.cpp", "-sm none"), ("transformers", "CUDA_VISIBLE_DEVICES=0 ")]
)
def test_the_command_leaves_the_other_cards_alone(framework: str, told: str) -> None:
    first = _first(framework=framework, precision="FP16", context=8192)
    assert (first["action"], first["change"]) == ("fewer-gpus", {"gpus": 1})
    assert told in str(first["command"])
    assert "-ts" not in str(first["command"])


def test_a_server_that_shares_every_tensor_keeps_its_cards() -> None:
    assert _first(framework="vLLM", precision="AWQ").get("action") != "fewer-gpus"


@pytest.mark.parametrize("gpu", ["RTX 3090 + RTX 3060:12GB", "RTX 3060:12GB + RTX 3090"])
def test_of_unequal_cards_the_faster_that_holds_it_works_alone(gpu: str) -> None:
    first = advisor.advise(gpu=gpu, model="gemma-4-26b-a4b-it").rows()[0]
    assert first["change"] == {"gpu": "GeForce RTX 3090", "gpus": 1}
    assert "-sm none" in str(first["command"])


def test_the_smaller_of_unequal_cards_stays_where_it_is_needed() -> None:
    found = advisor.advise(gpu="RTX 3090 + RTX 3060:12GB", model="Qwen3-32B", precision="Q6_K")
    assert "fewer-gpus" not in {row["action"] for row in found.rows()}


def test_of_unequal_cards_that_cannot_share_every_tensor_one_may_hold_it() -> None:
    """An equal part of each tensor is too much for the smaller; the larger has room for all."""
    first = advisor.advise(
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
    first = advisor.advise(**LONG).rows()[0]
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
    first = advisor.advise(
        gpu="RTX 3090 + RTX 3060:12GB", model="mistral-large-instruct-2411", framework="SGLang"
    ).rows()[0]
    assert first["action"] == "smaller-model"
    assert "'framework': 'llama.cpp'" in str(first["change"])
    assert "-sm layer" in str(first["command"])


def test_a_format_that_moves_to_one_card_or_into_stages_says_so() -> None:
    """What gains by other cards than the request's is not put down to the format."""
    given = {"gpu": "RTX 3090 + RTX 3060:12GB", "model": "qwen3.6-27b", "precision": "AWQ"}
    made = report(document(advised(**given, batch=8, framework="vLLM")), "standard")
    assert made.remedies[0].title == "Use the GeForce RTX 3090 alone"
    assert not any("GPTQ" in remedy.title for remedy in made.remedies)
    staged = {"gpu": "6x RTX 3090", "model": "gemma-4-31b-it", "precision": "INT4"}
    made = report(document(advised(**staged, framework="vLLM")), "standard")
    titles = [remedy.title for remedy in made.remedies]
    assert "Use GPTQ 8-bit weights, tensors shared in 3 stages" in titles
