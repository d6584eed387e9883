"""Compiled rules and knowledge: parsed once, then read back as JSON, keyed by content.

The wheel carries the built-in ones; overlays go to the user's cache folder. A cache that
cannot be read or written costs time, never correctness.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from msgspec import json

from advisor import __version__

Compiled = Mapping[str, object]
_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "data" / "compiled"
_KEPT = 8


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

    Returns:
        What JSON makes of it, the same on the first call as on later ones.
    """
    found = _read(_PACKAGED / f"{kind}-{sha256[:32]}.json")
    if found is not None:
        return found
    own = user_cache_dir() / f"{kind}-{sha256[:32]}-{_code()}.json"
    found = _read(own)
    if found is not None:
        return found
    made = json.encode(build())
    _write(own, made)
    return cast("Compiled", json.decode(made))


@cache
def _code() -> str:
    """Tell states of the code apart, so that an edited parser never reads an older one's work."""
    return hashlib.sha256(repr(sorted(_states(_PACKAGE))).encode()).hexdigest()[:12]


def _states(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            yield entry.path, entry.stat().st_size, entry.stat().st_mtime_ns
        elif entry.is_dir():
            yield from _states(entry.path)


def _read(path: Path) -> Compiled | None:
    try:
        found = json.decode(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: Path, made: bytes) -> None:
    import tempfile  # noqa: PLC0415 - 5 ms that a warm cache does not need

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False, suffix=".tmp") as file:
            file.write(made)
        Path(file.name).replace(path)
        _prune(path)
    except OSError:
        return


def _prune(newest: Path) -> None:
    """Keep the files of this kind that were written last."""
    kind = newest.name.partition("-")[0]
    written = sorted(newest.parent.glob(f"{kind}-*.json"), key=lambda path: path.stat().st_mtime)
    for path in written[:-_KEPT]:
        path.unlink(missing_ok=True)
