"""What TensorRT-LLM keeps of a sliding window, and how fast others are where it is not known."""

from __future__ import annotations

import pytest

from advisor.report import render_text
from advisor.report.assembly import document
from tests.remedies.asking import advised


def told(**given: object) -> str:
    return " ".join(
        render_text(document(advised(**given, framework="TensorRT-LLM")), length="full").split()
    )


def cache(model: str, context: int, **given: object) -> int:
    asked = {"gpu": "8x B200", "model": model, "context": context, "precision": "BF16"}
    return advised(**asked, **given).memory.kv_cache_bytes


def test_gemma_4_keeps_its_window_by_itself() -> None:
    own = [cache("gemma-4-31b-it", size, framework="TensorRT-LLM") for size in (16384, 32768)]
    full = [cache("gemma-3-27b-it", size, framework="TensorRT-LLM") for size in (16384, 32768)]
    assert own[0] < cache("qwen3-32b", 16384, framework="TensorRT-LLM")
    assert full[1] == 2 * full[0]
    assert own[1] - own[0] < own[0]


@pytest.mark.parametrize(
    ("model", "windows"),
    [
        ("gemma-3-27b-it", "[1024, 1024, 1024, 1024, 1024, 65536]"),
        ("gpt-oss-20b", "[128, 65536]"),
        ("gemma-4-31b-it", None),
        ("qwen3-32b", None),
    ],
)
def test_others_are_told_the_window_to_state(model: str, windows: str | None) -> None:
    said = told(gpu="B200", model=model, context=65536, batch=64)
    assert (f"max_attention_window: {windows}" in said) is (windows is not None)
    assert windows or "max_attention_window" not in said


def test_what_is_not_measured_says_how_fast_others_are() -> None:
    advice = advised(gpu="8x B200", model="gpt-oss-20b", framework="TensorRT-LLM")
    said = " ".join(render_text(document(advice)).split())
    other = next(
        option
        for option in advice.options
        if dict(option.change) == {"framework": "vLLM"} and option.speed
    )
    assert other.speed
    assert f"vLLM would reach about {other.speed.decode_tok_s.estimate:.0f} tok/s" in said
    assert "calibration" not in said
    assert "how fast TensorRT-LLM computes on CUDA" in said
