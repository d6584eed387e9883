"""Run the command line in this process and see what a user would see."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from advisor.cli.main import main


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *args: str) -> Outcome:
    with patch.object(sys, "argv", ["advisor", *args]), pytest.raises(SystemExit) as stopped:
        main()
    captured = capsys.readouterr()
    code = stopped.value.code
    return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)


def advise(capsys: pytest.CaptureFixture[str], *more: str, **given: str) -> Outcome:
    values = {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q8_0", **given}
    flags = [part for key, value in values.items() for part in (f"--{key}", value)]
    return run(capsys, "advise", *flags, *more)
