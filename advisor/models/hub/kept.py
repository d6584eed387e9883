"""A file of a model as it is kept: its start, a hole behind it, and a note of what was read.

The note is sealed and lies beside the folder of the model's files, where none of them can stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, json

from advisor.errors import RequestError
from advisor.files import read_kept, refuse_shared, seal, user_cache_dir, write_whole

_KEY_LENGTH = 12


class Noted(Struct, frozen=True):
    """What a file was when it was read."""

    size: int
    read: int
    """Bytes of its start that were read; the rest is a hole."""
    sha256: str
    """Of those."""


class Kept(Struct, frozen=True):
    """The place of a file.

    Args:
        folder: Where the files of the model lie at this commit.
        path: Of the file, below it.
        what: Which file of which model at which commit it is.
    """

    folder: Path
    path: str
    what: str

    @property
    def file(self) -> Path:
        """The file itself."""
        return self.folder / self.path

    @property
    def _note(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.notes") / f"{key(self.path)}.json"

    def holds(self, size: int | None) -> bool:
        """Whether the file was read before, of the stated size, and is as it was read.

        Raises:
            UserError: Others can write it.
        """
        content = read_kept(self._note, self.what)
        if content is None:
            return False
        noted = json.decode(content, type=Noted)
        return size in {None, noted.size} and self._is_as_noted(noted)

    def _is_as_noted(self, noted: Noted) -> bool:
        try:
            found = self.file.stat()
            refuse_shared(self.file.parent)
            refuse_shared(self.file, found)
            if found.st_size != noted.size:
                return False
            with self.file.open("rb") as file:
                return hashlib.sha256(file.read(noted.read)).hexdigest() == noted.sha256
        except OSError:
            return False

    def put(self, content: bytes, size: int) -> None:
        """Write a file that starts with ``content`` and is a hole up to ``size`` bytes.

        Raises:
            RequestError: The cache folder cannot be written, or the disk is full.
        """
        noted = Noted(size, len(content), hashlib.sha256(content).hexdigest())
        write(self.file, [content], size)
        write_sealed(self._note, self.what, json.encode(noted))


def write_sealed(path: Path, what: str, content: bytes) -> None:
    """Write what ``read_kept`` reads back.

    Raises:
        RequestError: The cache folder cannot be written, or the disk is full.
    """
    write(path, [seal(what, [content]), content])


def write(path: Path, parts: Sequence[bytes], size: int | None = None) -> None:
    """Write a file whole or not at all, with a hole up to ``size`` bytes.

    Raises:
        RequestError: The cache folder cannot be written, or the disk is full.
    """
    try:
        write_whole(path, parts, size=size)
    except OSError as bad:
        raise RequestError(
            f"'{path.name}' cannot be written to the cache folder {user_cache_dir() / 'hub'} "
            f"({bad.strerror or bad})",
            hint="ADVISOR_CACHE_DIR names another place.",
        ) from None


def key(text: str) -> str:
    """Give a short name for a file of the cache."""
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
