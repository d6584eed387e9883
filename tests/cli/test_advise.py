"""What ``advisor advise`` prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import advise, run

Capture = pytest.CaptureFixture[str]


def test_text_begins_with_the_verdict(capsys: Capture) -> None:
    outcome = advise(capsys)
    assert outcome.code == 0
    assert "fits" in outcome.out.splitlines()[0]
    assert "\x1b[" not in outcome.out


def test_json_is_one_object_with_every_key_of_the_contract(capsys: Capture) -> None:
    doc = json.loads(advise(capsys, "--format", "json").out)
    assert doc["schema_version"] == 1
    assert {
        "request", "scenario", "memory", "speed", "verdict", "recommendations", "notes",
        "not_recommended", "provenance",
    } <= set(doc)  # fmt: skip
    assert doc["request"]["gpu"] == "RTX 4090"
    assert doc["scenario"]["context_tokens"] == 4096
    assert doc["verdict"]["state"] == "fits"


def test_the_same_request_gives_the_same_bytes(capsys: Capture) -> None:
    first = advise(capsys, "--format", "json").out
    assert first == advise(capsys, "--format", "json").out


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
@pytest.mark.parametrize("length", ["short", "standard", "full"])
def test_every_format_in_every_length(capsys: Capture, form: str, length: str) -> None:
    outcome = advise(capsys, "--format", form, "--length", length, precision="FP16")
    assert outcome.code == 0
    assert outcome.err == ""
    assert len(outcome.out) > 200


def test_output_goes_to_a_file(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    outcome = advise(capsys, "--format", "html", "-o", str(target))
    assert outcome.out == ""
    assert target.read_text().lstrip().lower().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_fail_unless_fits(capsys: Capture) -> None:
    assert advise(capsys, "--fail-unless-fits").code == 0
    assert advise(capsys, "--fail-unless-fits", model="phi-3-medium", precision="FP16").code == 3


def test_options_lists_every_what_if(capsys: Capture) -> None:
    out = advise(capsys, "--options", model="phi-3-medium", precision="FP16").out
    assert "What fits, side by side" in out
    assert "Q4_K_M" in out


def test_why_shows_scores_and_the_distance_of_what_failed(capsys: Capture) -> None:
    out = advise(capsys, "--why", model="phi-3-medium", precision="FP16").out
    assert "quantize-to-fit" in out
    assert "score" in out
    assert "short by" in out


def test_a_stated_split_gets_a_speed_with_ram_bandwidth(capsys: Capture) -> None:
    flags = ("--gpu-layers", "30", "--ram", "64GB", "--ram-bandwidth", "80GB/s")
    doc = json.loads(
        advise(capsys, *flags, "--format", "json", model="phi-3-medium", precision="FP16").out
    )
    assert doc["speed"]["bound_by"] == "offload"
    assert doc["memory"]["host_weights_bytes"] > 0


def test_help_names_every_flag_of_the_contract(capsys: Capture) -> None:
    out = run(capsys, "advise", "--help").out
    flags = (
        "--gpu-layers --cpu-experts --flash-attention --ubatch --backend --depth --ram "
        "--ram-bandwidth --prefer --fail-unless-fits"
    )
    for flag in flags.split():
        assert flag in out


def test_version(capsys: Capture) -> None:
    assert run(capsys, "--version").out.startswith("advisor ")


def test_the_help_names_the_defaults(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """In square brackets they would be taken for markup and vanish."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    outcome = run(capsys, "advise", "--help")
    text = " ".join(outcome.out.replace("│", " ").split())
    assert "(default: as the runtime takes it)" in text
    assert "(default: 4096 or the trained length)" in text


def test_a_folder_without_a_model_is_told_as_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = run(capsys, "advise", "--gpu", "RTX 4090", "--model", str(tmp_path))
    assert done.code == 1
    assert "no model lies in this folder. Give a folder with a config.json" in done.err


@pytest.mark.parametrize(
    ("settings", "refused", "told"),
    [
        ({"precision": "FP8", "framework": "LM Studio"}, "LM Studio does not run FP8", "of Q8_0"),
        ({"precision": "experts_int8"}, "unknown weight format", "of 8-bit weights"),
        ({"precision": "JANG_4K"}, "cannot be sized", "of MLX 4-bit"),
        ({"mtp": "2"}, "has no layer for multi-token prediction", "drafts nothing"),
        (
            {"framework": "vLLM", "precision": "AWQ", "kv-cache": "q4_0"},
            "cannot keep the KV cache",
            "by default",
        ),
        ({"gpu": "GT 730", "ram": "16GB"}, "below 5.0", "of the processor"),
    ],
)
def test_what_cannot_be_as_stated_is_answered_as_it_can(
    capsys: Capture, settings: dict[str, str], refused: str, told: str
) -> None:
    given = {"model": "qwen3-8b", "precision": "Q4_K_M", **settings}
    outcome = advise(capsys, "--format", "json", **given)
    assert outcome.code == 0, outcome.err
    doc = json.loads(outcome.out)
    first = doc["scenario"]["read_as"][0]
    assert doc["memory"]["certainty"] != "sure"
    assert refused in first
    assert told in first
    assert advise(capsys, "--fail-unless-fits", **given).code == 1
