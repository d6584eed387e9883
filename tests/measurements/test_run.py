"""``advisor measure run`` against servers on this machine that answer as the real ones do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.cli import measure
from advisor.errors import RequestError
from advisor.estimator.calibration.user.server_http import address_of
from advisor.estimator.calibration.user.servers import _stream, prompt_of
from advisor.reading.machine.probe import Answer, Card, Machine
from advisor.units import MIB
from tests.cli.running import Outcome, run
from tests.measurements.examples import DATA
from tests.measurements.fake_server import LLAMA_SERVER, OLLAMA, VLLM, serving

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("ADVISOR_NO_MEASUREMENTS", raising=False)
    _cards(monkeypatch, 1)


def _cards(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    card = Card(
        vendor="NVIDIA",
        name="NVIDIA GeForce RTX 4090",
        source="nvidia-smi",
        memory_bytes=24_564 * MIB,
    )
    machine = Machine(system="a system", cards=(card,) * count)
    monkeypatch.setattr("advisor.reading.machine.this_machine", lambda: machine)


def measured(
    capsys: Capture, answers: Mapping[str, Any], *more: str
) -> Sequence[Mapping[str, Any]]:
    with serving(answers) as fake:
        found = run(
            capsys, "measure", "run", fake.address, "--format", "json", "--runs", "2", *more
        )
    assert (found.code, found.err) == (0, ""), found
    return [row["measurement"] for row in json.loads(found.out)["added"]]


def refused(capsys: Capture, answers: Mapping[str, Any], *more: str) -> str:
    with serving(answers) as fake:
        found: Outcome = run(capsys, "measure", "run", fake.address, "--runs", "1", *more)
    assert (found.code, found.out) == (1, ""), found
    return found.err


def test_ollama_says_model_format_and_both_speeds(capsys: Capture) -> None:
    decode, prefill = sorted(measured(capsys, OLLAMA), key=lambda row: row["metric"])
    for row in (decode, prefill):
        assert row["gpu"] == "GeForce RTX 4090"
        assert (row["model"], row["precision"]) == ("Llama-3.1-8B", "Q4_K_M")
        assert (row["framework"], row["framework_version"]) == ("Ollama", "0.12.3")
    assert (decode["tok_s"], decode["depth_tokens"]) == (128.0, 512)
    assert (prefill["tok_s"], prefill["prompt_tokens"]) == (5120.0, 512)


def test_llama_server_is_asked_for_a_fresh_prompt_each_time(capsys: Capture) -> None:
    with serving(LLAMA_SERVER) as fake:
        found = run(capsys, "measure", "run", fake.address, "--format", "json", "--runs", "2")
    rows = {
        row["measurement"]["metric"]: row["measurement"] for row in json.loads(found.out)["added"]
    }
    assert rows["decode_tok_s"]["tok_s"] == 100.0
    assert rows["prefill_tok_s"]["tok_s"] == 4096.0
    assert rows["decode_tok_s"]["model"] == "Qwen2.5-7B-Instruct"
    asked = [body for path, body in fake.seen if path == "/completion"]
    assert len({body["prompt"].split()[0] for body in asked}) == len(asked) == 3
    assert not any(body["cache_prompt"] for body in asked)


def test_a_stream_of_vllm_is_timed_from_its_first_token_to_its_last(capsys: Capture) -> None:
    (row,) = measured(capsys, VLLM)
    assert (row["model"], row["precision"]) == ("Qwen2.5-0.5B-Instruct", "AWQ 4-bit")
    assert (row["framework"], row["metric"]) == ("vLLM", "decode_tok_s")
    assert 30 < row["tok_s"] < 1000  # a token each 4 ms, as far as a busy machine lets it


def test_a_stream_has_one_interval_less_than_tokens() -> None:
    events = [({"choices": [{"text": "a"}]}, 10.0 + 0.01 * number) for number in range(101)]
    usage = {"prompt_tokens": 7, "completion_tokens": 101}
    timed = _stream(iter([*events, ({"choices": [], "usage": usage}, 12.0)]))
    assert (timed.tokens, round(timed.seconds, 6), timed.prompt_tokens) == (100, 1.0, 7)
    with pytest.raises(RequestError, match="streams no tokens"):
        _stream(iter(events))


def test_what_is_stated_is_taken_where_the_server_does_not_know_it(capsys: Capture) -> None:
    own = {**OLLAMA, "/api/ps": {"models": [{"name": "mine:latest"}]}}
    err = refused(capsys, own)
    assert "mine:latest" in err
    assert "--model" in err
    decode, _ = measured(capsys, own, "--model", "Llama-3.1-8B-Instruct", "--gpu", "RTX 3090")
    assert (decode["model"], decode["gpu"]) == ("Llama-3.1-8B", "GeForce RTX 3090")


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({"/api/ps": {"models": []}}, (), "several models"),
        (
            {"/api/ps": {"models": [{"name": "llama3.1:8b", "size": 8, "size_vram": 6}]}},
            (),
            "25% of llama3.1:8b lies in system RAM",
        ),
        ({"/api/show": {"capabilities": ["embedding"]}}, (), "makes embeddings"),
        ({"/api/generate": None}, (), "refuses /api/generate (404)"),
        ({"/api/generate": {"eval_count": 3, "eval_duration": 9}}, (), "stopped after 3 tokens"),
        ({}, ("--gpu", "RTX 4091"), "unknown GPU"),
        ({}, ("--precision", "Q4_K_N"), "unknown weight format"),
    ],
)
def test_what_cannot_be_measured_is_one_message(
    changed: Mapping[str, Any], more: Sequence[str], words: str, capsys: Capture
) -> None:
    assert words in refused(capsys, {**OLLAMA, **changed}, *more)


def test_a_speed_beyond_the_card_is_refused_and_nothing_is_stored(capsys: Capture) -> None:
    fast = {**OLLAMA["/api/generate"], "eval_duration": 128_000_000}
    assert "would read" in refused(capsys, {**OLLAMA, "/api/generate": fast})
    assert "no measurements" in run(capsys, "measure", "list").out


def test_a_server_of_no_known_kind_is_told(capsys: Capture) -> None:
    assert "is not known" in refused(capsys, {"/": {}})
    other = {**VLLM, "/v1/models": {"data": [{"id": "m", "owned_by": "somebody"}]}}
    assert "--framework" in refused(capsys, other)


def test_of_several_cards_their_number_has_to_be_stated(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cards(monkeypatch, 2)
    assert "--gpus" in refused(capsys, OLLAMA)
    assert {row["gpus"] for row in measured(capsys, OLLAMA, "--gpus", "1")} == {1}


def test_another_machine_is_asked_only_when_its_card_is_stated(capsys: Capture) -> None:
    found = run(capsys, "measure", "run", "http://192.0.2.1:8000")
    assert found.code == 1
    assert "State it: --gpu" in found.err


def test_where_nothing_answers_that_is_told(capsys: Capture) -> None:
    with serving({}) as fake:
        gone = fake.address
    found = run(capsys, "measure", "run", gone)
    assert "no server answers" in found.err


def test_llama_bench_is_run_and_its_own_words_count(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.gguf"
    model.touch()
    seen: list[Sequence[str]] = []

    def ask(command: Sequence[str], seconds: float) -> Answer:
        seen.append(command)
        return Answer((DATA / "llama-bench.json").read_text("utf-8"))

    monkeypatch.setattr(measure, "ask_tool", ask)
    found = run(capsys, "measure", "run", "--bench", str(model))
    assert found.code == 0, found.err
    assert "added" in found.out
    assert seen == [("llama-bench", "-m", str(model), "-o", "json")]
    monkeypatch.setattr(measure, "ask_tool", lambda *_, **__: Answer(problem="is not installed"))
    assert (
        "llama-bench is not installed" in run(capsys, "measure", "run", "--bench", str(model)).err
    )


@pytest.mark.parametrize("text", ["", "ftp://127.0.0.1", "http://", "http://a:b:c", "http://u@h"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="no address"):
        address_of(text)


def test_addresses_are_read_as_people_write_them() -> None:
    assert str(address_of("localhost:8080")) == "localhost:8080"
    assert address_of("http://127.0.0.1:8000/v1/").path == ""
    assert not address_of("http://10.0.0.7:8000").is_here


def test_prompts_share_no_beginning() -> None:
    assert len({prompt_of(number)[:12] for number in range(100)}) == 100
