"""Larger steps of a prompt: only where part of the model waits in system RAM, and held."""

from __future__ import annotations

import pytest

from tests.remedies.asking import advised, run_again

SPLIT = {"gpu": "RTX 3090", "model": "gpt-oss-120b", "cpu_experts": 27, "ram_gib": 64.0}


def steps(**given: object) -> list[object]:
    return [o.change["ubatch"] for o in advised(**given).options if o.action == "larger-steps"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"context": 16384}, [4096]),
        ({"context": 2048}, [2048]),
        ({"context": 1024}, []),
        ({"context": 16384, "ubatch": 4096}, []),
        ({"context": 65536, "cpu_experts": 23}, []),
    ],
)
def test_the_largest_that_is_held(given: dict[str, object], found: list[int]) -> None:
    assert steps(**{**SPLIT, **given}) == found


def test_nothing_in_ram_needs_none_and_ollama_sets_its_own() -> None:
    assert steps(gpu="RTX 3090", model="gpt-oss-20b", context=16384) == []
    layers = {"gpu": "RTX 3090", "model": "llama-3.3-70b", "gpu_layers": 30, "context": 16384}
    assert steps(**layers) == [4096]
    assert steps(**layers, framework="Ollama") == []


def test_the_buffers_it_promises_are_those_of_the_request_run_again() -> None:
    advice = advised(**SPLIT, context=16384)
    option = next(o for o in advice.options if o.action == "larger-steps")
    assert run_again(advice, option).memory == option.memory
    assert option.memory.required_bytes > advice.memory.required_bytes
