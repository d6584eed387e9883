"""Cards as people say them: board makers, coolers, machines, memory in any form, usual boards.

Nothing of a name may stay unexplained: each word is one of the card, one of its figures, or one of
``card_words.yaml``, which mean nothing. What is assumed is said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.knowledge.catalogue import MAKERS, can_have, sizes_of
from advisor.knowledge.index import (
    card_spellings,
    gpu_form,
    gpu_words,
    is_board_word,
    is_size_word,
    nothing_but_brands,
    spellings_of,
)
from advisor.knowledge.merit_scale import Machine, card_names
from advisor.knowledge.types import Gpu, Knowledge
from advisor.memo import by_identity
from advisor.reading.known import Reading, no_such_size, of_laptops, told_apart
from advisor.reading.near import (
    larger_chip,
    less_noise,
    otherwise_spelled,
    several_cards,
    share_of_card,
    sizes_shown_as,
    sizes_wanted,
    with_zeros,
)
from advisor.units import GIB

_LONGEST, _MOST_BARE = 200, 1536  # the latter GB that a number without a unit is taken for
_SIZES = re.compile(
    r"(?<![\d.])(?<!\b[a-z])(\d{1,4})[ -]?g(?:igabytes?|iga?s?|i?b|i?o)?(?:s|ytes?)?(?!\w|\.\d)"
)
_MEGABYTES = re.compile(r"(?<![a-z0-9.])(\d{4,6})[ -]?(?:mib|mio|mb|mo)(?![a-z0-9])")
_APART = card_spellings("card said")
_SUPER = re.compile(r"(?<!\d)(\d{4}(?: ?ti)?) ?s\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b((?:[a-z]+ ?)?\d+(?: ?(?:ti|xt|xtx|gb?))?)['\u2019]?s\b", re.IGNORECASE)
_SERIES = re.compile(r"\b[gr]tx(?![a-z])", re.IGNORECASE)
_NO_SERIES = ", which is no "
"""What is said of a series that a card is not of; a processor's graphics are never taken for it."""
_DENIED = re.compile(r"\b(?:non|not)[\s-]+(?:the\s+)?[a-z]+\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\[([^\]]{2,})\]")  # where lspci writes the card, behind its chip
_LETTER_L = re.compile(r"(?<=\d)[li]+|[li](?=\d)", re.IGNORECASE)
_FEWEST = 0.65  # of a chip's cores; the makers' other versions of one name have 0.7 to 0.9 of them
_MEMORY, _CORES = re.compile(r"(?:lp|g)?ddr\w+|hbm\w*"), re.compile(r"\d+core")
_CHIP = re.compile(r"gfx\d{3,4}[a-f]?")  # as drivers of AMD print it; the card's name says which
_YEAR = re.compile(r"20[12]\d")
_PORTABLE = frozenset({"mobile", "maxq", "refresh"})


def spoken_card(knowledge: Knowledge, text: str, *, plural: bool = False) -> Reading | None:
    """Read the name of one card as people say it, less any count; None where no card explains it.

    ``plural``: several were counted, so that a final ``s`` is no SUPER.

    Raises:
        RequestError: It is of an unknown size, or of several meanings none of which is usual.
    """
    if virtual := share_of_card(knowledge, text):
        return virtual
    refused: RequestError | None = None
    named = _DENIED.sub(" ", text[:_LONGEST])
    spelled = _spellings(named, plural=plural)
    for spelling, remark in chain(spelled, otherwise_spelled(knowledge, named)):
        try:
            found = _Asked.of(knowledge, spelling).answer(text)
        except RequestError as error:
            refused = refused or error
            continue
        if found is not None and not (_NO_SERIES in remark and found.gpu.unified_memory):
            return replace(found, how=f"{found.how}{remark}")
    if refused:
        raise refused
    return None


def _spellings(text: str, *, plural: bool) -> Iterator[tuple[str, str]]:
    """Give what may have been meant, the likeliest first, each with a remark for the line."""
    folded = unicodedata.normalize("NFKC", text).replace("_", " ")
    several, single = _PLURAL.sub(r"\1", folded), _SUPER.sub(r"\1 super", folded)
    tried = [folded, *([several, single] if plural else [single, several])]
    remarks = {single: ", the S for SUPER"} if single not in {folded, several} else {}
    for spelling in dict.fromkeys(tried):
        yield spelling, remarks.get(spelling, "")
    for spelling in dict.fromkeys(tried):
        digits = _LETTER_L.sub(lambda m: "1" * len(m[0]), with_zeros(spelling))
        if digits != spelling:
            yield digits, ", with digits for letters that look alike"
        if (card := _BRACKETED.search(spelling)) is not None:
            yield card[1], ""
        if (series := _SERIES.search(spelling)) is not None:
            yield _SERIES.sub("", spelling), f"{_NO_SERIES}{series[0].upper()}"


