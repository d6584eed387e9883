"""The commands, put together: only the one asked for; advisor.toml gives them folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from advisor.errors import RequestError, Source, raise_problems
from advisor.files import __version__

FILE = "advisor.toml"
VARIABLE = "ADVISOR_CONFIG"
KINDS = ("rules", "templates", "knowledge")
_POSITIONAL = "folder"
_POSITIONALS = "paths"
"""The argument of ``rules check`` and ``knowledge check`` that names their own folder."""


def own_folders() -> Mapping[str, Path]:
    """Read which folders are the user's: from ``ADVISOR_CONFIG``, else from advisor.toml here.

    An empty ``ADVISOR_CONFIG`` leaves them out.

    Raises:
        UserError: The file is missing or wrong; every problem at once.
    """
    stated = os.environ.get(VARIABLE)
    if stated is None:
        file = Path(FILE)
        return _read(file) if file.is_file() else {}
    if not stated:
        return {}
    if not Path(stated).is_file():
        raise RequestError(f"{VARIABLE} names '{stated}', which is no file")
    return _read(Path(stated))


def _read(file: Path) -> Mapping[str, Path]:
    import tomllib  # noqa: PLC0415 - for those who have such a file

    try:
        stated = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise RequestError(f"not TOML: {bad}.", source=Source(file.name)) from None
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None
    problems = [problem for key, value in stated.items() if (problem := _problem(file, key, value))]
    raise_problems(problems)
    return {key: file.parent / str(value) for key, value in stated.items()}


def _problem(file: Path, key: str, value: object) -> RequestError | None:
    from advisor.suggest import did_you_mean  # noqa: PLC0415 - as above

    place = Source(file.name)
    if key not in KINDS:
        hint = did_you_mean(key, KINDS) or f"It takes {', '.join(KINDS)}."
        return RequestError(f"unknown key '{key}'.", source=place, hint=hint)
    if not isinstance(value, str) or not (file.parent / value).is_dir():
        hint = f"Write '{key} = \"{key}\"', a folder beside this file."
        return RequestError(f"'{key}' names no folder: {value!r}.", source=place, hint=hint)
    return None


def defaults(
    folders: Mapping[str, Path], commands: Mapping[str, Sequence[str]]
) -> dict[str, object]:
    """Give the folders to every command as the defaults of its options.

    Args:
        folders: Kind -> folder.
        commands: Command -> names of its own commands, none for a plain one.
    """
    return {name: _of(name, folders, own) for name, own in commands.items()}


def _of(name: str, folders: Mapping[str, Path], own: Sequence[str]) -> dict[str, object]:
    options: dict[str, object] = {kind: str(path) for kind, path in folders.items()}
    if not own:
        return options
    if name in folders:
        options[_POSITIONAL] = str(folders[name])
        options[_POSITIONALS] = [str(folders[name])]
    return dict.fromkeys(own, options)


def command_names(app: typer.Typer) -> Sequence[str]:
    """Name the commands of a group."""
    return [
        command.name or (command.callback.__name__.replace("_", "-") if command.callback else "")
        for command in app.registered_commands
    ]


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
