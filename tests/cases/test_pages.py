"""The hand-checked cases still say what the program says, and are enough of them."""

from __future__ import annotations

import re

import pytest

from tests.cases.pages import FOLDER, Case, cases, pages, table

ALL = [(page, case) for page in pages() for case in cases(page)]
ENOUGH = 20


MACHINES = [case for page, case in ALL if page.name == "machines.md"]
FEW = [case for _, case in ALL if case not in MACHINES[2:]]
SLOW = [pytest.param(case, marks=pytest.mark.slow) for case in MACHINES[2:]]


@pytest.mark.parametrize("case", [*FEW, *SLOW], ids=lambda case: case.title)
def test_the_figures_on_a_page_are_those_of_the_program(case: Case) -> None:
    """On failure run ``python -m tests.cases.pages`` and read the argument below it again."""
    assert case.table == table(case.command)


def test_there_are_enough_cases_and_each_is_argued() -> None:
    assert len(ALL) >= ENOUGH
    for page in pages():
        text = page.read_text(encoding="utf-8")
        sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
        assert len(sections) == len(cases(page)), page.name
        for section in sections:
            assert "**An expert:**" in section, section[:60]
            assert "**Compared:**" in section, section[:60]


def test_the_index_names_every_case() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for page, case in ALL:
        assert f"[{case.title}]({page.name}#" in index, case.title
