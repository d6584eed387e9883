"""What runs in place of a request that nothing runs, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Format, Framework
from advisor.scenario import support
from advisor.scenario.settings import Request
from advisor.units import shell_word

_LEAST_BITS, _USUAL_BITS = 3, 4


def shared_otherwise(
    request: Request, framework: Framework, told: tuple[str, ...]
) -> tuple[Request, tuple[str, ...]]:
    """Leave out a way to share a model that is not sized, and say so behind what was told."""
    why = framework.not_sized.get(request.split or "")
    if not why:
        return request, told
    line = f"A split by {request.split} is not sized: {why}. "
    line += f"{framework.name} is sized with a split by {framework.multi_gpu[0]}."
    return replace(request, split=None), (*told, line)


class Way(NamedTuple):
    """What runs in place of what was asked."""

    precision: Format
    framework: Framework
    own: bool | None
    """Whether its framework is the stated one; None where none is stated."""
    cache: str = ""
    """The smaller type of the cache with which it has room."""

    @property
    def told(self) -> str:
        """Say what to type for it."""
        framework = "" if self.own else f"--framework {shell_word(self.framework.name)} "
        cache = f" --kv-cache {self.cache}" if self.cache else ""
        few = " So few bits cost much of its quality." if self.harsh else ""
        return f"give {framework}--precision {shell_word(self.precision.name)}{cache}.{few}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Give what a request states for it."""
        cache = {"kv_cache": self.cache} if self.cache else {}
        return {"framework": self.framework.name, "precision": self.precision.name, **cache}

    @property
    def named(self) -> str:
        """Say what runs what."""
        return f"{self.framework.name} runs {self.precision.name}"

    @property
    def harsh(self) -> bool:
        """Whether it has so few bits that a part in system RAM is the better way.

        A smaller cache adds to what is lost.
        """
        bits = self.precision.class_bits or self.precision.bits_per_weight
        least = _USUAL_BITS if self.cache else _LEAST_BITS
        return (bits or least) < least


class Held(NamedTuple):
    """Whether a way has room."""

    said: str = ""
    """What stays free, or where the rest lies, and how fast it runs."""
    beside: bool = False
    """Whether a part lies in system RAM."""
    missing: str | None = None
    """Of what does not fit: how much, where that is known; None where it fits."""
    thin: bool = False
    """Whether hardly anything stays free."""
    at_once: int = 0
    """Requests that it holds at once, or would."""
    shorter: bool = False
    """Whether it would hold less of the context, enough to be of use."""
    cache: str = ""
    """The smaller type of the cache that this takes."""
    crawls: bool = False
    """Whether so much lies in system RAM that nobody would wait for it."""
    slow: bool = False
    """Whether it is slower beside system RAM than people read."""


Holds = Callable[[Way], Held]
Ways = Callable[[], Iterable[Way]]
"""What runs instead, the nearest first."""


class CannotRunError(RequestError):
    """Nothing runs what was asked.

    Args:
        message: Why.
        ways: What does.
        holds: Which of them has room, and how.
        amid: The context and the requests they have to fit with, to be said of one that does not.
        whole: Whether what is whole on the cards goes before a part in system RAM.
    """

    def __init__(
        self, message: str, ways: Ways, holds: Holds, amid: str = "", *, whole: bool = False
    ) -> None:
        hint, way = _hint(iter(ways()), holds, amid, whole=whole)
        super().__init__(message, hint=hint)
        self.ways = ways
        if way:
            said = f"What follows is of {way.precision.name} in {way.framework.name}"
            cache = f", whose KV cache is kept as {way.cache} for room" if way.cache else ""
            self.answered(f"{said}{cache}.", **way.settings)


def _hint(ways: Iterator[Way], holds: Holds, amid: str, *, whole: bool) -> tuple[str, Way | None]:
    """Say what to type: the nearest that fits, or whose rest goes to system RAM.

    What the stated framework holds whole is told too; beside system RAM, what that one does.
    """
    nearest: tuple[Way, Held] | None = None
    taken: Way | None = None
    told, beside, spare, crept, slow = "", "", "", False, False
    for one in ways:
        if told and not (crept or whole or _may_add(one, beside, spare)):
            if one.own is None:
                break
            continue
        held = holds(one)
        way = one._replace(cache=held.cache)
        nearest = nearest or (way, held)
        less = held.at_once < nearest[1].at_once
        gentler = held.beside or nearest[1].shorter
        if less or held.missing is not None or (gentler and way.harsh):
            continue
        is_sound = not (held.beside or way.harsh or support.stands_back(way.framework))
        if told and not (crept or whole):
            if is_sound and way.own:
                return f"{told} {way.named}{held.said}: {way.told}", taken
            if (is_sound or (slow and not held.beside)) and not (spare or held.thin):
                spare = f" {way.named}{held.said}: {way.told}"
        elif is_sound or not (whole or held.beside or way.harsh):
            return _told(*nearest, way, held, amid) + _stated_one(way, ways, holds), way
        elif not told or (crept and not (held.crawls or way.harsh)):
            told, beside, taken = _told(*nearest, way, held, amid), one.framework.name, way
            crept, slow = held.crawls or way.harsh, held.slow
    return f"{told}{spare}" or _unheld(nearest), taken or (nearest and nearest[0])


def _stated_one(taken: Way, further: Iterator[Way], holds: Holds) -> str:
    """Say what the stated framework holds whole, where another is told."""
    for way in further if taken.own is False else ():
        if way.own and not way.harsh:
            held = holds(way)
            if held.missing is None and not (held.beside or held.thin or held.cache):
                return f" {way.named}{held.said}: {way.told}"
    return ""


def _may_add(way: Way, beside: str, spare: str) -> bool:
    """Whether a way is the stated framework's, or one of that told, which holds nothing yet."""
    told_of = way.framework.name == beside
    return bool(way.own) or (told_of and not (spare and way.own is None))


def _unheld(nearest: tuple[Way, Held] | None) -> str:
    if nearest is None:
        return "Nothing known here runs this model."
    way, held = nearest
    see = f"{way.named}, the nearest, though it does not fit{held.missing or ''}; to see what does:"
    return f"{see} {way.told}"


def _told(nearest: Way, had: Held, way: Way, held: Held, amid: str) -> str:
    if way is nearest or not amid:
        return f"{way.named}, the nearest{held.said}: {way.told}"
    if had.missing is None:
        return f"{nearest.named}, the nearest{had.said}. {way.named}{held.said}: {way.told}"
    return (
        f"{nearest.named}, the nearest, which does not fit {amid}{had.missing or ''}. "
        f"{way.named}, which does{held.said}: {way.told}"
    )
