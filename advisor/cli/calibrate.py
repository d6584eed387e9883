"""``advisor calibrate``: fit the speed model to the carried measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.calibration.outputs import accuracy_files, knowledge_files, stale_files, write_files
from advisor.cli.options import KnowledgeFolder
from advisor.errors import RequestError
from advisor.files import data_dir
from advisor.knowledge import load_knowledge


def calibrate(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder to write to. [default: the knowledge]"
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when a file is out of date.")
    ] = False,
    accuracy: Annotated[
        Path | None,
        typer.Option(
            "--accuracy",
            metavar="DIR",
            help="Write or check the accuracy page and its plots there.",
        ),
    ] = None,
    knowledge: KnowledgeFolder = None,
) -> None:
    """Fit the speed model to the measurements that the project carries.

    Writes calibration-fitted.yaml and measured.csv. The same measurements give the same bytes.

    Example: advisor calibrate --check
    """
    known = load_knowledge(knowledge)
    if accuracy is not None:
        folder, texts = accuracy, accuracy_files(known)
    else:
        folder, texts = output or data_dir("knowledge"), knowledge_files(known)
    if not check:
        write_files(folder, texts)
        typer.echo(f"wrote {', '.join(texts)} to {folder}")
        return
    stale = stale_files(folder, texts)
    if stale:
        again = f"advisor calibrate{' --accuracy ' + str(accuracy) if accuracy else ''}"
        raise RequestError(f"out of date: {', '.join(stale)}", hint=f"Run '{again}'.")
    typer.echo(f"{', '.join(texts)}: up to date")
