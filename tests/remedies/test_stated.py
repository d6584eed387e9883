"""Every change, applied as it stands, gives the figures it promises, whatever was stated."""

from __future__ import annotations

import random

import pytest

from advisor import api
from advisor.advice.preparation import prepare
from advisor.errors import UserError
from advisor.scenario.settings import Request
from tests.remedies.asking import advisor
from tests.remedies.promises import broken, changes_that_differ, stated

PER_SEED = 150


@pytest.mark.parametrize("seed", range(4))
def test_no_change_comes_out_otherwise(seed: int) -> None:
    rng, held = random.Random(seed), 0
    for _ in range(PER_SEED):
        request = stated(advisor(), rng)
        try:
            differ = changes_that_differ(request, advisor().knowledge)
        except UserError:
            continue
        assert differ == [], request.stated()
        held += 1
    assert held > PER_SEED // 15


@pytest.mark.parametrize(
    "request_",
    [
        Request(
            gpu="RTX 2060 SUPER", model="c4ai-command-r-plus", context=2048, framework="TGI",
            gpus=2, use="none",
        ),
        Request(
            gpu="GeForce RTX 3050 6 GB", model="Phi-3.5-mini-instruct", context=2, gpu_layers=40,
            ram_gib=16.0,
        ),
        Request(
            gpu="GeForce RTX 4060 AD106", model="Mixtral-8x7B-Instruct-v0.1", precision="INT8",
            gpu_layers=40, cpu_experts=4, framework="llama.cpp", ram_gib=16.0,
        ),
        Request(
            gpu="RTX PRO 4500 Blackwell", model="Yi-34B-Chat", precision="INT8",
            framework="TGI", gpus=8,
        ),
        Request(
            gpu="Radeon Instinct MI308X", model="GLM-4.7", precision="INT8", context=32_768,
            batch=16, framework="vLLM", gpus=2, split="tensor", mtp=1, use="batch", prefer="cost",
        ),
        Request(
            gpu="RTX 4000 SFF Ada Generation", model="DeepSeek-R1-Distill-Llama-70B",
            precision="INT8", context=32_768, prefer="quality", split="tensor",
        ),
        Request(
            gpu="RTX 2060 12GB", model="phi-1_5", precision="INT4", batch=16, framework="vLLM",
            gpus=4, stages=4,
        ),
        Request(
            gpu="RTX 5880 Ada Generation", model="all-MiniLM-L6-v2", precision="INT4", batch=16,
            framework="vLLM", gpus=8, prefer="quality", stages=2,
        ),
    ],
    ids=[
        "TGI on two cards", "more layers than there are", "a split model", "TGI on eight cards",
        "a pipeline that does not draft", "a split that says which server",
        "stages that copies have not", "stages that another server has not",
    ],
)  # fmt: skip
def test_what_once_came_out_otherwise_does_not(request_: Request) -> None:
    assert changes_that_differ(request_, advisor().knowledge) == []


@pytest.mark.parametrize("model", ["DeepSeek-V3", "Kimi-K2-Instruct", "Llama-3.1-405B"])
def test_too_little_ram_for_a_stated_split_gets_a_remedy_or_a_proof(model: str) -> None:
    request = Request(
        gpu="RTX A3000 Mobile", model=model, precision="FP16", context=32_768, batch=4,
        gpu_layers=0, ram_gib=32.0, backend="Vulkan", ubatch=256,
    )  # fmt: skip
    advice = advisor().advise_on(prepare(request, advisor().knowledge))
    assert advice.scenario.gpu_layers == 0
    assert broken(advisor(), advice) == []


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        (
            {"gpu": "2x RTX 4090", "model": "qwen3.6-27b", "precision": "Q6_K",
             "framework": "SGLang", "batch": 8},
            "sglang serve",
        ),
        (
            {"gpu": "2x RTX A6000", "model": "glm-5", "context": 16_384, "framework": "vLLM",
             "batch": 128},
            "vllm serve",
        ),
    ],
)  # fmt: skip
def test_a_server_that_gave_way_is_offered_in_what_it_does_run(
    asked: dict[str, object], command: str
) -> None:
    report = api.advise(**asked)
    assert "What follows is of" in " ".join(report.document.scenario.read_as)
    assert report.document.recommendations[0].commands[0].text.startswith(command)
