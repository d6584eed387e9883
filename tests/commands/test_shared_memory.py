"""Where CPU and GPU share the memory, servers are told to claim no more than the usable part."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from advisor.advice import Advisor
from advisor.runtimes.commands import commands_for
from advisor.scenario.settings import Request

FRACTION = re.compile(
    r"--(?:gpu-memory-utilization|mem-fraction-static"
    r"|free_gpu_memory_fraction) (\S+)"
)


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def fraction(gpu: str, framework: str) -> tuple[float | None, float]:
    """The share a command states, and the one that is counted as usable."""
    request = Request(gpu=gpu, model="Qwen3-32B", precision="FP8", framework=framework)
    found = advisor().estimate(request)
    (command,) = commands_for(found.scenario, found.memory)
    said = FRACTION.search(command.text)
    assert found.memory.usable_bytes
    assert found.memory.capacity_bytes
    share = found.memory.usable_bytes / found.memory.capacity_bytes
    return float(said[1]) if said else None, share


@pytest.mark.parametrize("framework", ["vLLM", "SGLang", "TensorRT-LLM"])
def test_no_server_claims_what_is_left_to_the_system(framework: str) -> None:
    said, usable = fraction("DGX Spark", framework)
    assert said is not None
    assert 0.5 < said <= usable < 0.81
    if framework != "SGLang":  # its share is for weights and cache alone
        assert usable - said < 0.01


def test_the_file_of_settings_says_the_same_share() -> None:
    found = advisor().estimate(
        Request(
            gpu="DGX Spark",
            model="Qwen3-32B",
            precision="FP8",
            framework="TensorRT-LLM",
            kv_cache="fp8",
        )
    )
    (command,) = commands_for(found.scenario, found.memory)
    stated = re.findall(r"free_gpu_memory_fraction:? ([\d.]+)", command.text)
    assert len(set(stated)) == 1
    assert float(stated[0]) < 0.81


@pytest.mark.parametrize(
    ("framework", "share"), [("vLLM", 0.92), ("SGLang", None), ("TGI", None), ("TensorRT-LLM", 0.9)]
)
def test_a_card_with_memory_of_its_own_is_claimed_as_by_default(
    framework: str, share: float | None
) -> None:
    assert fraction("H100 SXM5 80 GB", framework)[0] == share


def test_recommended_commands_say_it_too() -> None:
    advice = advisor().advise(
        Request(gpu="DGX Spark", model="Qwen3-32B", precision="FP8", framework="vLLM")
    )
    commands = [
        r.command
        for r in advice.recommendations
        if "vllm serve" in r.command and r.option.scenario.gpu is advice.scenario.gpu
    ]
    assert commands
    assert all("--gpu-memory-utilization 0.8" in command for command in commands)
