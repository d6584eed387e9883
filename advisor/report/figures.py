"""Numbers as people read them: every figure of every report is written here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from advisor.report.words import counted, say
from advisor.units import GB, GIB, format_quantity, gib

if TYPE_CHECKING:
    from advisor.scenario.figures import Figure, Span


Strings = dict[str, str]
"""Placeholders of a template with their texts."""
USERS = "your measurement"
"""How the source of a user's own figure begins."""
_MILLION, _BILLION = 1e6, 1e9
_HUNDREDTH_GIB, _TENTH_GIB = GIB / 100, GIB / 10
_MANY = 100
"""From here on a decimal less is printed: billions of parameters."""
_FINE_SHARE = 20
"""Below this percentage a decimal is printed."""
_LEAST_SHARE = 0.1
_FINE_RATE = 9.95
"""Below this many tokens per second a decimal is printed."""
_FEW_CARDS = 3
_FINE_WAIT_S = 0.995
"""Below this many seconds two decimals are printed."""
_COARSE_RATE = 1000
"""From here on tokens per second are rounded to tens."""


def size(count_bytes: float | None) -> str:
    """Print bytes as GiB, ``24 GiB`` when it is a whole number; empty when unknown."""
    if count_bytes is None:
        return ""
    return amount(count_bytes).replace(".0 GiB", " GiB")


def amount(count_bytes: float | None) -> str:
    """Print bytes as GiB, always with a decimal; empty when unknown."""
    if count_bytes is None:
        return ""
    if 0 < count_bytes < _HUNDREDTH_GIB / 2:
        return say("size.tiny")
    number, unit = gib(count_bytes).split()
    whole, _, decimals = number.partition(".")
    return f"{int(whole):,}.{decimals} {unit}"


def rest(whole_bytes: float | None, part_bytes: float | None) -> str:
    """Print what is left of one amount without another; empty when either is unknown."""
    if whole_bytes is None or part_bytes is None:
        return ""
    return amount(rest_bytes(whole_bytes, part_bytes))


def rest_bytes(whole_bytes: float, part_bytes: float) -> float:
    """Take one amount from another so that all three add up as they are printed.

    Each is printed to a tenth of a GiB, and the difference of two rounded figures may be a tenth
    off the rounded difference. Below a tenth the exact difference is kept.
    """
    exact = whole_bytes - part_bytes
    tenths = round(whole_bytes / _TENTH_GIB) - round(part_bytes / _TENTH_GIB)
    return tenths * _TENTH_GIB if tenths > 0 and exact >= _TENTH_GIB else exact


def decimal_gb(count_bytes: float | None) -> str:
    """Print bytes as decimal GB, one decimal; empty when unknown."""
    return "" if count_bytes is None else f"{count_bytes / GB:,.1f} GB"


def nominal(gigabytes: float | None) -> str:
    """Print the rule-of-thumb size; empty when unknown."""
    return "" if gigabytes is None else f"{gigabytes:,.1f}".removesuffix(".0") + " GB"


def quantity(value: float | None, unit: str) -> str:
    """Print a base-unit value in a unit; empty when unknown."""
    return "" if value is None else format_quantity(value, unit)


def count(value: float | None) -> str:
    """Print a whole number with thousands separators; empty when unknown."""
    return "" if value is None else f"{value:,.0f}"


def billions(parameters: float | None) -> str:
    """Print a parameter count as ``13.96 billion`` or ``494 million``; empty when unknown."""
    if parameters is None:
        return ""
    if parameters < _BILLION:
        return say("count.million", n=f"{parameters / _MILLION:.0f}")
    digits = 1 if parameters >= _MANY * _BILLION else 2
    text = f"{parameters / _BILLION:,.{digits}f}".rstrip("0").rstrip(".")
    return say("count.billion", n=text)


def percent(share: float | None) -> str:
    """Print a percentage: a decimal only below 20; empty when unknown."""
    if share is None:
        return ""
    if 0 < share < _LEAST_SHARE / 2:
        return say("share.tiny", share=f"{_LEAST_SHARE} %")
    digits = 0 if abs(share) >= _FINE_SHARE else 1
    return f"{share:.{digits}f}".removesuffix(".0") + " %"


def dollars(value: float | None) -> str:
    """Print US dollars; empty when unknown."""
    return "" if value is None else f"${value:,.0f}"


def rate(tokens_s: float) -> str:
    """Print tokens per second without its unit: 8.4, 95, 1,240."""
    if tokens_s >= _COARSE_RATE:
        return f"{round(tokens_s, -1):,.0f}"
    return f"{tokens_s:,.0f}" if tokens_s >= _FINE_RATE else f"{tokens_s:.1f}"


def speed_point(figure: Figure | None) -> str:
    """Print ``95 tok/s``; empty when unknown."""
    return say("speed.point", speed=rate(figure.estimate)) if figure else ""


def speed_span(figure: Figure | None) -> str:
    """Print ``80 to 112``; empty when unknown or when both ends print alike."""
    if not figure:
        return ""
    low, high = rate(figure.low), rate(figure.high)
    return "" if low == high else say("speed.range", low=low, high=high)


def speed_range(figure: Figure | None) -> str:
    """Print ``about 95 tok/s (80 to 112)``, without "about" when measured; empty when unknown."""
    if not figure:
        return ""
    point, span = speed_point(figure), speed_span(figure)
    told = point if figure.evidence == "measured" else say("speed.about", speed=point)
    return f"{told} ({span})" if span else told


def wait(figure: Figure | None) -> str:
    """Print ``about 0.4 s (0.3 to 0.6)``; empty when unknown."""
    if not figure:
        return ""
    now, low, high = (_seconds(getattr(figure, end)) for end in ("estimate", "low", "high"))
    if low == high:
        return say("wait.about", wait=now)
    return say("wait.range", wait=now, low=low, high=high)


def _seconds(seconds: float) -> str:
    if seconds < _FINE_WAIT_S:
        return f"{seconds:.2f}"
    return f"{seconds:,.0f}" if seconds >= _FINE_RATE else f"{seconds:.1f}"


def few_cards(count: int) -> str:
    """Print ``1 measured card`` up to three; empty for none or for more."""
    if not 0 < count <= _FEW_CARDS:
        return ""
    return counted("cards.measured", count)


def span(ends: Span | None) -> str:
    """Print ``30 to 90 tok/s``; empty when unknown."""
    return say("speed.span", low=rate(ends.low), high=rate(ends.high)) if ends else ""


def evidence(figure: Figure | None) -> str:
    """Say how a speed is backed; empty when unknown."""
    if figure and figure.source.startswith(USERS):
        return figure.source.replace(USERS, say("evidence.own"), 1)
    return say(f"evidence.{figure.evidence}") if figure else ""


def listed(items: Sequence[str], joiner: Literal["and", "or"] = "and") -> str:
    """Write ``a, b and c``; empty for an empty list."""
    *before, last = items or [""]
    return say(f"list.{joiner}", first=", ".join(before), last=last) if before else last


def flag(value: object) -> str:
    """Write yes, or nothing."""
    return "yes" if value else ""


def aligned(
    rows: Sequence[Sequence[str]], indent: str = "", *, right: Collection[int] = ()
) -> Iterator[str]:
    """Lay rows out in columns, two spaces apart; those numbered in ``right`` end in line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield (indent + "  ".join(cells)).rstrip()
