"""Every kind of problem has a page, and the examples on it are what they say."""

import re
from pathlib import Path

import pytest

from advisor.workbench.lint.problem import LINTS, page, pages_dir
from advisor.workbench.lint.templates import check_templates
from tests.lint.conftest import Check

NOT_SHOWN = {
    "cannot-load",
    "encoding",
    "no-verdict",
    "report-fails",
    "unusual-figure",
    "shorter-list",
    "yaml-limits",
}
"""Kinds whose example is no text, or needs the built-in rules: shown elsewhere."""
BETWEEN_FILES = {"missing-template", "unused-template"}
"""Kinds that need more than one file; test_templates.py has them."""
TEXTS = (
    "number-without-unit",
    "template-forbidden",
    "template-syntax",
    "template-title",
    "unknown-placeholder",
)
"""Kinds of ``advisor templates check`` that one text shows."""
SHOWN = sorted({*LINTS} - NOT_SHOWN - BETWEEN_FILES - {*TEXTS})
HEADINGS = ["What it finds", "Why", "Avoid", "Prefer", "How to put it right"]


def examples(lint: str, language: str = "yaml") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(lint), re.DOTALL)


def test_the_index_lists_every_page() -> None:
    assert {path.stem for path in pages_dir().glob("*.md")} - {"README"} == set(LINTS)


@pytest.mark.parametrize("lint", sorted(LINTS))
def test_page_says_what_why_and_how(lint: str) -> None:
    text = page(lint)
    about = LINTS[lint]
    assert text.startswith(f"# {lint}\n\n{about.title}. Severity: {about.severity}.\n")
    shown = lint not in NOT_SHOWN | BETWEEN_FILES
    wanted = [h for h in HEADINGS if shown or h not in {"Avoid", "Prefer"}]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == wanted


@pytest.mark.parametrize("lint", SHOWN)
def test_example_to_avoid_has_the_problem(lint: str, check: Check) -> None:
    bad, _ = examples(lint)
    assert lint in {found.lint.id for found in check(**{"rules.yaml": bad})}


@pytest.mark.parametrize("lint", SHOWN)
def test_example_to_prefer_has_no_problem(lint: str, check: Check) -> None:
    _, good = examples(lint)
    assert [f"{p.source} {p.text}" for p in check(**{"rules.yaml": good})] == []


@pytest.mark.parametrize("lint", TEXTS)
def test_texts_to_avoid_and_to_prefer_are_what_they_say(lint: str, tmp_path: Path) -> None:
    place = tmp_path / "actions" / "quantize.md.j2"
    place.parent.mkdir()
    found = []
    for text in examples(lint, "jinja"):
        place.write_text(text, encoding="utf-8")
        found.append([problem.lint.id for problem in check_templates(tmp_path).problems])
    assert found == [[lint], []]
