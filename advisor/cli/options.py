"""Options that commands share, those of a request made from its settings."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, get_type_hints

import typer
from msgspec import Struct
from msgspec.structs import replace

from advisor.cli.user_settings import COMPLETING
from advisor.errors import RequestError, UserError, did_you_mean, raise_problems
from advisor.knowledge.layers import named_twice
from advisor.scenario.resolve import problems_of
from advisor.scenario.setting_kinds import Setting, quantities
from advisor.scenario.settings import AROUND, FLAGS, SETTINGS, WITH_UNITS, Request
from advisor.units import UnitError, parse_in, parse_quantity, parse_whole

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from advisor.knowledge.types import Knowledge


_LATER = "repeatable: a later one wins."
RULES = f"Folder of rules, over the built-in ones; {_LATER}"
TEMPLATES = f"Folder of templates, over the built-in ones; {_LATER}"
KNOWLEDGE = f"Folder of knowledge, over the built-in one; {_LATER}"
USER_FILES = "Your own files"


def different(paths: list[Path] | None) -> list[Path] | None:
    """Refuse a folder that is named twice.

    Raises:
        RequestError: Which it is.
    """
    twice = named_twice(paths or ())
    if twice is not None:
        raise RequestError(f"the folder '{twice}' is named twice", hint="Name it once.")
    return paths


def layers_option(said: str, panel: str | None = None) -> OptionInfo:
    """Describe the flag of the user's folders of a kind."""
    found: OptionInfo = typer.Option(help=said, rich_help_panel=panel, callback=different)
    return found


RulesFolder = Annotated[list[Path] | None, layers_option(RULES)]
TemplatesFolder = Annotated[list[Path] | None, layers_option(TEMPLATES)]
KnowledgeFolder = Annotated[list[Path] | None, layers_option(KNOWLEDGE)]
NoMeasurements = Annotated[
    bool,
    typer.Option(
        "--no-measurements",
        help="Leave your own measurements out, as ADVISOR_NO_MEASUREMENTS=1 does.",
        rich_help_panel=USER_FILES,
    ),
]
Scenarios = Annotated[
    Path | None, typer.Option(help="Folder of scenario files. [default: scenarios/ of the rules]")
]
OnlyRules = Annotated[
    list[str] | None, typer.Option("--rule", "-r", help="Only this rule; repeatable.")
]
Workers = Annotated[
    int | None,
    typer.Option(help="Processes that work out facts. [default: one per processor]", min=1),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")]
_HUB = "Models that are not in the knowledge base"
Hub = Annotated[
    bool,
    typer.Option(
        "--hub",
        help="Read an unknown model from Hugging Face: headers only. Needs the extra 'hub'.",
        rich_help_panel=_HUB,
    ),
]
Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Take only what --hub read before; never use the network.",
        rich_help_panel=_HUB,
    ),
]


Format = Literal["text", "json"]
FindingsFormat = Literal["text", "json", "sarif", "github"]
Length = Literal["short", "standard", "full"]


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_T = TypeVar("_T")


class Asked(Struct, frozen=True):
    """What the flags state; those that cannot be read are left out of the request."""

    request: Request
    wrong: Sequence[UserError] = ()

    def checked(self, knowledge: Knowledge) -> Request:
        """Give the request if every flag could be read.

        Raises:
            UserError: Every flag that could not, and everything wrong with the rest.
        """
        if self.wrong:
            raise_problems([*self.wrong, *problems_of(self.request, knowledge)])
        return self.request


