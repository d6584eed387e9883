"""Brings what was written to the disk, so that it survives a power cut.

Linux flushes a whole file system in one call: hundreds of small files at the price of a few.
Elsewhere every file is flushed, many at once, since one flush takes milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_AT_ONCE = 16
_TELLS_ERRORS = (5, 8)
"""From this Linux on the one call says when something could not be written."""


def flush_files(root: Path, paths: Iterable[Path]) -> None:
    """Flush files of a folder.

    Raises:
        OSError: One of them cannot be written.
    """
    if whole := _whole_file_system():
        whole(root)
        return
    with ThreadPoolExecutor(_AT_ONCE) as flushing:
        list(flushing.map(_flush, paths))


def flush_folders(root: Path, folders: Iterable[Path]) -> None:
    """Flush the names in folders; folders above are included, because they may be new.

    Raises:
        OSError: One of them cannot be written.
    """
    if os.name == "nt":
        return
    if whole := _whole_file_system():
        whole(root)
        return
    above = {up for folder in folders for up in (folder, *folder.parents) if _within(up, root)}
    for path in sorted(above, key=lambda path: -len(path.parts)):
        _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _within(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _whole_file_system() -> Callable[[Path], None] | None:
    """Give what flushes the file system of a folder; None where that cannot be had or trusted."""
    if not sys.platform.startswith("linux") or _kernel() < _TELLS_ERRORS:
        return None
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
