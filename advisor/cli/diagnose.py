"""``advisor diagnose``: a log or error text, what it says beside our figures, and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from advisor.advice.document import Advice
from advisor.advice.pipeline import Advisor
from advisor.cli.advise import NOT_FITTING
from advisor.cli.options import (
    LENGTHS,
    Asked,
    KnowledgeFolder,
    Length,
    NoMeasurements,
    Output,
    RulesFolder,
    TemplatesFolder,
    adds_to_request,
    measurements_of,
)
from advisor.cli.report_output import width_of, write
from advisor.errors import RequestError, UserError, raise_problems
from advisor.knowledge.layers import Stack
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.knowledge.names import find_format_candidates, find_model
from advisor.knowledge.types import Knowledge
from advisor.reading.cards import find_cards, find_gpu
from advisor.reading.log_file import read_log
from advisor.reading.log_request import FromLog, settings_of
from advisor.reading.logs import Log, read_lines
from advisor.report.assembly import document
from advisor.report.diagnosis import Diagnosis, diagnosed, held_by_others, lacking
from advisor.report.diagnosis_views import (
    NUMBERS,
    cells,
    head,
    markdown,
    remarks,
    text_head,
    text_table,
)
from advisor.report.figures import say, spoken
from advisor.report.formats import FORMATS, Page, render_json
from advisor.runtimes.commands import commands_for
from advisor.scenario.settings import Request
from advisor.units import GIB

_PROGRAMS = "llama.cpp, Ollama, vLLM, SGLang, TGI, PyTorch, nvidia-smi and rocm-smi"
_ASKED = {
    "gpu": "the card: add --gpu NAME",
    "model": "the model: add --model NAME",
    "precision": "the weight format: add --precision NAME",
}
"""Setting that a request needs -> how it is asked for."""
_FIND: Mapping[str, Callable[[Knowledge, str], object]] = {
    "gpu": find_gpu,
    "model": find_model,
    "precision": find_format_candidates,
}


class Format(StrEnum):
    """How it is written."""

    text = "text"
    markdown = "markdown"
    json = "json"


@adds_to_request
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
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
    no_measurements: NoMeasurements = False,
) -> None:
    """Read a log or an error text, set its figures beside ours, and say what helps.

    It knows lines of llama.cpp, Ollama, vLLM, SGLang, TGI and PyTorch, and the tables of
    nvidia-smi and rocm-smi. What the log does not tell is given as for advise, and counts first.
    """
    raise_problems(asked.wrong)
    if log is None and (sys.stdin is None or sys.stdin.isatty()):
        raise RequestError("no log is named", hint="Name a file, or send one to standard input.")
    advisor = Advisor.load(
        rules=rules,
        templates=templates,
        knowledge=knowledge,
        measurements=None if no_measurements else measurements_of(knowledge),
    )
    read = read_lines(read_log(log, sys.stdin.buffer), load_log_patterns(knowledge))
    _refuse_nothing(read, log)
    found = settings_of(read, advisor.knowledge)
    with spoken(templates):
        made, missing = _answered(read, found, asked.request, advisor, templates)
        write(_written(made, format_, LENGTHS[length], output, templates), output)
    raise_problems(missing)
    if fail_unless_fits and made.advice and made.advice.verdict.state != "fits":
        raise typer.Exit(NOT_FITTING)


def _refuse_nothing(read: Log, path: Path | None) -> None:
    if read.known_lines or read.commands:
        return
    shown = f"'{path}'" if path and str(path) != "-" else "standard input"
    raise RequestError(
        f"no line of {shown} is known here ({read.lines:,} lines read)",
        hint=f"It reads what {_PROGRAMS} print. Give all of it, from the start of the program.",
    )


def _answered(
    read: Log, found: FromLog, stated: Request, advisor: Advisor, templates: Stack
) -> tuple[Diagnosis, list[UserError]]:
    """Answer the request that log and flags make, unless they leave something open."""
    flags = stated.stated()
    settings = {**found.settings, **flags}
    several = stated.gpu and found.ranks > 1 and "gpus" not in flags
    if several and not find_cards(advisor.knowledge, stated.gpu or "").counted:
        settings["gpus"] = found.ranks
    unknown = {key: seen for key, seen in found.unknown.items() if key not in settings}
    if unknown:
        return diagnosed(read, settings, unknown, None), [_question(unknown, advisor.knowledge)]
    request = replace(Request(), **settings)
    try:
        answer = advisor.advise(request, complete=True)
    except UserError as refused:  # what was read is shown all the same
        return diagnosed(read, settings, {}, None), [refused]
    doc = document(answer, templates=templates)
    made = diagnosed(read, settings, {}, doc, _starts(read, request, advisor))
    short = lacking(read, doc)
    if not short or request.reserve_gib is not None:
        return made, []
    reserve = _reserve(short, doc, request, advisor)
    as_it_was = advisor.advise(replace(request, reserve_gib=reserve), complete=True)
    return held_by_others(made, short, reserve, document(as_it_was, templates=templates)), []


def _reserve(short: float, doc: Advice, request: Request, advisor: Advisor) -> float:
    """Give what others must hold of each card, GiB, so that so many bytes less are usable."""
    card = doc.memory.per_gpu[0]
    first = card.capacity_bytes - card.usable_bytes + short
    tried = advisor.advise(replace(request, reserve_gib=first / GIB)).memory.per_gpu[0]
    kept = card.usable_bytes - short - tried.usable_bytes
    return max(0.0, round((first - kept) / GIB, 2))


def _starts(read: Log, request: Request, advisor: Advisor) -> str | None:
    """Give the command with the longest context that the program itself says to hold."""
    longest = read.figure("max_context")
    if not longest or longest < 1 or not read.causes:
        return None
    answer = advisor.advise(replace(request, context=int(longest)))
    commands = commands_for(answer.scenario, answer.memory)
    return commands[0].text if commands else None


def _question(unknown: dict[str, str], knowledge: Knowledge) -> RequestError:
    """Ask for what the log does not tell, all at once."""
    parts = [_ASKED[key] + _seen(key, seen, knowledge) for key, seen in unknown.items()]
    return RequestError(f"the log does not tell {'; '.join(parts)}.")


def _seen(key: str, seen: str, knowledge: Knowledge) -> str:
    """Say why what the log calls it is not enough."""
    if not seen:
        return ""
    try:
        _FIND[key](knowledge, seen)
    except RequestError as why:
        return f" ({why})"
    return f" (the log says '{seen[:100]}', which does not agree with the rest of it)"


# ---- written


def _written(
    made: Diagnosis, form: Format, length: str, output: Path | None, templates: Stack
) -> str:
    if form is Format.json:
        return render_json(made)
    if form is Format.markdown:
        return markdown(made) + _report(made.advice, "markdown", length, templates, 0, color=False)
    terminal = output is None and sys.stdout.isatty()
    width = width_of(terminal=terminal)
    color = terminal and not os.environ.get("NO_COLOR")
    lines = [*text_head(made, width), *_figures(made, width, terminal=terminal)]
    lines += remarks(made, width)
    report = _report(made.advice, "text", length, templates, width, color=color)
    return "\n".join(lines).rstrip("\n") + "\n" + report


def _figures(made: Diagnosis, width: int, *, terminal: bool) -> Iterator[str]:
    if not made.comparison:
        return
    yield ""
    if not terminal:
        yield from text_table(made)
        return
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


def _report(
    doc: Advice | None, form: str, length: str, templates: Stack, width: int, *, color: bool
) -> str:
    if doc is None:
        return ""
    page = Page(doc, length, templates, width=width, color=color)  # type: ignore[arg-type]  # one of LENGTHS
    title = say("log.head.advice")
    shown = f"\n## {title}\n\n" if form == "markdown" else f"\n{title}\n\n"
    return shown + FORMATS[form].write(page).rstrip("\n") + "\n"
