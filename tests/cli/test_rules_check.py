"""``advisor rules check`` and ``format`` as people, editors and CI run them."""

import json
from pathlib import Path

import pytest

from advisor.workbench.lint.problem import LINTS
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]

RULE = """\
- rule: my-card
  why: Heat slows the card down.
  source: board makers
  when:
    gpu.tdp: above 300 W
    gpu.segment: is consumer
  note: Mind the airflow near this card.
  cases:
    - {name: hot, given: {gpu: RTX 4090, model: phi-3-mini}, expect: fires}
    - {name: cool, given: {gpu: RTX 4060, model: phi-3-mini}, expect: silent}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of rules, as seen from the one above it."""
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    return Path("mine")


def put(folder: Path, text: str, name: str = "a.yaml") -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_good_rules_pass_and_say_on_how_much_they_were_tried(folder: Path, capsys: Capture) -> None:
    put(folder, RULE)
    outcome = run(capsys, "rules", "check", "mine", "--sample", "0")
    assert outcome.code == 0, outcome.out
    assert (
        outcome.out == "1 rule in 1 file, tried on 2 scenarios: no problem found\nyours: 1 added\n"
    )


def test_paths_are_as_typed_and_all_files_are_reported(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("300 W", "300"))
    put(folder, RULE.replace("my-card", "other").replace("gpu.tdp", "gpu.tpd"), "b.yaml")
    put(folder, "- scenario: s\n  given: {gpu: RTX 4090}\n  expct: {}\n", "scenarios/s.yaml")
    outcome = run(capsys, "rules", "check", "mine")
    assert outcome.code == 1
    assert [line.split(" ")[0] for line in outcome.out.splitlines()[:-2]] == [
        "mine/a.yaml:5:14:",
        "mine/b.yaml:5:5:",
        "mine/scenarios/s.yaml:1:3:",
        "mine/scenarios/s.yaml:3:3:",
    ]
    assert outcome.out.splitlines()[-2:] == [
        "4 errors",
        "--diff shows how 2 of them can be corrected, --fix does it",
    ]


def test_an_absolute_path_below_here_is_shown_as_it_is_from_here(
    folder: Path, capsys: Capture
) -> None:
    put(folder, RULE.replace("300 W", "300"))
    outcome = run(capsys, "rules", "check", str(folder.resolve()), "--quick")
    assert outcome.out.startswith("mine/a.yaml:5:14: ")


def test_other_commands_name_the_path_too(folder: Path, capsys: Capture) -> None:
    put(folder / "deep", RULE.replace("300 W", "300"))
    outcome = run(capsys, "rules", "test", "mine/deep")
    assert outcome.err.startswith("error: mine/deep/a.yaml:5:14: ")


def test_one_file_can_be_named(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("300 W", "300"))
    put(folder, RULE.replace("my-card", "other").replace("gpu.tdp", "gpu.tpd"), "b.yaml")
    outcome = run(capsys, "rules", "check", "mine/b.yaml", "--quick")
    assert outcome.out.count("mine/b.yaml:") == 1
    assert "mine/a.yaml" not in outcome.out
    assert "not tried: 1 error in files that were not named" in outcome.out
    put(folder, RULE.replace("my-card", "other"), "b.yaml")
    outcome = run(capsys, "rules", "check", "mine/b.yaml", "--quick")
    assert outcome.code == 1, "what is named is right, and still cannot be loaded"


def test_a_warning_does_not_fail_unless_strict(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("is consumer", "one of consumer"))
    outcome = run(capsys, "rules", "check", "mine", "--quick")
    assert outcome.code == 0
    assert "mine/a.yaml:6:18: warning: 'one of consumer' lists one name." in outcome.out
    assert run(capsys, "rules", "check", "mine", "--quick", "--strict").code == 1


def test_a_case_that_fails_says_what_was_missing(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("300 W", "500 W"))
    outcome = run(capsys, "rules", "check", "mine", "--sample", "0")
    assert outcome.code == 1
    assert (
        "mine/a.yaml:9:7: case 'hot' of rule 'my-card': it stays silent: gpu.tdp is 450 W "
        "(needed: above 500 W, short by 50 W). Correct the rule or the case. [case-does-not-match]"
    ) in outcome.out


def test_rules_are_compared_with_the_built_in_ones(folder: Path, capsys: Capture) -> None:
    put(
        folder,
        RULE.replace(
            "  note: Mind the airflow near this card.", "  conclude: {cooling.class: warm}"
        ),
    )
    outcome = run(capsys, "rules", "check", "mine", "--sample", "0")
    assert outcome.code == 1
    assert "[contradictory-conclude]" in outcome.out


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["mine"], "mine holds no rule file"),
        (["nowhere"], "there is no file or folder 'nowhere'"),
        (["mine/a.txt"], "mine/a.txt is no rule file"),
    ],
)
def test_nothing_to_check_is_an_error(
    folder: Path, capsys: Capture, paths: list[str], said: str
) -> None:
    put(folder, "text", "a.txt")
    for command in ("check", "format"):
        outcome = run(capsys, "rules", command, *paths)
        assert outcome.code == 1
        assert said in outcome.err


