"""Whether and where a command reads the user's own measurements."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from advisor.calibration.user.store import file_of

NoMeasurements = Annotated[
    bool,
    typer.Option(
        "--no-measurements",
        help="Leave your own measurements out, as ADVISOR_NO_MEASUREMENTS=1 does.",
        rich_help_panel="Your own files",
    ),
]


def measurements_of(knowledge: Path | None) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)
