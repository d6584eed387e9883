"""``advisor diagnose``: a log or error text, what it says beside our figures, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from advisor.advice.pipeline import Advisor
from advisor.cli.advise import NOT_FITTING
from advisor.cli.options import (
    LENGTHS,
    Asked,
    Length,
    Output,
    adds_to_request,
)
from advisor.cli.own_files import takes_own_files
from advisor.cli.own_settings import standing, stated_here
from advisor.cli.report_output import named, width_of, write
from advisor.errors import RequestError, raise_problems
from advisor.knowledge.layers import OwnFiles, Stack
from advisor.reading.log_file import read_log
from advisor.report.diagnosing import diagnose as answer_log
from advisor.report.diagnosis import Diagnosis
from advisor.report.diagnosis_views import (
    NUMBERS,
    cells,
    head,
    markdown,
    remarks,
    text,
    text_head,
    with_advice,
)
from advisor.report.figures import say, spoken
from advisor.report.formats import Page, render_json


class Format(StrEnum):
    """How it is written."""

    text = "text"
    markdown = "markdown"
    json = "json"


@adds_to_request
@takes_own_files()
def diagnose(
    asked: Asked,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG", help="A file; '-' or nothing: standard input.", show_default=False
        ),
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="text, markdown or json.")
    ] = Format.text,
    length: Annotated[
        Length,
        typer.Option(
            metavar="<word>", help="How much of the report follows: short, standard, full."
        ),
    ] = Length.short,
    output: Output = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the verdict is 'fits'.")
    ] = False,
    *,
    own: OwnFiles,
) -> None:
    """Read a log or an error text, set its figures beside ours, and say what helps.

    It knows lines of llama.cpp, Ollama, vLLM, SGLang, TGI and PyTorch, and the tables of
    nvidia-smi and rocm-smi. What the log does not tell is given as for advise, and counts first.
    Where neither names a card, the one of your settings is taken.

    Example: advisor diagnose server.log --gpu "RTX 3090"
    """
    raise_problems(asked.wrong)
    if log is None and (sys.stdin is None or sys.stdin.isatty()):
        raise RequestError("no log is named", hint="Name a file, or send one to standard input.")
    advisor = Advisor.with_files(own)
    lines, shown = read_log(log, sys.stdin.buffer), _named(log)
    own_card = str(one.value) if (one := stated_here().get("gpu")) else ""
    made, missing = answer_log(
        lines, asked.request, advisor, knowledge=own.knowledge, templates=own.templates,
        shown=shown, own_card=own_card,
    )  # fmt: skip
    if made.advice and not asked.request.gpu and made.settings.get("gpu") == own_card:
        standing(["gpu"])
        named(made.advice)
    with spoken(own.templates):
        write(_written(made, format_, LENGTHS[length], output, own.templates), output)
    raise_problems(missing)
    if fail_unless_fits and made.advice and made.advice.verdict.state != "fits":
        raise typer.Exit(NOT_FITTING)


def _named(log: Path | None) -> str:
    return f"'{log}'" if log and str(log) != "-" else "standard input"


# ---- written


def _written(
    made: Diagnosis, form: Format, length: str, output: Path | None, templates: Stack
) -> str:
    if form is Format.json:
        return render_json(made)
    terminal = form is Format.text and output is None and sys.stdout.isatty()
    width = width_of(terminal=terminal)
    color = terminal and not os.environ.get("NO_COLOR")
    said = markdown(made) if form is Format.markdown else _text(made, width, terminal=terminal)
    page = (
        Page(made.advice, length, templates, width=width, color=color)  # type: ignore[arg-type]  # one of LENGTHS
        if made.advice
        else None
    )
    return with_advice(said, page, form.value)


def _text(made: Diagnosis, width: int, *, terminal: bool) -> str:
    if not terminal:
        return text(made, width)
    lines = [*text_head(made, width), *_drawn(made, width), *remarks(made, width)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _drawn(made: Diagnosis, width: int) -> Iterator[str]:
    if not made.comparison:
        return
    yield ""
    from rich.console import Console  # noqa: PLC0415  start-up
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(title=say("log.head.compared"), title_justify="left")
    for number, name in enumerate(head()):
        drawn.add_column(name, justify="right" if number in NUMBERS else "left")
    for row in made.comparison:
        drawn.add_row(*cells(row), style="yellow" if row.far else None)
    console = Console(width=width, no_color=bool(os.environ.get("NO_COLOR")))
    with console.capture() as held:
        console.print(drawn)
    yield held.get().rstrip("\n")
