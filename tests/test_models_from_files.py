"""Weight files on disk are advised on as they are: exact sizes in the format they hold."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.scenario.settings import Request
from tests.cli.running import advise
from tests.estimate.test_stored_weights import QUANTISED, written
from tests.models.safetensors_files import configure, llama
from tests.models.safetensors_files import write as write_safetensors


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@pytest.mark.parametrize("ftype", ["Q4_K_M", "Q8_0"])
def test_a_gguf_file_is_sized_as_it_stands(tmp_path: Path, ftype: str) -> None:
    written(tmp_path, "llama-3-8b", ftype)
    file = tmp_path / f"llama-3-8b-{ftype}.gguf"
    row = next(r for r in QUANTISED["llama-3-8b"] if r["ftype"] == ftype)
    advice = advisor().advise(Request(gpu="RTX 4090", model=str(file)))
    assert advice.scenario.precision.name == ftype
    memory = advice.memory
    assert memory.weights_bytes + memory.host_weights_bytes == int(row["weight_bytes"])
    assert advice.scenario.model.parameters == 8_030_261_248


def test_other_formats_of_a_gguf_file_are_what_ifs(tmp_path: Path) -> None:
    written(tmp_path, "llama-3-8b", "Q8_0")
    file = tmp_path / "llama-3-8b-Q8_0.gguf"
    advice = advisor().advise(Request(gpu="RTX 4060", model=str(file), context=8192))
    sizes = {o.scenario.precision.name: o.memory.required_bytes for o in advice.options}
    assert sizes["Q4_K_M"] < advice.memory.required_bytes
    command = advice.recommendations[0].command
    assert str(tmp_path) not in command


def test_a_folder_of_safetensors_takes_its_own_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", llama())
    outcome = advise(capsys, "--format", "json", model=str(tmp_path), precision="BF16")
    assert outcome.code == 0, outcome.err
    doc = json.loads(outcome.out)
    assert doc["scenario"]["precision"] == "BF16"
    assert doc["scenario"]["model"]["origin"] == "config"


def test_a_broken_gguf_file_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00")
    outcome = advise(capsys, model=str(file))
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 1
    assert "Traceback" not in outcome.err
