"""What an edit of rules, knowledge or templates changes, against edits whose effect is known."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path

import pytest

from advisor.errors import UserError
from advisor.files import data_dir
from advisor.scenario.settings import request_from
from advisor.workbench.bulk import Evaluation, evaluate_all
from advisor.workbench.causes import causes_between
from advisor.workbench.comparison import Tried, attributed, compare_sides
from advisor.workbench.cover import Standing, standings
from advisor.workbench.diff import Difference, compare
from advisor.workbench.diff_views import View
from advisor.workbench.fact_store import FactStore
from advisor.workbench.fact_store_files import sampled_facts
from advisor.workbench.sides import Folders, base_side, load_side
from tests.workbench.conftest import edited

NOW = Folders()
FEW = 50
"""Scenarios where the facts of both sides have to be worked out."""


def difference(evaluation: Evaluation, base: Path) -> Difference:
    with base_side(str(base), NOW) as side:
        old = evaluate_all(evaluation.store, side.advisor.ruleset, evaluation)
        found = compare(old, evaluation)
        causes = causes_between(side, load_side(NOW), found.edits)
    return attributed(found, Tried(old), Tried(evaluation), causes)


def test_the_same_rules_change_nothing(evaluation: Evaluation, rules_copy: Path) -> None:
    found = difference(evaluation, rules_copy)
    assert not found.edits
    assert not found.changes
    assert "changes nothing" in View(found, None, base="HEAD", examples=2).text()


def test_a_raised_threshold_changes_the_reports_it_should(
    evaluation: Evaluation, store: FactStore, rules_copy: Path
) -> None:
    """A note at 33 % of cache instead of 20 %: exactly the scenarios in between lose it."""
    edited(
        rules_copy, "notes.yaml", "memory.kv_share: at least 33 %", "memory.kv_share: at least 20 %"
    )
    found = difference(evaluation, rules_copy)
    shares = {n: store.value("memory.kv_share", n) for n in range(len(store))}
    between = {
        json.dumps(dict(store.requests[n]))
        for n, share in shares.items()
        if isinstance(share, float) and 20 <= share < 33
    }
    assert between
    assert {json.dumps(dict(change.request)) for change in found.changes} == between
    assert found.counts == {"notes": len(between)}
    assert [(e.rule, e.what, e.parts) for e in found.edits] == [
        ("cache-is-large", "edited", ("conditions",))
    ]
    assert [group.cause for group in found.groups] == ["rule cache-is-large"]
    assert found.fails("any")
    assert not found.fails("first")
    assert not found.fails("verdict")


def test_another_verdict_is_counted_as_one(evaluation: Evaluation, rules_copy: Path) -> None:
    edited(rules_copy, "fit.yaml", "conclude: {fit.state: tight}", "conclude: {fit.state: fits}")
    found = difference(evaluation, rules_copy)
    mask = evaluation.concluded["fit.state"]["tight"]
    assert found.counts["verdict"] == mask.bit_count() > 0
    assert {(c.before.verdict, c.after.verdict) for c in found.changes if "verdict" in c.kinds} == {
        ("fits", "tight")
    }
    assert found.fails("verdict")


def test_a_changed_score_is_told_from_a_changed_report(
    evaluation: Evaluation, rules_copy: Path
) -> None:
    """A tenth of a point on a rule with large gaps around it moves hardly anything."""
    path = rules_copy / "recommend-memory.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("base: 90", "base: 91"), encoding="utf-8"
    )
    found = difference(evaluation, rules_copy)
    changed = (evaluation.scenarios(edit.rule) for edit in found.edits)
    fires = reduce(or_, changed, 0).bit_count()
    assert fires
    assert len(found.changes) + found.rescored <= fires
    assert found.rescored > 0
    assert found.edits[0].parts == ("score",)


def test_a_removed_and_an_added_rule_are_named(evaluation: Evaluation, rules_copy: Path) -> None:
    path = rules_copy / "notes.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("rule: fit-is-tight", "rule: fit-is-narrow"),
        encoding="utf-8",
    )
    found = difference(evaluation, rules_copy)
    assert {(e.rule, e.what) for e in found.edits} == {
        ("fit-is-tight", "added"),
        ("fit-is-narrow", "removed"),
    }
    assert {g.cause for g in found.groups} == {"rule fit-is-tight", "rule fit-is-narrow"}


def test_words_about_a_rule_change_no_report(evaluation: Evaluation, rules_copy: Path) -> None:
    edited(
        rules_copy,
        "notes.yaml",
        "why: A card that draws this much turns it all into heat.",
        "why: Heat.",
    )
    found = difference(evaluation, rules_copy)
    assert [(e.what, e.parts) for e in found.edits] == [("words only", ("why",))]
    assert not found.changes


def test_touched_scenarios_are_all_that_differ(evaluation: Evaluation, rules_copy: Path) -> None:
    """Looking only where rules fire otherwise misses nothing: the whole sample gives the same."""
    for file, old, new in (
        (
            "recommend-format.yaml",
            "option.quality_loss: at most 12 %",
            "option.quality_loss: at most 5 %",
        ),
        (
            "classes.yaml",
            "- {from: 10 %, to: 60 %, value: moderate}",
            "- {from: 10 %, to: 40 %, value: moderate}",
        ),
        (
            "classes.yaml",
            "- {from: 60 %, to: 250 %, value: large}",
            "- {from: 40 %, to: 250 %, value: large}",
        ),
    ):
        edited(rules_copy, file, old, new)
    with base_side(str(rules_copy), NOW) as side:
        old_rules = evaluate_all(evaluation.store, side.advisor.ruleset)
    everything = range(len(evaluation.store))
    before, after = standings(old_rules, everything), standings(evaluation, everything)
    found = compare(old_rules, evaluation)
    by_request = {id(change.request): change for change in found.changes}
    for number in everything:
        change = by_request.get(id(evaluation.store.requests[number]))
        assert (change is None) is (says(before[number]) == says(after[number]))
        if change:
            assert (change.before, change.after) == (before[number], after[number])


def says(report: Standing) -> object:
    said = [(item.action, item.option) for item in report.recommended]
    return (report.verdict, report.notes, said, {option for _, option in report.barred})


def test_changed_knowledge_is_compared_on_both_sides(tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(data_dir("knowledge"), base / "knowledge")
    edited(
        base / "knowledge",
        "policy.yaml",
        "policy: tight_below_percent\n  value: 10 %",
        "policy: tight_below_percent\n  value: 40 %",
    )
    new = load_side(NOW)
    with base_side(str(base), NOW) as old:
        found, prose, _ = compare_sides(old, new, FEW, workers=1)
    assert prose is not None
    assert found.knowledge_changed
    assert {group.cause for group in found.groups} <= {"policy tight_below_percent"}
    assert found.compared == FEW
    assert {(c.before.verdict, c.after.verdict) for c in found.changes if "verdict" in c.kinds} == {
        ("tight", "fits")
    }
    assert {*prose.causes} <= {"policy tight_below_percent"}
    text = View(found, prose, base="base", examples=1).text()
    assert "knowledge changed" in text
    assert "\npolicy tight_below_percent: " in text


def test_cards_the_base_does_not_know_are_left_out(tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(data_dir("knowledge"), base / "knowledge")
    named_in = ("computers.yaml", "second_cards.yaml")
    machines = "".join((base / "knowledge" / one).read_text(encoding="utf-8") for one in named_in)
    new = load_side(NOW)
    named = {str(request["gpu"]) for request in sampled_facts(FEW, new.origin).requests}
    lost = sorted(re.escape(one) for one in named if one not in machines)[:6]
    for path in (base / "knowledge" / "gpus").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        other = re.sub(rf"(?ms)^- gpu: (?:{'|'.join(lost)})\n.*?(?=^- gpu:|\Z)", "", text)
        path.write_text(other, encoding="utf-8")
    with base_side(str(base), NOW) as old:
        found, _, _ = compare_sides(old, new, FEW, workers=1)
    assert 0 < found.refused < 10
    assert found.compared + found.refused == FEW


def test_changed_templates_are_compared_by_their_words(tmp_path: Path, store: FactStore) -> None:
    base = tmp_path / "base"
    shutil.copytree(data_dir("templates"), base / "templates")
    path = base / "templates" / "notes" / "tight-headroom.md.j2"
    path.write_text("It is a squeeze.\n", encoding="utf-8")
    new = load_side(NOW)
    with base_side(str(base), NOW) as old:
        found, prose, _ = compare_sides(old, new, FEW, workers=1)
    assert not found.changes
    assert prose is not None
    assert prose.templates == ["notes/tight-headroom.md.j2"]
    assert prose.concerned == prose.read == len(prose.reworded) > 0
    assert any("squeeze" in line for line in prose.reworded[0].lines)
    assert "read otherwise" in View(found, prose, base="base", examples=1).text()


def test_a_text_that_another_layer_covers_is_told_once(tmp_path: Path, store: FactStore) -> None:
    for layer, says in (("company", "It is a squeeze."), ("team", "It is a tight squeeze.")):
        path = tmp_path / layer / "notes" / "tight-headroom.md.j2"
        path.parent.mkdir(parents=True)
        path.write_text(f"{says}\n", encoding="utf-8")
    over = Folders(templates=(tmp_path / "company", tmp_path / "team"))
    with base_side("built-in", over) as old:
        _, prose, _ = compare_sides(old, load_side(over), FEW, workers=1)
    assert prose is not None
    assert prose.templates == ["notes/tight-headroom.md.j2"]
    assert set(prose.causes) == {"text notes/tight-headroom.md.j2"}
    assert 0 < prose.concerned < FEW


def git(folder: Path, *arguments: str) -> None:
    identity: Mapping[str, str] = {"user.name": "x", "user.email": "x@example.org"}
    settings = [part for key, value in identity.items() for part in ("-c", f"{key}={value}")]
    command = ["git", "-C", str(folder), *settings, *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose HEAD has the built-in rules, and whose files an edit can change."""
    shutil.copytree(data_dir("rules"), tmp_path / "repo" / "house" / "rules")
    repo = tmp_path / "repo"
    git(repo, "init", "-q")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    return repo


