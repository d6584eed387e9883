"""``advisor ask``: a question in plain words, read, shown as flags, and answered."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.advise import Format, advise
from advisor.cli.options import KnowledgeFolder, Length, Output, RulesFolder, TemplatesFolder
from advisor.errors import RequestError
from advisor.knowledge import load_knowledge
from advisor.reading.sentences import Read, read_sentence
from advisor.scenario.settings import FLAGS, KEYS, SETTINGS, WITH_UNITS
from advisor.units import shell_word

_TEXT = next(iter(Format))
_NEEDED = {
    "gpu": ("no card is named", "gpus-for --model"),
    "model": ("no model is named", "models-for --gpu"),
}


def ask(
    sentence: Annotated[
        list[str], typer.Argument(help='What you want to know, for example "llama 3 8b on a 4090".')
    ],
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="How the report is written.")
    ] = _TEXT,
    length: Annotated[
        Length, typer.Option(metavar="<word>", help="How much is said: short, standard or full.")
    ] = Length.short,
    output: Output = None,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the verdict is 'fits'.")
    ] = False,
) -> None:
    """Answer a question in plain words: how it was read, as flags of advise, then the report.

    The words decide, not a language model: the same sentence is always read in the same way.
    """
    read = read_sentence(" ".join(sentence), load_knowledge(knowledge))
    _refuse_without(read)
    aside = format_ is not _TEXT
    typer.echo(f"read as: {_as_flags(read)}", err=aside)
    if read.left:
        typer.echo(f"left out: {', '.join(read.left)}", err=aside)
    typer.echo("", err=aside)
    advise(
        **_values(read),
        format_=format_,
        length=length,
        output=output,
        rules=rules,
        templates=templates,
        knowledge=knowledge,
        fail_unless_fits=fail_unless_fits,
    )


def _refuse_without(read: Read) -> None:
    """Say what is missing, and which command answers without it.

    Raises:
        RequestError: No card, or no model, is named.
    """
    for name, (message, command) in _NEEDED.items():
        if name not in read.settings:
            other = next((key for key in _NEEDED if key != name and key in read.settings), "")
            named = shell_word(str(read.settings.get(other, "")))
            hint = f"For all that would do: advisor {command} {named}." if other else ""
            raise RequestError(f"{message} in this question", hint=hint)


def _as_flags(read: Read) -> str:
    order = [key for key in ("gpu", "model", *KEYS) if key in read.settings]
    parts = [f"--{key.replace('_', '-')} {shell_word(str(read.settings[key]))}" for key in order]
    return " ".join(dict.fromkeys(parts))


def _values(read: Read) -> dict[str, object]:
    """Give every flag of a request as if it had been typed."""
    values: dict[str, object] = {setting.typed_name: None for setting in FLAGS}
    for key, value in read.settings.items():
        setting = WITH_UNITS.get(key) or SETTINGS[key]
        values[setting.typed_name] = value if setting.kind == "whole" else str(value)
    return values
