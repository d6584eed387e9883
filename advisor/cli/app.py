"""The commands, put together: only the one asked for; settings stand for flags not given."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.own_settings import COMPLETING, TAKEN, Settings, folders, own_settings
from advisor.files import __version__

_UNASKED = ("trust", "init", "schema", "settings", "completion", "man")
"""Commands for which no setting stands."""


def defaults(own: Settings) -> dict[str, object]:
    """Give the settings to every command as the defaults of its options."""
    paths = {kind: [str(path) for path in named] for kind, named in folders(own).items()}
    found: dict[str, object] = dict.fromkeys(_COMMANDS, paths)
    found |= {group: dict.fromkeys(commands, paths) for group, commands in _GROUPED.items()}
    for command, keys in TAKEN.items():
        asked = {key: own[key].value for key in keys if key in own}
        found[command] = paths | asked | {"for_": asked.get("for")}
    return found


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
    "serve": "serve.serve",
    "mcp": "serve.mcp",
    "schema": "schema.schema",
    "settings": "settings.settings",
    "completion": "completion.completion",
    "man": "man.man",
    "doctor": "doctor.doctor",
    "init": "init.init",
    "trust": "trust.trust",
}
"""Command -> module of this package and function in it."""
_GROUPS = {
    "knowledge": "Look up and check GPUs, models, formats and frameworks.\n\n"
    "Example: advisor knowledge find 4060",
    "measure": "Your own measurements: speed is then estimated for your card as it is.\n\n"
    "Example: advisor measure add bench.json",
    "rules": "Check and test rule files.\n\nExample: advisor rules check house/rules",
    "templates": "Check the texts of reports and see what they say.\n\n"
    "Example: advisor templates check house/templates",
}
_GROUPED = {
    "knowledge": {
        "find": "knowledge.find",
        "check": "knowledge.check",
        "update": "knowledge.update",
        "age": "knowledge.age",
    },
    "measure": {
        "add": "measure.add",
        "run": "measure_run.run",
        "list": "measure.list_",
        "remove": "measure.remove",
    },
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


def commands() -> Iterator[tuple[str, ...]]:
    """Give the words of every command."""
    yield from ((name,) for name in _COMMANDS)
    yield from ((group, name) for group, own in _GROUPED.items() for name in own)


def run(words: Sequence[str]) -> None:
    """Run the command that these words name, or complete those of a shell."""
    if COMPLETING in os.environ:
        from advisor.cli.completion import complete  # noqa: PLC0415 - for the tab key alone

        complete(application)
    words = with_command(words)
    application(words)(words)


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
        help="Will this language model run on this GPU, how well, and what should you change?"
        '\n\nExample: advisor advise --gpu "RTX 4090" --model phi-3-medium',
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
    told = not helped and COMPLETING not in os.environ
    own = {} if asked in _UNASKED else own_settings(told=told)
    if own:
        settings |= {"default_map": defaults(own), "obj": own}
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
        from advisor.rules.engine import engine_here  # noqa: PLC0415  only here

        typer.echo(f"advisor {__version__}, rules by {engine_here()}")
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
