"""A starter folder under ``--watch`` and ``diff``: what is saved there, and what it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.cli.init import write_starter
from advisor.workbench.cases import Runner
from advisor.workbench.comparison import compare_sides
from advisor.workbench.diff_views import View
from advisor.workbench.lint.templates import check_templates
from advisor.workbench.scenario_file import load_scenarios
from advisor.workbench.sides import Folders, base_side, load_side
from advisor.workbench.watch import Session

RULE = "example-card-is-shared"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    write_starter(tmp_path / "house")
    path = tmp_path / "house" / "rules" / "house.yaml"
    text = path.read_text(encoding="utf-8")
    assert "says: book it" in text
    return tmp_path / "house"


@pytest.fixture
def session(house: Path) -> Session:
    rules, templates, knowledge = (house / kind for kind in ("rules", "templates", "knowledge"))
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    folder = rules / "scenarios"
    names = advisor.knowledge.names()
    scenarios = load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names)
    return Session(Runner(advisor, templates=templates), scenarios, rules, folder, knowledge)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def failures(session: Session, rules: frozenset[str]) -> list[str]:
    return [result.problem for result in session.run(rules, ()) if not result.ok]


def test_a_saved_text_runs_the_cases_that_ask_for_words(session: Session, house: Path) -> None:
    assert failures(session, frozenset({RULE})) == []
    text = house / "templates" / "notes" / "example-card.md.j2"
    edit(text, "book it", "reserve it")
    concerned = session.reload()
    assert concerned.texts
    assert concerned.rules == {RULE}
    (problem,) = failures(session, concerned.rules)
    assert problem.startswith("its text does not say 'book it', but 'The Example 48 GB card")
    edit(text, "reserve it", "{{ gpu_nam }}")
    (problem,) = failures(session, session.reload().rules)
    assert "its text cannot be written" in problem
    assert len(check_templates(house / "templates", rules=session.rules).problems) >= 1


def test_saved_knowledge_runs_your_own_rules_first_and_the_rest_later(
    session: Session, house: Path
) -> None:
    assert failures(session, frozenset({RULE})) == []
    edit(house / "knowledge" / "gpus" / "house.yaml", "vram: 48 GiB", "vram: 48 GiB\n  tdp: 301 W")
    concerned = session.reload()
    assert RULE in concerned.rules
    assert len(concerned.scenarios) == len(session.scenarios) > 0
    assert concerned.later == set(session.runner.advisor.ruleset.by_id) - concerned.rules
    ready = session.runner.advisor.knowledge.gpus["Example 48 GB card"]
    assert ready.tdp_w == 301


def test_texts_and_knowledge_are_watched(session: Session, house: Path) -> None:
    assert {house / "templates", house / "knowledge"} <= set(session.folders)


def test_diff_shows_what_a_rule_about_an_own_card_changes(house: Path) -> None:
    folders = Folders(house / "rules", house / "templates", house / "knowledge")
    with base_side("built-in", folders) as old:
        found, prose, beside = compare_sides(old, load_side(folders), 20, workers=1)
    text = View(found, prose, beside, base="built-in", examples=1).text()
    assert "card Example 48 GB card: added" in text
    assert f"{RULE}: added; fires in none of the scenarios" in text
    assert "Of 1 request in cases of these rules, 1 would be answered otherwise" in text
    assert "built-in cannot answer it; what is said now:" in text
    assert (
        '"answered_before": false' in View(found, prose, beside, base="built-in", examples=1).json()
    )
