"""A small batch of two vendors and its site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.plans import write

ROOT = Path(__file__).resolve().parents[2]
PLAN = """\
gpus: [RTX 4090, RTX 3060 12GB, RX 7900 XTX]
models: [llama-3-8b, gemma-2-27b, llama-3.1-70b]
formats: [Q8_0, Q4_K_M]
contexts: [4096]
"""
BASE = "https://example.org/gpus/"


@pytest.fixture(scope="package")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    plan, out = write(folder, PLAN), folder / "out"
    command = [sys.executable, "-m", "advisor", "batch", str(plan), "--out", str(out)]
    command += ["--workers", "1", "--formats", "jsonl"]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return out


@pytest.fixture(scope="package")
def site(batch: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "site"
    command = [sys.executable, "-m", "advisor", "site", str(batch), "--output", str(out)]
    command += ["--workers", "1", "--base-url", BASE]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return out
