"""The commands, put together: only the one asked for, since making all of them takes time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from advisor.cli.config import command_names, defaults, own_folders
from advisor.files import __version__

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "advise": ("advise", "advise"),
    "estimate": ("estimate", "estimate"),
    "models-for": ("reverse", "models_for"),
    "gpus-for": ("reverse", "gpus_for"),
    "batch": ("batch", "batch"),
    "audit": ("audit", "audit"),
    "site": ("site", "site"),
    "calibrate": ("calibrate", "calibrate"),
    "init": ("init", "init"),
    "knowledge": ("knowledge", "knowledge_app"),
    "measure": ("measure", "measure_app"),
    "rules": ("rules", "rules_app"),
    "templates": ("templates", "templates_app"),
}
"""Command -> module of this package and name in it: a function, or a Typer of its own."""


def application(words: Sequence[str]) -> typer.Typer:
    """Make the command line that these words need.

    Args:
        words: The arguments as typed; without a known command among them all are made, for the
            help and for the message about an unknown one.
    """
    settings: dict[str, object] = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        name="advisor",
        help="Will this language model run on this GPU, how well, and what should you change?",
        pretty_exceptions_enable=False,
        add_completion=False,
        no_args_is_help=True,
        context_settings=settings,
    )
    app.callback()(_common)
    asked = next((word for word in words if not word.startswith("-")), "")
    made: dict[str, Sequence[str]] = {}
    for name in [asked] if asked in _COMMANDS else _COMMANDS:
        module, attribute = _COMMANDS[name]
        found = getattr(import_module(f"{__package__}.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found)
        else:
            app.command(name)(found)
        made[name] = command_names(found) if isinstance(found, typer.Typer) else ()
    folders = own_folders()
    if folders:
        settings["default_map"] = defaults(folders, made)
    return app


def _version(asked: bool) -> None:  # noqa: FBT001  a Typer callback
    if asked:
        typer.echo(f"advisor {__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Will this language model run on this GPU, how well, and what should you change?"""
