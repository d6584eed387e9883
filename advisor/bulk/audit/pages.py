"""A site checked by itself: its files as they were written, its links, the rules of a page."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from advisor.bulk.batch.store import MOST_PAGE_BYTES, SITE_MANIFEST, WORK, printable

Kind = Literal[
    "unfinished", "missing", "damaged", "foreign", "stale", "outdated", "wrong", "contradiction",
    "duplicate", "link", "page",
]  # fmt: skip

HEADINGS: Mapping[Kind, str] = {
    "unfinished": "not finished",
    "missing": "files that are missing",
    "damaged": "files that are not as they were written",
    "foreign": "files that no batch wrote",
    "stale": "made from something else than there is now",
    "outdated": "reports that would read differently now",
    "wrong": "reports that a fresh computation does not confirm",
    "contradiction": "contradictions",
    "duplicate": "different scenarios with the same text",
    "link": "broken links",
    "page": "pages that do not keep the rules of a page",
}
"""In the order in which findings are told."""

_MOST_KEPT = 1000


class Finding(Struct, frozen=True, order=True):
    """One thing that is wrong."""

    kind: Kind
    where: str
    """A path in the folder, or the name of a report."""
    message: str


class Findings(Struct):
    """All findings counted; of each kind the first thousand kept."""

    counts: Counter[Kind] = msgspec.field(default_factory=Counter)
    kept: dict[Kind, list[Finding]] = msgspec.field(default_factory=dict)

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings."""
        for one in found:
            self.counts[one.kind] += 1
            kept = self.kept.setdefault(one.kind, [])
            if len(kept) < _MOST_KEPT:
                kept.append(one)

    def of(self, kind: Kind) -> list[Finding]:
        """Give the kept findings of a kind, in order of places."""
        return sorted(self.kept.get(kind, ()))


_MARKDOWN = re.compile(r"(?<!\\)\[[^\]\n]*(?<!\\)\]\(<?([^)>\s]+)>?[^)\n]*\)")
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"""\s(href|src|id)=["']([^"'<>]*)["']""")
_TITLE = re.compile(r"<title>([^<]*)</title>")
_LANGUAGE = re.compile(r"""<html[^>]*\slang=["']([a-zA-Z-]+)["']""")
_QUIET = frozenset({"script", "style", "title", "desc"})
"""Text that is no part of what a page says; the ends of an axis (``ticks``) are none, too."""
_BREAKING = frozenset({
    "p", "h1", "h2", "h3", "h4", "li", "tr", "td", "th", "dt", "dd", "caption", "figcaption", "pre",
    "div", "br", "a", "text",
})  # fmt: skip
Places = frozenset[str]
"""The names of the places in a page that a link can lead to."""
_ELSEWHERE = frozenset({"http", "https", "mailto"})


