"""Quantities: the only place that parses, converts and prints units; foreign text made printable.

Inside the program a quantity is a plain number in the base unit of its dimension,
and its name says so (``required_bytes``, ``bandwidth_bytes_s``).
GB is 10^9 bytes and GiB is 2^30 bytes wherever they are written.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from advisor.errors import did_you_mean

GIB = 2**30
MIB = 2**20
GB = 10**9
_KEPT = 16_384
"""Texts made printable that are kept; a report prints the same few again and again.

Without them a plan takes 1.02 times as long."""
_SPACES = re.compile(r"\s+")
_CONTROL = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")

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
    "rate": {"tok/s": 1, "tokens/s": 1},
    "time": {"s": 1, "ms": 1e-3},
    "money": {"USD": 1},
    "tokens": {"tokens": 1, "token": 1},
    "compute": {"TFLOPS": 1, "GFLOPS": 1e-3, "PFLOPS": 1e3, "TOPS": 1},
    "count": {"": 1},
}
"""Unit -> factor to the base unit, by dimension; the base units are bytes, bytes/s, W, %,
parameters, bits, tok/s, s, USD, tokens, TFLOPS and plain counts."""

_SMALL = 0.1
_DECIMALS = ((1000, 0), (100, 1), (0, 2))
"""(From this size, decimals shown)."""

FINE_RATE = 9.95
"""Below this many tokens per second a decimal is printed."""
_COARSE_RATE = 1000
"""From here on tokens per second are rounded to tens."""
_DIMENSION_OF: Mapping[str, str] = {
    unit: dimension for dimension, units in DIMENSIONS.items() for unit in units
}
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QUANTITY = re.compile(rf"({_NUMBER})\s*+([^\d\s.,][^\s]*+)?")
_SIZE = re.compile(
    r"(\d++(?:\.\d++)?)\s*+(?:([MGT])(?:i?[BO]?|igs?|(?:ig|eg|er)a(?:bytes?)?))?", re.IGNORECASE
)
_WHOLE = re.compile(r"(-?\d[\d,_]*+(?:\.\d++)?(?:[eE]\+?\d{1,3})?)([kKmM]?)")
_BESIDE_WHOLE = re.compile(
    r"^[~\u2248]\s*|(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))|(?<=\d)\s+(?=[km]\b)|(?<=[km])i$"
    r"|\s*(?:of\s+)?(?:tokens?|toks?|ctx|context(?:\s+(?:length|window|size))?)$",
    re.IGNORECASE,
)
"""What people write beside a number of tokens: ``~32k ctx``, ``200 000``, ``100K tokens``."""
_DECIMAL = re.compile(r"(?<=[KMGT])B\s*$")
_MOST_DIGITS = 400
"""Of a number that is multiplied exactly."""
_LONGEST = 60
"""Characters of what was typed that a message repeats."""


class UnitError(ValueError):
    """A quantity that cannot be read; the message says why."""


class UnknownUnitError(UnitError):
    """The number is right and its unit is none."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        known = [known for known in _DIMENSION_OF if known]
        hint = did_you_mean(unit, known) or f"Known units: {', '.join(known)}."
        super().__init__(f"unknown unit '{unit}'. {hint}")


class Quantity(Struct, frozen=True):
    """A number in the base unit of ``dimension``, with the ``unit`` it was written in."""

    value: float
    dimension: str
    unit: str


_OPERATORS = frozenset({">", "&", "&&", "|"})


def dimension_of(unit: str) -> str:
    """Name the dimension a unit belongs to.

    Raises:
        UnknownUnitError: There is no such unit.
    """
    try:
        return _DIMENSION_OF[unit]
    except KeyError:
        raise UnknownUnitError(unit) from None


def base_factor(unit: str) -> float:
    """Give how many base units one ``unit`` is.

    Raises:
        UnitError: The unit is unknown.
    """
    return DIMENSIONS[dimension_of(unit)][unit]


