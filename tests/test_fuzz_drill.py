"""The drill of damaged files: it runs, damages every kind, and sees a crash where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DRILL = Path(__file__).resolve().parent.parent / "benchmarks" / "fuzz.py"
QUICK = ("config", "gguf", "safetensors", "plan", "lines", "table", "measurements")


def drill(*more: str, before: str = "") -> subprocess.CompletedProcess[str]:
    start = f"import runpy, sys; sys.argv[1:] = {list(more)}; {before}"
    run = f"{start}\nrunpy.run_path({str(DRILL)!r}, run_name='__main__')"
    command = [sys.executable, "-c", run]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="an alarm ends what hangs")
def test_damaged_files_of_every_quick_kind_are_told() -> None:
    kinds = [word for kind in QUICK for word in ("--kind", kind)]
    done = drill("--count", "21", *kinds)
    assert (done.returncode, done.stdout[-200:]) == (0, done.stdout[-200:]), done.stdout
    assert "21 damaged files of 7 kinds, 0 crashes" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="an alarm ends what hangs")
def test_a_crash_is_seen() -> None:
    broken = "import advisor.bulk.estimates as f; f.request_from = lambda given: given['none']"
    done = drill("--count", "3", "--kind", "lines", before=broken)
    assert done.returncode == 1
    assert "bug in advisor" in done.stdout
