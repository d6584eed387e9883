"""The rulebook: complete, linked, safe, readable by machines, and the same every time."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from advisor.advice import Advisor
from advisor.errors import RequestError
from advisor.workbench.bulk import Evaluation
from advisor.workbench.cover import cover
from advisor.workbench.cover_views import cover_json
from advisor.workbench.rulebook import LIST, Sources, files, make_book, write_book
from advisor.workbench.rulebook.blocks import Node, Page, Para, Picture
from advisor.workbench.rulebook.material import Measured, read_cover, read_cover_file
from advisor.workbench.rulebook.pictures import svg
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def measured(evaluation: Evaluation) -> Measured:
    return read_cover(cover_json(cover(evaluation)))


@pytest.fixture(scope="module")
def book(advisor: Advisor, measured: Measured) -> Sequence[Page]:
    return make_book(advisor, Sources(), measured)


@pytest.fixture(scope="module")
def html(book: Sequence[Page]) -> dict[str, str]:
    return dict(files(book, "html"))


@pytest.fixture(scope="module")
def markdown(book: Sequence[Page]) -> dict[str, str]:
    return dict(files(book, "md"))


def _page(book: Sequence[Page], path: str) -> Page:
    return next(page for page in book if page.path == path)


class Found(HTMLParser):
    """Links, names and open elements of a page."""

    VOID = frozenset({"meta", "link", "br", "rect", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: list[str] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            if name == "id" and value:
                self.names.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_rule_fact_and_topic_has_its_place(advisor: Advisor, book: Sequence[Page]) -> None:
    rules = {rule.id for rule in advisor.ruleset.rules}
    assert {p.path for p in book if p.path.startswith("rules/")} == {
        f"rules/{rule}" for rule in rules
    }
    facts = {f"facts/{fact.group}" for fact in advisor.vocabulary.facts.values()}
    assert facts <= {page.path for page in book}
    files = {rule.source.file for rule in advisor.ruleset.rules if rule.source}
    assert len([p for p in book if p.path.startswith("topics/")]) == len(files)


def test_links_of_the_pages_lead_somewhere_inside_the_book(html: dict[str, str]) -> None:
    pages = {path: Found(text) for path, text in html.items() if path.endswith(".html")}
    checked = 0
    for path, page in pages.items():
        assert page.open == []
        assert len(page.names) == len(set(page.names)), path
        assert not page.tags & {"script", "iframe", "img", "object"}
        for link in page.links:
            file, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            assert target in html, f"{path} -> {link}"
            assert not anchor or anchor in pages[target].names, f"{path} -> {link}"
            checked += 1
    assert checked > 3000


def test_links_of_the_markdown_lead_somewhere_inside_the_book(markdown: dict[str, str]) -> None:
    checked = 0
    for path, text in markdown.items():
        if not path.endswith(".md"):
            continue
        prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)]+)\)", prose):
            file, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            assert target in markdown, f"{path} -> {link}"
            assert not anchor or f'<a id="{anchor}"></a>' in markdown[target], f"{path} -> {link}"
            checked += 1
    assert checked > 3000


def test_nothing_is_fetched_from_elsewhere(html: dict[str, str], markdown: dict[str, str]) -> None:
    for path, text in {**html, **markdown}.items():
        plain = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"(src|href|url\()\W{0,2}(https?:)?//", plain), path
        assert "@import" not in plain


def test_pictures_are_sound_and_say_what_they_show(markdown: dict[str, str]) -> None:
    pictures = {path: text for path, text in markdown.items() if path.endswith(".svg")}
    assert {"pictures/conclusions.svg", "pictures/advice.svg"} <= set(pictures)
    for path, text in pictures.items():
        root = ET.fromstring(text)  # noqa: S314 - our own
        named = root.attrib["aria-labelledby"].split()
        assert root.attrib["role"] == "img"
        assert [root.find(f"{SVG}{tag}").attrib["id"] for tag in ("title", "desc")] == named  # type: ignore[union-attr]
        assert all((root.find(f"{SVG}{tag}").text or "").strip() for tag in ("title", "desc"))  # type: ignore[union-attr]
        assert "prefers-color-scheme: dark" in text, path
        width, height = (float(root.attrib[side]) for side in ("width", "height"))
        for box in root.iter(f"{SVG}rect"):
            x, y, wide = (float(box.attrib[name]) for name in ("x", "y", "width"))
            assert x >= 0
            assert y >= 0
            assert x + wide <= width + 1
            assert y + 20 <= height


def test_boxes_of_a_picture_do_not_overlap(book: Sequence[Page]) -> None:
    whole = next(b for b in _page(book, "picture").blocks if isinstance(b, Picture))
    root = ET.fromstring(svg(whole))  # noqa: S314 - our own
    boxes = sorted((float(r.attrib["x"]), float(r.attrib["y"])) for r in root.iter(f"{SVG}rect"))
    assert len(boxes) > 30
    for one, other in pairwise(boxes):
        assert one[0] != other[0] or other[1] - one[1] >= 20


def test_arrows_of_the_whole_picture_go_to_the_right(book: Sequence[Page]) -> None:
    whole = next(b for b in _page(book, "picture").blocks if isinstance(b, Picture))
    column = {node.name: at for at, nodes in enumerate(whole.columns) for node in nodes}
    assert all(column[start] < column[end] for start, end in whole.arrows)
    assert len(whole.arrows) > 40


def test_the_page_of_a_rule_says_it_all(html: dict[str, str], measured: Measured) -> None:
    page = html["rules/quantize-to-fit.html"]
    text = re.sub(r"<[^>]+>", "", page)
    for words in (
        "option.quality_loss is at most",
        "It recommends the action quantize",
        "to begin with",
        "# Use {{ option.format }} weights",
        f"of {measured.scenarios:,} scenarios",
        "Phi-3 Medium FP16 on an RTX 4090",
        "--gpu &quot;RTX 4090&quot; --model phi-3-medium --precision FP16",
        "concluded by verdict-fits",
        "What it recommends may be barred by: ",
        "no-ruined-model",
        "it says:",
    ):
        assert words in text, words
    assert "What it concludes is read or counted by" in html["rules/fit-gap-large.html"]
    veto = re.sub(r"<[^>]+>", "", html["rules/no-ruined-model.html"])
    assert "It may bar what these recommend: " in veto


def test_superseding_is_linked_both_ways(advisor: Advisor, html: dict[str, str]) -> None:
    pairs = [(rule.id, name) for rule in advisor.ruleset.rules for name in rule.supersedes]
    assert pairs
    for rule, other in pairs:
        assert f'href="{other}.html"' in html[f"rules/{rule}.html"].split("It supersedes:")[1]
        assert f'href="{rule}.html"' in html[f"rules/{other}.html"].split("superseded by:")[1]


def test_names_are_escaped() -> None:
    nasty = '<script>alert("x")</script> & `a|b` [c](d) {{ e }}'
    picture = Picture("p", nasty, nasty, [[Node(nasty, "fact", help=nasty)]], [])
    made = [Page("index", nasty, [Para([nasty]), picture])]
    page = dict(files(made, "html"))["index.html"]
    assert "<script" not in page
    assert "script" not in Found(page).tags
    text = dict(files(made, "md"))["index.md"]
    assert "<script" not in re.sub(r"\\<", "", text)
    assert "[c](d)" not in text
    ET.fromstring(svg(picture))  # noqa: S314 - our own


def test_the_same_rules_give_the_same_bytes(
    advisor: Advisor, measured: Measured, html: dict[str, str], markdown: dict[str, str]
) -> None:
    again = make_book(advisor, Sources(), measured)
    assert dict(files(again, "html")) == html
    assert dict(files(again, "md")) == markdown


def test_own_rules_and_texts_are_in_the_book(tmp_path: Path) -> None:
    rules, templates = tmp_path / "own", tmp_path / "words"
    rules.mkdir()
    (templates / "notes").mkdir(parents=True)
    (rules / "house.yaml").write_text(
        "# Rules of this house.\n- rule: many-cards\n  why: More than three cards.\n  source: x\n"
        "  when:\n    any:\n      - {request.gpus: above 3}\n      - not: {gpu.laptop: is no}\n"
        "  note: {text: many.md.j2}\n  cases:\n"
        "    - {name: eight, expect: fires,\n"
        "       given: {gpu: RTX 4090, model: llama-3-8b, gpus: 8, split: layer}}\n"
        "    - {name: one, given: {gpu: RTX 4090, model: llama-3-8b}, expect: silent}\n",
        encoding="utf-8",
    )
    (templates / "notes" / "many.md.j2").write_text("All {{ request.gpus }} cards.\n")
    advisor = Advisor.load(rules=rules, templates=templates, engine="reference")
    pages = dict(files(make_book(advisor, Sources(rules, templates), None), "html"))
    text = re.sub(r"<[^>]+>", "", pages["rules/many-cards.html"])
    for words in ("at least one of these:", "not all of this:", "All 8 cards.", "Not measured."):
        assert words in text, words
    assert "Rules of this house." in pages["topics/house.html"]


def test_a_book_is_written_and_stale_pages_go(book: Sequence[Page], tmp_path: Path) -> None:
    folder = tmp_path / "book"
    write_book(book, folder, "html")
    assert (folder / "index.html").is_file()
    listed = (folder / LIST).read_text(encoding="utf-8").split()
    stale, kept = folder / "rules" / "gone.html", tmp_path / "outside.html"
    for path in (stale, kept):
        path.write_text("x")
    (folder / LIST).write_text("\n".join([*listed, "rules/gone.html", "../outside.html"]))
    write_book(book, folder, "html")
    assert not stale.exists()
    assert kept.exists()
    assert (folder / LIST).read_text(encoding="utf-8").split() == listed


def test_a_folder_with_something_else_is_left_alone(book: Sequence[Page], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(RequestError, match="something else than a rulebook"):
        write_book(book, tmp_path, "md")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_that_is_no_coverage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cover.json"
    for text in ("{}", "[]", "no json", '{"rules": 1, "thresholds": []}'):
        path.write_text(text)
        with pytest.raises(RequestError, match="is no coverage"):
            read_cover_file(path)
    with pytest.raises(RequestError, match="cannot be read"):
        read_cover_file(tmp_path / "missing.json")


def test_the_command_takes_a_stored_coverage(capsys: Capture, tmp_path: Path) -> None:
    cover_file, folder = tmp_path / "cover.json", tmp_path / "book"
    sample = ("--sample", "40", "--workers", "1")
    run(capsys, "rules", "cover", *sample, "--format", "json", "-o", str(cover_file))
    outcome = run(
        capsys, "rules", "docs", "-o", str(folder), "--format", "md", "--cover", str(cover_file)
    )
    assert outcome.code == 0, outcome.err
    assert "beginning with index.md" in outcome.out
    assert json.loads(cover_file.read_text())["scenarios"] == 40
    assert "measured on 40 scenarios" in (folder / "index.md").read_text(encoding="utf-8")
