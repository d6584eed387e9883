"""``advisor knowledge``: look up and check GPUs, models, formats and frameworks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.errors import RequestError, raise_problems
from advisor.files import data_dir
from advisor.knowledge import load_knowledge
from advisor.knowledge.load import check_knowledge, provenance_line, unusual_figures
from advisor.knowledge.load import find as search
from advisor.knowledge.log_patterns import log_pattern_problems
from advisor.knowledge.types import UNUSUAL
from advisor.models.resolution import parameter_problems
from advisor.report.figures import aligned
from advisor.runtimes import memory_model_problems
from advisor.units import counted

if TYPE_CHECKING:
    from advisor.reading.public_list import PublicModel

_MOST_LISTED = 10
"""Repositories of the public list that a search names."""


def find(
    text: Annotated[str, typer.Argument(help="Part of a name.")],
    knowledge: Annotated[Path | None, typer.Option(help="Folder of knowledge files.")] = None,
) -> None:
    """List what the knowledge base and the public list have under a name."""
    from advisor.reading.public_list import containing  # noqa: PLC0415  for this command alone

    rows = [tuple(row) for row in search(load_knowledge(knowledge), text)]
    known = {row[1].casefold() for row in rows}
    listed = (one for one in containing(text, _MOST_LISTED) if one.name.casefold() not in known)
    rows += [("public list", one.hf_id, _public(one)) for one in listed]
    if not rows:
        raise RequestError(f"nothing here is called '{text}'")
    for line in aligned(rows):
        typer.echo(line)


def _public(one: PublicModel) -> str:
    size = (
        f"{one.parameters_raw / 1e9:.3g} billion elements" if one.parameters_raw else "size unknown"
    )
    return f"{size}, {one.release_date or 'no date'}{'; yours' if one.yours else ''}"


def update(
    file: Annotated[Path, typer.Argument(help="CSV file with the columns of docs/public-list.md.")],
) -> None:
    """Take a newer list of public models; it goes before the built-in one."""
    from advisor.reading.public_import import import_list  # noqa: PLC0415  csv, for this alone
    from advisor.reading.public_list import places  # noqa: PLC0415

    target = places()[0]
    taken = import_list(file, target, f"{file.name}, taken on {datetime.now(UTC):%Y-%m-%d}")
    newest = f", the newest of {taken.newest}" if taken.newest else ""
    typer.echo(f"{taken.models:,} models{newest}: in {target}, before the built-in list")


def check(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of knowledge files. (default: the built-in one)")
    ] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="The same folder, named as for other commands.")
    ] = None,
) -> None:
    """Check every knowledge file, over the built-in ones; every problem at once."""
    folder = folder or knowledge
    where = folder or data_dir("knowledge")
    found = check_knowledge(where, memory_model_problems, log_pattern_problems, parameter_problems)
    warnings = [one for one in found if one.lint == UNUSUAL]
    raise_problems([one for one in found if one.lint != UNUSUAL])
    known = load_knowledge(folder)
    unusual_figures()
    for one in warnings:
        typer.echo(f"warning: {one}")
    said = counted(len(warnings), "warning") if warnings else "no problem found"
    typer.echo(
        f"{len(known.gpus)} GPUs, {len(known.models)} models, {len(known.formats)} formats, "
        f"{len(known.frameworks)} frameworks: {said}"
    )
    if own := provenance_line(known):
        typer.echo(own)
