"""``advisor measure`` and what other commands make of it, as a user sees it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.running import Outcome, run
from tests.measurements.examples import DATA, bench, bench_json

Capture = pytest.CaptureFixture[str]
ASKED = ("--gpu", "RTX 4080", "--model", "Qwen2.5-7B-Instruct", "--precision", "Q4_K_M")
OTHER = ("--gpu", "RTX 4080", "--model", "Llama-3.1-8B", "--precision", "Q4_K_M")
BENCH = str(DATA / "llama-bench.json")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("ADVISOR_NO_MEASUREMENTS", raising=False)
    return tmp_path / "data" / "measurements.csv"


def done(outcome: Outcome) -> str:
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return outcome.out


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 1, outcome
    assert outcome.out == ""
    assert all(line.startswith("error: ") for line in outcome.err.splitlines())
    for word in words:
        assert word in outcome.err, outcome.err


def advised(capsys: Capture, *more: str, asked: tuple[str, ...] = ASKED) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        done(run(capsys, "advise", *asked, "--format", "json", *more))
    )
    return found


def decode(doc: dict[str, object]) -> dict[str, object]:
    speed = doc["speed"]
    assert isinstance(speed, dict)
    found: dict[str, object] = speed["decode_tok_s"]
    return found


def test_add_says_what_was_before_and_what_is_now(capsys: Capture) -> None:
    out = done(run(capsys, "measure", "add", BENCH))
    assert out.startswith("2 figures added\n")
    assert "GeForce RTX 4080, Qwen2.5-7B-Instruct Q4_K_M, llama.cpp CUDA" in out
    assert "near" in out
    assert re.search(r"\d\.\d+ -> \d\.\d+", out)
    assert "DeepSeek-R1-Distill-Qwen-7B Q4_K_M" in out
    assert "/" not in out.replace("tok/s", "")


def test_add_as_json_has_every_figure(capsys: Capture) -> None:
    doc = json.loads(done(run(capsys, "measure", "add", BENCH, "--format", "json")))
    prefill, found = doc["added"]
    assert prefill["measurement"]["metric"] == "prefill_tok_s"
    assert found["measurement"]["tok_s"] == 118.882
    assert found["before"]["evidence"] == "near"
    assert found["after"]["evidence"] == "measured"
    assert found["after"]["modelled"] == pytest.approx(found["before"]["estimate"], rel=0.03)
    (card,) = doc["cards"]
    assert card["gpu"] == "GeForce RTX 4080"
    assert card["factor"]["before"] == pytest.approx(1.0, abs=0.02)
    assert card["evidence"] == {"before": "near", "after": "near"}
    assert card["range_factor"]["after"] <= card["range_factor"]["before"]
    assert {other["after"]["evidence"] for other in doc["others"]} == {"near"}
    assert doc["wrong"] == doc["skipped"] == doc["warnings"] == doc["known"] == []


def test_advise_then_shows_the_measurement_and_says_whose_it_is(capsys: Capture) -> None:
    before = advised(capsys)
    done(run(capsys, "measure", "add", BENCH))
    after = advised(capsys)
    assert decode(before)["evidence"] == "near"
    assert decode(after)["evidence"] == "measured"
    assert decode(after)["source"] == "your measurement, 2025-04-24, llama-bench.json"
    assert before["provenance"]["measurements_sha256"] is None  # type: ignore[index]  # JSON
    assert len(after["provenance"]["measurements_sha256"]) == 64  # type: ignore[index]  # JSON
    text = done(run(capsys, "advise", *ASKED))
    assert "measured by you, 2025-04-24, llama-bench.json" in " ".join(text.split())
    assert "follow your own measurements" in " ".join(text.split())
    markdown = done(run(capsys, "advise", *ASKED, "--format", "markdown"))
    assert "your measurements" in markdown


def test_without_measurements_every_byte_is_as_before(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {form: done(run(capsys, "advise", *OTHER, "--format", form)) for form in FORMS}
    done(run(capsys, "measure", "add", BENCH))
    for form in FORMS:
        asked = ("advise", *OTHER, "--format", form)
        assert done(run(capsys, *asked)) != before[form]
        assert done(run(capsys, *asked, "--no-measurements")) == before[form]
    monkeypatch.setenv("ADVISOR_NO_MEASUREMENTS", "1")
    for form in FORMS:
        assert done(run(capsys, "advise", *OTHER, "--format", form)) == before[form]


FORMS = ("text", "markdown", "html", "json")


def test_the_same_measurements_give_the_same_bytes(capsys: Capture) -> None:
    done(run(capsys, "measure", "add", BENCH))
    assert len({done(run(capsys, "advise", *OTHER, "--format", "json")) for _ in range(2)}) == 1


def test_estimate_follows_and_says_so_aside(capsys: Capture, tmp_path: Path) -> None:
    lines = tmp_path / "in.csv"
    lines.write_text("id,gpu,model,precision\na,RTX 4080,Qwen2.5-7B-Instruct,Q4_K_M\n")
    before = run(capsys, "estimate", str(lines))
    done(run(capsys, "measure", "add", BENCH))
    after = run(capsys, "estimate", str(lines))
    assert json.loads(after.out)["speed"]["decode_tok_s"]["evidence"] == "measured"
    assert "with your measurements" in after.err
    assert "--no-measurements" in after.err
    assert run(capsys, "estimate", str(lines), "--no-measurements") == before


def test_measurements_beside_own_knowledge_are_kept_and_read_there_alone(
    capsys: Capture, tmp_path: Path, data: Path
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    done(run(capsys, "measure", "add", BENCH, "--knowledge", str(team)))
    assert (team / "measurements.csv").is_file()
    assert not data.exists()
    assert decode(advised(capsys))["evidence"] == "near"
    assert decode(advised(capsys, "--knowledge", str(team)))["evidence"] == "measured"
    done(run(capsys, "measure", "add", BENCH))
    (team / "measurements.csv").unlink()
    assert decode(advised(capsys, "--knowledge", str(team)))["evidence"] == "near"


def test_a_dry_run_stores_nothing_and_shows_the_same(capsys: Capture, data: Path) -> None:
    dry = done(run(capsys, "measure", "add", BENCH, "--dry-run"))
    assert not data.parent.exists()
    real = done(run(capsys, "measure", "add", BENCH))
    assert dry.replace("would be ", "") == real


def test_adding_again_adds_nothing(capsys: Capture, data: Path) -> None:
    done(run(capsys, "measure", "add", BENCH))
    content = data.read_bytes()
    out = done(run(capsys, "measure", "add", BENCH, str(DATA / "llama-bench.jsonl")))
    assert out.startswith("0 figures added, 4 known already\n")
    assert data.read_bytes() == content


def test_a_wrong_row_keeps_the_good_ones_out_unless_asked(
    capsys: Capture, tmp_path: Path, data: Path
) -> None:
    mixed = tmp_path / "mixed.json"
    rows = [bench(), bench(avg_ts=900.0), bench(model_filename="nothing-Q4_0.gguf")]
    mixed.write_text(bench_json(*rows))
    outcome = run(capsys, "measure", "add", str(mixed))
    refused(outcome, "mixed.json:1: 900 tok/s", "unknown model 'nothing'")
    assert not data.exists()
    kept = run(capsys, "measure", "add", str(mixed), "--keep-good")
    assert kept.code == 0
    assert kept.out.startswith("1 figure added, 2 wrong\n")
    assert kept.err.count("left out: ") == 2
    assert len(done(run(capsys, "measure", "list")).splitlines()) == 2


def test_a_figure_far_from_the_one_before_is_worth_a_look(capsys: Capture, tmp_path: Path) -> None:
    done(run(capsys, "measure", "add", BENCH))
    again = tmp_path / "again.json"
    again.write_text(bench_json(bench(avg_ts=60.0, test_time="2026-03-01T10:00:00Z")))
    out = done(run(capsys, "measure", "add", str(again)))
    assert "60.0 tok/s now, 119 before (your measurement, 2025-04-24" in out
    assert decode(advised(capsys))["estimate"] == 60


def test_every_file_is_read_before_anything_is_stored(
    capsys: Capture, tmp_path: Path, data: Path
) -> None:
    empty = tmp_path / "empty.json"
    empty.touch()
    refused(
        run(capsys, "measure", "add", BENCH, str(empty), str(DATA / "vllm-serve.json")),
        "empty.json: the file is empty",
        "the file does not say which GPU. Add --gpu.",
    )
    assert not data.exists()


def test_list_and_remove(capsys: Capture, data: Path) -> None:
    assert "advisor measure add FILE" in done(run(capsys, "measure", "list"))
    assert json.loads(done(run(capsys, "measure", "list", "--format", "json"))) == []
    done(run(capsys, "measure", "add", BENCH))
    rows = json.loads(done(run(capsys, "measure", "list", "--format", "json")))
    assert [row["tok_s"] for row in rows] == [7100, 118.882]
    out = done(run(capsys, "measure", "remove", rows[0]["id"]))
    assert out.startswith(f"removed  {rows[0]['id']}")
    refused(run(capsys, "measure", "remove", rows[0]["id"]), "no measurement is called")
    done(run(capsys, "measure", "remove", rows[1]["id"]))
    assert decode(advised(capsys))["evidence"] == "near"
    assert advised(capsys)["provenance"]["measurements_sha256"] is None  # type: ignore[index]  # JSON
    assert data.is_file()


def test_a_folder_that_is_not_there_is_refused_and_not_made(
    capsys: Capture, tmp_path: Path, data: Path
) -> None:
    for command in (("list",), ("remove", "x"), ("add", BENCH)):
        away = tmp_path / "away"
        refused(run(capsys, "measure", *command, "--knowledge", str(away)), "there is no folder")
        assert not away.exists()
    refused(run(capsys, "measure", "remove", "x"), "no measurement is called 'x'")
    assert not data.parent.exists()


def test_a_damaged_file_is_one_clear_error_for_every_command(
    capsys: Capture, tmp_path: Path, data: Path
) -> None:
    done(run(capsys, "measure", "add", BENCH))
    data.write_text(data.read_text().replace("118.882", "fast"))
    lines = tmp_path / "in.csv"
    lines.write_text("id,gpu,model\na,RTX 4080,Llama-3.1-8B\n")
    for command in (
        ("advise", *ASKED),
        ("estimate", str(lines)),
        ("measure", "list"),
        ("measure", "add", BENCH),
        ("measure", "remove", "x"),
    ):
        outcome = run(capsys, *command)
        refused(outcome, "measurements.csv:3: tok_s is 'fast', not a number")
        assert len(outcome.err.splitlines()) == 1
    done(run(capsys, "advise", *ASKED, "--no-measurements"))


def test_odd_places_are_refused_in_one_line(capsys: Capture, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    secret = tmp_path / "secret.json"
    secret.touch(mode=0o000)
    places = {
        "pipe": "not a regular file",
        "": "is a folder",
        "missing.json": "No such file",
        "missing/bench.json": "No such file",
    }
    if os.geteuid():
        places["secret.json"] = "Permission denied"
    for name, words in places.items():
        refused(run(capsys, "measure", "add", str(tmp_path / name)), words)


def test_a_data_folder_that_cannot_be_written_says_what_to_do(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(blocked / "data"))
    refused(run(capsys, "measure", "add", BENCH), "cannot", "ADVISOR_DATA_DIR")


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "20260301"])
def test_a_day_that_is_none_is_refused(capsys: Capture, day: str) -> None:
    refused(run(capsys, "measure", "add", BENCH, "--date", day), f"--date is '{day}'")


def test_every_example_is_taken(capsys: Capture) -> None:
    setup = ("--gpu", "RTX 3090", "--precision", "AWQ", "--model", "Qwen2.5-7B-Instruct")
    lengths = ("--prompt-tokens", "512", "--gen-tokens", "128", "--batch", "8")
    for name, more in {
        "llama-bench.csv": (),
        "llama-bench.json": (),
        "llama-bench.jsonl": (),
        "llama-bench.md": ("--model", "Qwen2.5-7B-Instruct"),
        "vllm-serve.json": ("--gpu", "RTX 3090"),
        "vllm-throughput.json": (*setup, *lengths),
        "vllm-latency.json": (*setup, *lengths),
        "sglang.jsonl": ("--gpu", "RTX 3090"),
        "simple.csv": (),
    }.items():
        done(run(capsys, "measure", "add", str(DATA / name), *more))
    assert len(json.loads(done(run(capsys, "measure", "list", "--format", "json")))) == 19
