"""``advisor man``: the manual page, made of the help of every command."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command

from advisor.cli.app import application, commands
from advisor.cli.main import main
from advisor.cli.own_settings import OTHER_VARIABLES, VARIABLES
from advisor.files import __version__

_EXAMPLE = re.compile(r"^Example: (advisor\b.*)$", re.MULTILINE)


def man() -> None:
    """Print the manual page of every command, for man.

    Example: advisor man > advisor.1
    """
    typer.echo("\n".join(page()))


def page() -> Iterator[str]:
    """Write the page in the language of troff."""
    root: Any = get_command(application([]))
    yield f'.TH ADVISOR 1 "" "advisor {__version__}" "User Commands"'
    yield from (".SH NAME", f"advisor \\- {_escaped(_first(root.help))}")
    yield from (
        ".SH SYNOPSIS",
        ".B advisor",
        "COMMAND [OPTIONS]",
        ".br",
        ".B advisor",
        '"QUESTION"',
    )
    yield ".SH OPTIONS"
    yield from _options(root)
    yield ".SH COMMANDS"
    for words in commands():
        yield from _command(words)
    yield ".SH ENVIRONMENT"
    for key, name in VARIABLES.items():
        yield from _term(
            name, f"Stands for --{key.replace('_', '-')} where it is not given: advisor settings."
        )
    for name, what in OTHER_VARIABLES.items():
        yield from _term(name, what)
    yield ".SH EXIT STATUS"
    yield _escaped(_first((inspect.getdoc(main) or "").partition("Exit codes: ")[2]))


def command_of(words: tuple[str, ...]) -> Any:
    """Load a command and give it as the parser has it."""
    found: Any = get_command(application([*words, "--help"]))
    for word in words:
        found = found.commands[word]
    return found


def example_in(text: str) -> str:
    """Find the example in the help of a command; empty where it has none."""
    found = _EXAMPLE.search(text)
    return found[1] if found else ""


def _command(words: tuple[str, ...]) -> Iterator[str]:
    command = command_of(words)
    yield f'.SS "advisor {" ".join(words)}"'
    text = _EXAMPLE.sub("", command.help).strip()
    yield from (f".PP\n{_escaped(' '.join(one.split()))}" for one in text.split("\n\n"))
    yield from (".PP", ".EX", _escaped(example_in(command.help)), ".EE")
    yield from _options(command)


def _options(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.param_type_name == "argument":
            yield from _term(one.metavar or one.name.upper(), one.help or "")
        elif one.help:
            value = "" if one.is_flag else f" {one.metavar or one.type.name}"
            yield from _term(", ".join(one.opts) + value, one.help)


def _term(term: str, text: str) -> Iterator[str]:
    yield from (".TP", f".B {_escaped(term)}", _escaped(" ".join(text.split())))


def _first(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _escaped(text: str) -> str:
    """Keep the formatter from reading a text as its own language."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return re.sub(r"^(?=[.'])", r"\\&", safe, flags=re.MULTILINE)
