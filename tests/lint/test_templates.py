"""Checking templates: every mistake with its place, alone and between files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.errors import RequestError
from advisor.report.assembly import document
from advisor.report.grammar import placeholders
from advisor.report.remedy_view import OptionView
from advisor.report.situation import Situation
from advisor.workbench.lint.templates import BARE, check_templates, renamed_texts
from tests.cli.running import run
from tests.report.samples import SAMPLES

Capture = pytest.CaptureFixture[str]

WRONG = {
    "unknown": (
        "actions/quantize.md.j2",
        "# T\nIt is {{ option.formt }}.",
        "2:10",
        "option.format",
    ),
    "option in a note": ("notes/cooling.md.j2", "{{ option.gpu }}", "1:4", "templates/actions"),
    "arithmetic": ("notes/cooling.md.j2", "a {{ 1 + gpu.tdp }}", "1:8", "arithmetic"),
    "call": ("notes/cooling.md.j2", "a\n b {{ gpu.tdp.upper() }}", "2:20", "calling"),
    "filter": ("notes/cooling.md.j2", "{{ gpu.tdp | upper }}", "1:14", "Allowed are"),
    "not closed": ("notes/cooling.md.j2", "a\nb {% if gpu.tdp %}", "2:3", "endif"),
    "unknown tag": ("notes/cooling.md.j2", "b {% fi %}", "1:3", "unknown tag 'fi'"),
    "bare number": ("notes/cooling.md.j2", "It takes {{ request.batch }}.", "1:13", "sequences"),
    "bare number in a branch": (
        "notes/cooling.md.j2",
        "{% if fit.runs %}\nIt takes {{ request.batch }}.\n{% else %}\nNo sequences.\n{% endif %}",
        "2:13",
        "request.batch",
    ),
    "number written out": ("notes/cooling.md.j2", "It leaves out 24.", "1:15", "'24'"),
    "no title": ("actions/cloud.md.j2", "Rent one.", "1:1", "title"),
    "unused": ("notes/colling.md.j2", "Mind the heat.", "1:1", "Did you mean 'cooling'?"),
    "misplaced": ("nots/cooling.md.j2", "Mind the heat.", "1:1", "nothing reads this file"),
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_the_built_in_templates_have_no_problem() -> None:
    checked = check_templates()
    assert [f"{found.source}: {found.text}" for found in checked.problems] == []
    assert checked.files > 50


@pytest.mark.parametrize("name", WRONG)
def test_every_mistake_has_its_place_and_what_to_do(tmp_path: Path, name: str) -> None:
    file, text, place, said = WRONG[name]
    folder = written(tmp_path / "own", file, text)
    (found,) = check_templates(folder).problems
    assert str(found.source) == f"{folder.as_posix()}/{file}:{place}"
    assert said in found.text
    assert found.is_error


def test_all_problems_of_all_files_come_at_once(tmp_path: Path) -> None:
    for number, (file, text, _, _) in enumerate(WRONG.values()):
        written(tmp_path, file.replace(".md", f"{number}.md"), text)
    found = check_templates(tmp_path).problems
    assert {problem.lint.id for problem in found} >= {
        "template-syntax", "template-forbidden", "unknown-placeholder", "number-without-unit",
        "template-title", "unused-template",
    }  # fmt: skip
    assert len({problem.source.file for problem in found}) == len(WRONG)


@pytest.mark.parametrize(
    "text",
    [
        "It takes {{ request.batch }} sequences.",
        "{{ request.batch }}{% if fit.runs %} sequences{% else %} requests{% endif %} at once.",
        "From {{ request.context }} to {{ memory.max_context }} tokens.",
        "A token uses {{ model.experts_used }} of {{ model.experts }} experts.",
        "It serves {{ memory.held_sequences }} of the {{ request.batch }} sequences.",
        "The {{ request.context }} tokens are more than the {{ memory.max_context }} that fit.",
        "Take {{ request.gpus }} {{ gpu.name }} cards, or {{ request.gpus }}x as many.",
        "It takes {{ gpu.tdp }} in 2 of 3 cases, as Q4_K_M does on an RTX 4090.",
    ],
)
def test_numbers_with_a_word_for_them_are_fine(tmp_path: Path, text: str) -> None:
    assert check_templates(written(tmp_path, "notes/cooling.md.j2", text)).problems == []


@pytest.mark.parametrize(
    "text",
    [
        "It holds {{ request.context }} and {{ request.batch }} sequences more often.",
        "It takes {{ request.gpus }} often, as said before the run of the card.",
        "With {{ request.context }} it fits, and all the others wait for a free token.",
        "Tokenisers differ: {{ request.context }} is what fits.",
        "It fits with {{ request.context if fit.runs else memory.max_context }} here.",
        "Eight cards hold {{ gpu.vram }}; it takes {{ request.batch }} {{ gpu.tdp }}.",
        "It holds {{ request.context | lower }} at most.",
    ],
)
def test_a_word_for_something_else_is_no_unit(tmp_path: Path, text: str) -> None:
    found = check_templates(written(tmp_path, "notes/cooling.md.j2", text)).problems
    assert {problem.lint.id for problem in found} == {"number-without-unit"}


def test_every_placeholder_that_is_a_bare_number_is_known_as_one() -> None:
    assert set(BARE) <= set(placeholders("actions"))
    for make in SAMPLES.values():
        doc = document(make())
        views = [Situation(doc), *(OptionView(doc, r) for r in doc.recommendations)]
        bare = {k for view in views for k, v in view.items() if re.fullmatch(r"\d[\d,.]*", v)}
        assert bare <= set(BARE)


RULE = """
- rule: rent-somewhere
  why: A rented card holds it.
  source: none
  when: {option.family: is cloud, option.fits: is yes}
  recommend: {action: cloud, score: {base: 10}, text: NAME}
  cases:
    - {name: big, given: {gpu: RTX 4090, model: llama-3.1-70b}, expect: fires}
    - {name: it fits, given: {gpu: RTX 4090, model: phi-3-mini}, expect: silent}
