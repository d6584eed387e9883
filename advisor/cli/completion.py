"""``advisor completion``: commands, flags and names of cards and models on the tab key."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Annotated

import typer

from advisor.cli.own_settings import COMPLETING, folders, own_settings
from advisor.errors import RequestError, UserError, did_you_mean
from advisor.files import packaged
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


def complete(application: Callable[[Sequence[str]], typer.Typer]) -> None:
    """Write what the word at the cursor may become, as the shell takes it, and exit.

    Args:
        application: Makes the command line that the words before the cursor need.
    """
    from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()[1:]
    completion_init()
    with suppress(UserError):
        application(words if line[-1:].isspace() else words[:-1])(prog_name="advisor")


def offered(setting: str, words: Iterable[str] = ()) -> Callable[[str], list[str]] | None:
    """Give what completes the value of a flag; None where nothing is to be completed.

    Args:
        setting: Whose names are offered.
        words: All that it may be, where no table has its names.
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
        known = load_knowledge(folders(own_settings(told=False)).get("knowledge"))
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
