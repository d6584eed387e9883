"""A file that a command writes: it appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from advisor.errors import RequestError


@contextmanager
def opened(out: Path, *, source: Path | None = None) -> Iterator[TextIO]:
    """Open a file for results; on any failure what stood there stays as it was.

    Args:
        out: The file; a pipe or device is written to directly.
        source: The file that is being read, which must be another.

    Raises:
        RequestError: It cannot be written, or is the file that is being read.
    """
    _check(out, source)
    try:
        with _direct(out) if _is_special(out) else _beside(out) as file:
            yield file
    except OSError as bad:
        raise RequestError(f"cannot write '{out}': {bad.strerror}.") from None


def _check(out: Path, source: Path | None) -> None:
    if out.is_dir():
        raise RequestError(f"cannot write '{out}': it is a folder.", hint="Name a file in it.")
    if not out.exists():
        return
    if source is not None and source.exists() and out.samefile(source):
        raise RequestError(f"'{out}' is the file that is read", hint="Name another file.")
    if not os.access(out, os.W_OK):
        raise RequestError(f"cannot write '{out}': it is write-protected.")


def _is_special(out: Path) -> bool:
    """Tell pipes and devices, which cannot be replaced."""
    return out.exists() and not out.is_file()


@contextmanager
def _direct(out: Path) -> Iterator[TextIO]:
    with out.open("w", encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def _beside(out: Path) -> Iterator[TextIO]:
    """Write under another name in the same folder, and rename at the end."""
    target = out.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
