"""The computer around a card as people say it: RAM, processor, name of the product.

RAM is said as ``64GB DDR5-6000 x2``, ``2x32GB DDR4-3200``, ``LPDDR5X-8533``.

What a type of memory can be stands in ``knowledge/ram_types.tsv``, read when one is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from advisor.errors import RequestError, did_you_mean
from advisor.files import table_rows
from advisor.units import GIB, UnitError, counted, parse_size_as_sold, shortened

FILE: Final = "ram_types.tsv"
BYTES_PER_TRANSFER: Final = 8
"""Of one channel, which is 64 bits wide."""
_MOST_CHANNELS: Final = 24
_MOST_STICKS: Final = 64
_PC_RATE: Final = 8500
"""Names of modules (PC4-25600) count MB/s from here on, and MT/s below."""
_CHANNELS: Final = {
    "single": 1, "dual": 2, "two": 2, "triple": 3, "quad": 4, "four": 4, "six": 6, "hexa": 6,
    "octa": 8, "octo": 8, "eight": 8, "twelve": 12,
}  # fmt: skip
_PER_SECOND: Final = r"\s*(?:mt/?s?|mts|mhz|mbps)\b"
_TYPE: Final = re.compile(
    rf"\b(lp)?ddr\s?([0-9])(l|x)?"
    rf"(?:(?:[\s_@-]|\b(?:ecc|reg(?:istered)?|[rul]?r?dimm|so-?dimm)\b)*"
    rf"(\d{{3,5}})(?!\d|\s*[gt]i?b)(?:{_PER_SECOND})?)?",
    re.IGNORECASE,
)
_MULTIPLEXED: Final = re.compile(r"\b(?:ddr5[\s-]*)?mrdimms?\b", re.IGNORECASE)
_MODULE: Final = re.compile(r"\bpc([345])l?-(\d{3,6})[a-z]*\b", re.IGNORECASE)
_RATE: Final = re.compile(rf"\b(\d{{3,5}}){_PER_SECOND}", re.IGNORECASE)
_STICKS: Final = re.compile(r"\b(\d{1,3})\s*(?:sticks?|dimms?|modules?)\b", re.IGNORECASE)
_SIZE: Final = re.compile(
    r"(?<![\w.-])(?:(\d{1,3})\s*[x\u00d7*]\s*)?"
    r"(\d+(?:\.\d+)?)\s*([mgt](?:i?bs?|o)?)(?:\s*[x\u00d7*]\s*(\d{1,3}))?(?!\w)",
    re.IGNORECASE,
)
_WIDE: Final = re.compile(
    rf"(?<!\w)(?:[x\u00d7]\s*(\d{{1,3}})|(\d{{1,3}})\s*[x\u00d7](?!\s*\d)"
    rf"|(\d{{1,3}}|{'|'.join(_CHANNELS)})[\s-]*(?:channels?|ch))(?!\w)",
    re.IGNORECASE,
)
_BESIDE: Final = re.compile(
    r"\b(?:of|system|main|ram|memory|ecc|reg|registered|unbuffered|[rul]?r?dimm|so-?dimm|camm2?|kit|"
    r"xmp|expo|cl?\d\d|soldered|in|with|at|and)\b|[\s,;@()|+-]+",
    re.IGNORECASE,
)
_OTHERWISE: Final = re.compile(
    r"\d|\b(?:v-?ram|gpus?|graphics|video|cards?|swap|pagefile|zram|disk|storage|ssd|nvme|hdd|optane"
    r"|each|per|every|half|double|twice|times|quarter|hundred|not?|without|than|minus|less|under"
    rf"|below|over|above|or|to|upto|max|maximum|chan\w*|{'|'.join(_CHANNELS)})\b",
    re.IGNORECASE,
)
"""Words that make a size beside them another size, or that of something else."""
_BARE: Final = re.compile(r"(?<![\w.])(\d{1,4})(?=\s*(?:of\s+)?(?:system\s+)?ram\b)", re.IGNORECASE)
_EXAMPLE: Final = "Write for example 64GB, 64GB DDR5-6000 x2, or 2x32GB DDR4-3200."


class RamType(Struct, frozen=True):
    """What memory of one type runs at, in MT/s."""

    name: str
    """DDR5, LPDDR5X ..."""
    slowest: int
    fastest: int
    """Rates that exist."""
    usual_slowest: int
    usual_fastest: int
    """What people usually have."""


class RamKind(Struct, frozen=True):
    """What was said of memory besides its size; None: not said."""

    type: str | None = None
    rate: int | None = None
    """MT/s"""
    channels: int | None = None
    sticks: int | None = None

    def __str__(self) -> str:
        """Write it so that it is read again: ``DDR5-6000 x2``."""
        named = "-".join(str(one) for one in (self.type, self.rate) if one)
        wide = f"x{self.channels}" if self.channels else ""
        return " ".join(
            filter(None, (named, wide, counted(self.sticks, "stick") if self.sticks else ""))
        )


_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}\s*[gt])", re.IGNORECASE)
"""The point of a size as half of Europe writes it: ``31,6 GB``."""


def ram_types() -> Mapping[str, RamType]:
    """Read the types of memory by name."""
    return {name: RamType(name, *map(int, rates)) for name, *rates in table_rows(FILE)}


def read_ram(text: str) -> tuple[float | None, RamKind | None]:
    """Read a size in GiB, and the kind of memory; None: not said.

    ``2x32GB`` and ``32GB x2`` are two sticks; ``x2`` behind the type is two channels. Words beside
    a size are passed over where they have no digits and do not make it another size.

    Raises:
        UnitError: Nothing but a size was meant, and it is none.
        RequestError: A word that is not understood, or memory that nobody makes.
    """
    rest = _MULTIPLEXED.sub("DDR5", _BARE.sub(r"\1GB", _COMMA.sub(".", text)))
    said = RamKind()
    if found := _TYPE.search(rest):
        rest, said = _without(rest, found), _typed(found)
    elif found := _MODULE.search(rest):
        rest, said = _without(rest, found), _module(found)
    size, rest, sticks = _sized(rest)
    if (found := _RATE.search(rest)) and said.rate is None:
        rest, said = _without(rest, found), RamKind(said.type, int(found[1]))
    if found := _STICKS.search(rest):
        rest, sticks = _without(rest, found), int(found[1])
    channels = None
    if found := _WIDE.search(rest):
        word = (found[1] or found[2] or found[3]).casefold()
        rest, channels = _without(rest, found), _CHANNELS.get(word) or int(word)
    kind = RamKind(said.type, said.rate, channels, sticks)
    if kind == RamKind() and size is None:
        return parse_size_as_sold(text) / GIB, None
    left = _BESIDE.sub(" ", rest).strip()
    _check(text, kind, left if size is None or _OTHERWISE.search(left) else "")
    return size, kind if kind != RamKind() else None


def kind_in(text: str) -> RamKind:
    """Read the kind of memory alone, ``DDR5-6000 x2``.

    Raises:
        RequestError: It is none, has a word that is not understood, or nobody makes it.
    """
    try:
        return read_ram(text)[1] or RamKind()
    except UnitError:
        hint = "Write for example DDR5-6000 x2."
        raise RequestError(f"'{text}' is no type of system RAM", hint=hint) from None


def _without(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} | {text[found.end() :]}"


def _typed(found: re.Match[str]) -> RamKind:
    low, number, suffix, rate = found.groups()
    extended = "X" if low and (suffix or "").casefold() == "x" else ""
    name = f"{'LP' if low else ''}DDR{number}{extended}"
    return RamKind(name, int(rate) if rate else None)


def _module(found: re.Match[str]) -> RamKind:
    number = int(found[2])
    if number < _PC_RATE and found[1] != "3":  # PC3-6400 is DDR3-800
        return RamKind(f"DDR{found[1]}", number)
    rate = number / BYTES_PER_TRANSFER
    exact = round(rate * 3 / 400) * 400 / 3  # rates are multiples of 133 1/3, names are rounded
    return RamKind(f"DDR{found[1]}", int(exact))


def _sized(text: str) -> tuple[float | None, str, int | None]:
    """Take the size out: all of it in GiB, the rest, and the sticks it was told by."""
    whole, sticks = None, None
    while found := _SIZE.search(text):
        before, number, unit, behind = found.groups()
        count = int(before or behind) if before or behind else None
        size = parse_size_as_sold(number + unit[0]) / GIB * (count or 1)
        if whole not in {None, size}:
            raise RequestError(f"'{shortened(text)}' names two sizes", hint=_EXAMPLE)
        whole, sticks, text = size, count or sticks, _without(text, found)
    return whole, text, sticks


def _check(text: str, kind: RamKind, left: str) -> None:
    shown = shortened(text.strip())
    if left:
        raise RequestError(f"'{left}' in '{shown}' is not understood", hint=_EXAMPLE)
    types = ram_types()
    if kind.type and kind.type not in types:
        hint = did_you_mean(kind.type, types) or f"Known: {', '.join(types)}."
        raise RequestError(f"'{shown}' names {kind.type}, which is not known", hint=hint)
    known = types.get(kind.type or "")
    if known and kind.rate and not known.slowest <= kind.rate <= known.fastest:
        raise RequestError(
            f"{known.name}-{kind.rate} does not exist: {known.name} runs at {known.slowest:,} to "
            f"{known.fastest:,} MT/s",
            hint="Take the number behind the type on the package, for example DDR5-6000.",
        )
    for what, number, most in (
        ("channels", kind.channels, _MOST_CHANNELS),
        ("sticks", kind.sticks, _MOST_STICKS),
    ):
        if number is not None and not 1 <= number <= most:
            raise RequestError(f"'{shown}' names {number} {what}", hint=f"Give 1 to {most}.")


CPU_FILE: Final = "cpus.tsv"
CpuKind = Literal["desktop", "laptop", "workstation", "server", "board"]
_BESIDE_CPU: Final = re.compile(
    r"\((?:r|tm|c)\)|[®™]|@.*|\b\d+(?:st|nd|rd|th)\s+gen(?:eration)?\b|\b[a-z0-9]+-cores?\b"
    r"|\b(?:with|w/)\s+radeon.*|\b(?:amd|intel|cpu|apu|processor|threadripper(?=\s+threadripper))\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[a-z0-9+]+")
_VERSION: Final = re.compile(r"\b(\d{4}[a-z]?)(v\d)\b")
_MODEL: Final = re.compile(r"[a-z]*\d{3,5}[a-z0-9+]*|\d{1,2}[fh]\d{1,2}|z\d|pi\d")
PI: Final = (
    r"\b(?:raspberry[\s-]*pi|raspi|r[\s-]?pi|(?<!orange[\s-])(?<!banana[\s-])pi)"
    r"[\s-]*([45])(?:00\+?(?![\d+]))?[\s-]*(?:model[\s-]*)?b?(?!\w)"
)
_PI: Final = re.compile(PI)
_SHORT: Final = {"tr": "threadripper", "tripper": "threadripper"}
_COUNTED: Final = re.compile(
    r"\s*(?:(?:2\s*[x\u00d7*]|dual|two)\s+(.+?)|(.+?)\s*[x\u00d7*]\s*2)\s*", re.IGNORECASE
)
_MOST_LISTED: Final = 4


class Cpu(Struct, frozen=True):
    """A processor, and the memory that it takes."""

    name: str
    kind: CpuKind
    channels: float
    """Of 64 bits, of one processor."""
    memory: Mapping[str, int]
    """Type -> the fastest that its maker names, MT/s."""
    source: str

    @property
    def overclocks(self) -> bool:
        """Whether boards run memory faster than its maker names."""
        return self.kind in {"desktop", "workstation"}

    def rate(self, type_: str) -> int | None:
        """Give the fastest of a type; DDR3L and the low-power X types count as those without."""
        return self.memory.get(type_) or self.memory.get(type_.rstrip("XL"))


def cpus() -> Mapping[str, Cpu]:
    """Read the processors by name."""
    found: dict[str, Cpu] = {}
    for kind, channels, memory, source, names in table_rows(CPU_FILE):
        rates = {name: int(rate) for name, rate in map(_pair, memory.split())}
        for name in names.split(", "):
            found[name] = Cpu(name, kind, float(channels), rates, source)  # type: ignore[arg-type]
    return found


def _pair(text: str) -> tuple[str, str]:
    name, _, rate = text.partition("-")
    return name, rate


@cache  # 1.05 of 60 questions
def _by_model() -> Mapping[str, Sequence[tuple[frozenset[str], Cpu]]]:
    """Give the processors by the word of their names that numbers them."""
    found: dict[str, list[tuple[frozenset[str], Cpu]]] = {}
    for cpu in cpus().values():
        words = _words(cpu.name)
        for word in filter(_MODEL.fullmatch, words):
            found.setdefault(word, []).append((frozenset(words), cpu))
    return found


def _words(text: str) -> Sequence[str]:
    plain = _VERSION.sub(r"\1 \2", _BESIDE_CPU.sub(" ", text).casefold())
    plain = _PI.sub(r"raspberry pi\1", plain)
    return [_SHORT.get(word, word) for word in _WORD.findall(plain)]


def find_cpu(text: str) -> tuple[Cpu, int]:
    """Find a processor by its name, and how many were named: one or two.

    Every word has to belong to the name, so that no other processor is taken; words that say the
    series (``Ryzen 9``) may be left out.

    Raises:
        RequestError: Unknown (nearest names), or of several memories.
    """
    named, count = _counted(text)
    found = [*_matching(named)]
    if not found:
        raise RequestError(
            f"unknown processor '{shortened(text)}'",
            hint=did_you_mean(named, cpus())
            or 'State the memory itself: --ram "64GB DDR5-6000 x2".',
        )
    if not _have_one_memory(found):
        names = ", ".join(one.name for one in found[:_MOST_LISTED])
        raise RequestError(
            f"'{text}' names several processors: {names}", hint="Write one of these."
        )
    return found[0], count


def is_cpu(text: str) -> bool:
    """Whether a text is the name of a processor, or of several with the same memory."""
    found = [*_matching(_counted(text)[0])]
    return bool(found) and _have_one_memory(found)


def _counted(text: str) -> tuple[str, int]:
    found = _COUNTED.fullmatch(text)
    return (next(filter(None, found.groups())), 2) if found else (text, 1)


def _have_one_memory(found: Sequence[Cpu]) -> bool:
    first = found[0]
    return all((one.channels, one.memory) == (first.channels, first.memory) for one in found)


def _matching(text: str) -> Iterator[Cpu]:
    words = frozenset(_words(text))
    models = [word for word in words if _MODEL.fullmatch(word)]
    versions = {word for word in words if re.fullmatch(r"v\d", word)}
    for model in models:
        for known, cpu in _by_model().get(model, ()):
            same_version = {word for word in known if re.fullmatch(r"v\d", word)} == versions
            if (
                words <= known
                and same_version
                and set(models) >= {*filter(_MODEL.fullmatch, known)}
            ):
                yield cpu


_PRODUCTS = "product_names.tsv"
_BRAND = r"(?:with\s+)?(?:an?\s+)?(?:nvidia|geforce|rtx|gtx|radeon|rx|amd|intel|arc|quadro)"
_MARKS = (
    r"(?:[\s-]+\(?(?!\d+\s?gi?b\b|rtx|gtx|rx|m[1-5]\b|a\d{3,4}m?\b|arc)(?:\d{1,2}[a-z]{0,3}|pro|plus|max|slim|hx"
    rf"|oled|duo|gen\s*\d+|20[12]\d|r\d|\d{{4}}(?=[\s,]+{_BRAND})|[a-z]{{1,3}}\d{{2,4}}\w*"
    r"|\d{2}[a-z]{2,4}\d\w*)(?![\w.])\)?)"
)
"""What stands behind a series: size, generation, year, number."""
_SIZED = r"\s+(?:with\s+)?\d+\s?gi?b\b"


@cache  # 5.4 of 540 questions
def computers_named() -> Mapping[str, re.Pattern[str]]:
    """Give what finds products by kind: ``laptop``, ``desktop``, and ``maker`` for a board's."""
    rows = table_rows(_PRODUCTS)
    makers = "|".join({maker for _, maker, _ in rows})
    boards = "|".join(rows[-1][2].split(", "))
    found = {"maker": re.compile(rf"\b(?:{boards})\b", re.IGNORECASE)}
    for kind in ("desktop", "laptop"):
        series = [one for row in rows if row[0] == kind for one in row[2].split(", ")]
        spelled = "|".join(map(re.escape, sorted(series, key=len, reverse=True)))
        spelled = spelled.replace(r"\ ", r"[\s-]*")
        plain = rf"(?:{makers})\s+(?:{spelled}){_MARKS}*|(?:{spelled})(?:{_MARKS}+|(?={_SIZED}))"
        for name, named in ((kind, plain), (f"{kind} alone", rf"{plain}|(?:{spelled})")):
            found[name] = re.compile(rf"\b(?:{named})(?![\w.])", re.IGNORECASE)
    return found


def as_computer(text: str, how: str = "") -> str:
    """Write a laptop's product name as what it says of its card, a desktop's as nothing.

    A series stands with its maker or with what follows it; `` alone`` where all is a card's name.
    """
    known = computers_named()
    rest = known[f"desktop{how}"].sub(" ", text)
    return known[f"laptop{how}"].sub(" laptop ", rest).strip()
