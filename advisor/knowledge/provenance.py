"""What comes from the user's own files and what it takes the place of: the files, the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct, field

from advisor.knowledge.types import Knowledge

_FOLDER = "knowledge/"


class UserEntry(Struct, frozen=True):
    """One entry of the user's."""

    what: str
    """``rule``, ``template``, ``gpu``, ``model``, ``format``, ``framework``, ``policy`` ..."""
    name: str
    at: str
    """Where it stands: ``rules/my.yaml:12``."""
    replaces: str | None = None
    """Name of the built-in entry whose place it takes; null for one that is added."""
    replaces_at: str | None = None
    based_on: str | None = None
    """Name of the built-in entry that it has its other fields from; null where it has none."""
    stated_fields: tuple[str, ...] = field(name="own_fields", default=())
    """The fields that an entry based on another one states itself."""

    def __str__(self) -> str:
        if not self.replaces:
            return f"yours: {self.at}{self.inherited}"
        behind = f" ({self.replaces_at})" if self.replaces_at else ""
        return f"yours: {self.at}, replaces the built-in {self.replaces}{behind}{self.inherited}"

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
    at: str
    """Where the user says so."""
    reason: str

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
        kind, name, f"{_FOLDER}{at}", replaces or None, behind or None, based_on or None, stated
    )


def switched_off_records(knowledge: Knowledge) -> Iterator[tuple[str, SwitchedOff]]:
    """List the built-in entries that the user disabled, each with its kind."""
    tables = cast("Mapping[str, Mapping[str, Sequence[str]]]", knowledge.switched_off)
    for kind, table in tables.items():
        for name, (at, reason) in table.items():
            yield kind, SwitchedOff(name, f"{_FOLDER}{at}", reason)


class Files(dict[str, bytes]):
    """Knowledge files by path: the built-in ones with the user's laid over them."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        user: frozenset[str] = frozenset(),
        shadowed: Mapping[str, bytes] | None = None,
        *,
        whole: bool = False,
        unread: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(files)
        self.user = user
        """Paths of the user's files."""
        self.shadowed = shadowed or {}
        """Built-in files at the same paths."""
        self.whole = whole
        """Whether the user has a file for every built-in one: an edited copy of the whole."""
        self.unread = unread
        """Files that nothing reads, each with what to do."""
        self.replaced: dict[str, dict[str, list[str | None]]] = {}
        """Kind -> name -> where the user's entry stands, what it replaces, where that
        stands, what it is based on, and the fields that it then states itself."""
        self.off: dict[str, dict[str, list[str]]] = {}
        """Kind -> name of a built-in entry -> where the user switches it off, and why."""


def files_of_user(files: Mapping[str, bytes]) -> Collection[str]:
    """Give the paths of a user's files; none where there is no overlay."""
    return files.user if isinstance(files, Files) else ()
