"""``advisor runtimes``: the capability table as people see it."""

from __future__ import annotations

import pytest

from tests.cli.running import run

Capture = pytest.CaptureFixture[str]


def test_every_runtime_stands_with_its_version_and_how_its_memory_was_checked(
    capsys: Capture,
) -> None:
    out = run(capsys, "runtimes").out
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "0.33.0" in rows["vLLM"]
    assert "not compared" in rows["SGLang"]
    assert "maintenance" in rows["TGI"]
    assert "archived" in rows["ExLlamaV2"]


def test_a_runtime_shows_its_rows_with_file_and_line(capsys: Capture) -> None:
    out = run(capsys, "runtimes", "vllm").out
    assert "dtype float16: refused (gemma2, gemma3, gemma3_text, glm4)" in out
    assert "vllm/config/model.py:" in out


def test_a_card_and_a_model_get_an_answer_for_every_format(capsys: Capture) -> None:
    out = run(capsys, "runtimes", "vLLM", "--gpu", "A100", "--model", "gpt-oss-120b").out
    answers = {line.rpartition("  ")[0].split("  ")[0]: line for line in out.splitlines()}
    assert "refused" in answers["cache fp8"]
    assert "listed" in answers["MXFP4"]


def test_an_unknown_runtime_is_told_with_the_nearest(capsys: Capture) -> None:
    outcome = run(capsys, "runtimes", "vLMM")
    assert outcome.code == 1
    assert "vLLM" in outcome.err
