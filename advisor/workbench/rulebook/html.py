"""Pages of the rulebook as HTML that needs nothing from elsewhere."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from html import escape

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
from advisor.workbench.rulebook.pictures import STYLE as GRAPH_STYLE
from advisor.workbench.rulebook.pictures import svg

ENDING = ".html"
_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --edge: #d0d7de;
  --panel: #f6f8fa; --link: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --soft: #9aa4af;
  --edge: #30363d; --panel: #161b22; --link: #6cb0ff; } }
body { margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 62rem; background: var(--page);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
body.wide { max-width: none; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
nav { border-bottom: 1px solid var(--edge); padding-bottom: .5rem; display: flex; flex-wrap: wrap;
  gap: .25rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1.25rem 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .5rem 0; } ul { margin: .5rem 0; padding-left: 1.4rem; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .88rem; }
pre { background: var(--panel); border: 1px solid var(--edge); padding: .7rem; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: 60%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem 1.2rem .3rem 0;
  border-bottom: 1px solid var(--edge); }
th { color: var(--soft); font-weight: 600; } .figure { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } figure .graph { max-width: none; }
body:not(.wide) .graph { max-width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .9rem; }
"""
STYLE_FILE = "style.css"


def files(book: Book) -> Iterator[tuple[str, str]]:
    """Give every file of the book by its path."""
    yield STYLE_FILE, f"{_STYLE.strip()}\n{GRAPH_STYLE.strip()}\n"
    for page in book.pages:
        yield page.path + ENDING, _page(page)


def _page(page: Page) -> str:
    up = posixpath.relpath(STYLE_FILE, posixpath.dirname(page.path) or ".")
    links = (("index", "All rules"), ("facts/index", "Facts"), ("picture", "Picture"))
    menu = "".join(
        f'<a href="{escape(_address(page, path, ""), quote=True)}">{escape(text)}</a>'
        for path, text in links
    )
    body = "\n".join(_block(page, block) for block in page.blocks)
    wide = ' class="wide"' if page.wide else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(page.title)}</title>\n"
        f'<link rel="stylesheet" href="{escape(up, quote=True)}">\n</head>\n'
        f'<body{wide}>\n<nav aria-label="Rulebook">{menu}</nav>\n<main>\n'
        f"<h1>{escape(page.title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _address(page: Page, path: str, anchor: str) -> str:
    own = posixpath.relpath(path + ENDING, posixpath.dirname(page.path) or ".")
    return f"{own}#{anchor}" if anchor else own


def _block(page: Page, block: Block) -> str:
    match block:
        case Heading():
            named = f' id="{escape(block.anchor, quote=True)}"' if block.anchor else ""
            return f"<h{block.level}{named}>{escape(block.text)}</h{block.level}>"
        case Para():
            return f"<p>{_line(page, block.line)}</p>"
        case Bullets():
            return _bullets(page, block.items)
        case Table():
            return _table(page, block)
        case Listing():
            return f"<pre><code>{escape(block.text)}</code></pre>"
        case Picture():
            drawn = svg(block, lambda path, anchor: _address(page, path, anchor), style=False)
            return (
                f'<figure><div class="scroll">\n{drawn}</div>\n'
                f"<figcaption>{escape(block.description)}</figcaption></figure>"
            )


def _bullets(page: Page, items: Sequence[Item]) -> str:
    inside = "".join(
        f"<li>{_line(page, item.line)}{_bullets(page, item.below) if item.below else ''}</li>\n"
        for item in items
    )
    return f"<ul>\n{inside}</ul>"


def _table(page: Page, table: Table) -> str:
    def cell(at: int, text: str, tag: str) -> str:
        figure = ' class="figure"' if at in table.figures else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{figure}>{text}</{tag}>"

    head = "".join(cell(at, escape(text), "th") for at, text in enumerate(table.head))
    rows = "".join(
        f"<tr>{''.join(cell(at, _line(page, line), 'td') for at, line in enumerate(row))}</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>"
    )


def _line(page: Page, line: Line) -> str:
    return "".join(_inline(page, part) for part in line)


def _inline(page: Page, part: Inline) -> str:
    if isinstance(part, str):
        return escape(part)
    text = escape(part.text)
    if isinstance(part, Code):
        return f"<code>{text}</code>"
    shown = f"<code>{text}</code>" if part.code else text
    return f'<a href="{escape(_address(page, part.page, part.anchor), quote=True)}">{shown}</a>'
