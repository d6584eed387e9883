"""durable-rules and plain Python agree on random rule sets, whatever the order of anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from advisor.rules.engine.durable import available

pytestmark = pytest.mark.skipif(not available(), reason="durable-rules is not installed")


def compare(kind: str, first: int, last: int) -> dict[str, int]:
    script = Path(__file__).parent / "differential.py"
    command = [sys.executable, str(script), kind, str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return {name: int(count) for name, count in (p.split("=") for p in done.stdout.split())}


@pytest.mark.parametrize("first", [0, 1000])
def test_engines_agree_on_random_rules(first: int) -> None:
    seen = compare("objects", first, first + 1005)
    assert seen["compared"] >= 1000
    assert seen["firings"] > 1000
    assert seen["chained"] > 20


def test_engines_agree_on_random_rule_files() -> None:
    seen = compare("yaml", 0, 300)
    assert seen["compared"] >= 250
    assert seen["chained"] > 20
