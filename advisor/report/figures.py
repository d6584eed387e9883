"""Numbers and words as people read them: every figure of every report is written here.

The words that stand in no template are in ``templates/words.txt``, a user's file in front of it.
Figures are set into them (``about {speed}``), so placeholders arrive in templates ready to print.
Which words are spoken is a matter of the report being written, as precision is of a decimal
context: ``spoken`` sets it for a block, and everything that writes figures asks ``say``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from advisor.errors import raise_problems
from advisor.files import data_dir
from advisor.knowledge.layers import Stack, stack
from advisor.report.word_file import ONE, read_words
from advisor.units import FINE_RATE, GB, GIB, format_quantity, gib, rate

if TYPE_CHECKING:
    from advisor.scenario.figures import Figure, Span


class Words(dict[str, str]):
    """Texts by name. One set of words equals itself alone, so that texts can be kept by it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # a dictionary has none
        return id(self)


def words_of(folders: Stack = None) -> Words:
    """Give the words with a user's folders (or none) in front.

    Raises:
        TemplateError: A words.txt of the user's is wrong.
    """
    return _words_of(stack(folders))


@lru_cache(maxsize=8)
def _words_of(folders: tuple[Path, ...]) -> Words:
    if not folders:
        return Words(read_words(data_dir("templates"))[0])
    users, problems = read_words(folders[-1], _words_of(()))
    raise_problems(problems)
    return Words({**_words_of(folders[:-1]), **users})


def forget_words() -> None:
    """Read the words anew from now on."""
    _words_of.cache_clear()


_spoken: ContextVar[Words | None] = ContextVar("spoken", default=None)


@contextmanager
def spoken(folders: Stack) -> Iterator[None]:
    """Write with the words of these folders inside this block.

    Raises:
        TemplateError: A words.txt is wrong.
    """
    with speaking(words_of(folders)):
        yield


class speaking:  # noqa: N801 - used as a function is
    """Write with these words inside this block."""

    __slots__ = ("_before", "_words")

    def __init__(self, spoken_words: Words) -> None:
        """Take the words."""
        self._words = spoken_words

    def __enter__(self) -> None:
        """Begin."""
        self._before = _spoken.set(self._words)

    def __exit__(self, *_: object) -> None:
        """Go back to the words before."""
        _spoken.reset(self._before)


def words() -> Words:
    """Give the words that are spoken now; what is kept of texts is kept by them."""
    return _spoken.get() or _words_of(())


def say(name: str, **figures: object) -> str:
    """Give the text of a name, with figures set into it."""
    text = (_spoken.get() or _words_of(()))[name]
    return text.format_map(figures) if figures else text


def known(kind: str, name: object) -> str:
    """Give the text of a name of a kind; empty for a name that has none."""
    return (_spoken.get() or _words_of(())).get(f"{kind}.{name}", "")


def counted(name: str, number: int, **figures: object) -> str:
    """Give the text for a number of things, in the singular where there is one."""
    texts = _spoken.get() or _words_of(())
    form = name + ONE if number == 1 and name + ONE in texts else name
    return texts[form].format_map({"n": f"{number:,}", **figures})


USERS = "your measurement"
"""How the source of a user's own figure begins."""
_MILLION, _BILLION = 1e6, 1e9
_HUNDREDTH_GIB, _TENTH_GIB = GIB / 100, GIB / 10
_MANY = 100
"""From here on a decimal less is printed: billions of parameters."""
_FINE_SHARE = 20
"""Below this percentage a decimal is printed."""
_LEAST_SHARE = 0.1
_FEW_CARDS = 3
_LEAST_WAIT_S = 0.095
"""Below this many seconds no figure is printed: a step of a server is not known so well."""


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
    """Print ``about 0.4 s (0.3 to 0.6)``, ``under 0.1 s`` of hardly any; empty when unknown."""
    if not figure:
        return ""
    now, low, high = (_seconds(getattr(figure, end)) for end in ("estimate", "low", "high"))
    if figure.estimate < _LEAST_WAIT_S:
        return say("wait.under" if figure.high < _LEAST_WAIT_S else "wait.up_to", high=high)
    if low == high:
        return say("wait.about", wait=now)
    return say("wait.range", wait=now, low=low, high=high)


def _seconds(seconds: float) -> str:
    if seconds < _LEAST_WAIT_S:
        return "under 0.1"
    return f"{seconds:,.0f}" if seconds >= FINE_RATE else f"{seconds:.1f}"


def few_cards(count: int) -> str:
    """Print ``1 measured card`` up to three; empty for none or for more."""
    if not 0 < count <= _FEW_CARDS:
        return ""
    return counted("cards.measured", count)


def of_each(text: str, sequences: int, name: str = "speed.each") -> str:
    """Say of a speed that each of several requests has it; nothing where there is none."""
    return say(name, speed=text) if text and sequences > 1 else text


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


_UNIT = re.compile(r"(\d) (GiB|GB|GB/s|tok/s|%|W|tokens|sequences|billion)(?![\w/])")


def wrapped(text: str, width: int) -> list[str]:
    """Wrap at spaces, keeping a figure and its unit together; long words stay whole."""
    kept = _UNIT.sub("\\1\xa0\\2", text)
    lines, current = list[str](), ""
    for word in kept.split(" "):
        if current and len(current) + len(word) >= width:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [line.replace("\xa0", " ") for line in [*lines, current]]
