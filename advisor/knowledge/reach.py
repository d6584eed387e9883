"""What a request may reach of this machine: its files and its cards, or names alone.

A program that answers strangers (``advisor serve``) takes names alone. Whatever reads a path of a
request, or asks this machine for its card, asks here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from advisor.errors import RequestError
from advisor.files import real

_FOLDERS: ContextVar[tuple[Path, ...] | None] = ContextVar("folders", default=None)
"""Folders whose files a request may name; None: every file, and this machine's cards."""


class NotAllowedError(RequestError):
    """The request names what it may not reach."""


@contextmanager
def names_only(*folders: Path) -> Iterator[None]:
    """Let requests name nothing of this machine but files below some folders."""
    before = _FOLDERS.set(tuple(map(real, folders)))
    try:
        yield
    finally:
        _FOLDERS.reset(before)


def allowed(path: str | Path) -> bool:
    """Whether a request may name this path."""
    folders = _FOLDERS.get()
    if folders is None:
        return True
    try:
        return any(real(Path(path)).is_relative_to(folder) for folder in folders)
    except (OSError, ValueError):
        return False


def check_path(path: str | Path) -> None:
    """Refuse a path that a request may not name.

    Raises:
        NotAllowedError: It may not.
    """
    if not allowed(path):
        raise NotAllowedError(
            f"'{path}' is a path, and files of this machine are not read here",
            hint="Name the model: llama-3-8b, or its Hugging Face id.",
        )


def check_machine() -> None:
    """Refuse to ask this machine for its card.

    Raises:
        NotAllowedError: Requests name nothing of this machine.
    """
    if _FOLDERS.get() is not None:
        raise NotAllowedError(
            "'local' is the card of this machine, which is not asked here",
            hint="Name the card, for example RTX 4090.",
        )
