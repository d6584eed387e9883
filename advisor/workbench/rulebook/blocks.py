"""What a page of the rulebook holds, before it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Code:
    """A name or a command, set as code."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page of the book."""

    text: str
    page: str
    """Path without ending: ``rules/quantize-to-fit``."""
    anchor: str = ""
    code: bool = False


NodeKind = Literal["fact", "concluded", "conclude", "recommend", "veto", "note", "more"]
Inline = str | Code | Link
Line = Sequence[Inline]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, with a name that links may go to."""

    text: str
    level: Literal[2, 3] = 2
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Para:
    """A paragraph."""

    line: Line


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a list, perhaps with a list below it."""

    line: Line
    below: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; columns of figures are set to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[Line]]
    figures: Sequence[int] = ()
    """Numbers of the columns that hold figures."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Text that stands as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Node:
    """A box of a picture."""

    name: str
    kind: NodeKind
    page: str = ""
    anchor: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes in columns, and the arrows between them."""

    name: str
    """File name without ending."""
    title: str
    description: str
    columns: Sequence[Sequence[Node]]
    arrows: Sequence[tuple[str, str]]
    """From box to box, by name."""
    dashed: frozenset[tuple[str, str]] = frozenset()
    """Arrows of facts that count in a score and decide nothing."""
    centre: str = ""
    """The box that the picture is about."""


Block = Heading | Para | Bullets | Table | Listing | Picture


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the book."""

    path: str
    """Without ending, relative to the book."""
    title: str
    blocks: Sequence[Block]
    wide: bool = False
    """Whether it needs the whole width of a window."""


@dataclass(frozen=True, slots=True)
class Book:
    """All pages, in reading order."""

    pages: Sequence[Page]
    by_path: Mapping[str, Page] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the pages."""
        object.__setattr__(self, "by_path", {page.path: page for page in self.pages})
