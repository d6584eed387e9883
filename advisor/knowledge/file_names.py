"""Which files of a knowledge folder are read, and what a file that is not read may be meant as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from advisor.errors import KnowledgeError, Source, UserError
from advisor.suggest import nearest

FOLDERS = {"gpus": "gpu", "models": "model"}
"""Folder -> kind of its records."""
TABLES = {
    "ggml_types": "ggml_type",
    "formats": "format",
    "kv_types": "kv_type",
    "frameworks": "framework",
    "commands": "command",
    "capabilities": "capability",
    "policy": "policy",
    "sources": "id",
    "compute_capabilities": "compute_capability",
    "card_words": "card_words",
    "computers": "machine",
    "boards": "board",
}
"""Name of the file, which may go on after a hyphen -> kind of its records."""
SINGLE = (
    "facts.yaml",
    "presets.yaml",
    "logs.yaml",
    "calibration.yaml",
    "calibration-fitted.yaml",
    "measured.csv",
    "merit.csv",
    "second_cards.yaml",
    "usual_cards.yaml",
    "measurements.csv",
)
"""Files that have one name only."""
_GONE_WHY = "this file is not read any more: own figures have one home, measurements.csv"
_GONE = {
    "measurements-user.csv": (
        "Move it out of the folder and run 'advisor measure add measurements-user.csv', with"
        " --knowledge if the figures are to stay in this folder."
    ),
    "calibration-user.yaml": (
        "Delete it. A card's factor now comes from what was measured on it: advisor measure add."
    ),
}
UNREAD = ("measurements/", "flags/")
"""Raw measurements, which ``advisor calibrate`` reads, and flags, for ``advisor check-command``."""
_DATA = (".yaml", ".yml", ".csv", ".json", ".jsonl", ".toml")
"""Endings of what is meant as data; a README beside it is not."""


def is_table(path: str, table: str) -> bool:
    """Whether a file holds entries of a table: ``formats.yaml``, ``formats-mine.yaml``."""
    if "/" in path or not path.endswith(".yaml"):
        return False
    stem = path.removesuffix(".yaml")
    return stem == table or stem.startswith(f"{table}-")


def holds(path: str, where: str) -> bool:
    """Whether a file holds entries of a folder or table: a key of ``FOLDERS`` or ``TABLES``."""
    if where in FOLDERS:
        return path.startswith(f"{where}/") and path.endswith(".yaml")
    return is_table(path, where)


def unread(paths: Sequence[str]) -> list[tuple[str, str]]:
    """List files that look like data and that nothing reads, each with what to do."""
    return [
        (path, _instead(path))
        for path in paths
        if path.endswith(_DATA) and not path.startswith(UNREAD) and not _is_read(path)
    ]


def is_single(path: str) -> bool:
    """Whether a file is read under one name only, so that one layer's counts."""
    return path in SINGLE or path in _GONE


def _is_read(path: str) -> bool:
    return is_single(path) or any(holds(path, where) for where in (*FOLDERS, *TABLES))


def _instead(path: str) -> str:
    """Give the nearest path that is read."""
    named = PurePosixPath(path)
    stem, top = named.stem, named.parts[0]
    if named.suffix != ".yaml" and _is_read(str(named.with_suffix(".yaml"))):
        return f"Rename it to {named.with_suffix('.yaml')}."
    if len(named.parts) > 1:
        near = nearest(top, FOLDERS, most=1)
        return f"Did you mean {near[0]}/{'/'.join(named.parts[1:])}?" if near else _rule()
    table = nearest(stem.partition("-")[0], [*FOLDERS, *TABLES], most=1)
    if table:
        return f"Did you mean {table[0]}{'/' if table[0] in FOLDERS else '-'}mine.yaml?"
    near = nearest(path, SINGLE, most=1)
    return f"Did you mean {near[0]}?" if near else _rule()


def _rule() -> str:
    tables = ", ".join(f"{name}-NAME.yaml" for name in TABLES)
    return f"Cards go into gpus/NAME.yaml, models into models/NAME.yaml, the rest into {tables}."


def gone_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of files that older versions read what to do with them."""
    return [
        KnowledgeError(_GONE_WHY, source=Source(name), hint=do)
        for name, do in _GONE.items()
        if name in files
    ]
