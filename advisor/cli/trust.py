"""``advisor trust``: which folders' own advisor.toml counts where one stands in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.own_settings import FILE, settings_in
from advisor.cli.trusted import digest_of, name_of, remember, trusted
from advisor.errors import RequestError
from advisor.units import plain


def trust(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Where advisor.toml lies.")
    ] = Path(),
    listed: Annotated[bool, typer.Option("--list", help="List the folders you trust.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Trust the folder no longer.")] = False,
) -> None:
    """Let the advisor.toml of a folder count for every command that runs there.

    Its rules, texts and knowledge can change what reports say, the commands to paste included.
    Trust holds for this folder and this content of advisor.toml.

    Example: advisor trust house
    """
    if listed:
        _list()
    elif remove:
        _forget(folder)
    else:
        _trust(folder)


def _list() -> None:
    for name, digest in sorted(trusted().items()):
        typer.echo(f"{plain(name)}{_state(Path(name), digest)}")


def _state(folder: Path, digest: str) -> str:
    try:
        same = digest_of((folder / FILE).read_bytes()) == digest
    except OSError:
        return f"  (no {FILE} there now)"
    return "" if same else f"  ({FILE} was changed since: it does not count)"


def _forget(folder: Path) -> None:
    left = trusted()
    if left.pop(name_of(folder), None) is None:
        raise RequestError(
            f"'{folder}' is not trusted", hint="'advisor trust --list' names those that are."
        )
    remember(left)
    typer.echo(f"no longer trusted: {plain(name_of(folder))}")


def _trust(folder: Path) -> None:
    file = folder / FILE
    if not file.is_file():
        raise RequestError(f"there is no {FILE} in '{folder}'", hint="'advisor init' writes one.")
    content = file.read_bytes()
    found = settings_in(file, content)
    remember(trusted() | {name_of(folder): digest_of(content)})
    typer.echo(f"trusted: {plain(name_of(folder))}")
    for key, one in found.items():
        for value in [one.value] if isinstance(one.value, str) else one.value:
            shown = value if isinstance(value, str) else str(value.resolve())
            typer.echo(f"  {key}: {plain(shown)}")
