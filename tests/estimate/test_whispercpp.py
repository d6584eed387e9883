"""whisper.cpp: what it allocates by its own reports, and how it is started and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.running import run
from tests.estimate.own_buffers import reported, speech_reports

MB = 1e6
Capture = pytest.CaptureFixture[str]


def advised(capsys: Capture, model: str, *words: str, code: int = 0) -> Any:
    asked = ("--gpu", "RTX 3060 12GB", "--model", model, *words, "--format", "json")
    done = run(capsys, "advise", *asked)
    assert done.code == code, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("row", speech_reports(), ids=lambda row: f"{row['model']}-{row['format']}")
def test_it_allocates_what_it_reports(capsys: Capture, row: dict[str, str]) -> None:
    told = ("--framework", "whisper.cpp", "--precision", row["format"])
    memory, own = advised(capsys, row["model"], *told)["memory"], reported(row)
    assert memory["weights_bytes"] == pytest.approx(own["weights"], rel=0.03)
    assert memory["kv_cache_bytes"] == pytest.approx(own["kv_cache"], abs=0.02 * MB)
    assert memory["compute_buffer_bytes"] == pytest.approx(own["compute_buffer"], abs=1.6 * MB)


def test_the_file_is_fetched_and_packed_by_its_own_name(capsys: Capture) -> None:
    def lines(model: str, form: str) -> str:
        told = ("--framework", "whisper.cpp", "--precision", form)
        return str(advised(capsys, model, *told)["commands"][0]["text"])

    packed = lines("whisper-medium", "Q5_0").splitlines()
    assert packed[0] == "sh models/download-ggml-model.sh medium"
    assert packed[1].split()[1:] == [
        "models/ggml-medium.bin",
        "models/ggml-medium-q5_0.bin",
        "q5_0",
    ]
    assert packed[2] == "build/bin/whisper-server -m models/ggml-medium-q5_0.bin"
    plain = lines("whisper-medium", "FP16").splitlines()
    assert plain[1:] == ["build/bin/whisper-server -m models/ggml-medium.bin"]
    assert lines("distil-large-v3", "FP16") == (
        "build/bin/whisper-server -m models/ggml-distil-large-v3.bin"
    )


def test_it_answers_one_at_a_time_and_runs_no_other_models(capsys: Capture) -> None:
    asked = ("--gpu", "RTX 3060 12GB", "--framework", "whisper.cpp")
    said = run(capsys, "advise", *asked, "--model", "whisper-small", "--batch", "4").out
    assert "answers one request at a time here" in " ".join(said.split())
    done = run(capsys, "advise", *asked, "--model", "qwen3-8b", "--fail-unless-fits")
    assert (done.code, "does not support the architecture 'qwen3'" in done.err) == (1, True)


def test_it_is_what_one_moves_to_where_a_server_does_not_fit(capsys: Capture) -> None:
    done = run(
        capsys, "advise", "--gpu", "GTX 1650", "--model", "whisper-large-v3", "--format", "json"
    )
    first = json.loads(done.out)["recommendations"][0]
    assert first["change"]["framework"] == "whisper.cpp"
