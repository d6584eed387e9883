"""Where rules/, templates/ and knowledge/ lie: in the wheel or, from a checkout, beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from advisor.errors import UserError

Kind = Literal["rules", "templates", "knowledge"]
_PACKAGE = Path(__file__).resolve().parent


def data_dir(kind: Kind) -> Path:
    """Find the built-in folder."""
    packaged = _PACKAGE / "data" / kind
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind


def read_tree(folder: Path, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read every file below ``folder`` with one of the suffixes, by sorted relative POSIX path.

    What is hidden, such as ``.git`` and ``.venv``, is nobody's rule or template.
    """
    wanted = tuple(suffixes)
    paths = (p for p in folder.rglob("*") if p.suffix in wanted and p.is_file())
    named = sorted((p.relative_to(folder).as_posix(), p) for p in paths)
    return {name: p.read_bytes() for name, p in named if "/." not in f"/{name}"}


def overlaid(kind: Kind, folder: Path | None, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read the built-in files and lay the user's over them: a file of the same path replaces.

    Raises:
        UserError: The user's folder is missing or cannot be read.
    """
    wanted = tuple(suffixes)
    files = dict(read_tree(data_dir(kind), wanted))
    if folder is None:
        return files
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}'.", hint=f"Name a folder with {kind}.")
    try:
        files.update(read_tree(folder, wanted))
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    return dict(sorted(files.items()))


def digest(files: Mapping[str, bytes]) -> str:
    """Hash names and contents, SHA-256, hexadecimal."""
    total = hashlib.sha256()
    for name, content in files.items():
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
