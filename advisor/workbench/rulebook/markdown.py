"""Pages of the rulebook as Markdown, with pictures as files of their own."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from advisor.workbench.rulebook.blocks import (
    Block,
    Book,
    Bullets,
    Code,
    Heading,
    Inline,
    Item,
    Line,
    Listing,
    Page,
    Para,
    Picture,
    Table,
)
from advisor.workbench.rulebook.pictures import svg

ENDING = ".md"
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")
_TICKS = re.compile(r"`+")


def files(book: Book) -> Iterator[tuple[str, str]]:
    """Give every file of the book by its path."""
    for page in book.pages:
        yield page.path + ENDING, _page(page)
        for block in page.blocks:
            if isinstance(block, Picture):
                yield _picture_file(block), svg(block)


def _picture_file(picture: Picture) -> str:
    return f"pictures/{picture.name}.svg"


def _page(page: Page) -> str:
    links = (("index", "All rules"), ("facts/index", "Facts"), ("picture", "Picture"))
    menu = " | ".join(f"[{text}]({_address(page, path + ENDING, '')})" for path, text in links)
    blocks = [f"# {_escaped(page.title)}", menu, *(_block(page, block) for block in page.blocks)]
    return "\n\n".join(blocks) + "\n"


def _address(page: Page, file: str, anchor: str) -> str:
    own = posixpath.relpath(file, posixpath.dirname(page.path) or ".")
    return f"{own}#{anchor}" if anchor else own


def _block(page: Page, block: Block) -> str:
    match block:
        case Heading():
            named = f'<a id="{block.anchor}"></a>\n\n' if block.anchor else ""
            return f"{named}{'#' * block.level} {_escaped(block.text)}"
        case Para():
            return _line(page, block.line)
        case Bullets():
            return "\n".join(_bullets(page, block.items, ""))
        case Table():
            return "\n".join(_table(page, block))
        case Listing():
            longest = max((len(run) for run in _TICKS.findall(block.text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{fence}text\n{block.text.rstrip()}\n{fence}"
        case Picture():
            shown = _address(page, _picture_file(block), "")
            return f"![{_escaped(block.title)}]({shown})\n\n{_escaped(block.description)}"


def _bullets(page: Page, items: Sequence[Item], indent: str) -> Iterator[str]:
    for item in items:
        yield f"{indent}- {_line(page, item.line)}"
        yield from _bullets(page, item.below, f"{indent}  ")


def _table(page: Page, table: Table) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped, table.head))} |"
    rule = ("---:" if at in table.figures else "---" for at in range(len(table.head)))
    yield f"|{'|'.join(rule)}|"
    for row in table.rows:
        yield f"| {' | '.join(_line(page, line) for line in row)} |"


def _line(page: Page, line: Line) -> str:
    return "".join(_inline(page, part) for part in line)


def _inline(page: Page, part: Inline) -> str:
    if isinstance(part, str):
        return _escaped(part)
    if isinstance(part, Code):
        return _code(part.text)
    shown = _code(part.text) if part.code else _escaped(part.text)
    return f"[{shown}]({_address(page, part.page + ENDING, part.anchor)})"


def _code(text: str) -> str:
    """Set as code; a bar would end a table's cell even there."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    ticks, room = "`" * (longest + 1), " " if longest else ""
    return f"{ticks}{room}{' '.join(text.split())}{room}{ticks}".replace("|", "\\|")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split(" ")).replace("\n", " "))
