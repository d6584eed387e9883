"""``advisor audit``: check what was published."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from advisor.advice.pipeline import Advisor
from advisor.bulk.audit.run import Now, Setup
from advisor.bulk.batch.manifest import input_files, made_by
from advisor.bulk.batch.readback import Batch, open_batch
from advisor.bulk.batch.store import MANIFEST, SITE_MANIFEST
from advisor.cli.audit_text import told_batch, told_site
from advisor.cli.batch_run import Folders, whole
from advisor.cli.options import (
    Format,
    KnowledgeFolder,
    NoMeasurements,
    RulesFolder,
    TemplatesFolder,
    measurements_of,
)
from advisor.cli.progress import STOPPED

_FOUND = 1
_SIMILAR = 0.9


def _number(value: float) -> float:
    """Refuse NaN, which is within any bounds."""
    if isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def audit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A batch or a site.")],
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Check the contents of N reports, spread evenly."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
    ] = None,
    similar: Annotated[
        float,
        typer.Option(
            min=0.1, max=1.0, callback=_number, help="Texts that overlap so much are told as alike."
        ),
    ] = _SIMILAR,
    form: Annotated[
        Format, typer.Option("--format", help="How findings are printed.")
    ] = Format.text,
    rules: RulesFolder = None,
    templates: TemplatesFolder = None,
    knowledge: KnowledgeFolder = None,
    no_measurements: NoMeasurements = False,
) -> None:
    """Check a batch: every report against itself, its formats and a fresh answer.

    Looks for figures and sentences that a fresh computation does not confirm,
    contradictions, files that are missing, damaged or foreign, broken links,
    different scenarios with the same text, and reports made from rules or
    knowledge that have changed, with the names of the changed files.

    A folder made by 'advisor site' is checked for links, damage and size.
    Exits 0 when nothing is wrong, 1 when something is.

    Example: advisor audit reports
    """
    own = None if no_measurements else measurements_of(knowledge)
    how = _How(sample, workers, similar, form is Format.json)
    try:
        clean = _told(folder, Folders(rules, templates, knowledge, own), how)
    except KeyboardInterrupt:
        sys.stderr.write("stopped before everything was checked, so nothing is told.\n")
        raise typer.Exit(STOPPED) from None
    if not clean:
        raise typer.Exit(_FOUND)


class _How(Struct, frozen=True):
    """How an audit is asked for."""

    sample: int | None
    workers: int | None
    threshold: float
    json_form: bool


def _told(folder: Path, folders: Folders, how: _How) -> bool:
    """Audit a site or a batch and print what was found; gives whether it is clean."""
    if (folder / SITE_MANIFEST).is_file() and not (folder / MANIFEST).exists():
        return told_site(folder, json_form=how.json_form)
    setup, now, batch = _prepared(folder, folders)
    return told_batch(
        batch, setup, now, sample=how.sample, workers=how.workers, threshold=how.threshold,
        json_form=how.json_form,
    )  # fmt: skip


def _prepared(folder: Path, folders: Folders) -> tuple[Setup, Now, Batch]:
    batch = open_batch(folder)
    advisor = Advisor.load(
        rules=folders.rules,
        templates=folders.templates,
        knowledge=folders.knowledge,
        measurements=folders.measurements,
    )
    formats = tuple(kind for kind in batch.formats if kind != "parquet")
    inputs = input_files(
        {"rules": folders.rules, "templates": folders.templates, "knowledge": folders.knowledge}
    )
    setup = Setup(
        root=str(folder.resolve()),
        formats=batch.formats,
        length=batch.manifest["length"],
        fresh=True,
        rules=whole(folders.rules),
        templates=whole(folders.templates),
        knowledge=whole(folders.knowledge),
        measurements=next(iter(whole(folders.measurements)), None),
    )
    return setup, Now(made_by(advisor, formats), inputs), batch
