"""The README shows what the program prints, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.models.gguf_files import tiny

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_output_is_real(capsys: pytest.CaptureFixture[str]) -> None:
    command = re.search(r"\.venv/bin/(advisor advise .*)", README)
    shown = re.search(r"```text\n(.*?)```", README, re.DOTALL)
    assert command
    assert shown
    outcome = run(capsys, *shlex.split(command[1])[1:])
    assert outcome.out == shown[1]


def commands() -> list[str]:
    block = README.split("## Ask it things")[1].split("```")[1]
    lines = [line.split("  #")[0].strip() for line in block.splitlines()[1:]]
    return [line for line in lines if line.startswith("advisor ")]


@pytest.mark.parametrize("command", commands())
def test_every_example_runs(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32000,'
        ' "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336}'
    )
    tiny(tmp_path / "my-model").rename(tmp_path / "my-model" / "model.gguf")
    bench = ROOT / "tests" / "data" / "measurements" / "llama-bench.json"
    (tmp_path / "bench.json").write_bytes(bench.read_bytes())
    (tmp_path / "plan.yaml").write_text("gpus: [RTX 4090]\nmodels: [llama-3-8b]\nformats: [Q8_0]\n")
    (tmp_path / "server.log").write_text("Available KV cache memory: 3.81 GiB\n")
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    if command.endswith(" reports"):
        run(capsys, "batch", "plan.yaml", "--out", "reports")
    outcome = run(capsys, *shlex.split(command)[1:])
    assert outcome.code == 0, outcome.err


def test_the_counts_are_those_of_the_knowledge_base(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "knowledge", "check").out
    for part in out.split(":")[0].split(", "):
        number, what = part.split()
        assert f"{number} " in README, what
