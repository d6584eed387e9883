"""Which folders the user trusts, by path and by the content of their advisor.toml."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import json

from advisor.errors import RequestError
from advisor.files import read_kept, refuse_shared, seal, user_data_dir, write_whole
from advisor.units import plain

_WHAT = "trusted folders"


def is_trusted(file: Path, content: bytes) -> bool:
    """Whether the user trusts the folder of this file with this very content.

    Raises:
        UserError: Others can write what is remembered.
    """
    return trusted().get(name_of(file.parent)) == digest_of(content)


def refusal(file: Path, content: bytes) -> str:
    """Say in one line that a file does not count, and what to do; empty where it counts."""
    if is_trusted(file, content):
        return ""
    folder = plain(name_of(file.parent))
    changed = name_of(file.parent) in trusted()
    why = "it was changed since you trusted it" if changed else "you did not say that you trust it"
    return (
        f"note: {file.name} in '{folder}' is left out: {why}. "
        "'advisor trust' makes it count here; an empty ADVISOR_CONFIG= leaves it out silently."
    )


def trusted() -> dict[str, str]:
    """Read folder -> digest of its advisor.toml; a damaged file trusts nothing."""
    content = read_kept(_place(), _WHAT)
    return {} if content is None else json.decode(content, type=dict[str, str])


def _place() -> Path:
    return user_data_dir() / "trusted.json"


def name_of(folder: Path) -> str:
    """Give the name that a folder is remembered by."""
    return str(folder.resolve()).encode("utf-8", "backslashreplace").decode()


def digest_of(content: bytes) -> str:
    """Give what its advisor.toml is remembered by."""
    return hashlib.sha256(content).hexdigest()


def remember(folders: Mapping[str, str]) -> None:
    """Write down what is trusted from now on.

    Raises:
        UserError: It cannot be written, or others can write the folder.
    """
    refuse_shared(user_data_dir())
    content = json.encode(folders)
    try:
        write_whole(_place(), [seal(_WHAT, [content]), content])
    except OSError as bad:
        raise RequestError(
            f"'{_place()}' cannot be written: {bad.strerror}",
            hint="ADVISOR_DATA_DIR names another folder.",
        ) from None
