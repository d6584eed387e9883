"""What a template may never do: each attempt is one message with its place, at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.errors import TemplateError
from advisor.report.assembly import document
from advisor.report.templates import Templates, template_problems
from advisor.report.word_file import MAX_BYTES
from tests.report.samples import does_not_fit

MOST_KIB = 100 * 1024

EXPRESSIONS = {
    "class of a string": "''.__class__",
    "method resolution order": "''.__class__.__mro__[1].__subclasses__()",
    "base class": "model.name.__class__.__base__.__subclasses__()",
    "class by item": "''['__class__']",
    "class by attr filter": "model.name|attr('__class__')",
    "attr filter twice": "model.name|attr('__class__')|attr('__mro__')",
    "hexadecimal escape": r"''['\x5f\x5fclass\x5f\x5f']",
    "hexadecimal escape in attr": r"model.name|attr('\x5f\x5fclass\x5f\x5f')",
    "unicode escape": r"''['\u005f\u005fclass\u005f\u005f']",
    "octal escape": r"''['\137\137class\137\137']",
    "joined name": "''['__cla' ~ 'ss__']",
    "joined name by filter": "model.name|attr(['__cla', 'ss__']|join)",
    "reversed name": "model.name|attr('__ssalc__'|reverse)",
    "name by format": "model.name|attr('%sclass%s'|format('__', '__'))",
    "map to an attribute": "[model.name]|map(attribute='__class__')|list",
    "group by an attribute": "[model.name]|groupby('__class__')",
    "sum of an attribute": "[model.name]|sum(attribute='__class__')",
    "join of an attribute": "[model.name]|join(', ', attribute='__class__')",
    "select by a test": "[model.name]|selectattr('__class__')|list",
    "globals of lipsum": "lipsum.__globals__['os'].popen('id').read()",
    "globals of cycler": "cycler.__init__.__globals__.os.popen('id').read()",
    "globals of joiner": "joiner.__init__.__globals__",
    "globals of namespace": "namespace.__init__.__globals__",
    "globals of dict": "dict.__base__.__subclasses__()",
    "globals of a function": "url_for.__globals__",
    "the template itself": "self._TemplateReference__context",
    "the template's blocks": "self.__init__.__globals__",
    "configuration": "config.items()",
    "request of a web frame": "request.application.__globals__",
    "format string": "'{0.__class__}'.format(model.name)",
    "format string with a map": "'{x.__class__}'.format_map({'x': model.name})",
    "format of a placeholder": "model.name.format(model.name)",
    "method": "model.name.upper()",
    "method without a call": "model.name.upper",
    "old format string": "'%s' % model.name",
    "very long old format": "'%1000000000s' % model.name",
    "format filter": "'%1000000000d'|format(1)",
    "power": "9 ** 9 ** 9",
    "string times number": "'x' * 1000000000",
    "list times number": "[1] * 1000000000",
    "long range": "range(1000000000)|list",
    "centred": "'x'|center(1000000000)",
    "indented": "model.name|indent(1000000000)",
    "random": "range(9)|random",
    "printing": "model.name|pprint",
    "not escaped": "model.name|safe",
    "replacing": "model.name|replace('a', 'aaaaaaaaaa')",
    "joined by itself": "model.name|join(model.name)",
    "joined again and again": "model.name|join('xxxxxxxxxx')|join('xxxxxxxxxx')",
    "long separator": "model.name|join('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
    "exec by name": "__import__('os').system('id')",
    "open by name": "open('/etc/passwd').read()",
    "a test that calls": "model.name is callable",
    "slice": "model.name[0:2]",
    "huge number": "1" * 5000,
    "deep brackets": "(" * 400 + "model.name" + ")" * 400,
    "deep list": "[" * 400 + "]" * 400,
    "long chain of not": "not " * 3000 + "model.name",
    "long chain of or": "model.name" + " or model.name" * 3000,
    "long chain of filters": "model.name" + "|lower" * 3000,
}

STATEMENTS = {
    "include of a file": "{% include '/etc/passwd' %}",
    "include above the folder": "{% include '../../../etc/passwd' %}",
    "include of a placeholder": "{% include model.name %}",
    "include that may be missing": "{% include 'x' ignore missing %}",
    "import": "{% import 'notes/cooling.md.j2' as c %}",
    "import of names": "{% from '/etc/passwd' import root %}",
    "extends": "{% extends '../../pyproject.toml' %}",
    "block": "{% block a %}x{% endblock %}",
    "macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "call": "{% call model.name() %}x{% endcall %}",
    "filter block": "{% filter upper %}x{% endfilter %}",
    "set": "{% set x = 1 %}",
    "set block": "{% set x %}x{% endset %}",
    "namespace": "{% set n = namespace(x=1) %}",
    "with": "{% with x = 1 %}{{ x }}{% endwith %}",
    "escaping off": "{% autoescape false %}{{ model.name }}{% endautoescape %}",
    "do": "{% do model.name %}",
    "debug": "{% debug %}",
    "break": "{% break %}",
    "loop in an action": "{% for a in model.name %}x{% endfor %}",
    "python block": "{% python %}x{% endpython %}",
    "never closed": "{% if model.name %}x",
    "closed twice": "{% endif %}",
    "deep ifs": "{% if model.name %}" * 200 + "{% endif %}" * 200,
    "many branches": "{% if fit.runs %}a" + "{% elif fit.tight %}b" * 3000 + "{% endif %}",
    "many tags": "{{ fit.runs }}" * 4000,
}

IN_REPORTS = {
    "private attribute": "{% for a in rest %}{{ a._x }}{% endfor %}",
    "class of a row": "{% for a in rest %}{{ a.__class__ }}{% endfor %}",
    "method of a text": "{{ have.format }}",
    "method of a list": "{{ rest.append }}",
    "method of a row": "{% for a in rest %}{{ a.items }}{% endfor %}",
    "method of a loop": "{% for a in rest %}{{ loop.cycle }}{% endfor %}",
    "loop that calls itself": "{% for a in rest recursive %}{{ loop(a) }}{% endfor %}",
    "loop over a range": "{% for a in range(1000000000) %}x{% endfor %}",
    "loops side by side": "{% for a in have %}{% for b in have %}x{% endfor %}{% endfor %}",
    "loops that skip one": "{% for a in rest %}{% for b in a.title %}{% for c in a.title %}"
    "x{% endfor %}{% endfor %}{% endfor %}",
    "loops too deep": "{% for a in rest %}{% for b in a.title %}{% for c in b %}{% for d in c %}"
    "x{% endfor %}{% endfor %}{% endfor %}{% endfor %}",
    "attribute that is none": "{% for a in rest %}{{ a.titel }}{% endfor %}",
}

ALLOWED_IN_REPORTS = 1
"""A loop, and nothing else of what actions are refused."""

ATTACKS = {
    **{name: f"{{{{ {text} }}}}" for name, text in EXPRESSIONS.items()},
    **{f"as a condition: {name}": f"{{% if {EXPRESSIONS[name]} %}}x{{% endif %}}"
       for name in ("class of a string", "globals of lipsum", "power")},
    **STATEMENTS,
}  # fmt: skip


def written(folder: Path, text: str, name: str = "actions/quantize.md.j2") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attempt_is_one_message_with_its_place(tmp_path: Path, attack: str) -> None:
    folder = written(tmp_path, f"# Title\nText {ATTACKS[attack]}\n")
    problems = template_problems(folder)
    with pytest.raises(TemplateError) as caught:
        document(does_not_fit(), templates=folder)
    assert len(problems) == (2 if attack.startswith("macro") else 1), problems
    for error in (*problems, caught.value):
        assert error.source is not None
        assert error.source.file == "templates/actions/quantize.md.j2"
        assert error.source.line in {2, 3}  # where a block that is never closed ends
        assert error.source.column >= 1
        assert len(error.message) < 200
        assert "object at 0x" not in error.message


@pytest.mark.parametrize("attack", IN_REPORTS)
def test_report_templates_reach_their_data_alone(tmp_path: Path, attack: str) -> None:
    folder = written(tmp_path, f"# Title\n{IN_REPORTS[attack]}\n", "report/report.md.j2")
    row = {"title": "some words of a title", "text": "x"}
    context = {"have": "x" * 500, "rest": [row] * 300}
    with pytest.raises(TemplateError) as caught:
        Templates(folder).page("report/report.md.j2", context)
    assert caught.value.source is not None
    assert caught.value.source.line == 2


def test_a_wrong_name_in_a_row_is_named_with_the_nearest(tmp_path: Path) -> None:
    folder = written(tmp_path, IN_REPORTS["attribute that is none"], "report/report.md.j2")
    with pytest.raises(TemplateError, match=r"no 'titel' here\. Did you mean 'title'"):
        Templates(folder).page("report/report.md.j2", {"rest": [{"title": "x"}]})


def test_loops_over_rows_and_their_cells_work(tmp_path: Path) -> None:
    text = "{% for row in rest %}{% for cell in row.cells %}{{ loop.index }}{{ cell }} {% endfor %}"
    folder = written(tmp_path, text + "{% endfor %}", "report/report.md.j2")
    page = Templates(folder).page("report/report.md.j2", {"rest": [{"cells": ["a", "b"]}]})
    assert page == "1a 2b "


def test_what_a_template_writes_is_bounded(tmp_path: Path) -> None:
    text = "{% for a in rest %}{{ have }}{% endfor %}" * 500
    folder = written(tmp_path, text, "report/report.md.j2")
    context = {"have": "x" * 1000, "rest": ["a"] * 1000}
    with pytest.raises(TemplateError, match="writes more than"):
        Templates(folder).page("report/report.md.j2", context)


def test_a_file_too_large_for_a_template_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, "# Title\n" + "x" * MAX_BYTES)
    assert "larger than 64 KiB" in str(template_problems(folder)[0])
    with pytest.raises(TemplateError, match="larger than 64 KiB"):
        document(does_not_fit(), templates=folder)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("# Title\nsecret words\n", encoding="utf-8")
    folder = tmp_path / "templates"
    (folder / "actions").mkdir(parents=True)
    (folder / "actions" / "quantize.md.j2").symlink_to(secret)
    with pytest.raises(TemplateError, match="leads out of the folder"):
        document(does_not_fit(), templates=folder)


def test_names_from_data_are_escaped_in_pages_and_pictures(tmp_path: Path) -> None:
    for name in ("report/page.html.j2", "report/options.svg.j2"):
        written(tmp_path, "{{ title }}", name)
        page = Templates(tmp_path).page(name, {"title": "<script>"})
        assert page == "&lt;script&gt;"


BOMBS = """
import resource, sys
from pathlib import Path
from advisor.errors import TemplateError
from advisor.report.templates import Templates, template_problems

