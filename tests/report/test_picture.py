"""The memory picture in every view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import advise

Capture = pytest.CaptureFixture[str]


def test_text_draws_growth_and_the_grid(capsys: Capture) -> None:
    out = advise(capsys, "--memory", "--context", "8192").out
    assert "How memory grows with context" in out
    grid = out.split("What fits")[1].splitlines()
    head = next(line for line in grid if line.strip().startswith("context"))
    assert head.split()[1:] == ["1", "2", "4", "8", "16", "32", "64"]
    last = next(line for line in grid if line.strip().startswith("8,192"))
    assert last.split()[-1] == "-"
    assert max(len(line) for line in out.splitlines()) <= 100


def test_json_holds_the_same_figures_only_when_asked(capsys: Capture) -> None:
    plain = json.loads(advise(capsys, "--format", "json").out)
    assert plain["memory_picture"] is None
    doc = json.loads(advise(capsys, "--format", "json", "--memory").out)
    picture = doc["memory_picture"]
    asked = picture["contexts"].index(4096), picture["batches"].index(1)
    assert picture["free_bytes"][asked[0]][asked[1]] == doc["memory"]["headroom_bytes"]


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_pages_hold_the_table(capsys: Capture, form: str, tmp_path: Path) -> None:
    target = tmp_path / "report"
    outcome = advise(capsys, "--memory", "--format", form, "-o", str(target))
    assert outcome.code == 0, outcome.err
    text = target.read_text()
    assert "What fits" in text
    assert "8,192" in text
    if form == "html":
        assert "Memory by length of context" in text


def test_what_does_not_fit_is_said(capsys: Capture) -> None:
    out = advise(capsys, "--memory", model="phi-3-medium", precision="FP16").out
    assert "does not fit" in out.split("How memory grows")[1]
