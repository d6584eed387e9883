"""Requests from plain data: cases beside rules, plan files, JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.errors import RequestError, Source, UserError, raise_problems
from advisor.scenario.settings import KEYS, SETTINGS, WITH_UNITS, Request, Setting
from advisor.suggest import did_you_mean
from advisor.units import GB, GIB, UnitError, parse_quantity, parse_size_as_sold

_BOUNDED = tuple(one for one in SETTINGS.values() if one.most is not None)


def request_from(given: Mapping[str, object], *, source: Source | None = None) -> Request:
    """Build a request from keys and plain values; ``None`` means not stated.

    Raises:
        UserError: Unknown keys or values of the wrong type, all of them.
    """
    values: dict[str, object] = {}
    problems: list[UserError] = []
    for key, value in given.items():
        if key not in KEYS:
            problems.append(
                RequestError(
                    f"unknown key '{key}'",
                    source=source,
                    hint=did_you_mean(key, KEYS) or f"Known: {', '.join(KEYS)}.",
                )
            )
        elif value is not None:
            _take(key, value, values, problems, source)
    request = Request(**values)  # type: ignore[arg-type]  # names and types were checked above
    if problems:
        raise_problems([*problems, *number_problems(request)])
    return request


def number_problems(request: Request) -> Sequence[UserError]:
    """Find the numbers of a request that no scenario can have."""
    problems: list[UserError] = []
    for setting in _BOUNDED:
        value = getattr(request, setting.name)
        if value is None:
            continue
        unit = f" {setting.unit}" if setting.unit else ""
        if value != value or value < setting.least:  # noqa: PLR0124  NaN is not itself
            hint = f"Give at least {setting.least}{unit}."
        elif value > setting.most:
            hint = f"Give at most {setting.most:,}{unit}."
        else:
            continue
        message = f"{setting.typed_name} is {_shown(value)}{unit}"
        problems.append(RequestError(message, hint=hint))
    return problems


def _shown(value: float) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}"


def _take(
    key: str,
    value: object,
    values: dict[str, object],
    problems: list[UserError],
    source: Source | None,
) -> None:
    setting = WITH_UNITS.get(key)
    try:
        if setting:
            values[setting.name] = _size(setting, str(value))
        else:
            values[key] = _typed(SETTINGS[key], value)
    except (TypeError, ValueError, OverflowError) as error:
        problems.append(RequestError(f"{key}: {error}", source=source))


def _typed(setting: Setting, value: object) -> object:
    if setting.kind in {"text", "word"}:
        return _text(setting, value)
    if setting.kind == "switch":
        if isinstance(value, bool):
            return value
        raise TypeError(f"'{value}' is neither true nor false")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"'{value}' is not a number")
    if setting.kind == "count or all" and value == "all":
        return value
    return float(value) if setting.kind == "number" else _whole(value)


def _text(setting: Setting, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"'{value}' is not a name")
    if value not in (setting.words or (value,)):
        raise ValueError(f"'{value}' is not one of {', '.join(setting.words)}")
    return value


def _whole(value: float | str) -> int:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"'{value}' is not a number") from None
    if not number.is_integer():
        raise ValueError(f"'{value}' is not a whole number")
    return int(number)


def _size(setting: Setting, text: str) -> float:
    try:
        if setting.unit == "GiB":
            return parse_size_as_sold(text) / GIB
        quantity = parse_quantity(text)
    except UnitError as error:
        raise ValueError(str(error)) from None
    if quantity.dimension not in {"bandwidth", "count"}:
        raise ValueError(f"'{text}' is not a bandwidth; write for example 80 GB/s")
    return quantity.value / GB if quantity.dimension == "bandwidth" else quantity.value
