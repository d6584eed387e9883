"""Files of a folder of texts, read within bounds: whoever wrote them, they are data."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from advisor.errors import Source, TemplateError

MAX_BYTES = 64 * 1024
"""Of one file; the largest built-in one has 9 KiB."""
UNREAD = "template-syntax"
"""The kind of mistake that keeps a file from being read."""


def read_source(folder: Path, name: str) -> bytes | None:
    """Read a file of texts; None where the folder has none of this name.

    Raises:
        TemplateError: It is no plain file, too large, not readable, or a link out of its folder.
    """
    path = folder / name
    if ".." in Path(name).parts or not os.path.lexists(path):
        return None
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise _refused(name, "a link that leads out of the folder is not followed")
        return _read(path, name)
    except (OSError, RuntimeError) as bad:
        reason = getattr(bad, "strerror", None) or bad
        raise _refused(name, f"the file cannot be read: {reason}") from None


def _read(path: Path, name: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123 - a pipe must not hold us
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _refused(name, "this is no plain file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _refused(name, f"the file is larger than {MAX_BYTES // 1024} KiB")
    return content


def _refused(name: str, message: str) -> TemplateError:
    return TemplateError(message, source=Source(f"templates/{name}", 1, 1), lint=UNREAD)