def parse_quantity(text: str) -> Quantity:
    """Read ``24 GiB``, ``1,008 GB/s``, ``5 %`` or ``12``.

    Commas may only stand between thousands; the decimal sign is a point.

    Raises:
        UnitError: Not a finite number with an optional known unit.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        raise UnitError(f"'{shortened(text.strip())}' is not a number with a unit.")
    unit = match[2] or ""
    dimension = dimension_of(unit)
    value = _scaled(match[1].replace("_", "").replace(",", ""), base_factor(unit))
    if not math.isfinite(value):
        raise UnitError(f"'{shortened(text.strip())}' is too large a number.")
    return Quantity(value, dimension, unit)


def _scaled(written: str, factor: float) -> float:
    """Multiply exactly and round once, so that equal quantities are equal in every unit."""
    number = float(written)
    if not number or not math.isfinite(number * factor) or len(written) > _MOST_DIGITS:
        return number * factor + 0.0
    above, below = _ratio(written)
    times, parts = _ratio(repr(factor))
    return (above * times) / (below * parts)


def _ratio(written: str) -> tuple[int, int]:
    """Give a decimal number, such as ``-1.5e3``, as two whole numbers: its ratio."""
    digits, _, power = written.casefold().partition("e")
    whole, _, part = digits.partition(".")
    shift = int(power or 0) - len(part)
    return int(whole + part) * 10 ** max(shift, 0), 10 ** max(-shift, 0)


def as_sold(text: str) -> str:
    """Write a size as it stands on a box in binary units: 24 GB of memory are 24 GiB."""
    return _DECIMAL.sub("iB", text)


def parse_size_as_sold(text: str) -> int:
    """Read a memory size as it stands on a box, in bytes: 24, 24 GB and 24 GiB are 24 x 2^30.

    Raises:
        UnitError: Not a positive memory size.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or float(match[1]) <= 0:
        raise UnitError(f"'{shortened(text)}' is not a memory size; write for example 24GB.")
    exponent = {"M": 20, "G": 30, "T": 40}[(match[2] or "G").upper()]
    size = float(match[1]) * float(2**exponent)
    if not math.isfinite(size):
        raise UnitError(f"'{shortened(text)}' is too large a memory size.")
    return round(size)


_ENDS = re.compile(r"\s*(\d[\d.]*)\s*(?:-|\u2013|to)\s*(\d[\d.]*)\s*([a-zA-Z/]*)\s*")


def parse_in(text: str, unit: str) -> float:
    """Read a memory size as sold, in GiB, or a bandwidth, in GB/s; a bare number is in the unit.

    A range of bandwidths, ``225-250GB/s``, is its middle.

    Raises:
        UnitError: Not one.
    """
    if unit == "GiB":
        return parse_size_as_sold(text) / GIB
    if ends := _ENDS.fullmatch(text):
        return sum(parse_in(end + ends[3], unit) for end in ends.groups()[:2]) / 2
    quantity = parse_quantity(text)
    if quantity.dimension not in {"bandwidth", "count"}:
        raise UnitError(f"'{shortened(text)}' is not a bandwidth; write for example 80GB/s")
    return quantity.value / GB if quantity.dimension == "bandwidth" else quantity.value


