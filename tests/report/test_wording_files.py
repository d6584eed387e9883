"""Another language is a folder: words and templates of a user's own before the built-in ones."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from advisor.errors import TemplateError
from advisor.files import data_dir
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.figures import say, spoken
from advisor.report.pages import render_html, render_markdown
from advisor.report.templates import template_problems
from advisor.report.word_file import FILE, read_words
from tests.report.samples import SAMPLES, does_not_fit, fits_amply, too_big_vision, two_cards

BUILT_IN = data_dir("templates")
RENDER = Path(__file__).parents[2] / "advisor" / "report"


def pseudo(text: str) -> str:
    """Mark every word outside braces, tags and figures, so that what is left over shows."""
    pieces = re.split(r"(\{\{.*?\}\}|\{%.*?%\}|\{[a-z]*\}|`[^`]*`)", text, flags=re.DOTALL)
    return "".join(
        piece if index % 2 else re.sub(r"[A-Za-z][a-z']*", lambda w: f"{w[0]}\u00f8", piece)
        for index, piece in enumerate(pieces)
    )


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every template and every word of the built-in folder in a pseudo-language."""
    folder = tmp_path_factory.mktemp("pseudo")
    for path in BUILT_IN.rglob("*.md.j2"):
        if path.name in {"report.md.j2", "options.md.j2", "break_even.md.j2"}:
            continue
        place = folder / path.relative_to(BUILT_IN)
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines()
        place.write_text("\n".join(map(pseudo, lines)) + "\n", encoding="utf-8")
    words = (BUILT_IN / FILE).read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" = ") for line in words if line and not line.startswith("#")]
    own = "".join(f"{name} = {pseudo(text)}\n" for name, _, text in pairs)
    (folder / FILE).write_text(own, encoding="utf-8")
    return folder


def test_the_pseudo_language_is_a_valid_folder(language: Path) -> None:
    assert [str(problem) for problem in template_problems(language)] == []


LEFT_OVER = re.compile(r"(?<![\w./-])[a-z]{3,}(?![\w\u00f8./-])")
"""A small English word that nobody translated."""


@pytest.mark.parametrize("sample", [does_not_fit, fits_amply, too_big_vision, two_cards])
def test_no_english_is_left_in_the_sentences(language: Path, sample: object) -> None:
    doc = document(sample(), templates=language)  # type: ignore[operator]  # makes an advice
    spoken_words = [doc.verdict.sentence, *(note.text for note in doc.notes)]
    spoken_words += [f"{i.title} {i.text}" for i in doc.recommendations]
    names = "transformers|phi|medium|small|draft|llava|gemma|pro|cpp|llama|nvidia|smi|ram|bandwidth"
    for text in spoken_words:
        bare = re.sub(rf"`[^`]*`|a figure of this card|\b(?:{names})\b", "", text)
        assert not LEFT_OVER.findall(bare), text


@pytest.mark.parametrize("name", SAMPLES)
def test_every_view_speaks_it(language: Path, name: str) -> None:
    doc = document(SAMPLES[name](), templates=language)
    for view in (
        render_markdown(doc, length="full", templates=language),
        render_html(doc, templates=language),
        render_text(doc, templates=language),
    ):
        assert "GiB" in view or "G\u00f8" in view
        assert view.count("\u00f8") > 50
    assert "What to do" not in render_text(doc, templates=language)


def test_a_word_of_ones_own_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("# German\nbound.bandwidth = die Bandbreite\n", encoding="utf-8")
    text = " ".join(render_text(document(fits_amply(), templates=tmp_path)).split())
    assert "die Bandbreite" not in text
    doc = document(fits_amply(), templates=tmp_path)
    page = render_markdown(doc, templates=tmp_path)
    assert "ie Bandbreite" in page
    assert "tok/s" in page


def test_words_count_in_the_hash_of_templates(tmp_path: Path) -> None:
    with spoken(None):
        assert say("list.and", first="a, b", last="c") == "a, b and c"
    (tmp_path / FILE).write_text("list.and = {first} und {last}\n", encoding="utf-8")
    with spoken(tmp_path):
        assert say("list.and", first="a, b", last="c") == "a, b und c"
    assert say("list.and", first="a, b", last="c") == "a, b and c"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bound.bandwith = x", "unknown name 'bound.bandwith'"),
        ("just words", "this line names no text"),
        ("speed.point = {tempo} tok/s", "'speed.point' has no '{tempo}'"),
        ("speed.point = {speed.__class__}", "holds a brace that is no figure"),
        ("speed.point = {speed", "holds a brace that is no figure"),
    ],
)
def test_a_wrong_line_is_named_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / FILE).write_text(f"# one\n{line}\n", encoding="utf-8")
    (problem,) = template_problems(tmp_path)
    assert message in str(problem)
    assert f"templates/{FILE}:2" in str(problem)
    with pytest.raises(TemplateError):
        document(does_not_fit(), templates=tmp_path)


def test_a_name_that_stands_twice_is_told(tmp_path: Path) -> None:
    lines = "bound.bandwidth = x\nbound.compute = y\nbound.bandwidth = z\n"
    (tmp_path / FILE).write_text(lines, encoding="utf-8")
    (problem,) = template_problems(tmp_path)
    assert "'bound.bandwidth' stands in line 1 too" in str(problem)
    assert f"templates/{FILE}:3" in str(problem)


def test_every_word_is_used_and_every_word_asked_for_is_there() -> None:
    names, problems = read_words(BUILT_IN)
    assert problems == []
    asked, kinds = set[str](), set[str]()
    for path in RENDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                asked.add(node.value)
                kinds.add(node.value.rstrip("."))
    for name in names:
        beginnings = {name.partition(".")[0], name.rpartition(".")[0]}
        assert name in asked or name.removesuffix(".one") in asked or beginnings & kinds, name
