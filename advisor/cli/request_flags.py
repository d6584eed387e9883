"""The flags of ``advisor advise`` that describe a request, for other commands that take one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

from advisor.cli.advise import advise
from advisor.cli.inputs import on_off
from advisor.requests import FLAGS, request_from
from advisor.scenario import Request

_SIZES = ("ram", "ram_bandwidth")


def takes_request(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``request`` of a command by the flags that state one."""
    own = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    advised = get_type_hints(advise, include_extras=True)
    names = set(Request.__struct_fields__) | set(_SIZES)
    flags = [p for name, p in inspect.signature(advise).parameters.items() if name in names]
    kept = [p for name, p in own.parameters.items() if name != "request"]
    kept = [p.replace(annotation=hints[p.name]) for p in kept]
    flags = [p.replace(annotation=advised[p.name]) for p in flags]

    def wrapped(**values: object) -> None:
        given = {name: value for name, value in values.items() if name in names}
        rest = {name: value for name, value in values.items() if name not in names}
        command(request=_request(given), **rest)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*kept, *flags)]
    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    return wrapped


def _request(values: Mapping[str, object]) -> Request:
    given = {
        name: on_off(f"--{name.replace('_', '-')}", str(value)) if name in FLAGS else value
        for name, value in values.items()
        if value is not None
    }
    return request_from(given)
