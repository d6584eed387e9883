"""``advisor batch``: written reports for a whole plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.advice.pipeline import Advisor
from advisor.bulk.batch.product import load_plan
from advisor.bulk.batch.run import measure
from advisor.bulk.batch.store import formats
from advisor.cli.batch_run import Asked, Going, execute, foretold
from advisor.cli.options import (
    LENGTHS,
    Length,
    cores,
)
from advisor.cli.own_files import takes_own_files
from advisor.errors import RequestError, raise_problems
from advisor.knowledge.layers import OwnFiles
from advisor.report.templates import template_problems
from advisor.suggest import did_you_mean

_DEFAULT = "markdown,jsonl"
_PLAN = "A plan (.yaml), or requests (.csv, .jsonl)."
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for the reports, new or empty.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")]
Verify = Annotated[
    bool, typer.Option("--verify", help="With --resume: make again what was changed since.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say how much it is and what it will take.")
]


@takes_own_files()
def batch(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help=_PLAN)],
    out: Out = None,
    formats: Annotated[str, typer.Option(help="Any of markdown, html, jsonl, parquet.")] = _DEFAULT,
    workers: Workers = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
    verify: Verify = False,
    dry_run: DryRun = False,
    length: Annotated[Length, typer.Option(help="How much the reports say.")] = Length.standard,
    *,
    own: OwnFiles,
) -> None:
    """Write reports for every scenario of a plan; stop and go on at any time.

    A plan lists cards, models, formats and contexts: every combination that
    can run is reported. A file of requests gives one report for each.

    The same plan gives the same bytes, however many workers there are and
    however often it was stopped. A JSON summary is printed at the end.

    Example: advisor batch plan.yaml --out reports
    """
    if out is None and not dry_run:
        raise typer.BadParameter("needed unless --dry-run is given.", param_hint="'--out'")
    if workers and scheduler:
        raise typer.BadParameter(
            "is for a pool; the cluster has its own.", param_hint="'--workers'"
        )
    if verify and not resume:
        raise typer.BadParameter(
            "reads what an earlier run wrote: add --resume.", param_hint="'--verify'"
        )
    asked = _asked(plan, _formats(formats), length, own)
    number = workers or cores()
    if dry_run or out is None:
        _foretell(asked, number)
    else:
        execute(asked, out, Going(number, scheduler, resume, verify))


def _asked(plan: Path, formats: tuple[str, ...], length: Length, own: OwnFiles) -> Asked:
    """Read the plan and everything that reports are made from; all that is wrong, at once."""
    raise_problems(template_problems(own.templates))
    advisor = Advisor.with_files(own)
    read = load_plan(plan, advisor.knowledge, own.knowledge)
    return Asked(read, advisor, formats, LENGTHS[length], own)


def _formats(text: str) -> tuple[str, ...]:
    known = formats()
    words = [word.strip().casefold() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            hint = did_you_mean(word, known) or f"Known: {', '.join(known)}."
            raise RequestError(f"--formats: unknown format '{word}'", hint=hint)
    if not words:
        raise RequestError("--formats is empty", hint=f"Known: {', '.join(known)}.")
    return tuple(name for name in known if name in words)


def _foretell(asked: Asked, workers: int) -> None:
    for line in foretold(asked.plan, measure(asked.plan, asked.making()), workers):
        typer.echo(line)
