"""The commands, put together: only the one asked for; settings stand for flags not given."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct, field
from typer.core import TyperCommand

from advisor.cli.user_settings import COMPLETING, TAKEN, Settings, folders, naming, user_settings
from advisor.errors import UserError
from advisor.files import __version__
from advisor.scenario.settings import FLAGS
from advisor.units import plain, shortened

_UNASKED = ("trust", "init", "schema", "settings", "completion", "man")
"""Commands for which no setting stands."""


def defaults(user: Settings) -> dict[str, object]:
    """Give the settings to every command as the defaults of its options."""
    paths = {kind: [str(path) for path in named] for kind, named in folders(user).items()}
    found: dict[str, object] = dict.fromkeys(_COMMANDS, paths)
    found |= {group: dict.fromkeys(commands, paths) for group, commands in _GROUPED.items()}
    for command, keys in TAKEN.items():
        asked = {key: user[key].value for key in keys if key in user}
        found[command] = paths | asked | {"for_": asked.get("for")}
    return found


_COMMANDS = {
    "advise": "advise.advise",
    "ask": "ask.ask",
    "estimate": "advise.estimate",
    "models-for": "reverse.models_for",
    "gpus-for": "reverse.gpus_for",
    "check": "templates.check_house_folder",
    "check-command": "advise.check_command_line",
    "diagnose": "ask.diagnose",
    "batch": "batch.batch",
    "runtimes": "knowledge.runtimes",
    "audit": "audit.audit",
    "site": "audit.site",
    "calibrate": "measure.calibrate",
    "serve": "serve.serve",
    "mcp": "serve.mcp",
    "schema": "completion.schema",
    "settings": "doctor.settings",
    "completion": "completion.completion",
    "man": "completion.man",
    "doctor": "doctor.doctor",
    "init": "init.init",
    "trust": "init.trust",
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
        "run": "measure.run",
        "list": "measure.list_",
        "remove": "measure.remove",
    },
    "rules": {
        "check": "rules.check",
        "format": "rules.format_",
        "test": "rules_test.test",
        "cover": "rules_test.cover",
        "diff": "rules_test.diff",
        "docs": "rules.docs",
        "explain": "rules.explain",
        "facts": "rules.facts",
        "mutate": "rules_test.mutate",
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
        _complete()
    words = with_command(words)
    application(words)(words)


def _complete() -> None:
    """Write what the word at the cursor may become, as the shell takes it, and exit."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()[1:]
    completion_init()
    with suppress(UserError):
        application(words if line[-1:].isspace() else words[:-1])(prog_name="advisor")


def with_command(words: Sequence[str]) -> list[str]:
    """Give the arguments with ``ask`` before a sentence that stands where a command would."""
    sentence = bool(words) and not words[0].startswith("-") and len(words[0].split()) > 1
    return ["ask", *words] if sentence else list(words)


def application(words: Sequence[str]) -> typer.Typer:
    """Make the command line that these words need.

    Only the command that the words name is loaded; without one all are listed, for the help and for
    the message about an unknown one.
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
    user = {} if asked in _UNASKED else user_settings(told=told)
    if user:
        settings |= {"default_map": defaults(user), "obj": user}
    return app


def _add(app: typer.Typer, commands: Mapping[str, str], asked: str) -> None:
    """Load the command that is asked for; where it is none of these, only list them."""
    if asked in commands:
        module, _, function = commands[asked].partition(".")

        command = getattr(import_module(f"{__package__}.{module}"), function)
        app.command(asked, cls=Hinting)(command)
        return
    said = _helps({place.partition(".")[0] for place in commands.values()})
    for name, place in commands.items():
        app.command(name, help=said[place])(_listed)


def _helps(modules: Iterable[str]) -> Mapping[str, str | None]:
    """Read what commands say of themselves, by place, without loading what they need."""
    found: dict[str, str | None] = {}
    for module in modules:
        tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
        functions = (one for one in tree.body if isinstance(one, ast.FunctionDef))
        found |= {f"{module}.{one.name}": ast.get_docstring(one) for one in functions}
    return found


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


_VRAM = ("vram", "gpu-memory", "vram-gb", "gpu-ram")
_CALLED = {other: one.typed_name.replace("_", "-") for one in FLAGS for other in one.called}
_SAID = {
    **{other: f"Write --{name}." for other, name in _CALLED.items()},
    **dict.fromkeys(_VRAM, 'Write the memory behind the name: --gpu "NAME:24GB".'),
}


class Hinting(TyperCommand):
    """A command that says what to write where flags are wrong; everything that is, at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command line.

        Raises:
            UsageError: A flag is called otherwise here, stands twice, or a name lacks its quotes.
        """
        flags: dict[str, Any] = {name: one for one in self.params for name in one.opts}
        takes = any(one.param_type_name == "argument" for one in self.params)
        said = _mistakes(args, flags, takes_words=takes)
        if said:
            ctx.fail(" ".join(said))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where it refuses its input, settings that stand for flags are named."""
        with naming(ctx):
            return super().invoke(ctx)


class _Reading(Struct):
    """What was read of a command line so far."""

    flags: dict[str, Any]
    said: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    last: str = ""
    words: list[str] = field(default_factory=list)

    def unquoted(self) -> None:
        """Say how a value of several words is written, once it is complete."""
        if len(self.words) > 1:
            shown = shortened(plain(f'{self.last} "{" ".join(self.words)}"'))
            self.said.append(f"A name with spaces needs quotes: {shown}.")
        self.last, self.words = "", []

    def flag(self, name: str, value: str | None) -> None:
        """Take a flag of the command, with its value where it has one."""
        known = self.flags[name]
        if name in self.seen and not known.multiple and not known.is_flag:
            more = ' Several cards go into one: --gpu "RTX 3090 + RTX 4090".'
            self.said.append(f"{name} is given twice.{more if name == '--gpu' else ''}")
        self.seen.add(name)
        if value is not None:
            self.last, self.words = name, [value]

    def lacks(self, name: str, next_one: str) -> None:
        """Say that a flag has another one where its value should be."""
        switch = " or ".join(f"{name} {word}" for word in ("on", "off"))
        hint = f" Write {switch}." if "on or off" in (self.flags[name].help or "") else ""
        self.said.append(f"{name} lacks its value before {next_one}.{hint}")

    def unknown(self, name: str) -> bool:
        """Say what a flag of other programs is called here; False where nothing is known of it."""
        hint = _SAID.get(name[2:], "")
        if not hint or not any(known in hint for known in self.flags):
            return False
        self.said.append(f"No such option: {plain(name)}. {hint}")
        return True


def _mistakes(args: Sequence[str], flags: dict[str, Any], *, takes_words: bool) -> Sequence[str]:
    reading, at = _Reading(flags), 0
    while at < len(args) and args[at] != "--":
        name, equals, stated = args[at].partition("=")
        at += 1
        if not name.startswith("-"):
            if reading.last and not takes_words:
                reading.words.append(args[at - 1])
            continue
        reading.unquoted()
        follows = not equals and at < len(args)
        if name in flags:
            takes = not flags[name].is_flag
            value = stated if equals else "".join(args[at : at + 1])
            if takes and not equals and value in flags:
                reading.lacks(name, value)
                continue
            reading.flag(name, value if takes else None)
            at += takes and follows
        elif reading.unknown(name):
            at += follows and not args[at].startswith("-")
    reading.unquoted()
    return list(dict.fromkeys(reading.said))