def test_scenarios_alone_are_no_rules(folder: Path, capsys: Capture) -> None:
    put(folder, "[]\n", "scenarios/s.yaml")
    assert run(capsys, "rules", "check", "mine").code == 1


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_machine_formats_are_nothing_but_json(folder: Path, capsys: Capture, form: str) -> None:
    put(folder, RULE.replace("300 W", "300"))
    outcome = run(capsys, "rules", "check", "mine", "--format", form)
    assert outcome.code == 1
    assert "missing-unit" in json.dumps(json.loads(outcome.out))
    put(folder, RULE)
    outcome = run(capsys, "rules", "check", "mine", "--quick", "--format", form)
    assert outcome.code == 0
    json.loads(outcome.out)


def test_annotations(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("300 W", "300"))
    outcome = run(capsys, "rules", "check", "mine", "--format", "github")
    assert outcome.out.startswith(
        "::error file=mine/a.yaml,line=5,col=14,title=missing-unit::'300' "
    )


def test_diff_writes_nothing_and_fix_what_diff_shows(folder: Path, capsys: Capture) -> None:
    bad = RULE.replace("above 300", "over 300")
    put(folder, bad)
    shown = run(capsys, "rules", "check", "mine", "--diff", "--quick")
    assert shown.code == 1
    assert "-    gpu.tdp: over 300 W\n+    gpu.tdp: above 300 W\n" in shown.out
    assert (folder / "a.yaml").read_text(encoding="utf-8") == bad
    done = run(capsys, "rules", "check", "mine", "--fix", "--quick")
    assert done.code == 0
    assert shown.out in done.err
    assert "mine/a.yaml:5: 'over' becomes 'above'\n" in done.err
    assert (folder / "a.yaml").read_text(encoding="utf-8") == RULE


def test_a_page_can_be_printed(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "check", "--explain", "missing-unit")
    assert outcome.code == 0
    assert outcome.out.startswith("# missing-unit\n")


def test_an_unknown_page_is_guessed(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "check", "--explain", "mising-unit")
    assert outcome.code == 1
    assert "'missing-unit'" in outcome.err


def test_every_kind_can_be_explained(capsys: Capture) -> None:
    for lint in LINTS:
        assert run(capsys, "rules", "check", "--explain", lint).out.startswith(f"# {lint}\n")


def test_format_check_and_diff_write_nothing(folder: Path, capsys: Capture) -> None:
    odd = RULE.replace("  note:", "  note:   ")
    put(folder, odd)
    outcome = run(capsys, "rules", "format", "mine", "--check")
    assert outcome.code == 1
    assert outcome.out == "would reformat mine/a.yaml\n1 file would change, 0 unchanged\n"
    outcome = run(capsys, "rules", "format", "mine/a.yaml", "--diff")
    assert outcome.code == 0
    assert "+  note: Mind" in outcome.out
    assert (folder / "a.yaml").read_text(encoding="utf-8") == odd


def test_format_writes_what_it_can_and_names_the_rest(folder: Path, capsys: Capture) -> None:
    put(folder, RULE.replace("  note:", "  note:   "))
    put(folder, "- rule: x\n\twhy: y\n", "tab.yaml")
    outcome = run(capsys, "rules", "format", "mine")
    assert outcome.code == 1
    assert outcome.out == "1 file reformatted, 0 unchanged\n"
    assert outcome.err == ("error: mine/tab.yaml:2:1: a tab is used for indentation. Use spaces.\n")
    assert (folder / "a.yaml").read_text(encoding="utf-8") == RULE


def test_scenario_files_are_left_to_accept(folder: Path, capsys: Capture) -> None:
    put(folder, RULE)
    put(folder, "-   scenario:   s\n", "scenarios/s.yaml")
    outcome = run(capsys, "rules", "format", "mine", "--check")
    assert outcome.out == "0 files would change, 1 unchanged\n"


def test_a_situation_without_a_verdict_is_an_error(folder: Path, capsys: Capture) -> None:
    put(folder, "- disable: verdict-fits\n  reason: Tried out.\n")
    outcome = run(capsys, "rules", "check", "mine", "--sample", "60")
    assert outcome.code == 1
    assert "mine/a.yaml:1:3: no rule concludes fit.state in " in outcome.out
    assert "[no-verdict]" in outcome.out
