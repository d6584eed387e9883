"""``advisor settings``: what stands for flags that are not given, and where it is stated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from advisor.bulk.batch.worker import Cluster, connected
from advisor.cli.options import Format
from advisor.cli.own_settings import (
    ASKED,
    BUILT_IN_LANGUAGE,
    KEYS,
    OTHER_VARIABLES,
    VARIABLE,
    Settings,
    mistyped,
    own_file,
    own_settings,
)
from advisor.report.figures import aligned
from advisor.scenario.settings import SETTINGS, WITH_UNITS
from advisor.units import plain

_NOT_STATED = "not stated"
_UNLAID = {"prices": "launch prices alone", "language": BUILT_IN_LANGUAGE}


def settings(
    format_: Annotated[
        Format, typer.Option("--format", metavar="<word>", help="text or json.")
    ] = Format.text,
) -> None:
    """Show every setting, its value and where it is stated.

    A flag goes before the environment (ADVISOR_GPU ...), that before the advisor.toml of a trusted
    folder, that before your own advisor.toml, that before what is built in.

    Example: advisor settings --format json
    """
    own = own_settings()
    if format_ is Format.json:
        typer.echo(json.dumps({key: _row(own, key) for key in KEYS}, ensure_ascii=False, indent=2))
        return
    shown = [("setting", "value", "from"), *(_cells(_row(own, key), key) for key in KEYS)]
    for line in (*aligned(shown), "", *_files(), *_variables(), *mistyped()):
        typer.echo(line.rstrip())


def _row(own: Settings, key: str) -> dict[str, object]:
    """Give a setting as JSON has it; of one that is not stated what is built in, in words."""
    one = own.get(key)
    if one is None:
        return {"value": None, "from": "built-in", "default": _built_in(key)}
    value = one.value if isinstance(one.value, str) else [plain(str(path)) for path in one.value]
    return {"value": value, "from": one.at, "default": _built_in(key)}


def _built_in(key: str) -> str:
    if key not in ASKED:
        return _UNLAID.get(key, "the built-in folder alone")
    known = WITH_UNITS.get(key) or SETTINGS.get(key)
    return known.default if known and known.default else _NOT_STATED


def _cells(row: Mapping[str, object], key: str) -> tuple[str, str, str]:
    value, source = row["value"], plain(str(row["from"]))
    if value is None:
        return key, f"({row['default']})", source
    return key, ", ".join(value) if isinstance(value, list) else plain(str(value)), source


def _files() -> Iterator[str]:
    """Say where the files of settings lie, or would."""
    own = own_file()
    if os.environ.get(VARIABLE) == "":
        yield f"no file counts: {VARIABLE} is empty"
    elif own:
        yield f"your own file: {plain(str(own))}{'' if own.is_file() else ' (there is none)'}"


def _variables() -> Iterator[str]:
    for name in OTHER_VARIABLES:
        if value := os.environ.get(name):
            yield f"{name}: {plain(value)}"


Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]


def refuse_both(workers: int | None, scheduler: str | None) -> None:
    """Refuse a number of processes where a cluster does the work."""
    if workers and scheduler:
        raise typer.BadParameter(
            "is for a pool; the cluster has its own.", param_hint="'--workers'"
        )


def cluster_of(workers: int | None, scheduler: str | None) -> Cluster | None:
    """Connect to a cluster where one is named.

    Raises:
        RequestError: No scheduler answers.
    """
    refuse_both(workers, scheduler)
    return connected(scheduler) if scheduler else None
