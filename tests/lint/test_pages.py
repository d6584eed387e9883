"""Every kind of problem has a page, and the examples on it are what they say."""

import re

import pytest

from advisor.lint.pages import page, pages_dir
from advisor.lint.registry import LINTS
from tests.lint.conftest import Check

NOT_SHOWN = {"cannot-load", "encoding", "yaml-limits"}
"""Kinds whose example is no text: tests/rulefile/broken has them."""
SHOWN = sorted(set(LINTS) - NOT_SHOWN)
HEADINGS = ["What it finds", "Why", "Avoid", "Prefer", "How to put it right"]


def examples(lint: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page(lint), re.DOTALL)


def test_every_kind_has_a_page_and_every_page_a_kind() -> None:
    assert {path.stem for path in pages_dir().glob("*.md")} - {"README"} == set(LINTS)


@pytest.mark.parametrize("lint", sorted(LINTS))
def test_page_says_what_why_and_how(lint: str) -> None:
    text = page(lint)
    about = LINTS[lint]
    assert text.startswith(f"# {lint}\n\n{about.title}. Severity: {about.severity}.\n")
    wanted = [h for h in HEADINGS if lint in SHOWN or h not in {"Avoid", "Prefer"}]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == wanted


def test_the_index_lists_every_kind() -> None:
    rows = re.findall(
        r"^\| \[(.+)\]\(\1\.md\) \| (\w+) \| (.+) \|$",
        (pages_dir() / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert rows == [(lint.id, lint.severity, lint.title) for lint in LINTS.values()]


@pytest.mark.parametrize("lint", SHOWN)
def test_example_to_avoid_has_the_problem(lint: str, check: Check) -> None:
    bad, _ = examples(lint)
    assert lint in {found.lint.id for found in check(**{"rules.yaml": bad})}


@pytest.mark.parametrize("lint", SHOWN)
def test_example_to_prefer_has_no_problem(lint: str, check: Check) -> None:
    _, good = examples(lint)
    assert [f"{p.source} {p.text}" for p in check(**{"rules.yaml": good})] == []
