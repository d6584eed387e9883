"""``advisor check``: green means that every report comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.advice.preparation import prepare
from advisor.cli.init import write_starter
from advisor.errors import UserError
from advisor.estimator.speed_fields import SITUATIONS
from advisor.files import data_dir
from advisor.report import FORMATS, Page
from advisor.report.assembly import document
from advisor.report.templates import forget_templates
from advisor.scenario.settings import request_from
from advisor.workbench.house import LENGTHS, House, Looked, check_house
from tests.cli.running import run

ACTION = "templates/actions/quantize.md.j2"
NOTE = "templates/notes/example-card.md.j2"
WORDS = "templates/words.txt"
FACTS = "knowledge/facts.yaml"
RULES = "rules/house.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_starter(tmp_path / "house")
    forget_templates()  # kept by path, and every test has the same one
    return Path("house")


def changed(folder: Path, files: Mapping[str, str]) -> House:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return House(folder / "rules", folder / "templates", folder / "knowledge")


def places(looked: Looked) -> list[str]:
    return [str(found.source) for found in looked.problems]


FACT = "- fact: {0}\n  {1}\n  from: {2}\n  help: x\n"
BROKEN = {
    "house/templates/actions/quantize.md.j2:1:10": {ACTION: "# Use {{ option_fromat }}\nText.\n"},
    "house/templates/notes/example-card.md.j2:1:11": {NOTE: "It has {{ gpu.vramm }}.\n"},
    "house/templates/stray.j2:1:1": {"templates/stray.j2": "Nobody reads it.\n"},
    "house/templates/words.txt:2:1": {WORDS: "# mine\nno.such.name = x\n"},
    "house/knowledge/facts.yaml:1:3": {FACTS: FACT.format("gpu.name", "unit: GiB", "rules")},
    "house/knowledge/facts.yaml:2:3": {FACTS: FACT.format("my.own", "unit: Gib", "rules")},
    "house/knowledge/policy-mine.yaml:1:3": {"knowledge/policy-mine.yaml": "- policy: x\n"},
    "house/knowledge/policy.yaml:1:1": {"knowledge/policy.yaml": "- policy: x\n"},
    "house/knowledge/boards.yaml:1:3": {"knowledge/boards.yaml": "- board: LiveBench\n"},
    "house/knowledge/calibration.yaml": {"knowledge/calibration.yaml": "a: 1\n"},
    "house/rules/more.yaml:1:3": {"rules/more.yaml": "- rule: Bad Name\n"},
    "house/rules/stray.yml": {"rules/stray.yml": "- rule: x\n"},
}


@pytest.mark.parametrize("place", BROKEN)
def test_each_part_of_a_house_is_read(folder: Path, place: str) -> None:
    looked = check_house(changed(folder, BROKEN[place]))
    assert place in places(looked)
    assert looked.reports == 0
    assert all(found.message for found in looked.problems)


def test_everything_is_told_in_one_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every: dict[str, str] = {}
    for files in BROKEN.values():
        every |= files
    changed(folder, every)
    outcome = run(capsys, "check", "house", "--sample", "0")
    assert outcome.code == 1
    out = outcome.out
    for place in BROKEN.keys() - {"house/knowledge/facts.yaml:1:3"}:
        assert f"{place}: " in out
    assert "no report was written" in out


FAILING: Sequence[Mapping[str, str]] = (
    {ACTION: "# {% if option.format == 'FP8' %}Use it{% endif %}\nText.\n"},
    {ACTION: "# Use {{ option.format }}\n{% if option.format == 'FP8' %}Text.{% endif %}\n"},
    {"templates/actions/add-gpus.md.j2": "# Add\n"},
)
SOUND: Mapping[str, str] = {
    ACTION: "# Use {{ option.format }}\nIt is then {{ memory.required }} large.\n",
    NOTE: "{% vary %}To book it{% or %}To book it well{% endvary %} is to say {{ gpu.name }}.\n",
    "templates/report/verdict.md.j2": "{{ gpu.name }} and {{ model.name }}.\n",
    "knowledge/gpus/more.yaml": (
        "- gpu: GeForce RTX 4090 40 GB\n  based_on: GeForce RTX 4090\n  vram: 40 GB\n"
        "  source: house-example\n"
    ),
}


@pytest.mark.parametrize("files", FAILING)
def test_a_report_that_fails_is_found(folder: Path, files: Mapping[str, str]) -> None:
    looked = check_house(changed(folder, files))
    assert any(found.is_error for found in looked.problems)


def test_where_it_is_green_every_report_comes_out(folder: Path) -> None:
    house = changed(folder, SOUND)
    looked = check_house(house)
    assert not looked.problems
    assert looked.reports
    assert looked.texts
    _render_others(house)


def _render_others(house: House) -> None:
    """Write reports that the check does not choose itself."""
    advisor = Advisor.load(rules=house.rules, templates=house.templates, knowledge=house.knowledge)
    names = [*advisor.knowledge.gpus][::180], [*advisor.knowledge.models][::110]
    for gpu in (*names[0], "GeForce RTX 3060 12 GB"):
        for model in names[1]:
            request = request_from({"gpu": gpu, "model": model, "ram": 64.0})
            try:
                ready = prepare(request, advisor.knowledge)
            except UserError:  # a card or model that lacks a figure
                continue
            found = advisor.advise_on(ready, complete=True)
            doc = document(found, templates=house.templates, options=True)
            for form in FORMATS.values():
                for length in LENGTHS[:1] if form.complete else LENGTHS:
                    assert form.write(Page(doc, length, house.templates))


def test_a_calibration_without_a_range_that_reports_look_up_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (
        (data_dir("knowledge") / "calibration.yaml").read_text("utf-8").splitlines(keepends=True)
    )
    stated = {line.partition(":")[0].strip() for line in lines}
    assert stated >= SITUATIONS
    left_out = [line for line in lines if not line.startswith("  prefill_engine:")]
    assert len(left_out) == len(lines) - 1
    (tmp_path / "calibration.yaml").write_text("".join(left_out), encoding="utf-8")
    outcome = run(capsys, "knowledge", "check", str(tmp_path))
    assert outcome.code == 1
    assert "'ranges.prefill_engine' must be a number" in outcome.err


MANY = """\
- rule: house-{0}
  why: It is one of many.
  source: made up
  when:
    model.parameters: at least {1} B
    option.family: is quantize
  {2}
  cases:
    - {{name: held, given: {{gpu: RTX 4090, model: phi-3-medium, context: {3}}}, expect: fires}}
    - {{name: apart, given: {{gpu: RTX 4090, model: all-minilm-l6-v2}}, expect: silent}}
"""
KINDS = (
    "recommend: {action: quantize, score: {base: 3}, text: quantize.md.j2}",
    "veto: House rule says no.",
)


def _counted(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Check a house of so many rules: what was written, and the longest list of what is barred."""
    rules = (MANY.format(n, 1 + n / 100, KINDS[n % 2], 4096 + n) for n in range(count))
    house = changed(folder, {"rules/many.yaml": "".join(rules)})
    longest = []

    def listed(*args: Any, **more: Any) -> Advice:
        made = document(*args, **more)
        longest.append(len(made.not_recommended))
        return made

    monkeypatch.setattr("advisor.workbench.house.document", listed)
    looked = check_house(house)
    assert [str(found) for found in looked.problems if found.is_error] == []
    return looked.reports, looked.texts, max(longest)


def test_work_does_not_grow_with_rules_that_say_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many fire beside each other, each text and each veto is written once."""
    reports, texts, longest = _counted(folder, 4, monkeypatch)
    many = _counted(folder, 44, monkeypatch)
    assert many[:2] == (reports, texts)
    assert many[2] <= longest + 20
