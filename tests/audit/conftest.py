"""A finished batch in every format, and copies of it to be damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.plans import TINY, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    command = [sys.executable, "-m", "advisor", "batch", str(write(folder, TINY)), "--out"]
    command += [str(folder / "out"), "--workers", "1"]
    command += ["--formats", "markdown,html,jsonl,parquet"]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return folder / "out"


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))
