"""``advisor rules test``: scenario files, what a failure says, JUnit, and running again on save."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from advisor.advice import Advisor
from advisor.errors import Problems, RuleFileError, Source, UserError
from advisor.files import data_dir
from advisor.workbench.cases import CaseResult, Runner, junit_xml
from advisor.workbench.scenario_file import ScenarioCase, load_scenarios
from advisor.workbench.watch import Concerned, Session, concerned_by_edit, stamp, until_changed
from tests.workbench.conftest import edited

MEDIUM = "{gpu: RTX 4090, model: phi-3-medium, precision: FP16}"


def read(advisor: Advisor, folder: Path, text: str) -> list[ScenarioCase]:
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    names = advisor.knowledge.names()
    return list(load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names))


def run(advisor: Advisor, folder: Path, expect: str) -> CaseResult:
    text = f"- scenario: phi\n  given: {MEDIUM}\n  expect: {expect}\n"
    (result,) = Runner(advisor).scenarios(read(advisor, folder, text))
    return result


@pytest.mark.parametrize(
    "expect",
    [
        "{verdict: needs_offload, first: quantize}",
        "{first: quantize, changes: {offload-layers: {gpu_layers: 33}}}",
        "{facts: {fit.cause: weights, memory.deficit: above 2 GiB, gpu.laptop: no}}",
        "{fires: [overflow-is-silent, quantize-to-fit], silent: [fit-is-tight]}",
    ],
)
def test_what_is_so_holds(advisor: Advisor, tmp_path: Path, expect: str) -> None:
    assert run(advisor, tmp_path, expect).problem == ""


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("{verdict: fits}", "the verdict is needs_offload, not fits"),
        ("{first: none}", "the first recommendation is quantize"),
        ("{change: {precision: Q2_K}}", "the first recommendation changes"),
        ("{actions: [quantize]}", "it recommends quantize, "),
        ("{changes: {cloud: {gpus: 3}}}", "cloud changes"),
        ("{changes: {speculative: {gpus: 3}}}", "it does not recommend speculative"),
        ("{notes: [fit-is-tight]}", "the note of fit-is-tight is missing"),
        ("{fires: [fit-is-tight]}", "fit-is-tight stays silent"),
        ("{notes: []}", "the note of "),
        ("{silent: [quantize-to-fit]}", "quantize-to-fit fires"),
        ("{facts: {fit.cause: kv_cache}}", "fit.cause is weights, not kv_cache"),
        ("{facts: {headroom.class: ample}}", "headroom.class is unknown, not ample"),
        ("{facts: {gpu.vram: above 30 GB}}", "gpu.vram is 24.0 GiB, not above 30 GB"),
    ],
)
def test_what_is_not_so_is_said(
    advisor: Advisor, tmp_path: Path, expect: str, problem: str
) -> None:
    assert run(advisor, tmp_path, expect).problem.startswith(problem)


def test_a_failure_says_which_condition_was_missing_and_by_how_much(
    advisor: Advisor, tmp_path: Path
) -> None:
    result = run(advisor, tmp_path, "{verdict: fits}")
    (line,) = [d for d in result.details if d.startswith("verdict-fits: memory.deficit")]
    assert "needed: at most 0 GiB, short by" in line


def test_everything_wrong_with_scenario_files_is_said_at_once_with_places(
    advisor: Advisor, tmp_path: Path
) -> None:
    text = (
        "- scenario: one\n  given: {gp: RTX 4090}\n  expect: {verdict: fit, frist: x}\n"
        "- scenario: one\n  expect: {facts: {fit.cuse: weights, memory.deficit: above 2}}\n"
        "- scenario: two\n  given: {gpu: x}\n  expect: {notes: [nope], actions: [quantise]}\n"
        "- given: {}\n  expect: {}\n"
    )
    with pytest.raises(Problems) as raised:
        read(advisor, tmp_path, text)
    lines = str(raised.value).splitlines()
    name = tmp_path.name
    for wanted in (
        f"{name}/s.yaml:2:11: unknown input 'gp'. Did you mean",
        f"{name}/s.yaml:3:21: unknown verdict 'fit'. Did you mean 'fits'?",
        f"{name}/s.yaml:3:26: unknown key 'frist'. Did you mean 'first'",
        f"{name}/s.yaml:4:3: two scenarios are called 'one'",
        f"{name}/s.yaml:4:3: the key 'given' is missing.",
        f"{name}/s.yaml:5:20: unknown fact 'fit.cuse'. Did you mean 'fit.cause'?",
        f"{name}/s.yaml:5:55: '2' has no unit.",
        f"{name}/s.yaml:8:12: unknown rule 'nope'.",
        f"{name}/s.yaml:8:27: unknown action 'quantise'. Did you mean 'quantize'?",
        f"{name}/s.yaml:9:3: 'given' is empty.",
        f"{name}/s.yaml:10:3: 'expect' is empty.",
        f"{name}/s.yaml:9:3: the key 'scenario' is missing.",
    ):
        assert any(line.startswith(wanted) for line in lines), (wanted, lines)


def test_a_refused_request_fails_its_scenario_alone(advisor: Advisor, tmp_path: Path) -> None:
    text = "- scenario: x\n  given: {gpu: RTX 4090, model: no-such}\n  expect: {verdict: fits}\n"
    (result,) = Runner(advisor).scenarios(read(advisor, tmp_path, text))
    assert result.problem.startswith("its input is refused")


def test_a_folder_that_is_not_there_has_no_scenarios(advisor: Advisor, tmp_path: Path) -> None:
    names = advisor.knowledge.names()
    folder = tmp_path / "none"
    assert load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names) == ()


def test_the_built_in_scenarios_hold(advisor: Advisor) -> None:
    names = advisor.knowledge.names()
    folder = data_dir("rules") / "scenarios"
    scenarios = load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names)
    assert scenarios
    failed = [(r.title, r.problem) for r in Runner(advisor).scenarios(scenarios) if not r.ok]
    assert not failed


def test_junit_counts_places_and_escapes() -> None:
    place = Source("rules/fit.yaml", 12, 5)
    results = [
        CaseResult("a", "holds", place, ""),
        CaseResult("a", 'says "<1>"', place, "it fires & more", ("short by 1 GiB",)),
        CaseResult("", "whole", Source("rules/scenarios/x.yaml", 1, 3), "no\x07"),
    ]
    root = ET.fromstring(junit_xml(results))  # noqa: S314 - our own output
    assert root.attrib == {"name": "advisor rules", "tests": "3", "failures": "2"}
    first, second = root.findall("testsuite")
    assert (first.get("name"), first.get("tests"), first.get("failures")) == (
        "rules/fit.yaml",
        "2",
        "1",
    )
    bad = first.findall("testcase")[1]
    assert (bad.get("name"), bad.get("line")) == ('says "<1>"', "12")
    failure = bad.find("failure")
    assert failure is not None
    assert failure.text == "it fires & more\nshort by 1 GiB"
    assert second.findall("testcase")[0].get("classname") == "scenario"


@pytest.fixture
def session(rules_copy: Path) -> Session:
    advisor = Advisor.load(rules=rules_copy)
    names = advisor.knowledge.names()
    folder = rules_copy / "scenarios"
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.yaml"):
        path.unlink()
    text = f"- scenario: phi\n  given: {MEDIUM}\n  expect: {{first: quantize}}\n"
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    scenarios = load_scenarios(folder, advisor.vocabulary, advisor.ruleset, names)
    return Session(Runner(advisor), scenarios, rules_copy, folder)


def test_an_edit_runs_the_cases_of_that_rule_and_the_scenarios(
    session: Session, rules_copy: Path
) -> None:
    edited(
        rules_copy, "notes.yaml", "memory.kv_share: at least 33 %", "memory.kv_share: at least 99 %"
    )
    concerned = session.reload()
    rules, scenarios = concerned.rules, concerned.scenarios
    ranked = {r.id for r in session.runner.advisor.ruleset.rules if any(c.rank for c in r.cases)}
    assert rules == {"cache-is-large"} | ranked
    assert [s.name for s in scenarios] == ["phi"]
    failed = [r for r in session.run(rules, scenarios) if not r.ok]
    assert [r.rule for r in failed] == ["cache-is-large"]
    assert any("short by" in line for line in failed[0].details)


def test_an_edit_reaches_the_rules_that_read_what_it_concludes(
    session: Session, rules_copy: Path
) -> None:
    old = session.runner.advisor.ruleset
    path = rules_copy / "fit.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("conclude: {fit.cause: buffers}", "conclude: {fit.cause: weights}"),
        encoding="utf-8",
    )
    session.reload()
    concerned = set(concerned_by_edit(old, session.runner.advisor.ruleset))
    assert "buffers-exceed-memory" in concerned
    path.write_text(
        text.replace("memory.deficit: at most 0 GiB", "memory.deficit: at most 1 GiB", 1),
        encoding="utf-8",
    )
    session.reload()
    concerned = set(concerned_by_edit(old, session.runner.advisor.ruleset))
    assert {"verdict-fits", "fit-is-tight", "quantize-to-fit"} <= concerned


def test_an_edited_scenario_runs_alone(session: Session) -> None:
    path = session.folder / "own.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("quantize", "cloud"), encoding="utf-8")
    concerned = session.reload()
    assert not concerned.rules
    assert [r.ok for r in session.run(concerned.rules, concerned.scenarios)] == [False]
    assert session.reload() == Concerned(scenarios=[])


def test_a_broken_file_leaves_the_session_as_it_was(session: Session, rules_copy: Path) -> None:
    edited(
        rules_copy, "notes.yaml", "memory.kv_share: at least 33 %", "memory.kv_shar: at least 33 %"
    )
    before = session.runner.advisor
    with pytest.raises(UserError, match="kv_shar"):
        session.reload()
    assert session.runner.advisor is before


def test_facts_are_not_worked_out_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    results = list(session.run(frozenset({"cache-is-large"}), session.scenarios))

    def never(*_: object) -> None:
        raise AssertionError("worked out twice")

    monkeypatch.setattr("advisor.workbench.expectations.prepare", never)
    assert list(session.run(frozenset({"cache-is-large"}), session.scenarios)) == results


def test_a_save_is_seen_by_time_and_size(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("x", encoding="utf-8")
    before = stamp([tmp_path])
    looks = 0

    def wait() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            path.write_text("longer", encoding="utf-8")

    after = until_changed([tmp_path], before, wait)
    assert looks == 3
    assert after != before
    path.unlink()
    assert stamp([tmp_path]) == {}


def test_scenario_files_are_no_rule_files(rules_copy: Path) -> None:
    folder = rules_copy / "scenarios"
    folder.mkdir(exist_ok=True)
    (folder / "x.yaml").write_text("not: rules\n", encoding="utf-8")
    assert Advisor.load(rules=rules_copy).ruleset.rules
    advisor = Advisor.load()
    with pytest.raises(RuleFileError):
        load_scenarios(folder, advisor.vocabulary, advisor.ruleset, {})


def test_accepting_writes_what_is_seen_and_leaves_the_rest(session: Session) -> None:
    path = session.folder / "own.yaml"
    path.write_text(
        "# A remark.\n"
        f"- scenario: right\n  given: {MEDIUM}\n  expect: {{first: quantize}}  # kept\n\n"
        f"- scenario: wrong\n  given: {MEDIUM}\n"
        "  expect:\n    verdict: fits\n    first: cloud\n    change: {gpus: 3}\n"
        "    actions: [cloud]\n    changes: {cloud: {gpus: 3}}\n    notes: []\n"
        "    fires: [fit-is-tight, quantize-to-fit]\n    silent: [quantize-to-fit]\n"
        "    facts: {fit.cause: buffers, headroom.class: ample, memory.deficit: above 1 GiB}\n\n"
        "# The end.\n",
        encoding="utf-8",
    )
    session.reload()
    assert [r.ok for r in session.run(frozenset(), session.scenarios)] == [True, False]
    assert session.accept() == 1
    session.reload()
    assert all(r.ok for r in session.run(frozenset(), session.scenarios))
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# A remark.\n- scenario: right\n")
    assert text.endswith("\n\n# The end.\n")
    assert "{first: quantize}  # kept" in text
    wrong = session.scenarios[1].expected
    assert (wrong.verdict, wrong.first) == ("needs_offload", "quantize")
    assert wrong.actions is not None
    assert list(wrong.changes) == list(wrong.actions)
    assert (wrong.fires, wrong.silent) == (("quantize-to-fit",), ())
    assert [(t.fact, t.text) for t in wrong.facts] == [
        ("fit.cause", "is weights"),
        ("memory.deficit", "above 1 GiB"),
    ]
    assert session.accept() == 0


def test_a_wrong_verdict_is_explained_by_the_rules_that_give_the_right_one(
    advisor: Advisor, tmp_path: Path
) -> None:
    result = run(advisor, tmp_path, "{verdict: fits}")
    assert result.details
    assert all(line.startswith("verdict-fits: ") for line in result.details)
    assert "short by 3.8 GiB" in result.details[0]
