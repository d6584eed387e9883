"""Compiled rules and knowledge: parsed once, then read back as JSON, keyed by content.

The wheel carries the built-in ones; overlays go to the user's cache folder. A cache that
cannot be read or written costs time, never correctness.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from advisor import __version__

Compiled = Mapping[str, object]
_PACKAGED = Path(__file__).resolve().parent / "data" / "compiled"


def user_cache_dir() -> Path:
    """The folder for this version's compiled overlays (``ADVISOR_CACHE_DIR`` overrides)."""
    if stated := os.environ.get("ADVISOR_CACHE_DIR"):
        return Path(stated)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "advisor" / __version__


def compiled(kind: str, sha256: str, build: Callable[[], Compiled]) -> Compiled:
    """Give the compiled form of files with this hash, building it at most once.

    Args:
        kind: ``rules`` or ``knowledge``; part of the file name.
        sha256: Hash of the files' names and contents.
        build: Parses and validates; must give JSON-serialisable data with string keys.
    """
    name = f"{kind}-{sha256[:32]}.json"
    for folder in (_PACKAGED, user_cache_dir()):
        found = _read(folder / name)
        if found is not None:
            return found
    made = build()
    _write(user_cache_dir() / name, made)
    return made


def _read(path: Path) -> Compiled | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: Path, made: Compiled) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".tmp") as file:
            json.dump(made, file, separators=(",", ":"), allow_nan=False)
        Path(file.name).replace(path)
    except OSError:
        return
