"""An architecture is one entry: its config side, its GGUF side, its gate and its window."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace

import advisor
from advisor.files import data_dir
from advisor.models.architecture import Family, Gguf
from advisor.models.architectures.tables import FAMILIES, FILE
from advisor.models.shape import Blocks
from tests.cli.running import Outcome, advise

LLAMA = {
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "vocab_size": 32_000,
    "num_key_value_heads": 4, "intermediate_size": 8192, "max_position_embeddings": 8192,
}  # fmt: skip
TOY = replace(
    FAMILIES["llama"],
    tied=True,
    gated=False,
    gguf=(Gguf("toy", blocks=Blocks("toy", qk_norm="head"), windows=False),),
    also=("toy_text",),
)
KNOWN = """
- framework: llama.cpp
  based_on: llama.cpp
  model_types: [toy_text, toy, llama]
  source: our-tests
"""
SOURCES = """
- id: our-tests
  what: Made up here.
  as_of: 2026-11
  kind: background
"""


def asked(
    capsys: pytest.CaptureFixture[str], folder: Path, family: Family | None, *more: str
) -> Outcome:
    """Ask about a folder whose config.json is of an architecture that only this test knows."""
    (folder / "knowledge").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "toy_text", **LLAMA}))
    (folder / "knowledge" / "frameworks-toy.yaml").write_text(KNOWN)
    (folder / "knowledge" / "sources-toy.yaml").write_text(SOURCES)
    with patch.dict(FAMILIES, {"toy": family} if family else {}):
        return advise(
            capsys, "--framework", "llama.cpp", "--knowledge", str(folder / "knowledge"), *more,
            model=str(folder), precision="Q8_0",
        )  # fmt: skip


def weights(capsys: pytest.CaptureFixture[str], folder: Path, family: Family) -> int:
    seen = asked(capsys, folder, family, "--format", "json")
    assert seen.code == 0, seen.err
    size: int = json.loads(seen.out)["memory"]["weights_bytes"]
    return size


def test_an_architecture_is_one_entry(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gate = 16 * 2048 * 8192 * 34 // 32
    norms = 16 * 2 * 128 * 4
    plain = weights(capsys, tmp_path / "plain", TOY)
    like_llama = replace(TOY, gated=True, gguf=FAMILIES["llama"].gguf)
    assert weights(capsys, tmp_path / "gated", like_llama) - plain == gate - norms


def test_an_unknown_architecture_is_estimated_and_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen = asked(capsys, tmp_path / "unknown", None)
    assert seen.code == 0, seen.err
    assert "architecture 'toy_text' not described" in " ".join(seen.out.split())


def test_gemma_3_stands_in_data_alone() -> None:
    package = Path(advisor.__file__).parent
    where = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == "gemma3"
    }
    assert not where
    assert "\n  gemma3:\n" in (data_dir("knowledge") / FILE).read_text("utf-8")
