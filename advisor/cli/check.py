"""``advisor check``: is everything in a house folder right, and does every report come out?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.options import (
    FindingsFormat,
    Output,
)
from advisor.cli.own_files import takes_folders
from advisor.cli.own_settings import FILE, KINDS, house_folders
from advisor.cli.progress import progress_line
from advisor.cli.report_output import write
from advisor.errors import RequestError
from advisor.knowledge.layers import OwnFiles
from advisor.units import counted
from advisor.workbench.house import House, Looked, check_house
from advisor.workbench.lint import problem

_SAMPLE = 400


@takes_folders
def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder with rules/, templates/ and knowledge/, or an advisor.toml."),
    ] = None,
    *,
    own: OwnFiles,
    sample: Annotated[
        int, typer.Option(help="Scenarios of the catalogue to try rules on.", min=0, max=1_000_000)
    ] = _SAMPLE,
    format_: Annotated[
        FindingsFormat, typer.Option("--format", help="How findings are written.")
    ] = FindingsFormat.text,
    output: Output = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on warnings too.")] = False,
) -> None:
    """Check rules, texts, words, knowledge, facts and policy; then write every kind of report.

    Every action, note and verdict in every format and length: without a finding, each of them
    was written. Every problem of every file at once; exit code 1 when there is one.

    Example: advisor check house
    """
    house = _house(folder) if folder else House(*own.folders)
    looked = check_house(house, sample=sample, progress=progress_line())
    text = getattr(problem, f"as_{format_.value}")(looked.problems)
    write(text + (_summary(looked) if format_ is FindingsFormat.text else ""), output)
    if any(found.is_error or strict for found in looked.problems):
        raise typer.Exit(1)


def _house(folder: Path) -> House:
    """Find the parts of a house: those that its advisor.toml names, else those that it has.

    Raises:
        UserError: There are none, or advisor.toml is wrong.
    """
    if not folder.is_dir():
        raise RequestError(f"{folder} is not a folder", hint="Name a folder of your own files.")
    named = house_folders(folder)
    found = named or {kind: (folder / kind,) for kind in KINDS if (folder / kind).is_dir()}
    if not found:
        hint = f"It has {', '.join(f'{kind}/' for kind in KINDS)} or a file {FILE}."
        raise RequestError(f"{folder} holds nothing to check", hint=hint)
    return House(**found)


def _summary(looked: Looked) -> str:
    errors = sum(found.is_error for found in looked.problems)
    counts = ((errors, "error"), (len(looked.problems) - errors, "warning"))
    said = " and ".join(counted(n, word) for n, word in counts if n) or "no problem found"
    if not looked.reports:
        return f"{said}; no report was written, as files are wrong\n"
    wrote = f"{counted(looked.reports, 'situation')}, each in every format and length"
    return f"{wrote}, and {counted(looked.texts, 'wording')} of texts written: {said}\n"
