"""Every command takes the user's own folders that it reads, by the same names."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer.main

from advisor.cli import app
from advisor.cli.user_settings import KINDS
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
KNOWLEDGE_ALONE = "figures alone: no rule decides, no text is written"
WITHOUT: Mapping[str, tuple[str, str]] = {
    "calibrate": ("rules templates", KNOWLEDGE_ALONE),
    "estimate": ("rules templates", KNOWLEDGE_ALONE),
    "models-for": ("rules templates", KNOWLEDGE_ALONE),
    "gpus-for": ("rules templates", KNOWLEDGE_ALONE),
    "runtimes": ("rules templates", KNOWLEDGE_ALONE),
    "knowledge find": ("rules templates", KNOWLEDGE_ALONE),
    "knowledge check": ("rules templates", KNOWLEDGE_ALONE),
    "knowledge age": ("rules templates", KNOWLEDGE_ALONE),
    "knowledge update": ("rules templates knowledge", "writes a list of the user's"),
    "measure add": ("rules templates", KNOWLEDGE_ALONE),
    "measure run": ("rules templates", KNOWLEDGE_ALONE),
    "measure list": ("rules templates", KNOWLEDGE_ALONE),
    "measure remove": ("rules templates", KNOWLEDGE_ALONE),
    "doctor": ("rules templates", KNOWLEDGE_ALONE),
    "init": ("rules templates knowledge", "writes folders"),
    "completion": ("rules templates knowledge", "prints a script"),
    "man": ("rules templates knowledge", "prints the help of all commands"),
    "schema": ("rules templates knowledge", "prints files"),
    "settings": ("rules templates knowledge", "shows them"),
    "trust": ("rules templates knowledge", "remembers folders"),
    "rules format": ("templates knowledge", "the form of rule files"),
    "rules schema": ("rules templates", "the facts, which are knowledge"),
}
"""Command -> the folders that it does not take, and why: a new command takes all three, or stands
here."""
READERS = {
    "rules": ("Session(**", "Advisor.load", "Advisor.of", "load_rules(", "load_side", "check_all("),
    "templates": (
        "Session(**",
        "Advisor.load",
        "Advisor.of",
        "template_problems",
        "templates_for",
        "load_side",
    ),
    "knowledge": (
        "Session(",
        "Advisor.load",
        "Advisor.of",
        "load_knowledge(",
        "rule_vocabulary(",
        "load_side",
    ),
}
"""What a command that reads a folder calls."""


PLACES = {
    **app._COMMANDS,
    **{
        f"{group} {name}": place for group, of in app._GROUPED.items() for name, place in of.items()
    },
}


def test_all_commands_are_looked_at() -> None:
    assert len(PLACES) > 30
    assert WITHOUT.keys() <= PLACES.keys()


@pytest.mark.parametrize("command", PLACES)
def test_a_command_takes_the_folders_that_it_reads(command: str) -> None:
    found = typer.main.get_command(app.application(command.split()))
    for name in command.split():
        found = found.commands[name]  # type: ignore[attr-defined]  # a group
    options = {option for one in found.params for option in one.opts}
    left_out = WITHOUT.get(command, ("", ""))[0].split()
    assert {kind for kind in KINDS if f"--{kind}" not in options} == set(left_out)
    source = source_of(*PLACES[command].split("."))
    for kind in left_out:
        assert not [call for call in READERS[kind] if call in source]


def source_of(module: str, function: str) -> str:
    text = Path(app.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    found = (one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef))
    return ast.get_source_segment(text, next(f for f in found if f.name == function)) or ""


RULES = """\
- rule: ours
  why: So that something is ours.
  source: us
  when: {gpu.vram: at least 20 GiB}
  note: |
    A note of ours.
  cases:
    - {name: a, given: {gpu: RTX 4090, model: phi-3-mini}, expect: fires}
    - {name: b, given: {gpu: RTX 3060, model: phi-3-mini}, expect: silent}
"""


def test_checks_and_tests_take_a_folder_named_as_everywhere(
    capsys: Capture, tmp_path: Path
) -> None:
    rules, texts = tmp_path / "rules", tmp_path / "texts" / "notes"
    rules.mkdir()
    texts.mkdir(parents=True)
    (rules / "mine.yaml").write_text(RULES, encoding="utf-8")
    (texts / "ours.md.j2").write_text("{{ gpu_nam }} is ours.\n", encoding="utf-8")
    named = ("--rules", str(rules))
    quick = run(capsys, "rules", "check", "--quick", *named)
    assert "1 rule in 1 file" in quick.out
    assert "2 of 2 cases hold" in run(capsys, "rules", "test", "--rule", "ours", *named).out
    assert "0 files reformatted, 1 unchanged" in run(capsys, "rules", "format", *named).out
    wrong = run(capsys, "templates", "check", "--templates", str(tmp_path / "texts"))
    assert f"{tmp_path}/texts/notes/ours.md.j2:1:4: unknown placeholder" in wrong.out


def test_the_schema_knows_facts_of_ones_own(capsys: Capture, tmp_path: Path) -> None:
    fact = "- {fact: house.mood, values: [good, bad], from: rules, help: How we feel.}\n"
    (tmp_path / "facts.yaml").write_text(fact, encoding="utf-8")
    assert "house.mood" in run(capsys, "rules", "schema", "--knowledge", str(tmp_path)).out
    assert "house.mood" not in run(capsys, "rules", "schema").out
