"""Text, Markdown and HTML of every sample: readable, well formed, and never contradictory."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.report import command_lines, render_text
from advisor.report.assembly import document
from advisor.report.charts import cells
from advisor.report.pages import render_html, render_markdown
from advisor.report.prose import STANDARD_WORDS, Length, report
from advisor.report.sentence_check import contradictions
from advisor.report.views import escaped
from tests.report.runs import reference_hashes, run_hashes
from tests.report.samples import SAMPLES, does_not_fit, fits_amply, too_big_vision

LENGTHS: tuple[Length, ...] = ("short", "standard", "full")
DOCS = {name: document(make()) for name, make in SAMPLES.items()}


@pytest.fixture(params=SAMPLES)
def doc(request: pytest.FixtureRequest) -> Advice:
    return copy.deepcopy(DOCS[request.param])


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("length", LENGTHS)
def test_plain_text_keeps_to_its_width(doc: Advice, width: int, length: Length) -> None:
    text = render_text(doc, width=width, length=length)
    long_words = ("github", "models/model.gguf'")
    for line in text.splitlines():
        assert len(line) <= width or any(word in line for word in long_words), line
        assert line == line.rstrip()
    assert "\x1b" not in text
    assert text.isascii()


def test_colour_changes_no_word(doc: Advice) -> None:
    plain = render_text(doc, length="full")
    coloured = render_text(doc, length="full", color=True)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_text_leads_with_the_verdict_then_figures_bar_remedies_and_prose() -> None:
    text = render_text(DOCS["does not fit"])
    places = [
        text.index(mark)
        for mark in (
            "does not fit",
            "  Needs",
            "####",
            "What to do",
            "1. Use Q8_0",
            "What you have",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("length", LENGTHS)
def test_longer_reports_say_more(doc: Advice, length: Length) -> None:
    sizes = [len(render_text(doc, length=size).split()) for size in LENGTHS]
    assert sizes == sorted(sizes)
    assert length in LENGTHS


def test_a_standard_report_keeps_to_its_words(doc: Advice) -> None:
    made = report(doc, "standard")
    prose = [made.verdict, made.have, made.happens, made.first, *made.watch, *made.warnings]
    prose += [text for item in made.remedies[1:] for text in (item.title, item.text)]
    assert sum(len(text.split()) for text in prose) <= STANDARD_WORDS


def test_no_report_contradicts_its_figures(doc: Advice) -> None:
    assert contradictions(doc) == []


@pytest.mark.parametrize(
    ("place", "sentence", "found"),
    [
        ("verdict", "It fits with room to spare.", "says 'fits'"),
        ("note", "It needs 99.9 GiB.", "99.9 GiB is no figure"),
        ("note", "Expect 12 tok/s.", "gives 12 tok/s though no speed is known"),
        ("note", "The card reads 2,000 GB/s.", "2,000 GB/s is no figure"),
        ("note", "It draws 999 W.", "999 W is no figure"),
        ("note", "Room for 123,456 tokens.", "123,456 tokens is no figure"),
    ],
)
def test_the_audit_finds_what_is_wrong(place: str, sentence: str, found: str) -> None:
    doc = document(does_not_fit())
    if place == "verdict":
        doc.verdict.sentence = sentence
    else:
        doc.notes = [replace(doc.notes[0], text=sentence), *doc.notes[1:]]
    assert any(found in problem for problem in contradictions(doc))


def test_the_audit_finds_a_remedy_that_claims_to_fit() -> None:
    doc = document(does_not_fit())
    first = doc.recommendations[0]
    first.after = replace(first.after, fits=False)
    assert any("recommendation 1" in problem for problem in contradictions(doc))


def test_no_speed_is_printed_for_what_does_not_fit() -> None:
    for name in ("does not fit", "too big, vision", "mixture of experts, offloaded"):
        made = report(DOCS[name], "full")
        assert "tok/s" not in made.happens + made.have + made.verdict


def test_both_sizes_stand_side_by_side() -> None:
    made = report(DOCS["does not fit"], "standard")
    figures = dict(made.figures)
    assert figures["Rule of thumb"] == "28 GB for the weights alone, 29.9 GB in full"
    assert "27.8 GiB" in made.have


def test_an_unknown_figure_is_named() -> None:
    text = render_text(DOCS["unknown bandwidth"])
    assert "memory bandwidth is not known" in " ".join(text.split())
    assert "tok/s" not in text


class _Balance(HTMLParser):
    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(tag)


@pytest.mark.parametrize("length", LENGTHS)
def test_html_is_balanced_self_contained_and_accessible(doc: Advice, length: Length) -> None:
    page = render_html(doc, length=length)
    parsed = _Balance()
    parsed.feed(page)
    assert parsed.problems == []
    assert parsed.open == []
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link|<img|\son\w+=", page)
    names = [tag for tag, _ in parsed.tags]
    assert names.count("h1") == 1
    drawings = [attrs for tag, attrs in parsed.tags if tag == "svg" and "role" in attrs]
    assert drawings
    for attrs in drawings:
        for target in str(attrs["aria-labelledby"]).split():
            assert f'id="{target}"' in page
    assert "prefers-color-scheme: dark" in page
    assert ("html", {"lang": "en"}) in parsed.tags


def test_html_headings_never_skip_a_level(doc: Advice) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])", render_html(doc, length="full"))]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_html_shows_a_speed_range_only_where_there_is_a_speed() -> None:
    assert "speed-title" in render_html(DOCS["fits"])
    assert "speed-title" not in render_html(DOCS["does not fit"])


def test_names_cannot_inject_html_or_markdown() -> None:
    advice = fits_amply()
    name = "<script>alert(1)</script> [x](http://e) | *b* `c`"
    model = replace(advice.scenario.model, name=name)
    doc = document(replace(advice, scenario=replace(advice.scenario, model=model)))
    assert "<script" not in render_html(doc, length="full")
    markdown = render_markdown(doc, length="full")
    assert "<script" not in markdown.replace("\\<", "")
    assert "[x](" not in markdown


def test_markdown_tables_have_equal_columns(doc: Advice) -> None:
    for length in LENGTHS:
        for block in re.findall(r"(?:^\|.*\n)+", render_markdown(doc, length=length), re.MULTILINE):
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(counts) == 1


def test_markdown_has_the_four_movements() -> None:
    page = render_markdown(DOCS["does not fit"])
    heads = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert heads[:2] == ["What you have", "What happens"]
    assert heads[2].startswith("What to do first: Use Q8_0")
    assert heads[3] == "What else, and what to watch"


def test_code_spans_survive_markdown_escaping() -> None:
    assert escaped("use `a*b` and *c*") == "use `a*b` and \\*c\\*"


def test_commands_break_only_at_unquoted_spaces() -> None:
    command = "run --model 'a b c.gguf' --flag one --other two"
    lines = command_lines(command, 24)
    assert len(lines) > 1
    joined = " ".join(line.removesuffix("\\").strip() for line in lines)
    assert joined == f"$ {command}"
    assert any("'a b c.gguf'" in line for line in lines)


def test_every_part_of_the_bar_is_visible() -> None:
    assert cells([0.001, 0.999], 50) == [1, 49]
    assert sum(cells([0.2, 0.3, 0.5], 33)) == 33
    assert cells([], 10) == []


@pytest.mark.parametrize("length", LENGTHS)
def test_no_view_repeats_the_published_reports(doc: Advice, length: Length) -> None:
    known = reference_hashes()
    for text in (
        render_text(doc, length=length),
        render_markdown(doc, length=length),
        re.sub(r"<[^>]+>", " ", render_html(doc, length=length)),
    ):
        assert not run_hashes(text) & known


def test_a_users_templates_stand_in_front(tmp_path: Path) -> None:
    (tmp_path / "actions").mkdir()
    (tmp_path / "actions" / "combine.md.j2").write_text("# Mine\nWith {{ option.required }}.\n")
    first = document(too_big_vision(), templates=tmp_path).recommendations[0]
    assert (first.title, first.text) == ("Mine", "With 10.2 GiB.")
