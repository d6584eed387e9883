"""``advisor init``: a starter of one's own rules, texts and knowledge."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from advisor.report.figures import aligned
from advisor.workbench.starter import write_starter

_NEXT = (
    ("advisor knowledge check", "are cards and sources right?"),
    ("advisor rules check", "is every rule right?"),
    ("advisor rules test", "do all cases and scenarios hold?"),
    ('advisor advise --gpu "Example 48 GB card" --model phi-3-medium', "the example at work"),
    ("advisor rules diff built-in", "which reports do your files change?"),
)


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder to write to; made if it is missing.")
    ] = Path(),
) -> None:
    """Write a starter: a rule with its cases, a text, a card, a scenario and editor settings.

    Everything is written, or nothing; a file that is there already is never replaced.
    """
    written = write_starter(folder)
    typer.echo(f"wrote {len(written)} files to {folder}:")
    for name in written:
        typer.echo(f"  {name}")
    typer.echo("\nNext:")
    if folder.resolve() != Path.cwd():
        typer.echo(f"  cd {shlex.quote(str(folder))}")
    for line in aligned(_NEXT, "  "):
        typer.echo(line)
    typer.echo(
        "\nadvisor.toml there makes every command use the three folders; README.md says more."
    )
