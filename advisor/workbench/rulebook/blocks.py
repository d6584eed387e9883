"""What a page of the rulebook holds, before it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr


class Code(Struct, frozen=True):
    """A name or a command, set as code."""

    text: str


class Link(Struct, frozen=True):
    """A link to another page of the book."""

    text: str
    page: str
    """Path without ending: ``rules/quantize-to-fit``."""
    anchor: str = ""
    code: bool = False


NodeKind = Literal["fact", "concluded", "conclude", "recommend", "veto", "note", "more"]
Inline = str | Code | Link
Line = Sequence[Inline]


class Heading(Struct, frozen=True):
    """A heading, with a name that links may go to."""

    text: str
    level: Literal[2, 3] = 2
    anchor: str = ""


class Para(Struct, frozen=True):
    """A paragraph."""

    line: Line


class Item(Struct, frozen=True):
    """An entry of a list, perhaps with a list below it."""

    line: Line
    below: Sequence[Item] = ()


class Bullets(Struct, frozen=True):
    """A list."""

    items: Sequence[Item]


class Table(Struct, frozen=True):
    """A table; columns of figures are set to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[Line]]
    figures: Sequence[int] = ()
    """Numbers of the columns that hold figures."""


class Listing(Struct, frozen=True):
    """Text that stands as it is."""

    text: str


class Node(Struct, frozen=True):
    """A box of a picture."""

    name: str
    kind: NodeKind
    page: str = ""
    anchor: str = ""
    help: str = ""


class Picture(Struct, frozen=True):
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


class Page(Struct, frozen=True):
    """One page of the book."""

    path: str
    """Without ending, relative to the book."""
    title: str
    blocks: Sequence[Block]
    wide: bool = False
    """Whether it needs the whole width of a window."""


class Book(Struct, frozen=True):
    """All pages, in reading order."""

    pages: Sequence[Page]
    by_path: Mapping[str, Page] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the pages."""
        force_setattr(self, "by_path", {page.path: page for page in self.pages})
