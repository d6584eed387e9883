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

    def __str__(self) -> str:
        if not self.replaces:
            return f"yours: {self.at}"
        behind = f" ({self.replaces_at})" if self.replaces_at else ""
        return f"yours: {self.at}, replaces the built-in {self.replaces}{behind}"


class SwitchedOff(Struct, frozen=True):
    """A built-in rule or entry that the user disabled."""

    name: str
    at: str
    """Where the user says so."""
    reason: str

    def __str__(self) -> str:
        return f"switched off by yours: {self.at}: {self.reason}"
