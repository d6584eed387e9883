"""Files of one's own on the command line: the starter, advisor.toml, and who said what."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from advisor.cli.init import remember, starter_files
from advisor.cli.user_settings import digest_of, name_of, user_settings
from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]
FEW = ("--sample", "100")
SHARED = {"gpu": "Example 48 GB card", "model": "phi-3-medium", "precision": "FP16"}
RULES = """\
- disable: tune-a-smaller-model
  reason: We do not train models.

- rule: our-quantize
  replaces: quantize-to-fit
  why: More loss is fine for us.
  source: our own judgement
  when:
    fit.state: one of needs_offload, too_big
    option.family: is quantize
    option.fits: is yes
    option.quality_loss: at most 15 %
  recommend:
    action: quantize
    score: {base: 95, add: [{per: option.quality_cost, points: -2 per %}]}
    text: quantize.md.j2
  cases:
    - {name: a, given: {gpu: RTX 4090, model: phi-3-medium}, expect: fires}
    - {name: b, given: {gpu: RTX 4090, model: phi-3-mini}, expect: silent}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter, with two rules more."""
    from advisor.cli.init import write_starter  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("init") / "our house"
    write_starter(folder)
    (folder / "rules" / "more.yaml").write_text(RULES, encoding="utf-8")
    return folder


@pytest.fixture
def inside(house: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(house)
    monkeypatch.delenv("ADVISOR_CONFIG", raising=False)
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(house.parent / "data"))
    remember({name_of(house): digest_of((house / "advisor.toml").read_bytes())})
    return house


def done(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    return outcome


def test_init_writes_everything_and_says_what_next(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "house"
    out = done(run(capsys, "init", str(folder))).out
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found == set(starter_files())
    assert f"wrote {len(found)} files" in out
    assert f"cd '{folder}'" in out
    for name in (
        *found,
        "advisor trust",
        "advisor rules check",
        "advisor rules test",
        "advisor.toml",
    ):
        assert name in out
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") < 40
    settings = json.loads((folder / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    assert settings["yaml.schemas"] == {"./rules.schema.json": ["rules/*.yaml"]}
    assert (folder / "rules.schema.json").is_file()
    extensions = json.loads((folder / ".vscode" / "extensions.json").read_text(encoding="utf-8"))
    assert extensions["recommendations"] == ["redhat.vscode-yaml"]


def test_init_leaves_other_files_and_never_replaces_one(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    refused = run(capsys, "init", str(tmp_path))
    assert refused.code == 1
    assert "has README.md already, and nothing was written" in refused.err
    assert {p.name for p in tmp_path.iterdir()} == {"notes.txt", "README.md"}
    (tmp_path / "README.md").unlink()
    done(run(capsys, "init", str(tmp_path)))
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert run(capsys, "init", str(tmp_path)).code == 1
    assert run(capsys, "init", str(tmp_path / "notes.txt")).code == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_init_leaves_nothing_where_it_cannot_write(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules").chmod(0o500)
    assert run(capsys, "init", str(tmp_path)).code == 1
    (tmp_path / "rules").chmod(0o700)
    assert [p.name for p in tmp_path.rglob("*")] == ["rules"]


def test_half_a_starter_is_taken_away_again(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, calls = Path.rename, []

    def failing(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    refused = run(capsys, "init", str(tmp_path / "house"))
    assert "No space left on device; nothing was written" in refused.err
    assert not list(tmp_path.iterdir())


def test_the_starter_passes_its_own_checks(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISOR_DATA_DIR", str(tmp_path / "data"))
    done(run(capsys, "init", "."))
    done(run(capsys, "trust"))
    assert "no problem found\nyours: 1 added\n" in done(run(capsys, "rules", "check", *FEW)).out
    assert "no problem found\nyours: 1 added\n" in done(run(capsys, "knowledge", "check")).out
    tested = done(run(capsys, "rules", "test", "--rule", "example-card-is-shared"))
    assert tested.out == "2 of 2 cases hold\n"


def test_the_starter_passes_rules_test(capsys: Capture, inside: Path, few_cases: None) -> None:
    (inside / "rules" / "more.yaml").rename(inside / "more.away")
    try:
        out = done(run(capsys, "rules", "test")).out
    finally:
        (inside / "more.away").rename(inside / "rules" / "more.yaml")
    assert "1 of 1 scenarios hold" in out


def test_the_example_changes_a_report(capsys: Capture, inside: Path) -> None:
    out = done(advise(capsys, **SHARED)).out
    assert "is shared: book it before a run" in out
    assert "rule example-card-is-shared (rules/house.yaml:8)" in " ".join(out.split())
    assert inside.is_dir()


def test_every_command_takes_the_folders_of_advisor_toml(
    capsys: Capture, inside: Path, tmp_path: Path
) -> None:
    card = SHARED["gpu"]
    found = done(run(capsys, "knowledge", "find", "example 48"))
    assert f"{card}" in found.out
    assert "yours: knowledge/gpus/house.yaml:4" in found.out
    assert card in done(run(capsys, "models-for", "--gpu", card, "--limit", "1")).out
    lines = tmp_path / "requests.jsonl"
    lines.write_text(json.dumps({"id": 1, **SHARED}) + "\n", encoding="utf-8")
    assert json.loads(done(run(capsys, "estimate", str(lines))).out)["error"] is None
    out = tmp_path / "out"
    done(run(capsys, "batch", str(lines), "--out", str(out), "--workers", "1"))
    page = next(p for p in out.rglob("*.md") if "Example" in p.read_text(encoding="utf-8"))
    assert "Yours: rule example-card-is-shared" in page.read_text(encoding="utf-8")
    assert inside.is_dir()


def test_an_option_comes_before_advisor_toml(
    capsys: Capture, inside: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(inside / "knowledge", tmp_path / "other")
    text = (tmp_path / "other" / "gpus" / "house.yaml").read_text(encoding="utf-8")
    other = text.replace("Example 48 GB card", "Other card")
    (tmp_path / "other" / "gpus" / "house.yaml").write_text(other, encoding="utf-8")
    named = ("--knowledge", str(tmp_path / "other"))
    assert "Other card" in done(run(capsys, "knowledge", "find", "other card", *named)).out
    assert "added" in done(run(capsys, "knowledge", "check", *named)).out
    monkeypatch.setenv("ADVISOR_CONFIG", "")
    assert run(capsys, "knowledge", "find", "example 48").code == 1
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISOR_CONFIG", str(inside / "advisor.toml"))
    assert "Example" in done(run(capsys, "knowledge", "find", "example 48")).out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rule = "rules"', "advisor.toml:1: unknown key 'rule'. Did you mean 'rules'?"),
        ('rules = "nowhere"', "advisor.toml:1: 'rules' names no folder: 'nowhere'."),
        ("rules = 3", "advisor.toml:1: 'rules' names no folder: 3."),
        ("rules = ", "advisor.toml: not TOML: "),
    ],
)
def test_a_wrong_advisor_toml_is_refused(
    text: str, message: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "advisor.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("ADVISOR_CONFIG", str(tmp_path / "advisor.toml"))
    outcome = run(capsys, "knowledge", "find", "4090")
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: {message}")


def test_a_config_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_CONFIG", "nowhere.toml")
    with pytest.raises(Exception, match="which is no file"):
        user_settings()


def test_a_report_says_which_rules_are_the_users(capsys: Capture, inside: Path) -> None:
    given = {"model": "phi-3-medium", "precision": "FP16"}
    doc = json.loads(done(advise(capsys, "--format", "json", **given)).out)
    (first,) = [r for r in doc["recommendations"] if r["action"] == "quantize"]
    assert first["rule"] == "our-quantize"
    assert first["yours"]["at"] == "rules/more.yaml:4"
    assert first["yours"]["replaces"] == "quantize-to-fit"
    assert first["yours"]["replaces_at"].startswith("rules/recommend-format.yaml:")
    assert [r["yours"] for r in doc["recommendations"] if r is not first] == (
        [None] * (len(doc["recommendations"]) - 1)
    )
    assert doc["provenance"]["switched_off"] == [
        {"rule": "tune-a-smaller-model", "at": "rules/more.yaml:1",
         "reason": "We do not train models."},
    ]  # fmt: skip
    for form in ("text", "markdown", "html"):
        text = " ".join(done(advise(capsys, "--format", form, **given)).out.split())
        assert "Yours: rules/more.yaml:4, replaces the built-in quantize-to-fit" in text, form
        assert "Switched off: tune-a-smaller-model (rules/more.yaml:1: We do not train" in text
    why = done(advise(capsys, "--why", **given)).out
    assert "our-quantize for 13 options (yours: rules/more.yaml:4, replaces the built-in" in why
    assert "Switched off by your rules\n  tune-a-smaller-model (rules/more.yaml:1)" in why
    assert inside.is_dir()


def test_a_report_without_own_files_says_nothing_of_them(capsys: Capture) -> None:
    doc = json.loads(done(advise(capsys, "--format", "json")).out)
    assert doc["provenance"]["yours"] == doc["provenance"]["switched_off"] == []
    assert all(r["yours"] is None for r in (*doc["recommendations"], *doc["notes"]))
    assert "Yours" not in done(advise(capsys, "--length", "full")).out


def test_explain_and_facts_say_it_too(capsys: Capture, inside: Path) -> None:
    given = ("--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "fp16")
    own = done(run(capsys, "rules", "explain", "our-quantize", *given)).out
    assert "\n  yours: rules/more.yaml:4, replaces the built-in quantize-to-fit (" in own
    off = done(run(capsys, "rules", "explain", "tune-a-smaller-model", *given)).out
    assert "It never fires, switched off by yours: rules/more.yaml:1: We do not train" in off
    assert "  holds  fit.state is needs_offload" in off
    old = run(capsys, "rules", "explain", "quantize-to-fit", *given)
    assert (old.code, "'quantize-to-fit' is replaced by your 'our-quantize'" in old.err) == (
        1,
        True,
    )
    facts = done(run(capsys, "rules", "facts", "fit.gap")).out
    assert "tune-a-smaller-model" in facts
    assert "(switched off by yours: rules/more.yaml:1: We do not train models.)" in facts
    use = json.loads(done(run(capsys, "rules", "facts", "fit.state", "--format", "json")).out)
    by_rule = {entry["rule"]: entry for entry in use["read_by"]}
    assert by_rule["our-quantize"]["yours"].startswith("yours: rules/more.yaml:4")
    assert by_rule["tune-a-smaller-model"]["switched_off"]
    tested = run(capsys, "rules", "test", "--rule", "tune-a-smaller-model")
    assert "is switched off by yours" in tested.err
    assert inside.is_dir()


def test_a_failing_case_of_a_built_in_rule_says_so(
    capsys: Capture, inside: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    strong = RULES.partition("\n\n")[2].replace("base: 80", "base: 100")
    more = strong.replace("our-quantize", "our-own").replace("  replaces: quantize-to-fit\n", "")
    (rules / "mine.yaml").write_text(more, encoding="utf-8")
    outcome = run(capsys, "rules", "test", str(rules), "--rule", "quantize-to-fit")
    assert outcome.code == 1
    assert "the case is of a built-in rule, which rules of yours stand beside" in outcome.out
    assert inside.is_dir()
