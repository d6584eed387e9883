"""An output format is one file: a function that writes, and its registration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOY = """
from advisor.report import Format, Page, register


def write(page: Page) -> str:
    return f"{page.doc.verdict.state} | {page.doc.memory.required_bytes} bytes | {page.length}\\n"


register(Format("toy", write, suffix="toy"))
"""
PLAN = """
gpus: [RTX 4090, "RTX 3060:12GB"]
models: [llama-3-8b]
formats: [Q4_K_M]
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "toy_format.py").write_text(TOY, encoding="utf-8")
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    return tmp_path


def run(house: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own that knows the format."""
    code = "import toy_format; from advisor.cli.main import main; main()"
    path = os.pathsep.join([str(house), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, cwd=house,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_a_report_is_written_in_it(house: Path) -> None:
    asked = ("advise", "--gpu", "RTX 4090", "--model", "llama-3-8b", "--precision", "Q4_K_M")
    done = run(house, *asked, "--format", "toy", "--length", "short")
    assert done.returncode == 0, done.stderr
    state, size, length = done.stdout.strip().split(" | ")
    assert (state, length) == ("fits", "short")
    assert 4e9 < int(size.removesuffix(" bytes")) < 8e9
    assert "toy" in run(house, "advise", "--help").stdout


def test_a_batch_writes_files_of_it_and_its_audit_knows_them(house: Path) -> None:
    batch = ("batch", "plan.yaml", "--out", "out", "--workers", "1")
    done = run(house, *batch, "--formats", "toy,jsonl")
    assert done.returncode == 0, done.stderr
    written = sorted((house / "out" / "toy").rglob("*.toy"))
    assert len(written) == 2
    assert all(file.read_text().startswith("fits | ") for file in written)
    audit = run(house, "audit", "out")
    assert audit.returncode == 0, audit.stdout


def test_a_format_that_nobody_registered_is_refused(house: Path) -> None:
    done = run(house, "batch", "plan.yaml", "--out", "out", "--formats", "toi")
    assert done.returncode == 1
    assert "unknown format 'toi'" in done.stderr
    assert "Did you mean 'toy'?" in done.stderr
