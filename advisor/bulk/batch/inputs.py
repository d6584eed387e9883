"""Which files reports are made from, each with a short hash, so that a change can be named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from advisor.errors import UserError
from advisor.files import Kind, data_dir, read_tree

_SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "rules": (".yaml",),
    "templates": (".j2",),
    "knowledge": (".yaml", ".csv"),
}
_ASIDE: Mapping[Kind, tuple[str, ...]] = {
    "rules": ("scenarios/",),
    "templates": ("site/",),
    "knowledge": ("measurements/",),
}
"""Files that change no report."""
_SHORT = 16

Inputs = Mapping[str, str]
"""``rules/fit.yaml`` -> hash; the user's own stand under ``own/``."""


def input_files(folders: Mapping[Kind, Path | None]) -> Inputs:
    """Hash every file that reports are made from.

    Args:
        folders: The user's own folder of each kind, if any.

    Raises:
        UserError: A folder cannot be read.
    """
    found: dict[str, str] = {}
    for kind in get_args(Kind):
        found |= _hashed(kind, data_dir(kind), kind)
        own = folders.get(kind)
        if own is not None:
            found |= _hashed(kind, own, f"own/{kind}")
    return found


def _hashed(kind: Kind, folder: Path, shown: str) -> dict[str, str]:
    try:
        files = read_tree(folder, _SUFFIXES[kind])
    except OSError as bad:
        raise UserError(f"cannot read '{bad.filename}': {bad.strerror}.") from None
    return {
        f"{shown}/{name}": hashlib.sha256(content).hexdigest()[:_SHORT]
        for name, content in files.items()
        if not name.startswith(_ASIDE[kind])
    }


def changed_files(then: Inputs, now: Inputs) -> Iterator[str]:
    """Name the files that differ: ``rules/fit.yaml changed``."""
    for name in sorted({*then, *now}):
        if name not in now:
            yield f"{name} removed"
        elif name not in then:
            yield f"{name} added"
        elif then[name] != now[name]:
            yield f"{name} changed"