folder = Path(sys.argv[1])
texts = Templates(folder)
row = {"title": "x" * 50, "text": "x"}
context = {"have": "x" * 500, "rest": [row] * 300, "model.name": "x", "fit.runs": "yes"}
texts.page("report/first.md.j2", {})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
resource.setrlimit(resource.RLIMIT_DATA, (1_000_000_000, 1_000_000_000))
template_problems(folder)
refused = 0
for number in range(int(sys.argv[2])):
    try:
        texts.page(f"report/bomb{number}.md.j2", context)
    except TemplateError:
        refused += 1
print(refused, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_bombs_use_up_neither_processor_nor_memory(tmp_path: Path) -> None:
    """The kernel ends the process where one of them gets through."""
    bombs = [*ATTACKS.values(), *IN_REPORTS.values()]
    written(tmp_path, "x", "report/first.md.j2")
    for number, bomb in enumerate(bombs):
        written(tmp_path, bomb, f"report/bomb{number}.md.j2")
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, str(tmp_path), str(len(bombs))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"ADVISOR_CACHE_DIR": str(tmp_path / "cache")},
    )
    refused, kib = map(int, done.stdout.split() or (0, 0))
    assert refused == len(bombs) - ALLOWED_IN_REPORTS, done.stderr
    assert kib < MOST_KIB
