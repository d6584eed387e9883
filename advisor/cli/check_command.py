"""``advisor check-command``: a pasted command, and whether it starts on a card."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from advisor.advice.command_check import check_command
from advisor.advice.pipeline import Advisor
from advisor.cli.advise import NOT_FITTING
from advisor.cli.options import (
    LENGTHS,
    Asked,
    Format,
    Length,
    Output,
    takes_machine,
)
from advisor.cli.own_files import takes_own_files
from advisor.cli.report_output import named, write
from advisor.errors import RequestError, raise_problems
from advisor.knowledge.layers import OwnFiles
from advisor.report.assembly import document
from advisor.report.command_view import command_doc, command_lines
from advisor.report.formats import render_json, render_text

_WIDTH = 88
_MOST_TEXT = 100_000


@takes_machine
@takes_own_files()
def check_command_line(
    machine: Asked,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="The command, behind --. Without it, standard input."
        ),
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.text,
    length: Annotated[
        Length, typer.Option(metavar="<word>", help="How much of the report follows.")
    ] = Length.short,
    output: Output = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the command starts.")
    ] = False,
    *,
    own: OwnFiles,
) -> None:
    """Say whether a pasted command starts on a card, what it leaves, and which one does.

    It reads what starts vLLM, SGLang, TensorRT-LLM, TGI, llama.cpp, Ollama (and Modelfiles),
    TabbyAPI, MLX-LM and LM Studio; also in a container, with variables and over several lines.

    Example: advisor check-command --gpu T4 -- vllm serve Qwen/Qwen3-8B-AWQ
    """
    raise_problems(machine.wrong)
    advisor = Advisor.with_files(own)
    found = check_command(_pasted(command), machine.request, advisor)
    complete = format_ is Format.json
    answer = advisor.with_expected(found.advice) if complete else found.advice
    doc = named(document(answer, templates=own.templates))
    if complete:
        text = render_json(command_doc(found, doc))
    else:
        report = render_text(doc, width=_WIDTH, length=LENGTHS[length], templates=own.templates)
        text = "\n".join([*command_lines(found), "", report])
    write(text, output)
    if fail_unless_fits and found.starts != "yes":
        raise typer.Exit(NOT_FITTING)


def _pasted(command: Sequence[str] | None) -> str:
    """Give the command as one text.

    Raises:
        RequestError: There is none, or it is far too long for one.
    """
    if command:
        return command[0] if len(command) == 1 else shlex.join(command)
    if sys.stdin is None or sys.stdin.isatty():
        raise RequestError(
            "no command is given", hint="Write it behind --, or send it to standard input."
        )
    text = sys.stdin.read(_MOST_TEXT + 1)
    if len(text) > _MOST_TEXT or not text.strip():
        what = "is empty" if not text.strip() else "is too long for a command"
        raise RequestError(f"standard input {what}", hint="Send a command to it.")
    return text
