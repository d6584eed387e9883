"""One kind of mistake hides no other: everything wrong is found in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
RULES = """\
- rule: doubled
  why: x
  why: y
  source: me
  when:
    gpu.tpd: above 300 W
    gpu.vram: above 20
  note: Hi {there}
  cases:
    - {name: c, given: {gpu: RTX 4090, model: phi-9-mini}, expect: fires}
    - {name: d, given: {gpu: RTX 4060, model: phi-3-mini, context: -5}, expect: silent}
- ladder: heat
  why: heat
  source: me
  over: gpu.tdp
  conclude: cooling.class
  rows:
    - {to: 150 W, value: easyy}
    - {from: 200 W, value: hot}
  cases:
    - {name: x, given: {gpu: RTX 4090, model: phi-3-mini}, expect: hot}
- rule: open
  why: [x
  when: {gpu.tdp: above 3 W}
- rule: after
  why: fine
  when: {gpu.nam: is x}
- rule: about-mine
  why: good
  source: me
  when: {gpu.tdp: above 300 W, gpu.name: is My 99, my.fact: above 3 GB}
  note: Hi
  cases:
    - {name: c, given: {gpu: My 99, model: phi-3-mini}, expect: fires}
    - {name: d, given: {gpu: RTX 4060, model: phi-3-mini, precision: Q9}, expect: silent}
"""
CARD = "- gpu: My 99\n  vram: 10\n  vendor: nvdia\n"
FACTS = "- fact: my.fact\n  unit: GiBs\n  from: knowledge\n  help: x\n"
SCENARIO = """\
- scenario: one
  given: {gpu: RTX 4090, model: phi-99}
  expect: {verdict: fits}
- scenario: two
  given: {gpu: RTX 4090, model: phi-3-mini}
  expect: {fires: [heat-hot, no-such-rule]}
"""
WANTED = (
    "knowledge/facts.yaml:2:3: unknown unit 'GiBs'",
    "knowledge/gpus/my.yaml:2:9: gpu 'My 99': 'vram' is a number without a unit",
    "knowledge/gpus/my.yaml:3:11: gpu 'My 99': 'nvdia' is not a valid 'vendor'",
    "rules/bad.yaml:1:3: nothing fills '{there}' in a note",
    "rules/bad.yaml:3:3: key 'why' stands twice",
    "rules/bad.yaml:6:5: unknown fact 'gpu.tpd'",
    "rules/bad.yaml:7:15: '20' has no unit",
    "rules/bad.yaml:10:7: case 'c' of rule 'doubled': its input is refused: unknown model",
    "rules/bad.yaml:11:7: case 'd' of rule 'doubled': its input is refused: context is -5",
    "rules/bad.yaml:17:3: no row covers gpu.tdp from 150 W to 200 W",
    "rules/bad.yaml:18:26: 'easyy' is not a value of cooling.class",
    "rules/bad.yaml:23:8: not YAML: a list that begins",
    "rules/bad.yaml:27:10: unknown fact 'gpu.nam'",
    "rules/bad.yaml:35:7: case 'd' of rule 'about-mine': its input is refused: unknown weight",
    "rules/scenarios/s.yaml:1:3: scenario 'one': its input is refused: unknown model 'phi-99'",
    "rules/scenarios/s.yaml:6:12: unknown rule 'no-such-rule'",
)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {
        "rules/bad.yaml": RULES,
        "rules/scenarios/s.yaml": SCENARIO,
        "knowledge/facts.yaml": FACTS,
        "knowledge/gpus/my.yaml": CARD,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("house")
def test_rules_check_finds_all_of_it(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "check", "rules", "--knowledge", "knowledge")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert [want for want in WANTED if not any(line.startswith(want) for line in lines)] == []
    assert not any("'My 99' is not a name" in line or "my.fact'" in line for line in lines)
    assert "Traceback" not in outcome.out + outcome.err


@pytest.mark.usefixtures("house")
def test_advise_names_rules_and_knowledge_at_once(capsys: Capture) -> None:
    given = ("--gpu", "RTX 4090", "--model", "phi-3-mini")
    own = ("--rules", "rules", "--knowledge", "knowledge")
    outcome = run(capsys, "advise", *given, *own)
    assert outcome.code == 1
    assert "knowledge/gpus/my.yaml:2:9" in outcome.err
    assert "rules/bad.yaml:6:5: unknown fact 'gpu.tpd'" in outcome.err


@pytest.mark.usefixtures("house")
def test_fix_counts_what_it_has_corrected(capsys: Capture) -> None:
    flags = ("rules", "--knowledge", "knowledge", "--quick")
    foretold = run(capsys, "rules", "check", *flags).out
    assert "--diff shows how 3 of them can be corrected" in foretold
    before = Path("rules/bad.yaml").read_text(encoding="utf-8").splitlines()
    outcome = run(capsys, "rules", "check", *flags, "--fix")
    assert "3 mistakes in 1 file corrected" in outcome.err
    after = Path("rules/bad.yaml").read_text(encoding="utf-8").splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 3
    assert "can be corrected" not in outcome.out


def test_a_broken_replacement_lets_no_built_in_rule_look_wrong(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "mine").mkdir()
    text = "- ladder: gaps\n  replaces: fit-gap\n  why: x\n  source: y\n"
    (tmp_path / "mine" / "own.yaml").write_text(text, encoding="utf-8")
    out = run(capsys, "rules", "check", str(tmp_path / "mine"), "--quick").out
    assert "mine/own.yaml:1:3: the key 'rows' is missing." in out
    assert "no rule concludes" not in out


def test_a_name_that_no_entry_has_is_unknown_whatever_is_wrong_with_the_knowledge(
    house: Path, capsys: Capture
) -> None:
    path = house / "rules" / "bad.yaml"
    text = path.read_text(encoding="utf-8").replace("is My 99", "is My 9")
    path.write_text(text, encoding="utf-8")
    out = run(capsys, "rules", "check", "rules", "--knowledge", "knowledge").out
    assert "'My 9' is not a name of gpu.name. Did you mean 'My 99'" in out