def takes_request(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``asked`` of a command by the flags that state a request."""
    return spread(command, "asked", [setting_flag(setting) for setting in FLAGS], read_flags)


def adds_to_request(command: Callable[..., None]) -> Callable[..., None]:
    """Do the same where none of the flags is needed, as the rest is read elsewhere."""
    flags = [setting_flag(replace(setting, needed=False)) for setting in FLAGS]
    return spread(command, "asked", flags, read_flags)


def takes_machine(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``machine`` by the flags of the cards and the computer around them."""
    flags = [setting_flag(SETTINGS[name]) for name in ("gpu", "gpus", "reserve_gib", *AROUND)]
    flags[0] = flags[0].replace(default="local")
    return spread(command, "machine", flags, read_flags)


def spread(
    command: Callable[..., None],
    taken: str,
    flags: Sequence[inspect.Parameter],
    read: Callable[[Mapping[str, object]], object],
) -> Callable[..., None]:
    """Replace a parameter of a command by flags, from whose values ``read`` makes its value."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        other = one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += flags if one.name == taken else [other]

    def wrapped(**values: object) -> None:
        stated = {flag.name: values.pop(flag.name, flag.default) for flag in flags}
        command(**values, **{taken: read(stated)})

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return wrapped


def setting_flag(
    setting: Setting, *, panel: str | None = "", default: str = ""
) -> inspect.Parameter:
    """Make the parameter that is the flag of a setting; see ``flag_of``."""
    kind = str if setting.needed else str | None
    option = flag_of(setting.name, panel=panel, default=default)
    unstated = inspect.Parameter.empty if setting.needed else None
    return keyword(setting.typed_name, Annotated[kind, option], unstated)


def keyword(name: str, kind: object, default: object = None) -> inspect.Parameter:
    """Make a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def flag_of(name: str, *, panel: str | None = "", default: str = "") -> OptionInfo:
    """Describe the flag of a setting, with another panel and default where a command has them.

    Args:
        name: The setting.
        panel: Group in the help; None: that of flags without one.
        default: What holds where it is not stated, in words.
    """
    setting = SETTINGS[name]
    default = default or setting.default
    found: OptionInfo = typer.Option(
        help=setting.help + (f" (default: {default})" if default else ""),
        rich_help_panel=setting.panel if panel == "" else panel,
        metavar="<word>" if setting.words else "<int>" if setting.kind == "whole" else None,
        autocompletion=names_of(name),
    )
    return found


def names_of(setting: str, words: Sequence[str] = ()) -> Callable[[str], list[str]] | None:
    """Give what completes a flag where a shell asks for it; else nothing, which costs nothing."""
    if COMPLETING not in os.environ:
        return None
    from advisor.cli.completion import offered  # noqa: PLC0415 - for the tab key alone

    return offered(setting, words)


def read_flags(values: Mapping[str, object]) -> Asked:
    """Read flags, by name, as they were typed."""
    reader = FlagReader()
    read: dict[str, object] = {}
    for typed, value in values.items():
        setting = WITH_UNITS.get(typed) or SETTINGS[typed]
        if setting.also and value is not None:
            read.update(reader.take(read_memory, _flag_name(setting), str(value)) or {})
        elif value is not None or setting.name not in read:
            read[setting.name] = _value(reader, setting, value)
    return Asked(Request(**read), reader.errors)  # type: ignore[arg-type]  # as the settings say


def _value(reader: FlagReader, setting: Setting, value: object) -> object:
    flag, text = _flag_name(setting), None if value is None else str(value)
    if setting.words:
        return reader.word(setting.words, flag, text)
    read = _READ.get(setting.unit or setting.kind)
    return reader.take(read, flag, text) if read else value


def _flag_name(setting: Setting) -> str:
    return f"--{setting.typed_name.replace('_', '-')}"


class FlagReader:
    """Reads flags one after the other and keeps every error for the end."""

    def __init__(self) -> None:
        """Start without errors."""
        self.errors: list[UserError] = []

    def take(self, read: Callable[[str, str | None], _T], flag: str, text: str | None) -> _T | None:
        """Read one flag; None where it is not stated or wrong."""
        try:
            return read(flag, text)
        except UserError as error:
            self.errors.append(error)
            return None

    def word(self, words: Sequence[_T], flag: str, text: str | None) -> _T | None:
        """Read one of these words, in any case; None where it is not stated or is none of them."""
        if text is None:
            return None
        known = {str(word): word for word in words}
        if text.casefold() in known:
            return known[text.casefold()]
        hint = did_you_mean(text, known) or f"Write {', '.join(known)}."
        self.errors.append(RequestError(f"{flag} is '{text}'", hint=hint))
        return None


def on_off(flag: str, text: str | None) -> bool | None:
    """Read on or off.

    Raises:
        RequestError: Neither.
    """
    if text is None:
        return None
    word = text.casefold()
    if word in {"on", "yes", "true", "1"}:
        return True
    if word in {"off", "no", "false", "0"}:
        return False
    raise RequestError(f"{flag} is '{text}'", hint="Write on or off.")


def count_or_all(flag: str, text: str | None) -> int | str | None:
    """Read a whole number or ``all``.

    Raises:
        RequestError: Neither.
    """
    if text is None or text.casefold() == "all":
        return text.casefold() if text else None
    try:
        return int(text)
    except ValueError:
        raise RequestError(f"{flag} is '{text}'", hint="Write a whole number or all.") from None


def whole_number(flag: str, text: str | None) -> int | None:
    """Read a whole number, ``32k`` as 32,768.

    Raises:
        RequestError: Not one.
    """
    try:
        return None if text is None else parse_whole(text)
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None


def read_memory(flag: str, text: str | None) -> Mapping[str, object]:
    """Read system RAM, its size and where it is said its type, as the settings it states.

    Raises:
        RequestError: Neither, or a word that is not understood.
    """
    try:
        return quantities(SETTINGS["ram_gib"], text) if text is not None else {}
    except ValueError as error:
        raise RequestError(f"{flag}: {error}") from None
    except UserError as error:
        raise RequestError(f"{flag}: {error.message}", hint=error.hint) from None


def read_in(unit: str, flag: str, text: str | None) -> float | None:
    """Read a memory size as sold, in GiB, or a bandwidth, in GB/s, where a bare number is that.

    Raises:
        RequestError: Not one.
    """
    try:
        return None if text is None else parse_in(text, unit)
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None


def read_share(flag: str, text: str | None) -> float | None:
    """Read a share of 1: 0.9, or 90%.

    Raises:
        RequestError: Neither.
    """
    if text is None:
        return None
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None
    if quantity.dimension not in {"count", "share"}:
        raise RequestError(f"{flag} is '{text}'", hint="Write for example 0.9 or 90%.")
    return quantity.value / 100 if quantity.dimension == "share" else quantity.value


_READ: Mapping[str, Callable[[str, str | None], object]] = {
    "count or all": count_or_all,
    "whole": whole_number,
    "switch": on_off,
    "number": read_share,
    "GiB": partial(read_in, "GiB"),
    "GB/s": partial(read_in, "GB/s"),
}
"""Unit or kind of a setting -> how its flag is read; the others Typer reads."""
