"""``--rules company --rules team``: layers on the command line, in advisor.toml, in reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.bulk.batch.manifest import open_batch
from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]
RULE = """\
- rule: {name}
  why: So that something is ours.
  source: us
  when: {{fit.state: is fits}}
  note: {{text: {name}.md.j2}}
  cases:
    - {{name: a, given: {{gpu: RTX 4090, model: phi-3-mini}}, expect: fires}}
    - {{name: b, given: {{gpu: RTX 4090, model: llama-3.1-70b}}, expect: silent}}
"""
CARD = "- {gpu: GeForce RTX 4090, based_on: GeForce RTX 4090, %s, source: ours}\n"
SOURCE = "- {id: ours, what: Our books., kind: background, as_of: 2026-11}\n"
SCENARIO = """\
- scenario: Phi-3 Mini on an RTX 4090
  given: {gpu: RTX 4090, model: phi-3-mini}
  verdict: fits
"""
COMPANY = {
    "rules/mine.yaml": RULE.format(name="company-note"),
    "templates/notes/company-note.md.j2": "The company says hello to {{ gpu.name }}.\n",
    "templates/words.txt": "line.confidence.high = sure, says the company\n"
    "line.confidence.low = unsure, says the company\n",
    "knowledge/gpus/mine.yaml": CARD % "tdp: 400 W",
    "knowledge/sources-mine.yaml": SOURCE,
}
TEAM = {
    "rules/mine.yaml": RULE.format(name="team-note"),
    "templates/notes/company-note.md.j2": "The team says hello to {{ gpu.name }}.\n",
    "templates/notes/team-note.md.j2": "The team has {{ gpu.tdp }}.\n",
    "templates/words.txt": "line.confidence.high = sure, says the team\n",
    "knowledge/gpus/mine.yaml": CARD % "launch_price: 1500 USD",
    "knowledge/sources-mine.yaml": SOURCE,
}
GPU, MINE, HELLO = "GeForce RTX 4090", "knowledge/gpus/mine.yaml", "notes/company-note.md.j2"
KINDS = ("rules", "templates", "knowledge")


@pytest.fixture
def houses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, files in (("company", COMPANY), ("team", TEAM)):
        for path, text in files.items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


def named(*houses: str, kinds: tuple[str, ...] = KINDS) -> list[str]:
    return [part for kind in kinds for house in houses for part in (f"--{kind}", f"{house}/{kind}")]


BOTH = named("company", "team")


def done(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err + outcome.out
    return outcome


NAMED = f"""\
rule company-note (company/rules/mine.yaml:1)
rule team-note (team/rules/mine.yaml:1)
card {GPU} (team/{MINE}:1, replaces company/{MINE}:1, own: launch_price; the rest from {GPU})
template {HELLO} (team/templates/{HELLO}, replaces company/templates/{HELLO})
words words.txt (company/templates/words.txt, replaces the built-in one)
words words.txt (team/templates/words.txt, replaces the built-in one)
""".splitlines()


def test_a_report_is_made_of_all_layers_and_names_each(capsys: Capture, houses: Path) -> None:
    asked = {"model": "phi-3-mini", "precision": "FP16"}
    out = " ".join(done(advise(capsys, *BOTH, "--length", "full", **asked)).out.split())
    assert "The team says hello to GeForce RTX 4090." in out
    assert "The company says hello" not in out
    assert "The team has 400 W." in out
    assert all(said in out for said in NAMED)
    doc = json.loads(done(advise(capsys, *BOTH, "--format", "json", **asked)).out)
    found = {(entry["what"], entry["at"]) for entry in doc["provenance"]["yours"]}
    assert ("rule", "team/rules/mine.yaml:1") in found
    assert ("gpu", "team/knowledge/gpus/mine.yaml:1") in found


def test_a_layer_alone_is_called_as_ever(capsys: Capture, houses: Path) -> None:
    out = done(advise(capsys, *named("company"), model="phi-3-mini", precision="FP16")).out
    assert "rule company-note (rules/mine.yaml:1)" in " ".join(out.split())


def test_every_hash_covers_every_layer_and_their_order(capsys: Capture, houses: Path) -> None:
    def hashes(*order: str) -> list[str]:
        out = done(advise(capsys, *named(*order), "--format", "json", model="phi-3-mini")).out
        made = json.loads(out)["provenance"]
        return [made[f"{kind}_sha256"] for kind in KINDS]

    both, turned, one = hashes("company", "team"), hashes("team", "company"), hashes("team")
    assert all(len({*three}) == 3 for three in zip(both, turned, one, strict=True))
    words = houses / "company" / "templates" / "words.txt"
    words.write_text("line.confidence.low = quite unsure\n", encoding="utf-8")
    changed = hashes("company", "team")
    assert [a == b for a, b in zip(both, changed, strict=True)] == [True, False, True]


def test_a_folder_is_named_once(capsys: Capture, houses: Path) -> None:
    twice = ("--rules", "team/rules", "--rules", "company/../team/rules")
    outcome = advise(capsys, *twice)
    assert outcome.code == 1
    assert outcome.err.startswith("error: the folder 'company/../team/rules' is named twice")


LISTS = "".join(f'{kind} = ["company/{kind}", "team/{kind}"]\n' for kind in KINDS)


def test_lists_in_advisor_toml(capsys: Capture, houses: Path) -> None:
    (houses / "advisor.toml").write_text(LISTS, encoding="utf-8")
    trusted = done(run(capsys, "trust")).out
    assert [line.strip() for line in trusted.splitlines()[1:]] == [
        f"{kind}: {houses}/{house}/{kind}" for kind in KINDS for house in ("company", "team")
    ]
    assert "yours: 2 added" in done(run(capsys, "rules", "check", "--quick")).out
    assert "templates: no problem found" in run(capsys, "templates", "check").out
    found = done(run(capsys, "knowledge", "find", "rtx 4090")).out
    assert "team/knowledge/gpus/mine.yaml:1, replaces GeForce RTX 4090 (company/" in found
    tested = done(run(capsys, "rules", "test", "-r", "team-note", "-r", "company-note"))
    assert tested.out == "4 of 4 cases hold\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rules = ["company/rules", "nowhere"]', "'rules' names no folder: 'nowhere'."),
        ('rules = ["company/rules", 3]', "'rules' names no folder: 3."),
        ("rules = []", "'rules' names no folder: []."),
        ('rules = ["team/rules", "./team/rules"]', "'rules' names 'rules' twice."),
    ],
)
def test_a_wrong_list_is_refused(
    text: str, message: str, capsys: Capture, houses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (houses / "advisor.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("ADVISOR_CONFIG", str(houses / "advisor.toml"))
    outcome = run(capsys, "knowledge", "find", "4090")
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: advisor.toml:1: {message}")


def test_a_batch_and_its_audit_hold_with_layers(capsys: Capture, houses: Path) -> None:
    (houses / "plan.jsonl").write_text('{"gpu": "RTX 4090", "model": "phi-3-mini"}\n')
    asked = ("--out", "out", "--workers", "1", "--formats", "markdown,jsonl")
    done(run(capsys, "batch", "plan.jsonl", *asked, *BOTH))
    inputs = open_batch(houses / "out").manifest["inputs"]
    assert {"company/rules/mine.yaml", "team/templates/notes/team-note.md.j2"} <= inputs.keys()
    done(run(capsys, "audit", "out", "--workers", "1", *BOTH))
    other = run(capsys, "audit", "out", "--workers", "1", *named("team", "company"))
    assert other.code == 1
    assert "the rules" in other.out


def test_mistakes_name_the_layer_they_stand_in(capsys: Capture, houses: Path) -> None:
    for house in ("company", "team"):
        rules = houses / house / "rules"
        text = (rules / "mine.yaml").read_text(encoding="utf-8").replace("is fits", "is fitz")
        (rules / "mine.yaml").write_text(text, encoding="utf-8")
    (houses / "team" / "rules" / "scenarios").mkdir()
    wrong = SCENARIO.replace("RTX 4090}", "RTX 40900}")
    (houses / "team" / "rules" / "scenarios" / "all.yaml").write_text(wrong, encoding="utf-8")
    (houses / "company" / "templates" / "words.txt").write_text("line.confidenc.high = x\n")
    found = run(capsys, "check", *BOTH, "--sample", "0").out
    for place in (
        "company/rules/mine.yaml:4:",
        "team/rules/mine.yaml:4:",
        "company/templates/words.txt:1:",
    ):
        assert f"\n{place}" in f"\n{found}"
    fixed = run(
        capsys,
        "rules",
        "check",
        "--quick",
        "--fix",
        *named("company", "team", kinds=("rules", "templates")),
    )
    assert "2 mistakes in 2 files corrected" in fixed.err
    assert "is fits" in (houses / "company" / "rules" / "mine.yaml").read_text(encoding="utf-8")
