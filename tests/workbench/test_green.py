"""Green means that reports come out: houses changed at random, a few of the drill's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DRILL = Path(__file__).resolve().parents[2] / "benchmarks" / "green.py"


@pytest.mark.parametrize("number", range(2))
def test_where_a_report_fails_the_check_is_red(number: int) -> None:
    drill = runpy.run_path(str(DRILL))
    what, _, not_told = drill["tried"](number, 1, drill["ASKED"][:1])
    assert what
    assert not not_told
