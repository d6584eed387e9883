"""Every error of a request is told at once."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.running import run


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--gpu", "RTX 4090", "--model", "phi-4", "--batch", "-1", "--ram", "-4GB"],
         ["--ram", "batch is -1"]),
        (["--gpu", "RTX 4090", "--model", "phi-4", "--ram", "x", "--gpu-layers", "few"],
         ["--ram", "--gpu-layers"]),
        (["--gpu", "", "--model", ""], ["no GPU is named", "no model is named"]),
        (["--gpu", "RTX 9090 TX", "--model", "lama-9", "--context", "banana", "--batch", "few"],
         ["'RTX 9090 TX'", "'lama-9'", "--context: 'banana' is not a whole number; write for",
          "--batch: 'few'"]),
    ],
)  # fmt: skip
def test_flags(flags: list[str], said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "advise", *flags)
    assert outcome.code == 1
    assert all(words in outcome.err for words in said)


@pytest.mark.parametrize("question", ["models-for --gpu 'H100 SXM5'", "gpus-for --model phi-4"])
def test_flags_of_a_reverse_question(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, *shlex.split(question), "--gpus", "x", "--context", "banana")
    assert outcome.code == 1
    assert all(words in outcome.err for words in ("--gpus: 'x'", "--context: 'banana'"))


def test_a_line_of_an_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lines.jsonl"
    line = {"gpu": "RTX 4090", "model": "phi-4", "context": "lots", "batch": 0}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    error = json.loads(run(capsys, "estimate", str(path)).out)["error"]
    assert "'lots' is not a number" in error
    assert "batch is 0" in error


def test_a_wrong_rule_and_wrong_flags(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--gpu", "RTX 4091", "--model", "phi-4", "--batch", "-1", "--prefer", "sped")
    outcome = run(capsys, "rules", "explain", "shrink-contxt", *asked)
    assert outcome.code == 1
    for words in ("unknown rule 'shrink-contxt'", "RTX 4091", "batch is -1", "--prefer is 'sped'"):
        assert words in outcome.err
