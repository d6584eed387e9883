"""What lasts through a power cut, and who writes alone: the home of what systems do differently."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_AT_ONCE = 16
_TELLS_ERRORS = (5, 8)
"""From this Linux on the one call says when something could not be written."""


def flush(file: IO[bytes]) -> None:
    """Have what was written to an open file on the disk.

    Raises:
        OSError: It cannot be written.
    """
    file.flush()
    _to_disk(file.fileno())


def _to_disk(handle: int) -> None:
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  not on Windows

        with suppress(OSError):  # a file system that has no such call has the other
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # the other leaves it in the drive's own memory
            return
    os.fsync(handle)


def flush_folder(folder: Path) -> None:
    """Have the names in a folder on the disk; Windows opens no folders, and needs no call.

    Raises:
        OSError: It cannot be written.
    """
    if sys.platform != "win32":
        _flush(folder, os.O_RDONLY)


def flush_files(root: Path, paths: Iterable[Path]) -> None:
    """Flush files of a folder.

    Raises:
        OSError: One of them cannot be written.
    """
    if whole := _whole_file_system():
        whole(root)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most go without

    with ThreadPoolExecutor(_AT_ONCE) as flushing:
        list(flushing.map(lambda path: _flush(path, os.O_RDWR), paths))  # Windows asks for both


def flush_folders(root: Path, folders: Iterable[Path]) -> None:
    """Flush the names in folders; folders above are included, because they may be new.

    Raises:
        OSError: One of them cannot be written.
    """
    if whole := _whole_file_system():
        whole(root)
        return
    above = {up for folder in folders for up in (folder, *folder.parents) if _within(up, root)}
    for path in sorted(above, key=lambda path: -len(path.parts)):
        flush_folder(path)


def _flush(path: Path, access: int) -> None:
    handle = os.open(path, access)
    try:
        _to_disk(handle)
    finally:
        os.close(handle)


def _within(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _whole_file_system() -> Callable[[Path], None] | None:
    """Give what flushes the file system of a folder; None where that cannot be had or trusted."""
    if not sys.platform.startswith("linux") or _kernel() < _TELLS_ERRORS:
        return None
    import ctypes  # noqa: PLC0415 - batches alone ask

    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None

    def whole(root: Path) -> None:
        handle = os.open(root, os.O_RDONLY)
        try:
            if syncfs(handle):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(root))
        finally:
            os.close(handle)

    return whole


def _kernel() -> tuple[int, ...]:
    """Version of the kernel, ``6.1.0-13-amd64`` as (6, 1)."""
    parts = platform.release().split("-")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


@contextmanager
def alone(what: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of a file, which is made where it is missing, or of a folder.

    Raises:
        BlockingIOError: Somebody else holds it, and is not waited for.
        OSError: It cannot be opened.
    """
    handle = os.open(*_to_lock(what), 0o666)
    try:
        _hold(handle, wait=wait)
        yield
    finally:
        os.close(handle)


def _to_lock(what: Path) -> tuple[Path, int]:
    """Give what to open: on Windows a file stands for a folder, beside other temporary ones."""
    if not what.is_dir():
        return what, os.O_RDWR | os.O_CREAT
    if sys.platform != "win32":
        return what, os.O_RDONLY
    import tempfile  # noqa: PLC0415 - batches alone ask

    name = hashlib.sha256(os.path.normcase(what.resolve()).encode()).hexdigest()[:32]
    return Path(tempfile.gettempdir()) / f"advisor-{name}.lock", os.O_RDWR | os.O_CREAT


def _hold(handle: int, *, wait: bool) -> None:
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415  not on Windows

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    import msvcrt  # noqa: PLC0415  there alone

    try:
        msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError as held:
        raise BlockingIOError(held.errno, "another program holds it") from None