"""


@pytest.mark.parametrize(
    ("name", "hint"), [("rant.md.j2", ""), ("cooling.md.j2", "is for something else")]
)
def test_a_rule_without_its_text_is_named_with_its_place(
    tmp_path: Path, name: str, hint: str
) -> None:
    rules = written(tmp_path / "rules", "own.yaml", RULE.replace("NAME", name))
    templates = written(tmp_path / "templates", "notes/cooling.md.j2", "Mind the heat.")
    (found,) = check_templates(templates, rules=rules).problems
    assert found.lint.id == "missing-template"
    assert f"{found.source.file}:{found.source.line}" == "rules/own.yaml:2"
    assert f"'actions/{name}'" in found.message
    assert hint in found.hint


def test_a_text_that_an_own_rule_names_is_used(tmp_path: Path) -> None:
    rules = written(tmp_path / "rules", "own.yaml", RULE.replace("NAME", "rent.md.j2"))
    templates = written(tmp_path / "templates", "actions/rent.md.j2", "# Rent\nIt fits there.\n")
    assert check_templates(templates, rules=rules).problems == []
    assert [p.lint.id for p in check_templates(templates).problems] == ["unused-template"]


def test_broken_rules_do_not_hide_what_is_wrong_with_texts(tmp_path: Path) -> None:
    rules = written(tmp_path / "rules", "own.yaml", "- rule: x\n  why: y\n")
    templates = written(tmp_path / "templates", "notes/cooling.md.j2", "{{ gpu.tpd }}")
    found = {problem.lint.id for problem in check_templates(templates, rules=rules).problems}
    assert "unknown-placeholder" in found
    assert len(found) > 1


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds no template"):
        check_templates(tmp_path)
    with pytest.raises(RequestError, match="is not a folder"):
        check_templates(tmp_path / "missing")


def test_the_command_writes_every_format_and_fails(capsys: Capture, tmp_path: Path) -> None:
    folder = str(written(tmp_path, "notes/cooling.md.j2", "{{ gpu.tpd }}"))
    text = run(capsys, "templates", "check", folder)
    assert text.code == 1
    assert "unknown placeholder 'gpu.tpd'. Did you mean" in text.out
    assert text.out.endswith("1 template: 1 problem\n")
    made = json.loads(run(capsys, "templates", "check", folder, "--format", "json").out)
    assert made["problems"][0]["lint"] == "unknown-placeholder"
    assert made["problems"][0]["column"] == 4
    log = json.loads(run(capsys, "templates", "check", folder, "--format", "sarif").out)
    assert log["runs"][0]["results"][0]["ruleId"] == "unknown-placeholder"
    github = run(capsys, "templates", "check", folder, "--format", "github").out
    assert github.startswith("::error file=")


def test_the_command_says_when_all_is_well(capsys: Capture) -> None:
    outcome = run(capsys, "templates", "check")
    assert outcome.code == 0
    assert re.fullmatch(r"\d+ templates: no problem found\n", outcome.out)


OLD = """# Use {{ option_format }} weights
{# option_format stays here #}
{%- if option_speed and memory_gap != "option_format" %}
  It takes {{option_required}} of {{ memory.usable }}.
{% endif %}
"""
NEW = """# Use {{ option.format }} weights
{# option_format stays here #}
{%- if option.decode_speed and fit.gap != "option_format" %}
  It takes {{option.required}} of {{ memory.usable }}.
{% endif %}
"""


def test_a_name_of_before_is_refused_with_the_one_of_today(tmp_path: Path) -> None:
    (found,) = check_templates(
        written(tmp_path, "notes/cooling.md.j2", "{{ edge_batch }}")
    ).problems
    assert found.lint.id == "unknown-placeholder"
    assert "'break_even.batch'" in found.hint


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_names_of_before_are_written_anew_where_they_stand(
    capsys: Capture, tmp_path: Path, end: str
) -> None:
    folder = written(tmp_path, "actions/quantize.md.j2", "")
    file = folder / "actions" / "quantize.md.j2"
    file.write_bytes(OLD.replace("\n", end).encode())
    broken = written(tmp_path, "notes/cooling.md.j2", "{% if gpu_tdp %}") / "notes/cooling.md.j2"
    outcome = run(capsys, "templates", "check", str(folder), "--fix")
    assert file.read_bytes() == NEW.replace("\n", end).encode()
    assert "+# Use {{ option.format }} weights" in outcome.err
    assert broken.read_text() == "{% if gpu_tdp %}"
    assert [found.lint.id for found in check_templates(folder).problems] == ["template-syntax"]


def test_what_a_loop_names_is_its_own(tmp_path: Path) -> None:
    text = "{% for state in options %}{{ state.change }}{% endfor %}{{ options_tried }} tried"
    folder = written(tmp_path, "report/options.md.j2", text)
    (changed,) = renamed_texts(folder)
    assert changed.after == text.replace("in options", "in changes").replace("s_tried", "s.tried")
