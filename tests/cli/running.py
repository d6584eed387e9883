"""Run the command line in this process and see what a user would see."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from advisor.cli.main import main


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


@contextmanager
def signals_as_before() -> Iterator[None]:
    """Undo what a process that ends may leave as it is."""
    before = [(kind, signal.getsignal(kind)) for kind in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for kind, handler in before:
            signal.signal(kind, handler)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> Outcome:
    with (
        signals_as_before(),
        patch.object(sys, "argv", ["advisor", *args]),
        pytest.raises(SystemExit) as stopped,
    ):
        main()
    captured = capsys.readouterr()
    code = stopped.value.code
    return Outcome(code if isinstance(code, int) else 0, captured.out, captured.err)


def advise(capsys: pytest.CaptureFixture[str], *more: str, **given: str) -> Outcome:
    values = {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q8_0", **given}
    flags = [part for key, value in values.items() for part in (f"--{key}", value)]
    return run(capsys, "advise", *flags, *more)
