"""A format of which name and flag each tell a part, or that a runtime has under another name."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWN = load_knowledge()


@pytest.mark.parametrize(
    ("model", "precision", "taken"),
    [
        ("llama 3.1 8b 6bpw", "exl2", "EXL2 6.0bpw"),
        ("glm 4.5 air 3.0bpw", "exl3", "EXL3 3.0bpw"),
        ("qwen3 8b q8_0", "gguf", "Q8_0"),
        ("qwen2.5 32b 8bit", "gptq", "GPTQ 8-bit"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "gptq", "GPTQ 8-bit"),
        ("qwen3 8b q8_0", "exl2", "EXL2 4.0bpw"),
        ("qwen3 8b", "exl2", "EXL2 4.0bpw"),
    ],
)
def test_a_family_takes_its_bits_from_the_name(model: str, precision: str, taken: str) -> None:
    found = resolve(Request(gpu="2x RTX PRO 6000", model=model, precision=precision), KNOWN)
    assert found.precision.name == taken


@pytest.mark.parametrize(
    ("precision", "framework", "family"),
    [
        ("3.5bpw", "llama.cpp", "gguf"),
        ("3.5bpw", "ExLlamaV2", "exl2"),
        ("3.5bpw", None, "exl"),
        ("q4", "MLX-LM", "mlx"),
    ],
)
def test_bits_are_those_of_the_runtime(precision: str, framework: str | None, family: str) -> None:
    card = "Apple M4 Max (40-core GPU):64GB" if framework == "MLX-LM" else "RTX 4090"
    request = Request(gpu=card, model="qwen3 8b", precision=precision, framework=framework)
    found = resolve(request, KNOWN)
    assert found.precision.family.startswith(family)
