"""A new runtime is one module and its records: what it allocates, and how it is started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from advisor import runtimes
from advisor.runtimes.base import CacheShape, Cells, Compute, Placement, Range, Runtime
from advisor.scenario import Scenario
from advisor.units import MIB
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
PAGE = 1000
FRAMEWORK = """
- framework: Toy
  version: 1.0
  vendors: [NVIDIA]
  formats: [FP16]
  model_types: [llama]
  kv_types: [f16]
  memory_model: toy
  multi_gpu: [layer]
  source: toy-manual
"""
COMMAND = """
- command: toy
  framework: Toy
  version: 1.0
  what: serves
  lines: [["toy {model} --ctx {context}"]]
  source: toy-manual
"""
SOURCE = "- {id: toy-manual, what: The manual of the toy, kind: datasheet, as_of: 2026-11}\n"
ASKED = ("--model", "llama-3-8b", "--framework", "Toy", "--context", "4001")


class Toy(Runtime):
    """Pages of 1,000 tokens and 7 MiB for everything else."""

    memory_model = "toy"
    page_tokens = PAGE
    overheads = ()

    def compute(
        self,
        _scenario: Scenario,
        _cache: CacheShape,
        _cells: Cells,
        _placement: Placement,
        _policy: Mapping[str, float],
    ) -> Compute:
        return Compute(Range(7 * MIB, 7 * MIB, 7 * MIB))


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(runtimes, "_RUNTIMES", dict(runtimes._RUNTIMES))
    runtimes.register(Toy())
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "frameworks-toy.yaml").write_text(FRAMEWORK, encoding="utf-8")
    (folder / "commands-toy.yaml").write_text(COMMAND, encoding="utf-8")
    (folder / "sources-toy.yaml").write_text(SOURCE, encoding="utf-8")
    return folder


def advised(capsys: Capture, folder: Path, *words: str) -> Any:
    done = run(capsys, "advise", *ASKED, *words, "--knowledge", str(folder), "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_it_is_advised_on_by_its_own_rule(capsys: Capture, toy: Path) -> None:
    memory = advised(capsys, toy, "--gpu", "RTX 4090")["memory"]
    assert memory["kv_cache_bytes"] == 5 * PAGE * 32 * 2 * 1024 * 2
    assert memory["compute_buffer_bytes"] == 7 * MIB


def test_it_is_started_by_its_own_command(capsys: Capture, toy: Path) -> None:
    (command,) = advised(capsys, toy, "--gpu", "RTX 4090")["commands"]
    assert command["text"] == "toy meta-llama/Meta-Llama-3-8B --ctx 4001"


def test_it_splits_by_whole_layers(capsys: Capture, toy: Path) -> None:
    cards = advised(capsys, toy, "--gpu", "2x RTX 4090", "--split", "layer")["memory"]["per_gpu"]
    assert [card["compute_buffer_bytes"] for card in cards] == [7 * MIB] * 2
    assert cards[0]["weights_bytes"] != cards[1]["weights_bytes"]


def test_one_that_nothing_registers_is_told_with_its_place(capsys: Capture, toy: Path) -> None:
    text = FRAMEWORK.replace("memory_model: toy", "memory_model: tuy")
    (toy / "frameworks-toy.yaml").write_text(text, encoding="utf-8")
    checked = run(capsys, "knowledge", "check", str(toy))
    assert "frameworks-toy.yaml:8:17" in checked.err
    wanted = "framework 'Toy': 'tuy' is not a valid 'memory_model'. Did you mean 'toy'?"
    assert wanted in " ".join(checked.err.split())
    asked = run(capsys, "advise", *ASKED, "--gpu", "RTX 4090", "--knowledge", str(toy))
    assert (asked.code, wanted in " ".join(asked.err.split())) == (1, True)
