"""Files last and are locked on every system: Windows and macOS are played by what they refuse."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from advisor import disk
from advisor.estimator.calibration import user as measurements
from tests.batch.plans import TINY, contents, write
from tests.cli.running import run
from tests.measurements.test_store import ONE, TWO

Capture = pytest.CaptureFixture[str]
FORMATS = "markdown,html,jsonl.gz,parquet/vendor"


def system(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Tell the module alone, so that the rest of Python goes on as it is."""
    monkeypatch.setattr(disk, "sys", SimpleNamespace(platform=name))


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No folder can be opened, only what can be written can be flushed, locks are msvcrt's."""
    system(monkeypatch, "win32")
    opened, fsync = os.open, os.fsync

    def open_(path: Path, flags: int, *more: int) -> int:
        if os.path.isdir(path):  # noqa: PTH112 - a module in Path's place would be too much
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, flags, *more)

    def commit(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        fsync(handle)

    def locking(handle: int, mode: int, size: int) -> None:
        assert size == 1
        try:
            fcntl.flock(handle, mode)
        except BlockingIOError:
            raise OSError(errno.EACCES, "Permission denied") from None

    monkeypatch.setattr(disk, "os", SimpleNamespace(**vars(os) | {"open": open_, "fsync": commit}))
    msvcrt = SimpleNamespace(
        locking=locking, LK_LOCK=fcntl.LOCK_EX, LK_NBLCK=fcntl.LOCK_EX | fcntl.LOCK_NB
    )
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def batch(capsys: Capture, folder: Path, out: Path, *more: str) -> tuple[int, str]:
    plan = write(folder, TINY)
    asked = ("batch", str(plan), "--out", str(out), "--formats", FORMATS, "--workers", "1")
    done = run(capsys, *asked, *more)
    return done.code, done.err


def test_a_batch_comes_out_on_windows_as_here(
    capsys: Capture, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert batch(capsys, tmp_path, here) == (0, "")
    request.getfixturevalue("windows")
    assert batch(capsys, tmp_path, there) == (0, "")
    assert contents(here) == contents(there)


@pytest.mark.usefixtures("windows")
def test_one_run_alone_writes_into_a_folder_on_windows(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with disk.alone(out, wait=False):
        code, said = batch(capsys, tmp_path, out)
    assert (code, said.count("\n")) == (1, 1)
    assert "another run is writing" in said
    assert batch(capsys, tmp_path, out) == (0, "")
    assert not list(out.glob("*.lock"))


@pytest.mark.usefixtures("windows")
def test_measurements_are_added_on_windows(tmp_path: Path) -> None:
    path = tmp_path / "measurements.csv"
    measurements.add(path, [ONE])
    measurements.add(path, [TWO])
    assert len(measurements.load(path, "it")[1]) == 2


def asked_of(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], None]) -> list[str]:
    """What is asked of the disk on a Mac, where the stronger call answers so."""
    system(monkeypatch, "darwin")
    asked: list[str] = []

    def full(_handle: int, command: str) -> None:
        asked.append(command)
        answer()

    monkeypatch.setitem(sys.modules, "fcntl", SimpleNamespace(fcntl=full, F_FULLFSYNC="full"))
    monkeypatch.setattr(
        disk, "os", SimpleNamespace(**vars(os) | {"fsync": lambda _: asked.append("fsync")})
    )
    return asked


def test_on_a_mac_the_memory_of_the_drive_is_flushed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    asked = asked_of(monkeypatch, lambda: None)
    disk.flush_files(tmp_path, [file])
    disk.flush_folders(tmp_path, [tmp_path])
    assert asked == ["full", "full"]


def test_a_file_system_without_that_call_has_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    asked = asked_of(monkeypatch, refused)
    disk.flush_folder(tmp_path)
    assert asked == ["full", "fsync"]
