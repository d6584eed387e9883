"""Texts and words of a stranger: the check refuses at once what no report takes; the rest is said."""

# ruff: noqa: E501 - payloads stand side by side

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.errors import Problems, UserError
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.figures import words_of
from advisor.report.pages import render_html, render_markdown
from advisor.report.templates import forget_templates
from advisor.report.word_file import FILE
from advisor.workbench.lint.templates import check_templates
from tests.cli.running import run
from tests.report.samples import SAMPLES

Place = Callable[[Path], object]

REACHES = (
    "__class__", "__class__.__mro__", "__init__.__globals__", "real", "upper", "format",
    "__class__.__subclasses__", "__doc__", "a.b.c.d", "f_globals", "gi_frame", "mro",
)  # fmt: skip
SPECS = (
    ">300000000", "<99999999999", "^9999999999999999999999", "0300000000d", "x", "s", "!r", ">{n}",
    ".9999999999f", "%Y", "n", ",", "*>10", "\x00", "d",
)  # fmt: skip
WORDS = [
    *(f"speed.point = {{speed.{reach}}} tok/s" for reach in REACHES),
    *(f"speed.point = {{speed[{reach}]}} tok/s" for reach in REACHES[:6]),
    *(f"speed.point = {{speed:{spec}}} tok/s" for spec in SPECS),
    *(f"speed.point = {{speed!{how}}} tok/s" for how in "rsaxz"),
    *(f"speed.point = {text}" for text in (
        "{", "}", "{{", "}}", "{}", "{0}", "{ speed }", "{speed", "speed}", "{{speed}}", "{{{speed}}}",
        "{Speed}", "{speed }", "{spëed}", "{tempo}", "{n}", "{speed}{", "{self}", "{speed:", "{:}",
        "{!}", "{[}", "{speed.}", "{speed..x}", "{speed[]}", "{1speed}", "{-speed}", "{*speed}",
    )),
    *(f"speed.point = {{speed}}{char} tok/s" for char in (
        "\x1b[2J", "\x1b]0;title\x07", "\x07", "\x08", "\x00", "\x7f", "\x9b31m", "\u202e", "\u200b",
        "\u2066", "\ufeff", "\u2028", "\x0b", "\x0c", "\x85",
    )),
    f"speed.point = {'x' * 700}",
    "speed.point = " + "{speed}" * 20,
    f"speed.point = {'{speed}' * 9000}",
    "unknown.name = x", "speed.pont = {speed}", " = x", "speed.point", "speed.point =",
    "speed.point={speed}", "\x1b[31mspeed.point = x", "__class__ = x", "{speed} = x",
]  # fmt: skip
"""Words that a check refuses and a report does not take."""
SAID = [
    "speed.point = {speed} Tok/s", "speed.point = {speed} {speed}", "speed.point = Tokens",
    "speed.point = {speed} \u30c8\u30fc\u30af\u30f3", "speed.point = %s %(speed)s {speed}",
    "speed.point = <script>{speed}</script>", "speed.point = =1+1 {speed}", "# {x:>9}", "",
    "speed.point = {speed} = {speed}", "speed.point = $(id) `id` {speed}",
    "list.and = {last} und {first}", "cards.measured.one = {n} Karte",
]  # fmt: skip
"""Words that are harmless, whatever they look like."""
NOTE, ACTION, PART = "notes/cooling.md.j2", "actions/quantize.md.j2", "report/title.md.j2"
TEXTS = [
    *((NOTE, text) for text in (
        "{{ gpu.name.__class__ }}", "{{ ''.__class__.__mro__ }}", "{{ gpu.tdp.upper() }}",
        "{{ 9**9**9 }}", "{{ 'a' * 999999999 }}", "{% include '/etc/passwd' %}",
        "{% import 'x' as y %}", "{% extends 'x' %}", "{% set a = 1 %}", "{% macro a() %}{% endmacro %}",
        "{% for a in gpu.name %}{{ a }}{% endfor %}", "{{ gpu.name | attr('x') }}",
        "{{ gpu.name | format(1) }}", "{{ cycler }}", "{{ self }}", "{{ lipsum() }}", "{{ [1] | sum }}",
        "{{ gpu.name[0] }}", "{{ gpu['name'] }}", "{{ {'a': 1} }}", "{{ gpu.nmae }}", "{{ option_fromat }}",
        "{% if fit.runs %}{{ gpu.nmae }}{% endif %}", "{{ option.format }}", "{{", "{% if %}", "{% if x",
        "{% endif %}", "{{ " + "(" * 200 + "1" + ")" * 200 + " }}", "{{ " + "9" * 500 + " }}",
        "{{ gpu.name " + "or gpu.name " * 100 + "}}", "x" * 70_000, "{# ", "{% raw %}{{ x }}",
        "{% vary %}a{% endvary", "{{ gpu.name ~ gpu.name }}",
        "{% if gpu.tdp > 3 %}x{% endif %}", "{{ loop.index }}", "{% filter upper %}x{% endfilter %}",
        "{% call gpu() %}{% endcall %}", "{% autoescape true %}x{% endautoescape %}", "{% do 1 %}",
        "{% block a %}x{% endblock %}", "{% with a = 1 %}x{% endwith %}",
    )),
    *((ACTION, text) for text in ("No title", "", "#No space\nx", "# T", "# \nText.", "# T\n \n", "{{ x }}",
                                  "{% if fit.runs %}# A{% else %}# B{% endif %}\nText.")),
    *((PART, text) for text in (
        "{{ tiles.nothing }}",
        "{% for a in title %}{% for b in title %}x{% endfor %}{% endfor %}", "{{ length | nothing }}",
        "{% for a in gpu.name %}{{ a.x }}{% endfor %}",
    )),
    *(("report/report.md.j2", text) for text in (
        "{% for a, b, c, d in rest %}x{% endfor %}", "{{ rest.text }}", "{{ rest | lower }}",
        "{% for a in rest %}{{ a.nothing }}{% endfor %}", "{% for a in length %}{{ a.x }}{% endfor %}",
    )),
]  # fmt: skip
"""Templates that a check refuses."""