def words_of(text: str) -> tuple[str, ...]:
    """Cut what people type into tokens as ``gpu_words`` does, sizes in any form among them."""
    folded = _MEGABYTES.sub(_as_sold, text.casefold())
    for pattern, new in ((_SIZES, r" \1gb "), *_APART):
        folded = pattern.sub(new, folded)
    return gpu_words(folded)


def _as_sold(mebibytes: re.Match[str]) -> str:
    """Round what a driver shows up to the size on the box: 24,564 MiB is sold as 24 GB."""
    return f" {max(1, round(int(mebibytes[1]) / 1024 + 0.2))}gb "


class _Candidate(Struct, frozen=True):
    """A card that explains every word, and the words of its own that were not said."""

    gpu: Gpu
    unsaid: frozenset[str]
    size: int | None
    """The memory that was said, in bytes."""
    named: int = 0
    """How many of the words that were said its name has."""


class _Asked(Struct, frozen=True):
    """A name cut into words, less those that mean nothing."""

    knowledge: Knowledge
    machine: Machine | None
    words: frozenset[str]

    @classmethod
    def of(cls, knowledge: Knowledge, text: str) -> _Asked:
        """Cut a name; a machine's name goes before words that mean nothing."""
        machine, left = _machine_in(knowledge, words_of(text))
        return cls(knowledge, machine, frozenset(less_noise(knowledge, left)))

    def answer(self, text: str) -> Reading | None:
        """Give what the name means; None where no card explains it.

        Raises:
            RequestError: No such card has this memory, or it means several none of which is usual.
        """
        found = self._candidates()
        tier = self._nearest([one for one in found if self._has_size(one)])
        if tier:
            return self._settled(text, tier)
        tier = self._nearest(found)
        size = next((one.size for one in tier if one.size), None)
        if size is None:
            return None
        if shown := [replace(c, size=s) for c in tier for s in sizes_shown_as(c.gpu, size)]:
            read = self._settled(text, shown)
            return replace(read, how=f"{read.how}, also told as {size / GIB:g} GB")
        if larger := larger_chip([_sized(c) for c in found if self._has_size(c)], tier[0].gpu):
            return larger
        raise no_such_size(self.knowledge, text, [one.gpu for one in tier], size)

    def _nearest(self, found: Sequence[_Candidate]) -> Sequence[_Candidate]:
        """Give those closest to what was said; a machine may leave its chip unsaid."""
        says_card = any(not is_size_word(word) for word in self.words)
        if self.machine and not says_card:
            return found
        return _closest(found) or (found if self.machine else ())

    def _candidates(self) -> list[_Candidate]:
        if nothing_but_brands(self.words) and self.machine is None:
            return []
        best: dict[str, _Candidate] = {}
        for name, spelled, core in self._spelled():
            gpu = self.knowledge.gpus[name]
            size = self._explained(gpu, self._words_of(name, spelled, core))
            if size is not None:
                said = len(self.words.intersection(spelled.split()))
                one = _Candidate(gpu, frozenset(core.split()) - self.words, size or None, said)
                if name not in best or len(one.unsaid) < len(best[name].unsaid):
                    best[name] = one
        return list(best.values())

    def _words_of(self, name: str, spelled: str, core: str) -> Collection[str]:
        """Give the words of a spelling, beside one that is said whole those of the others too."""
        if not self.words.issuperset(core.split()):
            return frozenset(spelled.split())
        every = (also for card, also, _ in spellings_of(self.knowledge) if card == name)
        return frozenset(" ".join(every).split())

    def _spelled(self) -> Iterator[Sequence[str]]:
        """Give the spellings of cards that have one of the words that tell most."""
        telling = [w for w in self.words if not is_size_word(w)]
        probes = [w for w in telling if not w.isdigit()] if self.machine is None else []
        probes = [w for w in probes if not (_MEMORY.match(w) or w in _PORTABLE)]
        of_machine = frozenset(self.machine.cards) if self.machine else None
        for one in spellings_of(self.knowledge):
            if of_machine is not None:
                if one[0] in of_machine:
                    yield one
            elif any(word in one[1] for word in telling) and (
                not probes or any(word in one[1] for word in probes)
            ):
                yield one

    def _explained(self, gpu: Gpu, spelled: Collection[str]) -> int | None:
        """Give the memory in bytes that the words state, 0 for none; None: one is unexplained."""
        sizes: set[int] = set()
        for word in self.words.difference(spelled):
            if is_size_word(word):
                sizes.add(int(word[:-2]) * GIB)
            elif word.isdigit() and int(word) <= _MOST_BARE and self._sold(gpu, int(word) * GIB):
                sizes.add(int(word) * GIB)
            elif not (self._is_year(word, gpu) or _is_figure(word, gpu)):
                return None
        return None if len(sizes) > 1 else next(iter(sizes), 0)

    def _is_year(self, word: str, gpu: Gpu) -> bool:
        said = self.machine is not None and _YEAR.fullmatch(word)
        return bool(said) and 0 <= int(word) - int((gpu.released or "0")[:4]) <= 1

    def _has_size(self, one: _Candidate) -> bool:
        return one.size is None or self._sold(one.gpu, one.size)

    def _sold(self, gpu: Gpu, size: int) -> bool:
        return gpu.vram_bytes == size or can_have(self.knowledge, gpu, size)

    def _settled(self, text: str, tier: Sequence[_Candidate]) -> Reading:
        """Take the usual one of several, or the smallest of one model; else ask."""
        chosen, why = tier[0], ""
        if len(tier) > 1:
            usual = self._usual(tier)
            if usual is None and len({_model(one.gpu) for one in tier}) > 1:
                raise several_cards(text, [one.gpu for one in tier])
            chosen = usual or min(tier, key=lambda one: (-one.named, *_least(one.gpu)))
            named = [one for one in tier if one.named == chosen.named]
            smallest = ", the smallest of that name" if len(named) > 1 else ""
            why = ", the usual one" if usual else smallest
        gpu, memory, too = self._with_memory(text, chosen)
        others = told_apart(gpu, [_sized(one) for one in tier if one is not chosen])
        if too:
            others += tuple(
                replace(gpu, vram_bytes=size) for size in gpu.vram_sizes if size != gpu.vram_bytes
            )
        several = any(other.name != gpu.name for other in others)
        cores = "".join(_fewer_cores(w, gpu) or "" for w in words_of(text) if _CORES.fullmatch(w))
        tells = chosen.size and chosen.unsaid & _PORTABLE
        laptop = of_laptops(self.knowledge, gpu, _PORTABLE) if tells else ""
        how = f"{memory}{cores}{why if several else ''}{too}{laptop}"
        return Reading(gpu, self.machine.count if self.machine else None, others, how)

    def _usual(self, tier: Sequence[_Candidate]) -> _Candidate | None:
        by_name = {one.gpu.name: one for one in tier}
        of_machine = self.machine.usual if self.machine else ()
        usual = (*of_machine, *card_names(self.knowledge).usual)
        return next((by_name[name] for name in usual if name in by_name), None)

    def _with_memory(self, text: str, one: _Candidate) -> tuple[Gpu, str, str]:
        """Give the card with the memory said, else with the least that it is sold with."""
        gpu, of_machine = one.gpu, self.machine.sizes if self.machine else ()
        if one.size:
            memory = f" with {one.size / GIB:g} GB" if gpu.unified_memory else ""
            return _sized(one), memory, ""
        one_memory = MAKERS[gpu.vendor].one_memory
        sizes = of_machine or (gpu.vram_sizes if one_memory else ())
        if not sizes and gpu.vram_bytes is None:
            raise sizes_wanted(gpu, text)
        if not sizes:
            most = f" with {sizes_of(gpu)[0] / GIB:g} GB, the most it is sold with"
            return gpu, most if one_memory else "", ""
        more = [f"{size / GIB:g}" for size in sizes if size != sizes[0]]
        others = " or ".join(filter(None, [", ".join(more[:-1]), *more[-1:]]))
        too = f"; it is sold with {others} GB too" if others else ""
        return replace(gpu, vram_bytes=sizes[0]), f" with {sizes[0] / GIB:g} GB", too


