"""``advisor schema``: what the JSON documents hold, for programs that read them."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.errors import RequestError
from advisor.files import packaged
from advisor.suggest import did_you_mean

DOCUMENTS = {
    "report": "one report: advise --format json",
    "reverse": "an answer of models-for or gpus-for: --format json",
    "estimate": "a line that estimate writes",
    "diagnose": "what a log says: diagnose --format json",
    "check-command": "what comes of a command: check-command --format json",
    "doctor": "this machine: doctor --format json",
}
"""Document -> what it is."""


def schema(
    document: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(DOCUMENTS)}; without it, the list.")
    ] = None,
) -> None:
    """Print the JSON Schema of a document: every key with its meaning and its unit (x-unit).

    Keys may be added from one release to the next; none is renamed and none goes.

    Example: advisor schema report
    """
    if document is None:
        width = max(map(len, DOCUMENTS))
        for name, what in DOCUMENTS.items():
            typer.echo(f"{name:{width}}  {what}")
        return
    if document not in DOCUMENTS:
        hint = did_you_mean(document, DOCUMENTS) or f"Known: {', '.join(DOCUMENTS)}."
        raise RequestError(f"no document is called '{document}'", hint=hint)
    file = packaged("schemas", "docs") / f"{document}.schema.json"
    typer.echo(file.read_text(encoding="utf-8"), nl=False)
