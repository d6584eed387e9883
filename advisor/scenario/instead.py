"""What runs in place of a request that nothing runs, and how that is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge
from advisor.models.stored_tensors import Model
from advisor.scenario import divides, sharing, support, ways_for
from advisor.scenario.asked_format import PUBLISHED, USUAL, has_room, is_family
from advisor.scenario.capability import has_slow_kernels, is_obtainable, refusal
from advisor.scenario.settings import Request
from advisor.units import shell_word

_LEAST_BITS, _USUAL_BITS, _FULL_BITS = 3, 4, 16


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


def with_images(
    request: Request, framework: Framework | None, model: Model | None
) -> tuple[Request, tuple[str, ...]]:
    """Keep the part that reads images where the stated runtime cannot leave it out, and say so."""
    if not (request.text_only and framework and model and model.vision_parameters):
        return request, ()
    why = refusal(framework, "text_only", "", None, model.shape)
    told = f"The part that reads images cannot be left out of {model.name}: {why}."
    return (replace(request, text_only=None), (told,)) if why else (request, ())


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
            said += f"{cache}{_passed_over(way, ways(), holds)}."
            self.answered(said + _stated_one(way, iter(ways()), holds), **way.settings)


def reasons_given(reasons: Mapping[str, str], framework: Framework | None) -> Sequence[str]:
    """Leave out of reasons, given with what follows their colon, that the named one runs it not."""
    named = framework.name if framework else ""
    told = (f"{named} does not run", f"{named} is not sized") if named else ()
    return [why if text.startswith(told) else text for why, text in reasons.items()]


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


def _passed_over(taken: Way, ways: Iterable[Way], holds: Holds) -> str:
    """Say what comes nearer in the framework that is taken, where that does not fit."""
    nearest = next((way for way in ways if way.framework is taken.framework), taken)
    same = nearest.precision is taken.precision
    fits = same or holds(nearest).missing is None
    return "" if fits else f"; {nearest.precision.name} does not fit there"


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


def _distance(
    asked: Collection[float],
    usual: Sequence[str],
    model: Model,
    by: tuple[Framework, Container[str]],
    other: Format,
) -> tuple[float, ...]:
    """Order formats: those in ``late`` last; as published, as had, as usual, by distance in bits.

    Of what a server packs, what nobody is known to publish goes behind what somebody does.
    """
    again = not support.is_published(other, model), support.keeps_experts(other, model)
    bits = _bits(other)
    far = min([abs(bits - one) for one in asked])
    runner, late = by
    had = (bits < _FULL_BITS or _FULL_BITS in asked) and is_obtainable(runner, other, model)
    unseen = bool(runner.serves_batches) and not had
    return other.family in late, *again, unseen, other.name not in usual[:1], far


def _bits(precision: Format) -> float:
    return precision.class_bits or precision.bits_per_weight or 16


def _likely(
    asked: Sequence[Format], framework: Framework, model: Model, alike: Sequence[Format]
) -> Iterator[Format]:
    """Give formats that are equally far: what was asked for, and what can be had, goes first."""
    best = sorted(alike, key=lambda f: (support.quality_order(f), framework.formats.index(f.name)))
    for several in ([f for f in best if f in asked], [f for f in best if f not in asked]):
        late = []
        for one in several:
            if len(several) == 1 or is_obtainable(framework, one, model):
                yield one
            else:
                late.append(one)
        yield from late


class Asked(Struct, frozen=True):
    """What does not run, to look for what does."""

    knowledge: Knowledge
    formats: Sequence[Format]
    said: str
    """The precision as typed."""
    framework: Framework | None
    gpu: Gpu | None
    model: Model
    cards: int
    runners: Callable[[Format], Mapping[str, Framework]]
    by_distance: Callable[..., Iterator[Sequence[Format]]]

    def ways(self) -> Iterator[Way]:
        """Give what runs instead, the nearest first, one framework after the other."""
        meant, runners, far_off = self._meant(), self._those_that_run_it(), list[Way]()
        bits, last = set(map(_bits, meant)), partial(_last, runners, self.framework)
        spared = set() if self._is_open or is_family(self.said) else {f.family for f in meant}
        for one in _engines(sorted(self.knowledge.frameworks.values(), key=last)):
            had = () if one is self.framework or one.step_by_step else self._had(one, meant)
            late = {
                f.family for f in had if has_slow_kernels(one, f, self.gpu, self.model)
            } - spared
            usual = sorted(one.usual_formats if self._is_open else (), key=self._by_room)
            far = partial(_distance, bits, usual, self.model, (one, late))
            for running in self.by_distance(one, self._had(one, meant), far):
                own = one is self.framework if self.framework else None
                given = (Way(f, one, own) for f in _likely(meant, one, self.model, running))
                _, packed, _, unseen, _, bits_off = far(running[0])
                if one is self.framework and runners and packed and (unseen or bits_off > 1):
                    far_off += given
                else:
                    yield from given
        yield from far_off

    def _by_room(self, name: str) -> tuple[bool, float]:
        """Order what is usual: the most bits that leave most of the cards, then the fewest."""
        of, share = self.knowledge.formats[name], self.cards / 3
        roomy = has_room(of, self.gpu, self.model, share, self.knowledge.policy)
        return not roomy, -_bits(of) if roomy else _bits(of)

    def _had(self, one: Framework, meant: Sequence[Format]) -> Iterator[Format]:
        """Give the formats of a framework that are offered and that the cards can share."""
        for precision in map(self.knowledge.formats.__getitem__, one.formats):
            rounded = support.is_rounded(precision, self.model) and precision not in meant
            shared = _is_shared(one, precision, self.model, self.cards)
            if precision.offered and not rounded and shared:
                yield precision

    def seems_held(self, way: Way) -> Held:
        """Say whether the cards may hold the weights, or system RAM the rest of them."""
        roomy = self._is_roomy(way.precision)
        if way.framework.places_layers and self.gpu and not self.gpu.unified_memory:
            return Held() if roomy else Held(", in part from system RAM", beside=True)
        return Held(missing=None if roomy and not way.harsh else "")

    @property
    def _is_open(self) -> bool:
        return self.said in {USUAL, PUBLISHED}

    def _is_roomy(self, precision: Format) -> bool:
        return has_room(precision, self.gpu, self.model, self.cards, self.knowledge.policy)

    def _meant(self) -> Sequence[Format]:
        released = self.model.native_formats or (support.own_sixteen(self.model),)
        return [self.knowledge.formats[n] for n in released] if self._is_open else self.formats

    def _those_that_run_it(self) -> Container[str]:
        """Name the frameworks that run what was meant where it has room; those kept up, if any."""
        family, model = is_family(self.said), self.model
        unmeant = self._is_open and not (self.framework and self.framework.serves_batches)
        running = [
            one
            for f in (() if unmeant else filter(self._is_roomy, self._meant()))
            for one in self.runners(f).values()
            if _is_shared(one, f, model, self.cards)
            and not (family and (support.stands_back(one) or not is_obtainable(one, f, model)))
        ]
        kept = [one.name for one in running if not support.stands_back(one)]
        return set(kept or [one.name for one in running])


def _engines(frameworks: Iterable[Framework]) -> Iterator[Framework]:
    """Leave out what is built on one that comes before and has nothing of its own."""
    seen: dict[str, set[str]] = {}
    for one in frameworks:
        known = seen.setdefault(one.memory_model, set())
        if one.expert_offload or not known.issuperset(one.formats):
            yield one
        known.update(one.formats)


def _is_shared(framework: Framework, precision: Format, model: Model, cards: int) -> bool:
    """Whether so many cards can share a model in some way, as far as it is known."""
    ways = sharing(ways_for(framework, precision))
    shared = any(divides(way, framework, precision, model, cards) for way in ways)
    return shared or cards == 1 or not framework.multi_gpu


def _last(runners: Container[str], stated: Framework | None, one: Framework) -> tuple[bool, ...]:
    """Order frameworks: as stated, what runs the format, a server for a server, what is kept up."""
    runs = one.name in runners
    kept = bool(one.serves_batches) and support.upkeep(one) is None
    alike = not (stated and stated.serves_batches) or kept
    return one is not stated, not runs, not alike, support.stands_back(one)
