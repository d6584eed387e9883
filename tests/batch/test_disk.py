"""What was written reaches the disk, by one call where there is one, else file by file."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path

import pytest

from advisor import disk
from advisor.bulk.batch.store import File, prepare, write_files

FILES = (
    File("markdown/a/b.md", b"text"),
    File("markdown/c.md", b"more"),
    File("shards/0.jsonl", b"{}"),
)


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where each flushed file or folder lies."""
    found: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        found.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def written(root: Path) -> dict[str, bytes]:
    prepare(root, "token")
    assert write_files(root, 0, iter(FILES)) == sum(len(file.content) for file in FILES)
    return {file.path: (root / file.path).read_bytes() for file in FILES}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_old_kernel_has_every_file_and_every_folder_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: list[str]
) -> None:
    monkeypatch.setattr(platform, "release", lambda: "4.19.0-21-amd64")
    assert written(tmp_path) == {file.path: file.content for file in FILES}
    inside = [path for path in flushed if "/.work/" in path]
    assert len(inside) == len(FILES)
    named = {Path(path).relative_to(tmp_path).as_posix() for path in set(flushed) - set(inside)}
    assert named == {".", "markdown", "markdown/a", "shards"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="one call is Linux's")
def test_a_new_kernel_needs_no_call_per_file(tmp_path: Path, flushed: list[str]) -> None:
    if disk._kernel() < (5, 8):
        pytest.skip("an old kernel")
    assert written(tmp_path) == {file.path: file.content for file in FILES}
    assert not flushed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="one call is Linux's")
def test_what_the_one_call_says_went_wrong_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        @staticmethod
        def syncfs(_handle: int) -> int:
            ctypes.set_errno(errno.EIO)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Broken)
    monkeypatch.setattr(platform, "release", lambda: "6.1.0")
    prepare(tmp_path, "token")
    with pytest.raises(OSError, match="Input/output error") as told:
        write_files(tmp_path, 0, iter(FILES))
    assert told.value.errno == errno.EIO
    assert not (tmp_path / "shards").exists()
    assert not list((tmp_path / ".work").glob("0*"))


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.1.0-13-amd64", (6, 1)), ("5.8", (5, 8)), ("4.4.302+", (4, 4)), ("x", ())],
)
def test_the_kernel_is_read(
    release: str, version: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    assert disk._kernel() == version