_ROUNDED_POWERS = {float((1 << n) // 1000): 1 << n for n in range(16, 20)}
"""Thousands in the powers of two that lengths are: 65, 131, 262, 524."""


def parse_whole(text: str) -> int:
    """Read a whole number of tokens or things: ``32,768``, ``1e5``, ``32k``, ``100K tokens``.

    ``k`` and ``m``, small or large, are 2^10 and 2^20, as contexts are told; ``262k`` is 2^18,
    which is 262 thousands and some.

    Raises:
        UnitError: Not a whole number.
    """
    plainly = text.strip()
    matched = _WHOLE.fullmatch(plainly) or _WHOLE.fullmatch(_BESIDE_WHOLE.sub("", plainly))
    number = float(matched[1].replace(",", "").replace("_", "")) if matched else math.nan
    unit = matched[2].casefold() if matched else ""
    if unit == "k" and (power := _ROUNDED_POWERS.get(number)):
        return power
    number *= {"k": 2**10, "m": 2**20}.get(unit, 1)
    if not math.isfinite(number) or not number.is_integer():
        raise UnitError(
            f"'{shortened(text)}' is not a whole number; write for example 32768 or 32k"
        )
    return int(number)


def shortened(text: str) -> str:
    """Give what was typed as a message repeats it: the begin of what is very long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."


def gib(count_bytes: float) -> str:
    """Print bytes as GiB with one decimal (two below 0.1 GiB)."""
    value = count_bytes / GIB
    digits = 2 if 0 < abs(value) < _SMALL else 1
    return f"{round(value, digits) + 0.0:.{digits}f} GiB"


def rate(tokens_s: float) -> str:
    """Print tokens per second without its unit: 8.4, 95, 1,240."""
    if tokens_s >= _COARSE_RATE:
        return f"{round(tokens_s, -1):,.0f}"
    return f"{tokens_s:,.0f}" if tokens_s >= FINE_RATE else f"{tokens_s:.1f}"


@lru_cache(maxsize=_KEPT, typed=True)
def format_quantity(value: float, unit: str) -> str:
    """Print a base-unit value in ``unit``: at most two decimals, no trailing zeros.

    Values below 0.1 keep two significant digits, so that a small figure never reads as zero. Kept,
    as the same figure stands in the reasons of every rule: a tenth of an answer with 5,000.

    Raises:
        UnitError: The unit is unknown.
    """
    return f"{_shown(value / base_factor(unit))} {unit}".rstrip()


def _shown(number: float) -> str:
    size = abs(number)
    if 0 < size < _SMALL:
        digits = min(1 - math.floor(math.log10(size)), 12)
    else:
        digits = next(digits for least, digits in _DECIMALS if size >= least)
    text = f"{number + 0.0:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def percent(part: float | None, whole: float | None) -> float | None:
    """``part`` as a percentage of ``whole``, rounded like every derived figure of the facts."""
    return None if part is None or not whole else steady(100.0 * part / whole)


def steady(value: float) -> float:
    """Drop noise below 1e-4, which the rule engine would refuse to read."""
    return round(value, 4) + 0.0


def counted(number: int, word: str) -> str:
    """Write ``1 page`` or ``2,000 pages``."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def plain(text: str) -> str:
    """Make a name or sentence safe to print: one line, no control or invisible characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if c.isspace() else c for c in text)
    shown = "".join(c for c in kept if c == " " or unicodedata.category(c) not in _CONTROL)
    return _SPACES.sub(" ", shown).strip()


def shell_word(word: str) -> str:
    """Write a word of a command as a POSIX shell takes it; operators stay what they are."""
    return word if word in _OPERATORS else shlex.quote(word)


def typed(command: str) -> str:
    """Make a command safe to print: its lines and spaces stay, other control characters go."""
    if command.isascii() and command.replace("\n", "").isprintable():
        return command
    return "".join(c for c in command if c == "\n" or unicodedata.category(c) not in _CONTROL)


_TEXT = msgspec.json.Encoder()
_BINARY = msgspec.msgpack.Encoder()
_UNUSUAL = re.compile(
    rb"\xcb(?<=[a-z0-9_.]{2}\xcb)(?!\x00{8})"
    rb"(?:[\x00-\x3e\x80-\xbe]|[\x3f\xbf][\x00-\x1a]|[\x43\xc3][\x41-\xff]|[\x44-\x7f\xc4-\xff])"
)
"""A float behind a key that is not finite, or below 1e-4 or from 1e16 on: those Python writes
``1e-05`` and msgspec ``1e-5``, and what is no number msgspec writes as null. Looked for in the
binary form, where it has its own mark; it may be found where there is none."""


def json_line(doc: object) -> bytes:
    """Write the document as a line of JSON Lines.

    Raises:
        ValueError: A figure is not a number.
    """
    try:
        if not _UNUSUAL.search(_BINARY.encode(doc)):
            line = _TEXT.encode(doc)
            if line.isascii() and b"\x7f" not in line:
                return line + b"\n"
            return f"{_shielded(line.decode())}\n".encode()
    except (TypeError, OverflowError, UnicodeEncodeError, msgspec.MsgspecError):
        pass
    text = json.dumps(
        msgspec.to_builtins(doc), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return f"{_shielded(_NO_TEXT.sub(_UNREADABLE, text))}\n".encode()


_NO_TEXT, _UNREADABLE = re.compile("[\ud800-\udfff]"), "\ufffd"
"""What stands for the bytes of a file's name that are not UTF-8, and cannot be written as such."""


def _shielded(text: str) -> str:
    """Write what a terminal would obey as JSON's own escapes; the values are the same."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)
