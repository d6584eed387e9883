"""Whose an entry of the knowledge is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from advisor.knowledge.provenance import SwitchedOff, Yours
from advisor.knowledge.types import Knowledge

_FOLDER = "knowledge/"


def own_record(knowledge: Knowledge, kind: str, name: str) -> Yours | None:
    """Say that an entry of the knowledge is the user's; None for a built-in one.

    Args:
        knowledge: Where the entry is.
        kind: ``gpu``, ``model``, ``format``, ``kv_type``, ``framework``, ``policy`` ...
        name: Its canonical name.
    """
    table = cast("Mapping[str, Sequence[str | None]]", knowledge.yours.get(kind) or {})
    if name not in table:
        return None
    at, replaces, behind, based_on, *fields = table[name]
    own = tuple(str(key) for key in fields)
    return Yours(kind, name, f"{_FOLDER}{at}", replaces or "", behind or "", based_on or "", own)


def switched_off_records(knowledge: Knowledge) -> Iterator[tuple[str, SwitchedOff]]:
    """List the built-in entries that the user disabled, each with its kind."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str]]]", knowledge.switched_off)
    for kind, table in tables.items():
        for name, (at, reason) in table.items():
            yield kind, SwitchedOff(name, f"{_FOLDER}{at}", reason)
