"""Edited files on their way to disk: shown as a difference, then all of each file or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from msgspec import Struct

from advisor.errors import RequestError


class Edited(Struct, frozen=True):
    """A file with another content."""

    path: Path
    shown: str
    """The path as a user would type it."""
    before: str
    after: str


def differences(files: Sequence[Edited]) -> str:
    """Write what changes as a unified diff, which ``patch`` takes."""
    return "".join(line for file in files for line in _difference(file))


def _difference(file: Edited) -> Iterator[str]:
    before, after = (_lines(text) for text in (file.before, file.after))
    for line in unified_diff(before, after, f"a/{file.shown}", f"b/{file.shown}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, as ``diff`` does."""
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def replace_files(files: Sequence[Edited]) -> None:
    """Put the new contents in the place of the old: all are written aside before one is replaced.

    Raises:
        RequestError: A file cannot be written; then none was replaced but those named.
    """
    parts: list[tuple[Path, Path]] = []
    try:
        for file in files:
            part = file.path.with_name(f".{file.path.name}.{os.getpid()}.part")
            parts.append((part, file.path))
            part.write_bytes(file.after.encode())
            part.chmod(file.path.stat().st_mode & 0o777)
        for part, path in parts:
            part.replace(path.resolve())
    except OSError as error:
        message = f"{error.filename} cannot be written: {error.strerror}"
        raise RequestError(message, hint="Nothing is half-written.") from None
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)
