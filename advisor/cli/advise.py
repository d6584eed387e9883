"""``advisor advise``: one report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict

from advisor.api import Extra, Session
from advisor.cli.options import LENGTHS, OWN_FILES, Asked, Hub, Length, Offline, takes_request
from advisor.cli.report_output import takes_own_files, write_report
from advisor.errors import raise_problems
from advisor.knowledge.layers import OwnFiles
from advisor.report import FORMATS
from advisor.report.templates import template_problems

NOT_FITTING = 3


Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]  # by register
"""How a report is written."""


_OUTPUT = "The report"
_NAMES = list(FORMATS)
_FIRST = Format(_NAMES[0])


@takes_request
@takes_own_files(OWN_FILES)
def advise(
    asked: Asked,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="<word>",
            help=f"How the report is written: {', '.join(_NAMES[:-1])} or {_NAMES[-1]}.",
            rich_help_panel=_OUTPUT,
        ),
    ] = _FIRST,
    length: Annotated[
        Length,
        typer.Option(
            metavar="<word>",
            help="How much is said: short (at most 150 words), standard (at most 500) or full.",
            rich_help_panel=_OUTPUT,
        ),
    ] = Length.standard,
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Show how memory grows with context, and which contexts and batches fit.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    options: Annotated[
        bool,
        typer.Option(
            "--options", help="List every what-if that was estimated.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Show which rules fired, which did not, and by how much.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Check the report before it is written: figures, sums, bounds, words. "
            "Exit 1 or 70 and say what does not hold.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", rich_help_panel=_OUTPUT),
    ] = None,
    fail_unless_fits: Annotated[
        bool,
        typer.Option(
            "--fail-unless-fits",
            help="Exit 3 unless the verdict is 'fits'.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    hub: Hub = False,
    offline: Offline = False,
    *,
    own: OwnFiles,
) -> None:
    """Say whether a model runs on a card, how well, and what to change.

    Example: advisor advise --gpu "RTX 4090" --model phi-3-medium
    """
    if hub or offline:
        raise_problems(asked.wrong)
    raise_problems(template_problems(own.templates))
    session = Session(**asdict(own), hub=hub or offline, offline=offline)
    known = session.advisor.knowledge
    complete = FORMATS[format_].complete
    extras: Mapping[Extra, bool] = {
        "barred": complete or length is Length.full or why,
        "reasons": complete or strict,
        "memory": memory,
        "options": options,
    }
    report = session.advise(
        asked.request if hub or offline else asked.checked(known),
        [extra for extra, taken in extras.items() if taken],
    )
    write_report(
        report, form=format_.value, length=LENGTHS[length], output=output, why=why, strict=strict
    )
    if fail_unless_fits and report.document.verdict.state != "fits":
        raise typer.Exit(NOT_FITTING)
