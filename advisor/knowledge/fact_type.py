"""What is known about a fact before any request is made."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

FactKind = Literal["number", "enum", "flag", "text"]
Origin = Literal["input", "knowledge", "estimate", "option", "rules", "text"]
"""Where a fact comes from; what only templates name is ``text``."""
Folder = Literal["actions", "notes", "report", "site"]
"""Folders of templates."""


class FactType(Struct, frozen=True, gc=False):
    """One fact of the vocabulary."""

    name: str
    group: str
    kind: FactKind
    unit: str
    """The unit to show; empty for counts and for facts that are not numbers."""
    dimension: str
    """See ``units.DIMENSIONS``; empty for facts that are not numbers."""
    values: tuple[str, ...]
    """The closed list of an enum."""
    of: str | None
    """The knowledge table that holds the valid names of a text."""
    origin: Origin
    help: str
    as_sold: bool = False
    """Whether GB means GiB here, as on the box of a card."""
    formerly: str = ""
    """What templates called it before rules and texts had one name for it."""
    texts: bool = True
    """Whether templates may name it."""
    at: str = ""
    """Where the document, or for `option` a recommendation of it, has the figure."""
    print: str = ""
    """How templates print it, where that is not as its unit is usually printed."""
    only_in: tuple[Folder, ...] = ()
    """The folders of templates that alone know it; empty for all that tell of its subject."""


FactValue = float | str | bool
