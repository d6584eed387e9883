"""``models-for`` and ``gpus-for`` say which cards and models are the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
CARD = """\
- gpu: Lab card
  based_on: GeForce RTX 4090
  vram: 48 GiB
  source: lab
"""
SOURCE = "- id: lab\n  what: Read off the card\n  kind: measured\n  as_of: 2026-11\n"
SAID = "Yours: card Lab card (knowledge/gpus/lab.yaml:1, own: vram; the rest from GeForce RTX 4090)"


@pytest.fixture
def knowledge(tmp_path: Path) -> str:
    (tmp_path / "knowledge" / "gpus").mkdir(parents=True)
    (tmp_path / "knowledge" / "gpus" / "lab.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "knowledge" / "sources-lab.yaml").write_text(SOURCE, encoding="utf-8")
    return str(tmp_path / "knowledge")


def test_gpus_for_marks_an_own_card(knowledge: str, capsys: Capture) -> None:
    flags = ("gpus-for", "--model", "phi-4", "--limit", "all", "--knowledge", knowledge)
    out = run(capsys, *flags).out
    assert [line for line in out.splitlines() if line.startswith("Lab card (yours)")]
    assert out.count("(yours)") == 1
    assert SAID in out.splitlines()


def test_models_for_an_own_card_names_it(knowledge: str, capsys: Capture) -> None:
    flags = ("models-for", "--gpu", "Lab card", "--family", "Phi-3", "--knowledge", knowledge)
    assert SAID in run(capsys, *flags).out.splitlines()
    (entry,) = json.loads(run(capsys, *flags, "--format", "json").out)["yours"]
    assert entry["name"] == "Lab card"
    assert (entry["based_on"], entry["own_fields"]) == ("GeForce RTX 4090", ["vram"])


def test_without_own_entries_nothing_is_marked(capsys: Capture) -> None:
    out = run(capsys, "models-for", "--gpu", "RTX 4090", "--family", "Phi-3").out
    assert "Phi-3" in out
    assert "yours" not in out.casefold()
