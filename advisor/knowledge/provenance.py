"""What comes from the user's own files and what it takes the place of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct, field

from advisor.knowledge.layers import is_built_in
from advisor.knowledge.types import Knowledge


class UserEntry(Struct, frozen=True):
    """One entry of the user's."""

    what: str
    """``rule``, ``template``, ``gpu``, ``model``, ``format``, ``framework``, ``policy`` ..."""
    name: str
    """Its name."""
    at: str
    """Where it stands: ``rules/my.yaml:12``."""
    replaces: str | None = None
    """Name of the built-in entry whose place it takes; null for one that is added."""
    replaces_at: str | None = None
    """Where that one stands; null where it is added."""
    based_on: str | None = None
    """Name of the built-in entry that it has its other fields from; null where it has none."""
    stated_fields: tuple[str, ...] = field(name="own_fields", default=())
    """The fields that an entry based on another one states itself."""

    def __str__(self) -> str:
        if not self.replaces:
            return f"yours: {self.at}{self.inherited}"
        behind = f" ({self.replaces_at})" if self.replaces_at else ""
        whose = "the built-in " if self.over_built_in else ""
        return f"yours: {self.at}, replaces {whose}{self.replaces}{behind}{self.inherited}"

    @property
    def over_built_in(self) -> bool:
        """Whether what it replaces is no entry of another of the user's folders."""
        return not self.replaces_at or is_built_in(self.replaces_at)

    @property
    def inherited(self) -> str:
        """Say which fields are its own and whose the others are; empty where all are its own."""
        if not self.based_on:
            return ""
        fields = ", ".join(self.stated_fields) or "nothing"
        return f", own: {fields}; the rest from {self.based_on}"


class SwitchedOff(Struct, frozen=True):
    """A built-in rule or entry that the user disabled."""

    name: str = field(name="rule")
    """The rule or entry."""
    at: str
    """Where the user says so."""
    reason: str
    """Why, in the user's words."""

    def __str__(self) -> str:
        return f"switched off by yours: {self.at}: {self.reason}"


def user_record(knowledge: Knowledge, kind: str, name: str) -> UserEntry | None:
    """Say that an entry of the knowledge is the user's; None for a built-in one.

    Args:
        knowledge: Where the entry is.
        kind: ``gpu``, ``model``, ``format``, ``kv_type``, ``framework``, ``policy`` ...
        name: Its canonical name.
    """
    table = cast("Mapping[str, Sequence[str | None]]", knowledge.user_entries.get(kind) or {})
    if name not in table:
        return None
    at, replaces, behind, based_on, *fields = table[name]
    stated = tuple(str(key) for key in fields)
    return UserEntry(
        kind, name, at or "", replaces or None, behind or None, based_on or None, stated
    )


def switched_off_records(knowledge: Knowledge) -> Iterator[tuple[str, SwitchedOff]]:
    """List the built-in entries that the user disabled, each with its kind."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str]]]", knowledge.switched_off)
    for kind, table in tables.items():
        for name, (at, reason) in table.items():
            yield kind, SwitchedOff(name, at, reason)
