"""What of an answer comes from the user's own files, and what it takes the place of."""

from __future__ import annotations

from msgspec import Struct


class Yours(Struct, frozen=True):
    """One entry of the user's."""

    what: str
    """``rule``, ``template``, ``gpu``, ``model``, ``format``, ``framework``, ``policy`` ..."""
    name: str
    at: str
    """Where it stands: ``rules/my.yaml:12``."""
    replaces: str = ""
    """Name of the built-in entry whose place it takes; empty for one that is added."""
    replaces_at: str = ""
    based_on: str = ""
    """Name of the built-in entry that it has its other fields from; empty where it has none."""
    own_fields: tuple[str, ...] = ()
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
        fields = ", ".join(self.own_fields) or "nothing"
        return f", own: {fields}; the rest from {self.based_on}"


class SwitchedOff(Struct, frozen=True):
    """A built-in rule or entry that the user disabled."""

    name: str
    at: str
    """Where the user says so."""
    reason: str

    def __str__(self) -> str:
        return f"switched off by yours: {self.at}: {self.reason}"