def _model(gpu: Gpu) -> tuple[str, frozenset[str]]:
    """Name what boards of one model have in common."""
    core = gpu_form(gpu.name, gpu.vendor, gpu.name).core
    left = (w for w in core if not (is_board_word(w) or _CORES.fullmatch(w) or w in _PORTABLE))
    return gpu.architecture, frozenset(left)


def _is_figure(word: str, gpu: Gpu) -> bool:
    """Whether a word states a figure of the card that its name leaves out."""
    if word == "mobile":
        return gpu.stands_alone
    if _CHIP.fullmatch(word):
        return gpu.compute_capability is None
    if word in {"sxm", "pcie"}:
        forms = [w for w in gpu_words(gpu.name) if w.startswith(("sxm", "nvl", "pcie"))]
        if word == "sxm":
            return any(form.startswith(word) for form in forms)
        return forms in ([], [word]) and not gpu.stands_alone
    if _MEMORY.fullmatch(word):
        return (gpu.vram_type or "").casefold().startswith(word)
    if _CORES.fullmatch(word):
        return _fewer_cores(word, gpu) is not None
    return word in _architecture_words(gpu.architecture)


def _fewer_cores(word: str, gpu: Gpu) -> str | None:
    """Remark on a count of cores, empty for the chip's own; None where no chip of the name has it.

    Makers sell one chip with some of its cores switched off under the same name.
    """
    own, said = gpu.cores or 0, int(word[:-4])
    if said == own:
        return ""
    whole = gpu.unified_memory and not any(_CORES.fullmatch(w) for w in gpu_words(gpu.name))
    if not (whole and _FEWEST * own <= said < own):
        return None
    return f", sized as the one with {own} GPU cores"


