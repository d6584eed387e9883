"""The commands, put together: only the one asked for; advisor.toml gives them folders."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from advisor.errors import RequestError, Source, raise_problems
from advisor.files import __version__

FILE = "advisor.toml"
_UNASKED = ("trust", "init", "schema")
"""Commands that read no overlay."""
VARIABLE = "ADVISOR_CONFIG"
KINDS = ("rules", "templates", "knowledge")
Paths = tuple[Path, ...]


def own_folders(*, told: bool = True) -> Mapping[str, Paths]:
    """Read which folders are the user's: from ``ADVISOR_CONFIG``, else from advisor.toml here.

    An empty ``ADVISOR_CONFIG`` leaves them out. The file that lies here counts where the user
    trusts this folder: a downloaded one may hold anything.

    Args:
        told: Whether one line on standard error says that a file does not count.

    Raises:
        UserError: The file is missing or wrong; every problem at once.
    """
    stated = os.environ.get(VARIABLE)
    if stated is None:
        return _trusted_here(told=told)
    if not stated:
        return {}
    if not Path(stated).is_file():
        raise RequestError(f"{VARIABLE} names '{stated}', which is no file")
    return folders_in(Path(stated), _content(Path(stated)))


def _trusted_here(*, told: bool) -> Mapping[str, Paths]:
    file = Path(FILE)
    if not file.is_file():
        return {}
    from advisor.cli.trusted import refusal  # noqa: PLC0415 - for folders with such a file

    content = _content(file)
    line = refusal(file, content)
    if not line:
        return folders_in(file, content)
    if told:
        typer.echo(line, err=True)
    return {}


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as bad:
        raise RequestError(f"cannot read '{file}': {bad.strerror}.") from None


def house_folders(folder: Path) -> Mapping[str, Paths]:
    """Read which folders the advisor.toml of a folder names; none where there is no such file.

    Raises:
        UserError: The file is wrong; every problem at once.
    """
    file = folder / FILE
    return folders_in(file, _content(file)) if file.is_file() else {}


def folders_in(file: Path, content: bytes) -> Mapping[str, Paths]:
    """Take apart what an advisor.toml names.

    Raises:
        UserError: It is wrong; every problem at once.
    """
    import tomllib  # noqa: PLC0415 - for those who have such a file

    try:
        stated = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        line = _AT_LINE.search(str(bad))
        place = Source(file.name, int(line[1]) if line else 0)
        hint = "Write for example 'rules = \"rules\"', a line for each folder."
        raise RequestError(f"not TOML: {bad}.", source=place, hint=hint) from None
    lines = [
        line.partition("=")[0].strip(" \t\"'") for line in content.decode("utf-8").splitlines()
    ]
    problems = [
        problem
        for key, value in stated.items()
        if (problem := _problem(file, key, value, lines.index(key) + 1 if key in lines else 0))
    ]
    raise_problems(problems)
    named = {key: value if isinstance(value, list) else [value] for key, value in stated.items()}
    return {key: tuple(file.parent / str(one) for one in paths) for key, paths in named.items()}


_AT_LINE = re.compile(r"at line (\d+)")


def _problem(file: Path, key: str, value: object, line: int) -> RequestError | None:
    from advisor.suggest import did_you_mean  # noqa: PLC0415 - as above

    place = Source(file.name, line)
    if key not in KINDS:
        hint = did_you_mean(key, KINDS) or f"It takes {', '.join(KINDS)}."
        return RequestError(f"unknown key '{key}'.", source=place, hint=hint)
    hint = f"Write '{key} = \"{key}\"', a folder beside this file, or a list of them."
    stated = value if isinstance(value, list) else [value]
    for one in stated or [value]:
        if not isinstance(one, str) or not (file.parent / one).is_dir():
            return RequestError(f"'{key}' names no folder: {one!r}.", source=place, hint=hint)
    from advisor.knowledge.layers import named_twice  # noqa: PLC0415 - as above

    if twice := named_twice([file.parent / str(one) for one in stated]):
        hint = "Keep one of the two."
        return RequestError(f"'{key}' names '{twice.name}' twice.", source=place, hint=hint)
    return None


def defaults(
    folders: Mapping[str, Paths], commands: Mapping[str, Iterable[str]]
) -> dict[str, object]:
    """Give the folders to every command as the defaults of its options.

    Args:
        folders: Kind -> its folders, the lowest first.
        commands: Command -> names of its own commands, none for a plain one.
    """
    options = {kind: [str(path) for path in paths] for kind, paths in folders.items()}
    return {name: dict.fromkeys(own, options) if own else options for name, own in commands.items()}


_COMMANDS = {
    "advise": "advise.advise",
    "ask": "ask.ask",
    "estimate": "estimate.estimate",
    "models-for": "reverse.models_for",
    "gpus-for": "reverse.gpus_for",
    "check": "check.check",
    "check-command": "check_command.check_command_line",
    "diagnose": "diagnose.diagnose",
    "batch": "batch.batch",
    "runtimes": "runtimes.runtimes",
    "audit": "audit.audit",
    "site": "site.site",
    "calibrate": "calibrate.calibrate",
    "schema": "schema.schema",
    "init": "init.init",
    "trust": "trust.trust",
}
"""Command -> module of this package and function in it."""
_GROUPS = {
    "knowledge": "Look up and check GPUs, models, formats and frameworks.",
    "measure": "Your own measurements: speed is then estimated for your card as it is.",
    "rules": "Check and test rule files.",
    "templates": "Check the texts of reports and see what they say.",
}
_GROUPED = {
    "knowledge": {
        "find": "knowledge.find",
        "check": "knowledge.check",
        "update": "knowledge.update",
        "age": "knowledge.age",
    },
    "measure": {"add": "measure.add", "list": "measure.list_", "remove": "measure.remove"},
    "rules": {
        "check": "rules_check.check",
        "format": "rules_check.format_",
        "test": "rules_test.test",
        "cover": "rules_sample.cover",
        "diff": "rules_sample.diff",
        "docs": "rules.docs",
        "explain": "rules.explain",
        "facts": "rules.facts",
        "mutate": "rules_sample.mutate",
        "schema": "rules.schema",
    },
    "templates": {"check": "templates.check", "preview": "templates.preview"},
}
"""Group -> its commands, as above."""


def with_command(words: Sequence[str]) -> list[str]:
    """Give the arguments with ``ask`` before a sentence that stands where a command would."""
    sentence = bool(words) and not words[0].startswith("-") and len(words[0].split()) > 1
    return ["ask", *words] if sentence else list(words)


def application(words: Sequence[str]) -> typer.Typer:
    """Make the command line that these words need.

    Args:
        words: The arguments as typed. Only the command that they name is loaded; without one all
            are listed, for the help and for the message about an unknown one.
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
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    asked = "".join(words[at : at + 1])
    following = next((word for word in words[at + 1 :] if word != "--"), "")
    for name in [asked] if asked in _GROUPS else () if asked in _COMMANDS else _GROUPS:
        group = typer.Typer(name=name, help=_GROUPS[name], no_args_is_help=True)
        _add(group, _GROUPED[name], following)
        app.add_typer(group)
    if asked not in _GROUPS:
        _add(app, _COMMANDS, asked)
    helped = not asked or not {"-h", "--help"}.isdisjoint(words)
    folders = {} if asked in _UNASKED else own_folders(told=not helped)
    if folders:
        plain: dict[str, Iterable[str]] = dict.fromkeys(_COMMANDS, ())
        settings["default_map"] = defaults(folders, plain | _GROUPED)
    return app


def _add(app: typer.Typer, commands: Mapping[str, str], asked: str) -> None:
    """Load the command that is asked for; where it is none of these, only list them."""
    if asked in commands:
        module, _, function = commands[asked].partition(".")
        from advisor.cli.wrong_usage import Hinting  # noqa: PLC0415 - for the command that is run

        command = getattr(import_module(f"{__package__}.{module}"), function)
        app.command(asked, cls=Hinting)(command)
        return
    for name, place in commands.items():
        app.command(name, help=_help(*place.split(".")))(_listed)


def _help(module: str, function: str) -> str | None:
    """Read what a command says of itself, without loading what it needs."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    found = (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == function)
    return ast.get_docstring(next(found))


def _listed() -> None:
    """Stand for a command that is not called."""


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
