"""What a page of the rulebook holds, and how it is written as Markdown or HTML.

Pages of HTML need nothing from elsewhere; beside Markdown, pictures are files of their own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Literal

from msgspec import Struct


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


Address = Callable[[str, str], str]
"""Where a page and an anchor on it are found."""
Draw = Callable[..., str]
"""Draws a picture as SVG; see ``pictures.svg``."""
_LINKS = (("index", "All rules"), ("facts/index", "Facts"), ("picture", "Picture"))
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")
_TICKS = re.compile(r"`+")
_STYLE_FILE, PICTURES = "style.css", "pictures.css"


def style_in(file: str) -> str:
    """Read one of the style sheets beside this module."""
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def html_files(pages: Sequence[Page], draw: Draw) -> Iterator[tuple[str, str]]:
    """Give every file of a book of HTML by its path."""
    yield _STYLE_FILE, "".join(map(style_in, (_STYLE_FILE, PICTURES)))
    for page in pages:
        yield f"{page.path}.html", _Html(page, ".html").written(draw)


def markdown_files(pages: Sequence[Page], draw: Draw) -> Iterator[tuple[str, str]]:
    """Give every file of a book of Markdown by its path."""
    for page in pages:
        yield f"{page.path}.md", _Markdown(page, ".md").written()
        for block in page.blocks:
            if isinstance(block, Picture):
                yield _picture_file(block), draw(block)


def _picture_file(picture: Picture) -> str:
    return f"pictures/{picture.name}.svg"


class _Writer(Struct, frozen=True):
    """One page in one form."""

    page: Page
    ending: str

    def beside(self, file: str) -> str:
        """Give the way from the page to a file of the book."""
        return posixpath.relpath(file, posixpath.dirname(self.page.path) or ".")

    def address(self, path: str, anchor: str = "") -> str:
        """Give the way to another page."""
        found = self.beside(path + self.ending)
        return f"{found}#{anchor}" if anchor else found


def _line(form: _Html | _Markdown, line: Line) -> str:
    """Write text with names and links in it."""
    return "".join(_inline(form, part) for part in line)


def _inline(form: _Html | _Markdown, part: Inline) -> str:
    if isinstance(part, str):
        return form.text(part)
    if isinstance(part, Code):
        return form.code(part.text)
    shown = form.code(part.text) if part.code else form.text(part.text)
    return form.link(shown, form.address(part.page, part.anchor))


class _Html(_Writer, frozen=True):
    def written(self, draw: Draw) -> str:
        page, up = self.page, self.beside(_STYLE_FILE)
        menu = "".join(self.link(escape(text), self.address(path)) for path, text in _LINKS)
        body = "\n".join(self.block(block, draw) for block in page.blocks)
        wide = ' class="wide"' if page.wide else ""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(page.title)}</title>\n"
            f'<link rel="stylesheet" href="{escape(up, quote=True)}">\n</head>\n'
            f'<body{wide}>\n<nav aria-label="Rulebook">{menu}</nav>\n<main>\n'
            f"<h1>{escape(page.title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def block(self, block: Block, draw: Draw) -> str:
        match block:
            case Heading():
                named = f' id="{escape(block.anchor, quote=True)}"' if block.anchor else ""
                return f"<h{block.level}{named}>{escape(block.text)}</h{block.level}>"
            case Para():
                return f"<p>{_line(self, block.line)}</p>"
            case Bullets():
                return self.bullets(block.items)
            case Table():
                return self.table(block)
            case Listing():
                return f"<pre><code>{escape(block.text)}</code></pre>"
            case Picture():
                drawn = draw(block, self.address, style=False)
                return (
                    f'<figure><div class="scroll">\n{drawn}</div>\n'
                    f"<figcaption>{escape(block.description)}</figcaption></figure>"
                )

    def bullets(self, items: Sequence[Item]) -> str:
        inside = "".join(
            f"<li>{_line(self, item.line)}{self.bullets(item.below) if item.below else ''}</li>\n"
            for item in items
        )
        return f"<ul>\n{inside}</ul>"

    def table(self, table: Table) -> str:
        def cell(at: int, text: str, tag: str) -> str:
            figure = ' class="figure"' if at in table.figures else ""
            scope = ' scope="col"' if tag == "th" else ""
            return f"<{tag}{scope}{figure}>{text}</{tag}>"

        head = "".join(cell(at, escape(text), "th") for at, text in enumerate(table.head))
        rows = "".join(
            f"<tr>{''.join(cell(at, text, 'td') for at, text in enumerate(row))}</tr>\n"
            for row in ([_line(self, line) for line in row] for row in table.rows)
        )
        return (
            f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}</tbody>\n</table></div>"
        )

    def text(self, text: str) -> str:
        return escape(text)

    def code(self, text: str) -> str:
        return f"<code>{escape(text)}</code>"

    def link(self, shown: str, address: str) -> str:
        return f'<a href="{escape(address, quote=True)}">{shown}</a>'


class _Markdown(_Writer, frozen=True):
    def written(self) -> str:
        menu = " | ".join(self.link(text, self.address(path)) for path, text in _LINKS)
        blocks = (self.block(block) for block in self.page.blocks)
        return "\n\n".join((f"# {self.text(self.page.title)}", menu, *blocks)) + "\n"

    def block(self, block: Block) -> str:
        match block:
            case Heading():
                named = f'<a id="{block.anchor}"></a>\n\n' if block.anchor else ""
                return f"{named}{'#' * block.level} {self.text(block.text)}"
            case Para():
                return _line(self, block.line)
            case Bullets():
                return "\n".join(self.bullets(block.items, ""))
            case Table():
                return "\n".join(self.table(block))
            case Listing():
                fence = "`" * max(3, _longest_ticks(block.text) + 1)
                return f"{fence}text\n{block.text.rstrip()}\n{fence}"
            case Picture():
                shown = self.beside(_picture_file(block))
                return f"![{self.text(block.title)}]({shown})\n\n{self.text(block.description)}"

    def bullets(self, items: Sequence[Item], indent: str) -> Iterator[str]:
        for item in items:
            yield f"{indent}- {_line(self, item.line)}"
            yield from self.bullets(item.below, f"{indent}  ")

    def table(self, table: Table) -> Iterator[str]:
        yield f"| {' | '.join(map(self.text, table.head))} |"
        rule = ("---:" if at in table.figures else "---" for at in range(len(table.head)))
        yield f"|{'|'.join(rule)}|"
        for row in table.rows:
            yield f"| {' | '.join(_line(self, line) for line in row)} |"

    def text(self, text: str) -> str:
        return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))

    def code(self, text: str) -> str:
        """Set as code; a bar would end a table's cell even there."""
        longest = _longest_ticks(text)
        ticks, gap = "`" * (longest + 1), " " if longest else ""
        return f"{ticks}{gap}{' '.join(text.split())}{gap}{ticks}".replace("|", "\\|")

    def link(self, shown: str, address: str) -> str:
        return f"[{shown}]({address})"


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
