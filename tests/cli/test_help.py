"""What helps at the prompt: an example in every help, the manual page, the tab key."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from advisor.cli.app import _GROUPED, application, commands
from advisor.cli.completion import SHELLS, _names, command_of, example_in, offered, page
from advisor.cli.user_settings import COMPLETING, OTHER_VARIABLES, VARIABLES
from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.names import find_format_candidates, find_framework, find_kv_type, find_model
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
EVERY = [(), *((group,) for group in _GROUPED), *commands()]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_CONFIG", "")


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_help_has_an_example_that_parses(words: tuple[str, ...]) -> None:
    found = example_in(command_of(words).help)
    program, *typed = shlex.split(found.partition(" > ")[0])
    assert program == "advisor"
    assert tuple(typed[: len(words)]) == words
    assert len(found) <= 70, "it is broken over two lines of a terminal"
    assert not re.search(r"[\[\]{}`]", found)
    context: Any = get_command(application(typed)).make_context("advisor", typed)
    while hasattr(context.command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, left = context.command.resolve_command(context, rest)
        context = command.make_context(name, left, parent=context)
    assert context.command.callback is not None
    assert context.args == []


def test_an_example_is_shown_by_help(capsys: Capture) -> None:
    for words in ((), ("rules",), ("rules", "diff"), ("advise",)):
        shown = run(capsys, *words, "--help").out
        assert f"Example: {example_in(command_of(words).help)}" in shown


def test_the_manual_page_has_every_command_and_variable() -> None:
    lines = list(page())
    text = "\n".join(lines)
    for words in commands():
        command = command_of(words)
        assert f'.SS "advisor {" ".join(words)}"' in lines
        for one in command.params:
            name = (
                one.opts[0] if one.param_type_name == "option" else one.metavar or one.name.upper()
            )
            assert name.replace("-", "\\-") in text, (words, one.name)
    for name in (*VARIABLES.values(), *OTHER_VARIABLES):
        assert f".B {name}" in lines
    macros = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
    assert macros == {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".EX", ".EE", ".br"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ch",), ["check", "check-command"]),
        (("check",), ["check", "check-command"]),
        (("rules", "ex"), ["explain"]),
        (("advise", "--gpu-m"), ["--gpu-memory-utilization"]),
        (("advise", "--no-such"), [""]),
    ],
)
def test_the_tab_key_completes_commands_and_flags(
    words: tuple[str, ...], offered: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in line_of(*words).items():
        monkeypatch.setenv(name, value)
    outcome = run(capsys)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.split("\n")[:-1] == offered


def line_of(*words: str) -> dict[str, str]:
    """What bash says of a line with the cursor behind the last of these words."""
    line = {"COMP_WORDS": "\n".join(("advisor", *words)), "COMP_CWORD": str(len(words))}
    return line | {COMPLETING: "complete_bash"}


def test_the_tab_key_completes_names() -> None:
    """In a process of its own: flags know what completes them only where a shell asks."""
    environment = os.environ | line_of("advise", "--gpu", "rtx-4090")
    call = [sys.executable, "-c", "from advisor.cli.main import main; main()"]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True)
    assert {"rtx-4090", "rtx-4090-D"} <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("setting", "begun", "some"),
    [
        ("gpu", "GeForce-RTX-3060-12", ["GeForce-RTX-3060-12-GB"]),
        ("gpu", "RTX 3060 12", ["RTX 3060 12-GB"]),
        ("model", "phi-3-med", ["phi-3-medium-4k-instruct"]),
        ("prefer", "", ["balanced", "quality", "speed", "cost"]),
        ("framework", "v", ["vLLM"]),
        ("gpu", "no-such-card", []),
    ],
)
def test_names_begin_as_typed(setting: str, begun: str, some: list[str]) -> None:
    beginning = offered(setting)
    assert beginning
    assert beginning(begun)[: len(some)] == some
    assert some or not beginning(begun)
    assert offered("context") is None


def said_of(find: Callable[..., str], known: Knowledge, name: str) -> str:
    try:
        return find(known, name)
    except UserError as error:
        return str(error)


@pytest.mark.parametrize(
    ("table", "find"),
    [
        ("gpus", lambda known, name: find_cards(known, name).gpu.name),
        ("models", lambda known, name: find_model(known, name).name),
        ("formats", lambda known, name: find_format_candidates(known, name)[0].name),
        ("frameworks", lambda known, name: find_framework(known, name).name),
        ("kv_types", lambda known, name: find_kv_type(known, name).name),
    ],
)
def test_a_name_that_is_offered_is_understood(table: str, find: Callable[..., str]) -> None:
    known = load_knowledge(None)
    every = list(_names(table))
    assert len(every) >= len(getattr(known, table)) * 0.8
    for name in every[:: len(every) // 40 + 1]:
        said = said_of(find, known, name)
        same = said.replace(" (GGUF)", "").replace(" ", "-").endswith(name)
        assert same or "several memory sizes" in said


def test_a_script_for_each_shell(capsys: Capture) -> None:
    for shell in SHELLS:
        assert COMPLETING in run(capsys, "completion", shell).out
    wrong = run(capsys, "completion", "fishs")
    assert (wrong.code, "Did you mean 'fish'" in wrong.err) == (1, True)