def _words(text: str) -> Place:
    return lambda folder: (folder / FILE).write_bytes(text.encode())


def _made(path: Path) -> Path:
    path.touch()
    return path


FILES: dict[str, Place] = {
    "pipe": lambda folder: os.mkfifo(folder / FILE),
    "endless": lambda folder: (folder / FILE).symlink_to("/dev/zero"),
    "folder": lambda folder: (folder / FILE).mkdir(),
    "link to itself": lambda folder: (folder / FILE).symlink_to(FILE),
    "link out": lambda folder: (folder / FILE).symlink_to("/etc/hostname"),
    "link to nothing": lambda folder: (folder / FILE).symlink_to("/nowhere/at/all"),
    "not UTF-8": lambda folder: (folder / FILE).write_bytes(b"speed.point = \xff"),
    "long": _words("# x\n" * 40_000),
    "hole": lambda folder: os.truncate(_made(folder / FILE), 20 * 2**30),
    "one line": _words("x" * 60_000),
}
COUNTED = len(WORDS) + len(SAID) + len(TEXTS) + 2 * len(FILES)


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    forget_templates()
    yield
    forget_templates()


def reports(folder: Path) -> None:
    for sample in SAMPLES.values():
        doc = document(sample(), templates=folder)
        render_markdown(doc, templates=folder)
        render_html(doc, templates=folder)
        render_text(doc, templates=folder)


def test_there_are_enough() -> None:
    assert COUNTED >= 127


@pytest.mark.parametrize("line", WORDS)
def test_words_that_are_more_than_words_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(line + "\n", encoding="utf-8", newline="")
    started = time.monotonic()
    problems = check_templates(tmp_path).problems
    assert problems
    assert all(found.source.line >= 1 and FILE in found.source.file for found in problems)
    with pytest.raises(UserError):
        words_of(tmp_path)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("line", SAID)
def test_words_that_only_look_bad_are_said(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(line + "\n", encoding="utf-8")
    words_of(tmp_path)
    reports(tmp_path)


@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_templates_that_are_more_than_text_are_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    assert [found.source.file for found in check_templates(tmp_path).problems]


@pytest.mark.parametrize("name", [FILE, NOTE])
@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_none_are_told_at_once(tmp_path: Path, kind: str, name: str) -> None:
    FILES[kind](tmp_path)
    if name != FILE:
        (tmp_path / "notes").mkdir()
        (tmp_path / FILE).rename(tmp_path / name)
    tracemalloc.start()
    try:
        problems = check_templates(tmp_path).problems
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    except UserError:
        return
    finally:
        tracemalloc.stop()
    assert problems or (name == NOTE and kind in {"folder", "long", "one line"})


def test_the_check_reads_words_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE).write_text("speed.point = {speed:>9}\nspeed.abuot = x\n", encoding="utf-8")
    told = run(capsys, "templates", "check", str(tmp_path))
    assert told.code == 1
    assert f"{FILE}:1:1" in told.out
    assert "Did you mean 'speed.about'" in told.out
    with pytest.raises(Problems):
        words_of(tmp_path)