@dataclass(slots=True)
class Page(HTMLParser):
    """What an audit wants to know of an HTML page."""

    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    doubled: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    title: str = ""
    language: str = ""
    pieces: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, anchors and classes."""
        if tag in _QUIET or ("class", "ticks") in attrs:
            self._open.append(tag)
        if tag in _BREAKING:
            self.pieces.append("\n")
        for name, value in attrs:
            self._attribute(tag, name, value or "")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name in {"href", "src"}:
            self.links.append(value)
        elif name == "id":
            if value in self.ids:
                self.doubled.append(value)
            self.ids.add(value)
        elif name == "class":
            self.classes.update(value.split())
        elif name == "lang" and tag == "html":
            self.language = value

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened."""
        if self._open and self._open[-1] == tag:
            self._open.pop()
        if tag in _BREAKING:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep the text that readers see."""
        if self._open == ["title"]:
            self.title += data
        elif not self._open:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        """The text as read, a line for each block."""
        lines = (" ".join(line.split()) for line in "".join(self.pieces).splitlines())
        return "\n".join(line for line in lines if line)


def read_page(html: str) -> Page:
    """Parse an HTML page."""
    page = Page()
    page.feed(html)
    page.close()
    return page


@dataclass(frozen=True, slots=True)
class Outline:
    """What the check of a site needs of a page; read at many times the speed of a parser."""

    links: tuple[str, ...]
    ids: tuple[str, ...]
    title: str
    language: str


def read_outline(html: str) -> Outline:
    """Read links and anchors of a page whose tags an autoescaping template wrote."""
    found = [(name, unescape(value)) for name, value in _ATTRIBUTE.findall(html)]
    title, language = _TITLE.search(html), _LANGUAGE.search(html)
    return Outline(
        links=tuple(value for name, value in found if name != "id"),
        ids=tuple(value for name, value in found if name == "id"),
        title=unescape(title[1]).strip() if title else "",
        language=language[1] if language else "",
    )


def markdown_links(text: str) -> list[str]:
    """List the targets of links in Markdown, code left out."""
    return _MARKDOWN.findall(_FENCE.sub("", text))


def broken(
    path: str, links: Iterable[str], there: Callable[[str], bool], ids: Callable[[str], Places]
) -> Iterator[str]:
    """Say what is wrong with the links of a file; links to other hosts are not followed.

    ``ids`` gives the anchors of a file of the folder; it is asked only where a link names one.
    """
    for link in dict.fromkeys(links):
        problem = _problem(path, link, there, ids)
        if problem:
            yield problem


def _problem(
    path: str, link: str, there: Callable[[str], bool], ids: Callable[[str], Places]
) -> str:
    try:
        parts = urlsplit(link)
    except ValueError:
        return f"'{link}' is no address"
    if parts.scheme or parts.netloc:
        known = parts.scheme in _ELSEWHERE and (parts.netloc or parts.scheme == "mailto")
        return "" if known else f"'{link}' is no address that a reader can follow"
    if parts.path.startswith("/"):
        return f"'{link}' starts at the root of a server, which a folder has not"
    target = _joined(path, unquote(parts.path)) if parts.path else path
    if target is None:
        return f"'{link}' leads out of the folder"
    if not there(target):
        return f"'{link}' leads to '{target}', which is not there"
    if parts.fragment and unquote(parts.fragment) not in ids(target):
        return f"'{link}': '{target}' has no place named '{unquote(parts.fragment)}'"
    return ""


def _joined(path: str, link: str) -> str | None:
    found: list[str] = []
    for part in (*PurePosixPath(path).parent.parts, *link.split("/")):
        if part == "..":
            if not found:
                return None
            found.pop()
        elif part not in {"", "."}:
            found.append(part)
    return "/".join(found)


_AGAIN = "make it again: advisor site DIR"


def check_site(root: Path, tell: Callable[[int, int], None]) -> tuple[list[Finding], int]:
    """Find what is wrong with a site; gives the findings and the number of pages.

    ``tell`` is called with the number of files looked at, and of all.
    """
    found, pages = [*_unfinished(root)], 0
    files = _listed(root, found)
    if files is None:
        return found, pages
    found += _foreign(root, files)
    ids, seen = _anchors(root), files.__contains__
    for done, (path, said) in enumerate(files.items(), start=1):
        content = _read(root, path, said, found)
        if content is not None and path.endswith(".html"):
            pages += 1
            found += _page(path, content, seen, ids)
        tell(done, len(files))
    return found, pages


def _unfinished(root: Path) -> Iterator[Finding]:
    if (root / WORK).exists():
        said = f"left by a run that was stopped, or is running; {_AGAIN}"
        yield Finding("unfinished", f"{WORK}/", said)


def _listed(root: Path, found: list[Finding]) -> Mapping[str, str] | None:
    """Read the site's own list: path -> SHA-256; None where that cannot be done."""
    path = root / SITE_MANIFEST
    try:
        with path.open("rb") as lines:
            next(lines, None)
            listed = (json.loads(line) for line in lines)
            return {str(line["path"]): str(line["sha256"]) for line in listed}
    except FileNotFoundError:
        found.append(Finding("unfinished", SITE_MANIFEST, f"the site is not complete; {_AGAIN}"))
    except (OSError, ValueError, LookupError, TypeError):
        found.append(Finding("damaged", SITE_MANIFEST, f"not the list of a site; {_AGAIN}"))
    return None


def _foreign(root: Path, files: Mapping[str, str]) -> Iterator[Finding]:
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        ours = name == SITE_MANIFEST or name in files or name.startswith(f"{WORK}/")
        if path.is_file() and not ours:
            yield Finding("foreign", printable(name), "the list of the site does not name it")


def _read(root: Path, path: str, said: str, found: list[Finding]) -> bytes | None:
    try:
        content = (root / path).read_bytes()
    except OSError:
        found.append(Finding("missing", path, "the list of the site names it"))
        return None
    if hashlib.sha256(content).hexdigest() != said:
        found.append(Finding("damaged", path, "its content is not what was written"))
    return content


def _anchors(root: Path) -> Callable[[str], frozenset[str]]:
    def ids(path: str) -> frozenset[str]:
        return frozenset(read_outline((root / path).read_text("utf-8", "replace")).ids)

    return ids


def _page(
    path: str, content: bytes, there: Callable[[str], bool], ids: Callable[[str], frozenset[str]]
) -> Iterator[Finding]:
    page = read_outline(content.decode("utf-8", "replace"))
    for problem in broken(path, page.links, there, ids):
        yield Finding("link", path, problem)
    if len(content) > MOST_PAGE_BYTES:
        yield Finding("page", path, f"{len(content):,} bytes, more than {MOST_PAGE_BYTES:,}")
    if not page.title:
        yield Finding("page", path, "has no title")
    if not page.language:
        yield Finding("page", path, "does not say its language")
    for name, count in Counter(page.ids).items():
        if count > 1:
            yield Finding("page", path, f"{count} places are named '{name}'")
