"""The templates themselves, and the fence around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import force_setattr, replace

from advisor.errors import TemplateError
from advisor.files import data_dir, seal
from advisor.remedies import actions
from advisor.report.assembly import Views, document
from advisor.report.grammar import placeholders
from advisor.report.remedy_view import OptionView
from advisor.report.situation import Situation
from advisor.report.template_writer import picked, place, variation
from advisor.report.templates import template_problems, templates_for
from tests.report.native_jinja import Native
from tests.report.placeholder_lists import PAGE, page
from tests.report.runs import reference_hashes, run_hashes
from tests.report.samples import SAMPLES, does_not_fit

FOLDER = data_dir("templates")


def test_the_built_in_templates_are_clean() -> None:
    assert [str(problem) for problem in template_problems(FOLDER)] == []


def test_every_action_has_a_template() -> None:
    names = {path.name for kind in ("actions", "notes") for path in (FOLDER / kind).iterdir()}
    assert {f"{action}.md.j2" for action in actions()} <= names
    assert "cooling.md.j2" in names
    assert "verdict.md.j2" not in names


def test_no_template_repeats_the_published_reports() -> None:
    known = reference_hashes()
    assert len(known) > 1000
    for path in FOLDER.rglob("*.j2"):
        assert not run_hashes(path.read_text(encoding="utf-8")) & known, path.name


@pytest.mark.parametrize("name", SAMPLES)
def test_the_placeholders_are_exactly_those_documented(name: str) -> None:
    doc = document(SAMPLES[name]())
    situation = Situation(doc)
    assert set(situation) == set(placeholders("notes"))
    assert all(isinstance(value, str) for value in situation.values())
    for item in doc.recommendations:
        option = OptionView(doc, item)
        assert set(option) == set(placeholders("actions")) - set(situation)
        assert all(isinstance(value, str) for value in option.values())


def test_situation_placeholders_are_the_same_without_a_card() -> None:
    doc = document(does_not_fit())
    doc.scenario = replace(doc.scenario, gpu=None)
    assert set(Situation(doc)) == set(Situation(document(does_not_fit())))


def test_docs_list_every_placeholder() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run python -m tests.report.placeholder_lists"
    )


def write(folder: Path, text: str, name: str = "actions/quantize.md.j2") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ model.name.__class__ }}",
    "{{ model.name|attr('__class__') }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ config.items() }}",
    "{{ range(10 ** 9)|list }}",
    "{{ 'x' * 1000000000 }}",
    "{{ 'x'|center(1000000000) }}",
    "{{ model.name.format(model.name) }}",
    "{{ '{0.__class__}'.format(model.name) }}",
    "{% include '/etc/passwd' %}",
    "{% include 'notes/cooling.md.j2' %}",
    "{% import 'notes/cooling.md.j2' as c %}",
    "{% extends 'report/have.md.j2' %}",
    "{% macro m() %}{{ m() }}{% endmacro %}",
    "{% set x = 1 %}",
    "{% for a in model.name for b in model.name %}{% endfor %}",
    "{% for a in model.name %}{{ a }}{% endfor %}",
    "{{ memory.required + memory.usable }}",
    "{{ -1 }}",
    "{{ model.name ~ model.name }}",
    "{{ model.name[0] }}",
    "{{ model.name is callable }}",
    "{{ model.name < gpu.name }}",
]


@pytest.mark.parametrize("attack", ESCAPES)
def test_what_is_not_text_is_refused(tmp_path: Path, attack: str) -> None:
    write(tmp_path, f"# Title\nText {attack}\n")
    with pytest.raises(TemplateError) as caught:
        document(does_not_fit(), templates=tmp_path)
    assert caught.value.source is not None
    assert caught.value.source.file == "templates/actions/quantize.md.j2"
    assert caught.value.source.line == 2
    assert template_problems(tmp_path)


def test_an_unknown_placeholder_is_named_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "# Title\n{% if False %}\n{{ memory_requird }}\n{% endif %}x\n")
    with pytest.raises(TemplateError) as caught:
        document(does_not_fit(), templates=tmp_path)
    message = str(caught.value)
    assert message.startswith("templates/actions/quantize.md.j2:3:4: unknown placeholder")
    assert "'memory.required'" in message


def test_option_placeholders_are_unknown_in_notes(tmp_path: Path) -> None:
    write(tmp_path, "{{ option.required }}\n", "notes/monitoring.md.j2")
    assert "unknown placeholder 'option.required'" in str(template_problems(tmp_path)[0])


def test_all_problems_of_all_files_come_at_once(tmp_path: Path) -> None:
    write(tmp_path, "# T\n{{ nope }}\n{{ 1 + 1 }}\n")
    write(tmp_path, "{% if %}", "notes/cooling.md.j2")
    write(tmp_path, "No title\n", "actions/cloud.md.j2")
    problems = [str(problem) for problem in template_problems(tmp_path)]
    assert len(problems) == 4
    assert any("notes/cooling.md.j2:1" in problem for problem in problems)
    assert any("first line must be a title" in problem for problem in problems)


def test_files_that_are_not_utf8_are_an_error_not_a_crash(tmp_path: Path) -> None:
    write(tmp_path, "x")
    (tmp_path / "actions" / "quantize.md.j2").write_bytes(b"# T\n\xff\xfe")
    with pytest.raises(TemplateError, match="not UTF-8"):
        document(does_not_fit(), templates=tmp_path)
    assert "not UTF-8" in str(template_problems(tmp_path)[0])


def test_a_missing_template_is_an_error_with_a_suggestion() -> None:
    advice = does_not_fit()
    force_setattr(advice.recommendations[0], "text_template", "quantise.md.j2")
    with pytest.raises(TemplateError, match=r"no template 'actions/quantise\.md\.j2'.*quantize"):
        document(advice)


def test_a_template_name_cannot_leave_the_folder() -> None:
    advice = does_not_fit()
    force_setattr(advice.recommendations[0], "text_template", "../../pyproject.toml")
    with pytest.raises(TemplateError, match="no template"):
        document(advice)


def test_an_action_without_a_title_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "Only text.\n")
    with pytest.raises(TemplateError, match="starts with a title line"):
        document(does_not_fit(), templates=tmp_path)


def test_an_unwritable_cache_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(blocked))
    write(tmp_path, "# Mine\nText.\n")
    assert document(does_not_fit(), templates=tmp_path).recommendations[0].title == "Mine"


def test_a_broken_cache_entry_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    first, second = write(tmp_path / "a", "# One\nText.\n"), tmp_path / "a" / ".." / "a"
    document(does_not_fit(), templates=first)
    entries = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        path.write_bytes(b"broken")
    assert document(does_not_fit(), templates=second).recommendations[0].title == "One"


def test_importing_the_package_does_not_import_jinja2() -> None:
    code = (
        "import sys; from pathlib import Path; from advisor.report.templates import templates_for;"
        f"templates_for(Path({str(FOLDER)!r}));"
        "sys.exit(any(name.split('.')[0] in ('jinja2', 'rich', 'yaml') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_stored_of_a_template_is_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_CACHE_DIR", str(tmp_path / "cache"))
    document(does_not_fit(), templates=write(tmp_path / "a", "# One\n{{ option.format }}.\n"))
    kept = (path.read_bytes() for path in (tmp_path / "cache").rglob("template-*"))
    (stored,) = (json.loads(one[len(seal("", [])) :]) for one in kept if b"# One" in one)
    assert stored == [
        [["output", [[1, "# One\n"], [2, ["name", "option.format"]], [2, "."]]]],
        False,
    ]


THREE = "# T\n{% vary %}\nOne.\n{% or %}\nTwo.\n{% or %}\nThree.\n{% endvary %}\n"


def test_vary_takes_one_wording_and_the_same_one_every_time(tmp_path: Path) -> None:
    write(tmp_path, THREE)
    texts = {document(does_not_fit(), templates=tmp_path).recommendations[0].text}
    texts |= {document(does_not_fit(), templates=tmp_path).recommendations[0].text}
    assert len(texts) == 1
    assert texts <= {"One.", "Two.", "Three."}


def test_vary_takes_every_wording_about_as_often() -> None:
    seeds = [variation([number]) for number in range(3000)]
    for choices in (2, 3, 4):
        counts = [sum(picked(seed, 11, choices, i) for seed in seeds) for i in range(choices)]
        assert sum(counts) == len(seeds)
        assert min(counts) > 0.9 * len(seeds) / choices


def test_places_choose_for_themselves() -> None:
    seeds = [variation([number]) for number in range(1000)]
    one, other = place("notes/cooling.md.j2", 0), place("notes/cooling.md.j2", 1)
    both = sum(picked(seed, one, 2, 0) == picked(seed, other, 2, 0) for seed in seeds)
    assert 400 < both < 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{% vary %}One.{% endvary %}", "at least one"),
        ("{% vary %}One.{% or %}Two.", "unexpected end"),
        ("{% vary %}{{ nope }}{% or %}Two.{% endvary %}", "unknown placeholder 'nope'"),
        ("{% vary %}{{ 1 + 1 }}{% or %}Two.{% endvary %}", "arithmetic ('+') is not allowed"),
    ],
)
def test_a_wrong_vary_block_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, f"# T\n{text}\n")
    assert message.lower() in str(template_problems(tmp_path)[0]).lower()


def test_templates_say_what_jinja2_says() -> None:
    advice = [make() for make in SAMPLES.values()]
    native = Native([FOLDER])
    texts = templates_for(None)
    for doc in map(document, advice):
        views = Views.of(doc)
        for path in sorted((FOLDER / "notes").glob("*.j2")):
            name = f"notes/{path.name}"
            assert texts.page(name, views.situation) == native.written(name, views.situation)
        for item in doc.recommendations[::3]:
            for path in sorted((FOLDER / "actions").glob("*.j2")):
                name, context = f"actions/{path.name}", views.told(item)
                assert texts.page(name, context) == native.written(name, context)


def test_a_filled_cache_does_without_jinja2(tmp_path: Path) -> None:
    code = (
        "import sys; from tests.report.samples import fits_amply;"
        " from advisor.report.assembly import document; from"
        " advisor.report.pages import render_markdown; render_markdown(document(fits_amply()));"
        "sys.exit('jinja2' in sys.modules)"
    )
    environment = {**os.environ, "ADVISOR_CACHE_DIR": str(tmp_path)}
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run([sys.executable, "-c", code], check=False, env=environment, cwd=root)
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [1, 0]
