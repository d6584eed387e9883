"""Killed and gone on with: the bytes are those of a run that nobody disturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")
def test_kills_lose_nothing_and_two_ctrl_c_leave_nothing() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/batch_drill.py"), "--kills", "6"]
    command += ["--interrupts", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\n8 times, 0 problems\n")
