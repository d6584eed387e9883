"""Quantities: the only place that parses, converts and prints units.

Inside the program a quantity is a plain number in the base unit of its dimension,
and its name says so (``required_bytes``, ``bandwidth_bytes_s``).
GB is 10^9 bytes and GiB is 2^30 bytes wherever they are written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

GIB = 2**30
MIB = 2**20
GB = 10**9

_BYTES: Mapping[str, float] = {
    "bytes": 1,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

DIMENSIONS: Mapping[str, Mapping[str, float]] = {
    "memory": _BYTES,
    "bandwidth": {f"{unit}/s": factor for unit, factor in _BYTES.items() if unit != "bytes"},
    "power": {"W": 1, "kW": 1e3},
    "share": {"%": 1},
    "parameters": {"B": 1e9, "M": 1e6, "K": 1e3},
    "bits": {"bit": 1, "bits": 1},
    "rate": {"tok/s": 1},
    "time": {"s": 1, "ms": 1e-3},
    "money": {"USD": 1},
    "tokens": {"tokens": 1, "token": 1},
    "compute": {"TFLOPS": 1, "GFLOPS": 1e-3, "PFLOPS": 1e3, "TOPS": 1},
    "count": {"": 1},
}
"""Unit -> factor to the base unit, by dimension; the base units are bytes, bytes/s, W, %,
parameters, bits, tok/s, s, USD, tokens, TFLOPS and plain counts."""

_DIMENSION_OF: Mapping[str, str] = {
    unit: dimension for dimension, units in DIMENSIONS.items() for unit in units
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s].*?)?\s*")


class UnitError(ValueError):
    """A quantity that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in the base unit of ``dimension``, with the ``unit`` it was written in."""

    value: float
    dimension: str
    unit: str


def dimension_of(unit: str) -> str:
    """Name the dimension a unit belongs to.

    Raises:
        UnitError: The unit is unknown.
    """
    try:
        return _DIMENSION_OF[unit]
    except KeyError:
        known = ", ".join(u for u in _DIMENSION_OF if u)
        raise UnitError(f"unknown unit '{unit}' (known: {known})") from None


def parse_quantity(text: str) -> Quantity:
    """Read ``24 GiB``, ``1008 GB/s``, ``5 %`` or ``12``.

    Raises:
        UnitError: Not a finite number with an optional known unit.
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UnitError(f"'{text}' is not a number with a unit")
    number = float(match[1].replace("_", ""))
    if not math.isfinite(number):
        raise UnitError(f"'{text}' is not a finite number")
    unit = match[2] or ""
    dimension = dimension_of(unit)
    return Quantity(_scaled(number, DIMENSIONS[dimension][unit]), dimension, unit)


def _scaled(number: float, factor: float) -> float:
    scaled = number * factor
    nearest = round(scaled)
    return float(nearest) if math.isclose(scaled, nearest, rel_tol=1e-15) else scaled


def parse_size_as_sold(text: str) -> int:
    """Read a memory size as it stands on a box, in bytes: 24, 24 GB and 24 GiB are 24 x 2^30.

    Raises:
        UnitError: Not a positive memory size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([MGT])i?B?)?\s*", text, re.IGNORECASE)
    if not match or float(match[1]) <= 0:
        raise UnitError(f"'{text}' is not a memory size; write for example 24GB")
    exponent = {"M": 20, "G": 30, "T": 40}[(match[2] or "G").upper()]
    return round(float(match[1]) * 2**exponent)


def gib(count_bytes: float) -> str:
    """Print bytes as GiB with one decimal (two below 0.1 GiB)."""
    value = count_bytes / GIB
    return f"{value:.2f} GiB" if 0 < abs(value) < 0.1 else f"{value:.1f} GiB"


def format_quantity(value: float, unit: str) -> str:
    """Print a base-unit value in ``unit``, at most three significant decimals, no trailing zeros."""
    shown = value / DIMENSIONS[dimension_of(unit)][unit]
    digits = 0 if abs(shown) >= 1000 else 1 if abs(shown) >= 100 else 2
    text = f"{shown:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text} {unit}".rstrip()