@cache  # 1.14 of questions
def _architecture_words(name: str) -> frozenset[str]:
    """Cut the name of an architecture, of which there are some dozens: ``RDNA 4.0``, ``RDNA4``."""
    short = name.removesuffix(".0").replace(" ", "")
    return frozenset((*gpu_words(name), *gpu_words(short)))


def _closest(found: Sequence[_Candidate]) -> Sequence[_Candidate]:
    """Give those that left the least unsaid: nothing, words of a board, that it is for laptops."""
    tiers: tuple[list[_Candidate], ...] = ([], [], [], [])
    for one in found:
        left = frozenset(w for w in one.unsaid if not (is_board_word(w) or _CORES.fullmatch(w)))
        left -= {f"{one.size / GIB:g}gb"} if one.size else set()
        tiers[bool(one.unsaid) + bool(left) + (not left <= _PORTABLE)].append(one)
    return next((tier for tier in tiers[:3] if tier), ())


def _sized(one: _Candidate) -> Gpu:
    return replace(one.gpu, vram_bytes=one.size) if one.size else one.gpu


def _least(gpu: Gpu) -> tuple[float, bool, float]:
    size = min(sizes_of(gpu), default=float("inf"))
    return size, "Max-Q" in gpu.name, gpu.bandwidth_bytes_s or 0.0


# ---- machines and words that mean nothing


@by_identity  # 2.5 of questions
def _machines(knowledge: Knowledge) -> Sequence[tuple[tuple[str, ...], Machine]]:
    """Give every name of a machine by its words, the longest first."""
    named = (
        (words_of(name), machine)
        for machine in card_names(knowledge).machines
        for name in (machine.name, *machine.aliases)
    )
    return sorted(named, key=lambda pair: -len(pair[0]))


def _machine_in(
    knowledge: Knowledge, words: Sequence[str]
) -> tuple[Machine | None, tuple[str, ...]]:
    """Find the machine that is named, by product and chip maybe, and give the words beside it."""
    found: Machine | None = None
    for phrase, machine in _machines(knowledge):
        place = _place(phrase, words)
        shared = [name for name in machine.cards if found is None or name in found.cards]
        if place and shared:
            words = (*words[: place.start], *words[place.stop :])
            found = replace(found or machine, cards=tuple(shared))
    return found, tuple(words)


def _place(phrase: tuple[str, ...], words: Sequence[str]) -> range | None:
    """Find a phrase among words, also written as one of them: ``aimax395``."""
    joined = "".join(phrase)
    for at, word in enumerate(words):
        if word == phrase[0] and tuple(words[at : at + len(phrase)]) == phrase:
            return range(at, at + len(phrase))
        if word == joined:
            return range(at, at + 1)
    return None
