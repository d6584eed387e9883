"""Requests from plain data: cases beside rules, plan files, JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from advisor.errors import RequestError, Source, UserError, raise_problems
from advisor.knowledge.types import SPLITS
from advisor.scenario.scenario import Prefer, Request, Use
from advisor.suggest import did_you_mean
from advisor.units import UnitError, parse_quantity, parse_size_as_sold

_TEXT = {
    "gpu", "model", "precision", "kv_cache", "kv_cache_k", "kv_cache_v", "framework", "backend",
    "draft_model", "config", "prefer", "use", "split",
}  # fmt: skip
FLAGS = {"flash_attention", "kv_unified", "swa_full"}
"""Switches, true or false."""
_COUNT_OR_ALL = {"gpu_layers", "cpu_experts"}
_NUMBERS = {"ram_gib", "ram_bandwidth_gb_s"}
SIZES = {"ram": "ram_gib", "ram_bandwidth": "ram_bandwidth_gb_s"}
"""Keys that take units -> what they state in a request."""
CHOICES = {
    "prefer": get_args(Prefer),
    "use": get_args(Use),
    "split": SPLITS,
}
"""Keys that are one of a few words."""
KEYS = (*Request.__struct_fields__, *SIZES)
"""Every key a request may hold; ``ram`` and ``ram_bandwidth`` take units as on the command line."""


_LARGEST = {
    "context": 2**27,
    "batch": 65_536,
    "gpus": 64,
    "ubatch": 65_536,
    "logits_rows": 2**20,
    "depth": 2**27,
    "cpu_cores": 4096,
    "mtp": 16,
    "ram_gib": 1_048_576,
    "ram_bandwidth_gb_s": 100_000,
}
_SMALLEST = {"depth": 0, "mtp": 0}
_SAID = {"ram_gib": ("ram", " GiB"), "ram_bandwidth_gb_s": ("ram_bandwidth", " GB/s")}
"""Name and unit of what is mostly asked for in other words."""


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
    for name, largest in _LARGEST.items():
        value = getattr(request, name)
        smallest = _SMALLEST.get(name, 1)
        if value is None:
            continue
        said, unit = _SAID.get(name, (name, ""))
        if value != value or value < smallest:  # noqa: PLR0124  NaN is not itself
            hint = f"Give at least {smallest}{unit}."
            problems.append(RequestError(f"{said} is {_shown(value)}{unit}", hint=hint))
        elif value > largest:
            hint = f"Give at most {largest:,}{unit}."
            problems.append(RequestError(f"{said} is {_shown(value)}{unit}", hint=hint))
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
    try:
        values[SIZES.get(key, key)] = _typed(key, value)
    except (TypeError, ValueError, OverflowError) as error:
        problems.append(RequestError(f"{key}: {error}", source=source))


def _typed(key: str, value: object) -> object:
    if key in SIZES:
        return _size(key, value)
    if key in _TEXT:
        return _text(key, value)
    if key in FLAGS:
        if isinstance(value, bool):
            return value
        raise TypeError(f"'{value}' is neither true nor false")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"'{value}' is not a number")
    if key in _COUNT_OR_ALL and value == "all":
        return value
    if key in _NUMBERS:
        return float(value)
    return _whole(value)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"'{value}' is not a name")
    if value not in CHOICES.get(key, (value,)):
        raise ValueError(f"'{value}' is not one of {', '.join(CHOICES[key])}")
    return value


def _whole(value: float | str) -> int:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"'{value}' is not a number") from None
    if not number.is_integer():
        raise ValueError(f"'{value}' is not a whole number")
    return int(number)


def _size(key: str, value: object) -> float:
    text = str(value)
    try:
        if key == "ram":
            return parse_size_as_sold(text) / 2**30
        quantity = parse_quantity(text)
    except UnitError as error:
        raise ValueError(str(error)) from None
    if quantity.dimension not in {"bandwidth", "count"}:
        raise ValueError(f"'{text}' is not a bandwidth; write for example 80 GB/s")
    return quantity.value / 1e9 if quantity.dimension == "bandwidth" else quantity.value
