"""What MkDocs is told beside mkdocs.yml: the navigation is the index, docs/README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parents[1] / "docs"
INFO = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make a section of each heading of the index, with the pages that it links, each once."""
    seen = {"README.md"}
    config.nav = [{"Start": ["README.md"]}]
    for part in re.split(r"^## ", (DOCS / "README.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        pages = [entry for _, link, _ in LINK.findall(text) for entry in listed(link, seen)]
        config.nav += [{title: pages}] if pages else []
    return config


def listed(link: str, seen: set[str]) -> list[str | dict[str, list[str]]]:
    """Give a page, or with the README of a folder all pages there, unless it is in already."""
    page = (DOCS / link).resolve()
    if link in seen or not page.is_relative_to(DOCS) or page.suffix != ".md":
        return []
    names = [link]
    if page.name == "README.md":
        names += sorted(p.relative_to(DOCS).as_posix() for p in page.parent.glob("*.md"))
    names = [name for name in dict.fromkeys(names) if name not in seen]
    seen |= {*names}
    title = page.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return [link] if names == [link] else [{title: names}]


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Write the name of a file over its block, and leave out links that leave the site."""
    here = (DOCS / page.file.src_uri).parent

    def linked(found: re.Match[str]) -> str:
        to = (here / found[2]).resolve()
        return found[0] if ":" in found[2] or (to.is_file() and DOCS in to.parents) else found[1]

    return LINK.sub(linked, INFO.sub(titled, markdown))


def titled(fence: re.Match[str]) -> str:
    """Give the first line of a block as Material reads it."""
    name = fence[2]
    return f'```{fence[1]} title="{name}"' if "." in name else f"```{fence[1]}"