def test_a_git_revision_is_a_base(repository: Path, store: FactStore) -> None:
    rules = repository / "house" / "rules"
    edited(rules, "notes.yaml", "memory.kv_share: at least 33 %", "memory.kv_share: at least 20 %")
    now = Folders(rules=rules)
    new = load_side(now)
    with base_side("HEAD", now) as old:
        found, _, _ = compare_sides(old, new, FEW, workers=1)
    assert [e.rule for e in found.edits] == ["cache-is-large"]
    assert set(found.counts) == {"notes"}
    git(repository, "commit", "-qam", "second")
    with base_side("HEAD", now) as old:
        found, _, _ = compare_sides(old, new, FEW, workers=1)
    assert not found.edits
    with base_side("HEAD~1", now) as old:
        assert compare_sides(old, new, FEW, workers=1)[0].changes


def test_what_is_neither_a_folder_nor_a_revision_is_said(repository: Path, tmp_path: Path) -> None:
    now = Folders(rules=repository / "house" / "rules")
    with (
        pytest.raises(UserError, match="neither a folder nor a git revision"),
        base_side("nope", now),
    ):
        pass
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match="holds neither rules/"), base_side(str(empty), now):
        pass


def test_a_revision_without_the_folder_is_said(repository: Path) -> None:
    other = repository / "later" / "rules"
    shutil.copytree(repository / "house" / "rules", other)
    with (
        pytest.raises(UserError, match="there is nothing in"),
        base_side("HEAD", Folders(rules=other)),
    ):
        pass


def test_a_broken_base_is_told_from_the_present(rules_copy: Path) -> None:
    edited(
        rules_copy, "notes.yaml", "memory.kv_share: at least 33 %", "memory.kv_shar: at least 33 %"
    )
    with (
        pytest.raises(UserError, match=r"in .*: unknown fact 'memory.kv_shar'"),
        base_side(str(rules_copy), NOW),
    ):
        pass


def test_views_say_the_same(evaluation: Evaluation, rules_copy: Path) -> None:
    edited(
        rules_copy,
        "recommend-format.yaml",
        "option.quality_loss: at most 12 %",
        "option.quality_loss: at most 5 %",
    )
    found = difference(evaluation, rules_copy)
    text = View(found, None, base="HEAD", examples=1).text()
    markdown = View(found, None, base="HEAD", examples=1).markdown()
    data = json.loads(View(found, None, base="HEAD", examples=1).json())
    assert data["changed"] == len(found.changes) > 0
    assert f"{len(found.changes)} report" in text
    assert f"| **all** | {len(found.changes)} |" in markdown
    example = data["rules"][0]["examples"][0]
    assert request_from(example["request"]).gpu
    assert example["before"] != example["after"]
