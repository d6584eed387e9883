"""The tables of knowledge/: which files hold them, and their records, overlays laid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from advisor.errors import KnowledgeError, Source, UserError
from advisor.knowledge.entries import Entry, entry_of, nodes_of
from advisor.knowledge.overlay import Laying
from advisor.knowledge.overlay_files import Files
from advisor.suggest import nearest

FOLDERS = {"gpus": "gpu", "models": "model"}
"""Folder -> kind of its records."""
TABLES = {
    "ggml_types": "ggml_type",
    "formats": "format",
    "kv_types": "kv_type",
    "frameworks": "framework",
    "commands": "command",
    "policy": "policy",
    "sources": "id",
    "compute_capabilities": "compute_capability",
}
"""Name of the file, which may go on after a hyphen -> kind of its records."""
SINGLE = (
    "facts.yaml",
    "presets.yaml",
    "calibration.yaml",
    "calibration-fitted.yaml",
    "measured.csv",
    "second_cards.yaml",
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
UNREAD = "measurements/"
"""Raw measurements: ``advisor calibrate`` alone reads them."""
_DATA = (".yaml", ".yml", ".csv", ".json", ".jsonl", ".toml")
"""Endings of what is meant as data; a README beside it is not."""


def is_table(path: str, table: str) -> bool:
    """Whether a file holds entries of a table: ``formats.yaml``, ``formats-mine.yaml``."""
    if "/" in path or not path.endswith(".yaml"):
        return False
    stem = path.removesuffix(".yaml")
    return stem == table or stem.startswith(f"{table}-")


def entries_of(
    files: Mapping[str, bytes], where: str, problems: list[UserError]
) -> Iterator[Entry]:
    """Give every entry of a table or folder, in file order, overlays laid.

    Args:
        files: All knowledge files by relative path.
        where: A key of ``FOLDERS`` or ``TABLES``.
        problems: Takes what is wrong.
    """
    kind = FOLDERS.get(where) or TABLES[where]
    user = files.user if isinstance(files, Files) else frozenset[str]()
    wanted = {path: content for path, content in files.items() if _holds(path, where)}
    entries = [e for path in wanted for e in entries_in(wanted[path], path, kind, problems, user)]
    if isinstance(files, Files) and user:
        behind = [
            entry
            for path, content in files.shadowed.items()
            if path in wanted
            for entry in entries_in(content, path, kind, [], user)
        ]
        entries = list(Laying(files, kind, entries, behind, problems).result())
    yield from entries


def _holds(path: str, where: str) -> bool:
    if where in FOLDERS:
        return path.startswith(f"{where}/") and path.endswith(".yaml")
    return is_table(path, where)


def entries_in(
    content: bytes,
    path: str,
    kind: str,
    problems: list[UserError],
    user: Collection[str] = (),
) -> Iterator[Entry]:
    """Give the entries of one file; one of the user's may be a ``disable``, which has no name."""
    for node in nodes_of(content, path, kind, problems):
        if path in user and isinstance(node.value, Mapping) and "disable" in node.value:
            yield Entry(node, kind, "", problems)
        elif (entry := entry_of(node, kind, problems)) is not None:
            yield entry


def source_ids(files: Mapping[str, bytes]) -> frozenset[str]:
    """List the ids that are declared."""
    shadowed = files.shadowed if isinstance(files, Files) else {}
    return frozenset(
        entry.name
        for path, content in (*files.items(), *shadowed.items())
        if is_table(path, "sources")
        for entry in entries_in(content, path, "id", [])
    )


def unread(paths: Sequence[str]) -> list[tuple[str, str]]:
    """List files that look like data and that nothing reads, each with what to do."""
    return [
        (path, _instead(path))
        for path in paths
        if path.endswith(_DATA) and not path.startswith(UNREAD) and not _is_read(path)
    ]


def _is_read(path: str) -> bool:
    named = path in SINGLE or path in _GONE
    return named or any(_holds(path, where) for where in (*FOLDERS, *TABLES))


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


def unread_problems(files: Mapping[str, bytes]) -> list[UserError]:
    """Say of every file that nothing reads where it would be read."""
    found = files.unread if isinstance(files, Files) else ()
    return [
        KnowledgeError("nothing is read from a file of this name.", source=Source(path), hint=hint)
        for path, hint in found
    ]
