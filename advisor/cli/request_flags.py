"""The flags that state a request, made from its settings, and how they are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar, get_type_hints

import typer
from msgspec import Struct

from advisor.errors import RequestError, UserError, raise_problems
from advisor.scenario.settings import FLAGS, SETTINGS, WITH_UNITS, Request, Setting
from advisor.suggest import did_you_mean
from advisor.units import GB, GIB, UnitError, parse_quantity, parse_size_as_sold

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from advisor.knowledge.types import Knowledge

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
            from advisor.scenario.resolve import problems_of  # noqa: PLC0415  only where something is wrong

            raise_problems([*self.wrong, *problems_of(self.request, knowledge)])
        return self.request


def takes_request(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``asked`` of a command by the flags that state a request."""
    return spread(command, "asked", [_flag(setting) for setting in FLAGS], read_flags)


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
        stated = {flag.name: values.pop(flag.name) for flag in flags}
        command(**values, **{taken: read(stated)})

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return wrapped


def _flag(setting: Setting) -> inspect.Parameter:
    kind = str if setting.needed else int | None if setting.kind == "whole" else str | None
    return inspect.Parameter(
        setting.typed_name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind, flag_of(setting.name)],
        default=inspect.Parameter.empty if setting.needed else None,
    )


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
        metavar="<word>" if setting.words else None,
    )
    return found


def read_flags(values: Mapping[str, object]) -> Asked:
    """Read flags, by name, as they were typed."""
    reader = FlagReader()
    read = {}
    for typed, value in values.items():
        setting = WITH_UNITS.get(typed) or SETTINGS[typed]
        read[setting.name] = _value(reader, setting, value)
    return Asked(Request(**read), reader.errors)  # type: ignore[arg-type]  # as the settings say


def _value(reader: FlagReader, setting: Setting, value: object) -> object:
    flag = f"--{setting.typed_name.replace('_', '-')}"
    text = None if value is None else str(value)
    if setting.words:
        return reader.word(setting.words, flag, text)
    read = _READ.get(setting.unit or setting.kind)
    return reader.take(read, flag, text) if read else value


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


def read_size(flag: str, text: str | None) -> float | None:
    """Read a memory size as sold, in GiB.

    Raises:
        RequestError: Not a size.
    """
    if text is None:
        return None
    try:
        return parse_size_as_sold(text) / GIB
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None


def read_bandwidth(flag: str, text: str | None) -> float | None:
    """Read a bandwidth, in GB/s; a bare number is GB/s.

    Raises:
        RequestError: Not a bandwidth.
    """
    if text is None:
        return None
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise RequestError(f"{flag}: {error}") from None
    if quantity.dimension == "count":
        return quantity.value
    if quantity.dimension == "bandwidth":
        return quantity.value / GB
    raise RequestError(f"{flag} is '{text}'", hint="Write for example 80GB/s.")


_READ: Mapping[str, Callable[[str, str | None], object]] = {
    "count or all": count_or_all,
    "switch": on_off,
    "GiB": read_size,
    "GB/s": read_bandwidth,
}
"""Unit or kind of a setting -> how its flag is read; the others Typer reads."""
