"""``advisor init``: a starter of one's own rules, texts and knowledge."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.user_settings import (
    FILE,
    TRUSTED,
    digest_of,
    name_of,
    settings_in,
    trusted,
    trusted_file,
)
from advisor.errors import RequestError, UserError
from advisor.files import read_whole, refuse_shared, seal, user_data_dir, write_whole
from advisor.remedies import rule_vocabulary
from advisor.report.figures import aligned
from advisor.rules.language.schema import rules_schema
from advisor.units import plain

SCHEMA = "rules.schema.json"
_FOLDER = Path(__file__).resolve().parent.parent / "starter"
_SETTINGS = {
    "yaml.schemas": {f"./{SCHEMA}": ["rules/*.yaml"]},
    "files.associations": {"*.md.j2": "jinja"},
}
_EXTENSIONS = {"recommendations": ["redhat.vscode-yaml"]}
_SHOWN = 5


def starter_files() -> Mapping[str, bytes]:
    """Give every file of the starter by its path."""
    found = {
        path.relative_to(_FOLDER).as_posix(): path.read_bytes()
        for path in _FOLDER.rglob("*")
        if path.is_file()
    }
    made = {
        SCHEMA: rules_schema(rule_vocabulary()),
        ".vscode/settings.json": _SETTINGS,
        ".vscode/extensions.json": _EXTENSIONS,
    }
    found |= {name: (json.dumps(data, indent=2) + "\n").encode() for name, data in made.items()}
    return dict(sorted(found.items()))


def write_starter(folder: Path) -> tuple[str, ...]:
    """Write the starter, and give the paths written.

    What the folder holds beside the starter's files stays.

    Raises:
        RequestError: A file of the starter is there already, or the folder cannot be written;
            nothing was written then.
    """
    files = starter_files()
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"'{folder}' is a file", hint="Name a folder.")
    there = [name for name in files if (folder / name).exists()]
    if there:
        more = f" and {len(there) - _SHOWN} more" if there[_SHOWN:] else ""
        raise RequestError(
            f"'{folder}' has {', '.join(there[:_SHOWN])}{more} already, and nothing was written",
            hint="Name another folder.",
        )
    try:
        _write(folder, files)
    except OSError as bad:
        raise RequestError(
            f"'{folder}' cannot be written: {bad.strerror}; nothing was written"
        ) from None
    return tuple(files)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write beside the folder first, so that a full disk leaves nothing half done."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    moved: list[Path] = []
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".advisor-init-", dir=folder))
    try:
        for name, content in files.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(content)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).rename(folder / name)
            moved.append(folder / name)
    except OSError:
        for path in moved:
            path.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if len(moved) < len(files) or not all(path.exists() for path in moved):
            _remove_empty(folder, files, missing)


def _remove_empty(folder: Path, files: Mapping[str, bytes], missing: list[Path]) -> None:
    """Take away the folders that were made for nothing."""
    inside = {parent for name in files for parent in (folder / name).parents}
    made = [path for path in inside if folder in path.parents] + missing
    for path in sorted(made, key=lambda path: -len(path.parts)):
        try:
            path.rmdir()
        except OSError:
            continue


_NEXT = (
    ("advisor trust", "advisor.toml counts in this folder"),
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

    Example: advisor init house
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
        "\nOnce trusted, advisor.toml there makes every command use the three folders; "
        "README.md says more."
    )


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
        same = digest_of(read_whole(folder / FILE)) == digest
    except OSError:
        return f"  (no {FILE} there now)"
    except UserError:  # larger than one that could be trusted
        same = False
    return "" if same else f"  ({FILE} was changed since: it does not count)"


def remember(folders: Mapping[str, str]) -> None:
    """Write down what is trusted from now on.

    Raises:
        UserError: It cannot be written, or others can write the folder.
    """
    refuse_shared(user_data_dir())
    content = json.dumps(folders).encode()
    try:
        write_whole(trusted_file(), [seal(TRUSTED, [content]), content])
    except OSError as bad:
        raise RequestError(
            f"'{trusted_file()}' cannot be written: {bad.strerror}",
            hint="ADVISOR_DATA_DIR names another folder.",
        ) from None


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
    content = read_whole(file)
    found = settings_in(file, content)
    remember(trusted() | {name_of(folder): digest_of(content)})
    typer.echo(f"trusted: {plain(name_of(folder))}")
    for key, one in found.items():
        for value in [one.value] if isinstance(one.value, str) else one.value:
            shown = value if isinstance(value, str) else str(value.resolve())
            typer.echo(f"  {key}: {plain(shown)}")
