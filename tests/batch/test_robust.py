"""What ``advisor batch`` says where it cannot write, and what it leaves of its surroundings."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from advisor.batch.executors import Local, Pool
from tests.batch.plans import TINY, write
from tests.cli.running import Outcome, run

Capture = pytest.CaptureFixture[str]


def batch(capsys: Capture, plan: Path, out: Path, *more: str) -> Outcome:
    formats = ("--formats", "jsonl", "--workers", "1")
    return run(capsys, "batch", str(plan), "--out", str(out), *formats, *more)


def held_back() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("letter/out", "letter' is not a folder"),
        ("letter/far/out", "letter' is not a folder"),
        ("a" * 300, "(File name too long)"),
        ("round/out", "cannot make the folder"),
    ],
)
def test_a_folder_that_cannot_be_made_is_told_with_the_reason(
    capsys: Capture, tmp_path: Path, place: str, words: str
) -> None:
    write(tmp_path, "dear", "letter")
    (tmp_path / "round").symlink_to("round")
    for outcome in (
        batch(capsys, write(tmp_path, TINY), tmp_path / place),
        batch(capsys, write(tmp_path, TINY), tmp_path / place, "--resume"),
    ):
        assert outcome.code == 1
        assert outcome.err.startswith("error: cannot make the folder")
        assert words in outcome.err
        assert len(outcome.err.splitlines()) == 1


def test_a_summary_that_cannot_be_written_is_no_fault_of_the_folder(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    plan, out = write(tmp_path, TINY), tmp_path / "out"
    monkeypatch.setattr(sys, "stdout", Full())
    outcome = batch(capsys, plan, out)
    monkeypatch.undo()
    assert outcome.code == 1
    assert "No space left on device" in outcome.err
    assert "--resume" not in outcome.err
    assert json.loads(batch(capsys, plan, out, "--resume").out)["shards"]["kept"] == 3


def test_ctrl_c_never_reaches_a_worker_and_is_not_lost_here() -> None:
    pool = Local(2).open()
    assert isinstance(pool, Pool)
    try:
        assert pool.submit(held_back).result()
        assert not held_back()
    finally:
        pool.shutdown()


def test_the_garbage_collector_is_set_as_before_at_the_end() -> None:
    before, place = gc.get_threshold(), Local(1)
    here = place.open()
    assert gc.get_threshold() != before
    place.close(here, drop=False)
    assert gc.get_threshold() == before
