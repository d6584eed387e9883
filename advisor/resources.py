"""Where rules/, templates/ and knowledge/ lie: in the wheel or, from a checkout, beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

Kind = Literal["rules", "templates", "knowledge"]
_PACKAGE = Path(__file__).resolve().parent


def data_dir(kind: Kind) -> Path:
    """Find the built-in folder."""
    packaged = _PACKAGE / "data" / kind
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind


def read_tree(folder: Path, suffixes: Iterable[str]) -> Mapping[str, bytes]:
    """Read every file below ``folder`` with one of the suffixes, by sorted relative POSIX path."""
    wanted = tuple(suffixes)
    paths = (p for p in folder.rglob("*") if p.suffix in wanted and p.is_file())
    return {
        name: p.read_bytes()
        for name, p in sorted((p.relative_to(folder).as_posix(), p) for p in paths)
    }


def digest(files: Mapping[str, bytes]) -> str:
    """Hash names and contents, SHA-256, hexadecimal."""
    total = hashlib.sha256()
    for name, content in files.items():
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
