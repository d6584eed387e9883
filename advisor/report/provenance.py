"""What of a report comes from the user's own files, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.advice.document import Advice
    from advisor.knowledge.provenance import UserEntry

_WORDS = {"gpu": "card", "format": "weight format", "kv_type": "KV-cache type"}


def said(entry: UserEntry | None) -> str:
    """Say in a sentence where an entry of the user's stands; empty for a built-in one."""
    if entry is None:
        return ""
    text = str(entry)
    return f"{text[:1].upper()}{text[1:]}."


def whose(doc: Advice) -> str:
    """Name everything of the user's that a report rests on; empty where there is nothing."""
    made = doc.provenance
    parts = [named(entry) for entry in made.yours]
    off = [f"{item.name} ({item.at}: {item.reason.rstrip('.')})" for item in made.switched_off]
    sentences = [
        *([f"Yours: {_joined(parts)}."] if parts else []),
        *([f"Switched off: {_joined(off)}."] if off else []),
    ]
    return " ".join(sentences)


def named(entry: UserEntry) -> str:
    """Name an entry of the user's with its place, and which of its figures are built in."""
    what = _WORDS.get(entry.what, entry.what)
    other = entry.replaces
    behind = "" if other is None else ", replaces the built-in one"
    if other not in {None, entry.name}:
        behind = f", replaces {other}"
    return f"{what} {entry.name} ({entry.at}{behind}{entry.inherited})"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts).rstrip(".")
