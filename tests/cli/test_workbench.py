"""The workbench on the command line: what an expert types, and the exit codes of CI."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from advisor.files import data_dir
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
SAMPLE = ("--sample", "40", "--workers", "1")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    shutil.copytree(data_dir("rules"), folder / "rules")
    path = folder / "rules" / "notes.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("at least 33 %", "at least 5 %"), encoding="utf-8")
    return folder


def test_cover_as_text_json_and_page(capsys: Capture, tmp_path: Path) -> None:
    text = run(capsys, "rules", "cover", *SAMPLE).out
    assert "rules over 40 scenarios of the catalogue" in text
    assert "Never fires" in text
    assert "Numeric conditions" not in text
    assert "Numeric conditions" in run(capsys, "rules", "cover", *SAMPLE, "--thresholds").out
    data = json.loads(run(capsys, "rules", "cover", *SAMPLE, "--format", "json").out)
    assert data["scenarios"] == 40
    page = tmp_path / "cover.html"
    run(capsys, "rules", "cover", *SAMPLE, "--format", "html", "-o", str(page))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_diff_shows_both_sides_and_ci_can_fail_on_it(capsys: Capture, base: Path) -> None:
    outcome = run(capsys, "rules", "diff", str(base), *SAMPLE)
    assert outcome.code == 0, outcome.err
    assert "cache-is-large: edited (conditions)" in outcome.out
    assert "before" in outcome.out
    assert run(capsys, "rules", "diff", str(base), *SAMPLE, "--fail-on", "any").code == 3
    assert run(capsys, "rules", "diff", str(base), *SAMPLE, "--fail-on", "first").code == 0
    markdown = run(capsys, "rules", "diff", str(base), *SAMPLE, "--format", "markdown").out
    assert markdown.startswith("## Compared with")
    data = json.loads(run(capsys, "rules", "diff", str(base), *SAMPLE, "--format", "json").out)
    assert data["counts"]["notes"] == data["changed"] > 0


def test_diff_with_nothing_changed_says_so(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "diff", str(data_dir("rules")), *SAMPLE, "--fail-on", "any")
    assert outcome.code == 0, outcome.out
    assert "changes nothing" in outcome.out


def test_diff_names_a_base_that_is_none(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "diff", "no-such-thing", *SAMPLE)
    assert outcome.code == 1
    assert "no-such-thing" in outcome.err
    assert "Traceback" not in outcome.err


def test_explain_takes_the_flags_of_advise(capsys: Capture) -> None:
    card = ("--gpu", "RTX 4090", "--model", "llama-3-8b", "--precision", "Q8_0")
    more = ("--context", "8192", "--flash-attention", "on", "--ram", "64GB")
    outcome = run(capsys, "rules", "explain", "cards-take-turns", *card, *more, "--split", "layer")
    assert outcome.code == 0, outcome.err
    assert "fails  request.gpus is 1" in outcome.out
    assert "The smallest single change that makes it fire: --gpus 2" in outcome.out


def test_explain_names_rules_ladders_and_flags_that_are_wrong(capsys: Capture) -> None:
    given = ("--gpu", "RTX 4090", "--model", "llama-3-8b")
    wrong = run(capsys, "rules", "explain", "quantise-to-fit", *given)
    assert wrong.code == 1
    assert "Did you mean 'quantize-to-fit'" in wrong.err
    ladder = run(capsys, "rules", "explain", "fit-gap", *given)
    assert "is a ladder" in ladder.err
    assert run(capsys, "rules", "explain", "fit-is-tight", *given, "--contxt", "3").code == 2
    off = run(capsys, "rules", "explain", "fit-is-tight", *given, "--flash-attention", "maybe")
    assert off.code == 1


def test_facts_are_listed_and_looked_up(capsys: Capture) -> None:
    assert "memory.deficit" in run(capsys, "rules", "facts").out
    one = run(capsys, "rules", "facts", "fit.gap").out
    assert "Concluded by" in one
    assert "fit-gap-slight" in one
    data = json.loads(run(capsys, "rules", "facts", "fit.gap", "--format", "json").out)
    assert data["from"] == "rules"
    assert len(json.loads(run(capsys, "rules", "facts", "--format", "json").out)) > 100
    wrong = run(capsys, "rules", "facts", "fit.gp")
    assert (wrong.code, "Did you mean 'fit.gap'" in wrong.err) == (1, True)


def test_mutate_counts_what_became_of_each_mistake(capsys: Capture) -> None:
    only = ("--rule", "fit-is-tight", *SAMPLE)
    outcome = run(capsys, "rules", "mutate", *only, "--format", "json")
    assert outcome.code == 0, outcome.err
    data = json.loads(outcome.out)
    assert data["mutants"] == data["killed"] + data["survived"] + data["equivalent"]


def test_mutate_can_fail_a_build(capsys: Capture, tmp_path: Path) -> None:
    rules = tmp_path / "own"
    rules.mkdir()
    (rules / "own.yaml").write_text(
        "- rule: many-cards\n  why: More than three cards.\n  source: x\n"
        "  when: {request.gpus: above 3}\n  note: Many cards.\n  cases:\n"
        "    - {name: eight, expect: fires,\n"
        "       given: {gpu: RTX 4090, model: llama-3-8b, gpus: 8, split: layer}}\n"
        "    - {name: one, given: {gpu: RTX 4090, model: llama-3-8b}, expect: silent}\n",
        encoding="utf-8",
    )
    only = ("--rules", str(rules), "--rule", "many-cards", *SAMPLE)
    outcome = run(capsys, "rules", "mutate", *only, "--fail-under", "100")
    assert outcome.code == 1
    assert "SURVIVED own/own.yaml" in outcome.out
    assert "killed of those that can be" in outcome.out
    assert run(capsys, "rules", "mutate", *only, "--fail-under", "10").code == 0


def test_test_writes_json_and_junit(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    outcome = run(
        capsys, "rules", "test", "--rule", "fit-is-tight", "--format", "json", "--junit", str(file)
    )
    data = json.loads(outcome.out)
    assert data["failed"] == 0
    assert data["run"] == int(ET.parse(file).getroot().attrib["tests"])  # noqa: S314 - our own


def test_a_failing_scenario_fails_the_run(capsys: Capture, tmp_path: Path, few_cases: None) -> None:
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "a.yaml").write_text(
        "- scenario: wrong\n  given: {gpu: RTX 4090, model: phi-3-mini}\n"
        "  expect: {verdict: too_big}\n",
        encoding="utf-8",
    )
    outcome = run(capsys, "rules", "test", "--scenarios", str(folder))
    assert outcome.code == 1
    place = f"{folder.as_posix()}/a.yaml:1:3"
    assert f"FAILED {place}: scenario wrong: the verdict is fits, not too_big" in outcome.out
    assert "0 of 1 scenarios hold" in outcome.out


def test_a_scenario_folder_without_scenarios_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    assert "holds no scenario" in run(capsys, "rules", "test", "--scenarios", str(tmp_path)).err
    missing = str(tmp_path / "missing")
    assert "is not a folder" in run(capsys, "rules", "test", "--scenarios", missing).err
