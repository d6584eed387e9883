"""``advisor rules format``: rule files in the one way they are written."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.rules_check import Paths


def format_(
    paths: Paths = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; show the edits.")] = False,
) -> None:
    """Write rule files in the canonical form: order of keys, indentation, spacing.

    Comments, values and the order of conditions stay. A file that is not YAML is named and left
    alone. Scenario files are written by 'advisor rules test --accept' and are not touched.
    """
    from advisor.errors import raise_problems  # noqa: PLC0415
    from advisor.workbench.lint.corrections import (  # noqa: PLC0415
        differences,
        reformatted,
        replace_files,
    )

    edited, same, errors = reformatted(paths or [])
    if diff:
        typer.echo(differences(edited), nl=False)
    elif check:
        typer.echo("".join(f"would reformat {file.shown}\n" for file in edited), nl=False)
    else:
        replace_files(edited)
    told = "would change" if check or diff else "reformatted"
    files = f"{len(edited)} file{'s' * (len(edited) != 1)}"
    typer.echo(f"{files} {told}, {same} unchanged", err=diff)
    raise_problems(errors)
    if check and edited:
        raise typer.Exit(1)
