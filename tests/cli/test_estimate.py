"""``advisor estimate``: files in, JSON Lines out, and every way that can go wrong."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]
GOOD: Mapping[str, object] = {
    "id": "a", "gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q8_0",
}  # fmt: skip


def requests(folder: Path, *lines: object, name: str = "in.jsonl") -> Path:
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 1, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert len(outcome.err.splitlines()) == 1
    for word in words:
        assert word in outcome.err, outcome.err


def test_lines_come_out_in_order_and_nothing_is_said(capsys: Capture, tmp_path: Path) -> None:
    given = [{**GOOD, "id": number, "context": 512 * number} for number in range(1, 6)]
    outcome = run(capsys, "estimate", str(requests(tmp_path, *given)))
    assert (outcome.code, outcome.err) == (0, "")
    assert [doc["id"] for doc in lines(outcome.out)] == [1, 2, 3, 4, 5]


def test_the_figures_are_those_of_advise(capsys: Capture, tmp_path: Path) -> None:
    requests_of = [
        {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"},
        {"gpu": "RTX 4090", "model": "llava-1.6-13b", "precision": "Q4_K_M"},
        {"gpu": "RTX 4090", "model": "gemma-2-27b", "precision": "q3_k_m", "context": "8192"},
        {"gpu": "H100 SXM", "model": "llama-3-8b", "precision": "FP8", "batch": "8"},
        {"gpu": "RTX 3060 12GB", "model": "llama-3-8b", "precision": "Q8_0", "gpu-layers": "20"},
    ]
    given = [{k.replace("-", "_"): v for k, v in one.items()} for one in requests_of]
    outcome = run(capsys, "estimate", str(requests(tmp_path, *given)))
    for one, doc in zip(requests_of, lines(outcome.out), strict=True):
        report = json.loads(advise(capsys, "--format", "json", **one).out)
        assert doc["memory"] == report["memory"]
        assert doc["speed"] == report["speed"]


def test_csv_gives_what_json_lines_give(capsys: Capture, tmp_path: Path) -> None:
    table = requests(
        tmp_path,
        "id,gpu,model,precision,context,flash_attention,gpu_layers",
        "a,RTX 4090,llama-3-8b,Q8_0,8192,on,20",
        "b,RTX 4090,llama-3-8b,,,,",
        name="in.csv",
    )
    same = requests(
        tmp_path,
        {**GOOD, "context": 8192, "flash_attention": True, "gpu_layers": 20},
        {"id": "b", "gpu": "RTX 4090", "model": "llama-3-8b"},
    )
    first, second = (run(capsys, "estimate", str(path)) for path in (table, same))
    assert first == second
    assert first.code == 0


def test_bad_lines_do_not_stop_the_others(capsys: Capture, tmp_path: Path) -> None:
    path = requests(tmp_path, GOOD, "{", {**GOOD, "gpu": "RTX 4091", "id": "c"}, {**GOOD, "id": 4})
    outcome = run(capsys, "estimate", str(path))
    docs = lines(outcome.out)
    assert outcome.code == 1
    assert [doc["id"] for doc in docs] == ["a", None, "c", 4]
    assert [doc["error"] is None for doc in docs] == [True, False, False, True]
    assert docs[2]["parameters"] is docs[2]["memory"] is docs[2]["speed"] is None
    assert len(outcome.err.splitlines()) == 1
    assert "2 of 4 lines" in outcome.err
    assert "line 2:" in outcome.err


def test_a_file_is_written_even_if_lines_are_bad(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    outcome = run(capsys, "estimate", str(requests(tmp_path, GOOD, "{")), "-o", str(out))
    assert (outcome.code, outcome.out) == (1, "")
    assert len(lines(out.read_text())) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize("target", ["-", None])
def test_standard_input_and_output(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, target: str | None
) -> None:
    content = io.BytesIO(json.dumps(GOOD).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    outcome = run(capsys, "estimate", "-", *(["-o", target] if target else []))
    assert outcome.code == 0
    assert lines(outcome.out)[0]["id"] == "a"


def test_a_config_path_is_relative_to_the_current_folder(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "vocab_size": 32000,
        "num_attention_heads": 16, "intermediate_size": 8192,
    }  # fmt: skip
    (tmp_path / "here.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, "estimate", str(requests(tmp_path, {"config": "here.json"})))
    assert outcome.code == 0, outcome
    memory = lines(outcome.out)[0]["memory"]
    assert isinstance(memory, dict)
    assert memory["max_context_tokens"] is None


def test_missing_file(capsys: Capture, tmp_path: Path) -> None:
    refused(run(capsys, "estimate", str(tmp_path / "no.jsonl")), "no.jsonl")


def test_folder(capsys: Capture, tmp_path: Path) -> None:
    refused(run(capsys, "estimate", str(tmp_path)), "folder")


@pytest.mark.parametrize("content", [b"", b"\n\n", "a".encode("utf-16")])
def test_nothing_to_read(capsys: Capture, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    out = tmp_path / "out.jsonl"
    refused(run(capsys, "estimate", str(path), "-o", str(out)), "in.jsonl")
    assert not out.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(capsys: Capture, tmp_path: Path) -> None:
    path = requests(tmp_path, GOOD)
    path.chmod(0)
    refused(run(capsys, "estimate", str(path)), "in.jsonl")


def test_unknown_column(capsys: Capture, tmp_path: Path) -> None:
    path = requests(tmp_path, "gpu,modl", "a,b", name="in.csv")
    refused(run(capsys, "estimate", str(path)), "in.csv:1", "modl", "'model'")


def test_output_into_a_missing_folder(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "no" / "out.jsonl"
    refused(run(capsys, "estimate", str(requests(tmp_path, GOOD)), "-o", str(out)), str(out))


def test_output_that_is_a_folder(capsys: Capture, tmp_path: Path) -> None:
    path = requests(tmp_path, GOOD)
    refused(run(capsys, "estimate", str(path), "-o", str(tmp_path)), "folder")


def test_output_over_the_input(capsys: Capture, tmp_path: Path) -> None:
    path = requests(tmp_path, GOOD)
    before = path.read_text()
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for out in (path, link):
        refused(run(capsys, "estimate", str(path), "-o", str(out)), "the file that is read")
    assert path.read_text() == before


def test_missing_argument_is_wrong_usage(capsys: Capture) -> None:
    assert run(capsys, "estimate").code == 2


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    given = [{**GOOD, "gpu": gpu} for gpu in ("RTX 4090", "H100 SXM", "M3 Ultra:96GB")]
    path = requests(tmp_path, *given, {"model": "mixtral-8x7b", "precision": "INT4"})
    command = [sys.executable, "-m", "advisor", "estimate", str(path)]
    outputs = [
        subprocess.run(
            command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 4
