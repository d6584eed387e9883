"""Pages that people find their way in: all in the index, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """Headings as the usual hosts spell them: small, words joined by hyphens."""
    text = _CODE.sub(lambda code: code[0].strip("`"), page.read_text(encoding="utf-8"))
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in found}


def test_every_page_is_in_the_index() -> None:
    listed = {link.partition("#")[0] for link in links(DOCS / "README.md")}
    missing = {page.name for page in DOCS.glob("*.md")} - listed - {"README.md"}
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_no_two_decisions_share_a_number() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert len(set(numbers)) == len(numbers)
