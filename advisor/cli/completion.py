"""``advisor completion``, ``schema`` and ``man``: what shells and programs read of the commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.main import get_command

from advisor.cli.app import application, commands
from advisor.cli.main import main
from advisor.cli.user_settings import COMPLETING, OTHER_VARIABLES, VARIABLES, folders, user_settings
from advisor.errors import RequestError, UserError, did_you_mean
from advisor.files import __version__, packaged
from advisor.knowledge import load_knowledge
from advisor.scenario.settings import SETTINGS

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_TABLES = {
    "gpu": "gpus", "model": "models", "draft_model": "models", "precision": "formats",
    "framework": "frameworks", "kv_cache": "kv_types", "kv_cache_k": "kv_types",
    "kv_cache_v": "kv_types",
}  # fmt: skip
"""Setting -> the table of the knowledge that has its names."""
_UNQUOTED = re.compile(r"[\w.+:-]+", re.ASCII)
_BRAND = re.compile(r"^(?:GeForce|Radeon|Apple)-")


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"One of {', '.join(SHELLS)}.")],
) -> None:
    """Print the script that completes commands, flags and names in a shell.

    For bash: advisor completion bash >> ~/.bashrc. For zsh the same with ~/.zshrc, behind
    compinit; for fish ~/.config/fish/completions/advisor.fish.

    Example: advisor completion bash
    """
    if shell not in SHELLS:
        hint = did_you_mean(shell, SHELLS) or f"Known: {', '.join(SHELLS)}."
        raise RequestError(f"no completion for '{shell}'", hint=hint)
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    script = get_completion_script(prog_name="advisor", complete_var=COMPLETING, shell=shell)
    typer.echo(script)


def offered(setting: str, words: Iterable[str] = ()) -> Callable[[str], list[str]] | None:
    """Give what completes the value of a flag; None where nothing is to be completed.

    ``words`` is all that it may be, where no table has its names.
    """
    known = [*words, *(SETTINGS[setting].words if setting in SETTINGS else ())]
    if not (known or setting in _TABLES):
        return None

    def beginning(incomplete: str) -> list[str]:
        begun, typed = incomplete.replace(" ", "-").casefold(), len(incomplete)
        every = known or _names(_TABLES[setting])
        return [incomplete + n[typed:] for n in every if n.casefold().startswith(begun)]

    return beginning


def _names(table: str) -> Iterable[str]:
    """List names that need no quotes: with hyphens for spaces, of cards without the brand too."""
    found: dict[str, None] = {}
    with suppress(UserError):
        known = load_knowledge(folders(user_settings(told=False)).get("knowledge"))
        for name in getattr(known, table):
            hyphened = name.replace(" ", "-")
            if _UNQUOTED.fullmatch(hyphened):
                found |= dict.fromkeys((_BRAND.sub("", hyphened), hyphened))
    return found


DOCUMENTS = {
    "report": "one report: advise --format json",
    "reverse": "an answer of models-for or gpus-for: --format json",
    "estimate": "a line that estimate writes",
    "diagnose": "what a log says: diagnose --format json",
    "check-command": "what comes of a command: check-command --format json",
    "doctor": "this machine: doctor --format json",
}
"""Document -> what it is."""


def schema(
    document: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(DOCUMENTS)}; without it, the list.")
    ] = None,
) -> None:
    """Print the JSON Schema of a document: every key with its meaning and its unit (x-unit).

    Keys may be added from one release to the next; none is renamed and none goes.

    Example: advisor schema report
    """
    if document is None:
        width = max(map(len, DOCUMENTS))
        for name, what in DOCUMENTS.items():
            typer.echo(f"{name:{width}}  {what}")
        return
    if document not in DOCUMENTS:
        hint = did_you_mean(document, DOCUMENTS) or f"Known: {', '.join(DOCUMENTS)}."
        raise RequestError(f"no document is called '{document}'", hint=hint)
    file = packaged("schemas", "docs") / f"{document}.schema.json"
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


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
