"""Killed and gone on with: the bytes are those of a run that nobody disturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")
def test_killed_parents_and_workers_lose_nothing() -> None:
    """Two rounds of the drill, about six kills; the benchmark runs twenty."""
    command = [sys.executable, str(ROOT / "benchmarks/batch_drill.py"), "--rounds", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 kills" not in done.stdout
    assert done.stdout.endswith(" 0 problems\n")
