"""What to write instead of a card's name that is not understood: only cards that people have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise

from msgspec.structs import replace

from advisor.errors import RequestError
from advisor.files import table_rows
from advisor.knowledge.catalogue import MAKERS, sizes_of
from advisor.knowledge.index import (
    gpu_core,
    gpu_words,
    is_chinese,
    is_size_word,
    makers_named,
    spellings_of,
)
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Gpu, Knowledge
from advisor.memo import by_identity
from advisor.reading.known import Reading, listed
from advisor.reading.ram import as_computer, computers_named, is_cpu
from advisor.units import GIB

_OF_MEMORY = r"of|gpus?|cards?|graphics|nvidia|amd|radeon|rocm|cuda"
ONLY_MEMORY = re.compile(
    rf"(?:(?:an?|one|single|any|{_OF_MEMORY})\b[\s(:]*)*(\d{{1,3}})[\s-]?g(?:i?b|igs?)?"
    rf"(?:[\s-]+(?:{_OF_MEMORY}|vram|v-ram|video|memory|total|each))*\)?",
    re.IGNORECASE,
)


def only_memory(knowledge: Knowledge, text: str) -> Gpu | None:
    """Find the usual card of a memory, of a maker maybe, where a text says nothing else."""
    said, folded = ONLY_MEMORY.fullmatch(text.strip()), text.casefold()
    own = {name for name, one in MAKERS.items() if one.backends[0].casefold() in folded}
    makers = makers_named(text) | own or {*MAKERS}
    usual = (knowledge.gpus[name] for name in card_names(knowledge).of_memory)
    found = (g for g in usual if said and g.vram_bytes == int(said[1]) * GIB)
    return next((gpu for gpu in found if gpu.vendor in makers), None)


def several_cards(text: str, cards: Sequence[Gpu]) -> RequestError:
    """Say that a name means several cards, none of them the usual one."""
    names = listed([g.name for g in sorted(cards, key=lambda gpu: gpu.not_for_sale is not None)])
    return RequestError(f"'{text}' names several cards: {names}.", hint="Write one of these.")


_SHARE = re.compile(
    r"(?:nvidia[\s-]+|grid[\s-]+)*(?P<card>(?:rtx[\s-]+|quadro[\s-]+)?[a-z]{1,3}\d{1,4}s?)"
    r"(?P<board>dx|xm|d|x|l)?-(?P<size>\d{1,3})[acq]",
    re.IGNORECASE,
)
"""A profile of NVIDIA's vGPU: a card with its board (``D`` the larger memory, ``X`` an SXM)."""


def share_of_card(knowledge: Knowledge, text: str) -> Reading | None:
    """Read the name of a virtual card, ``GRID A100D-80C``; its memory may be a part: ``A10-8Q``."""
    said = _SHARE.fullmatch(text.strip())
    if said is None:
        return None
    board, size = (said["board"] or "").casefold(), int(said["size"]) * GIB
    cards = [g for g in knowledge.gpus.values() if _is_board(g, gpu_core(said["card"]), board)]
    cards = [gpu for gpu in cards if (gpu.vram_bytes or 0) >= size]
    if not cards:
        return None
    whole = (max if "d" in board else min)(cards, key=lambda gpu: gpu.vram_bytes or 0)
    part = f" with {size / GIB:g} GB of its memory" if size != whole.vram_bytes else ""
    return Reading(replace(whole, vram_bytes=size), None, (), part)


def _is_board(gpu: Gpu, said: Sequence[str], board: str) -> bool:
    """Whether a card of data centres or workstations is that of a profile."""
    core = [w for w in gpu_core(gpu.name) if not is_size_word(w)]
    boards = {w[:3] for w in core[len(said) :]} - {"hbm"}
    of_sxm = bool(boards & {"sxm"})
    return (
        tuple(core[: len(said)]) == tuple(said)
        and of_sxm == ("x" in board)
        and boards <= {"sxm", "pci", "nvl"}
    )


_LEAST_SHOWN, _MOST_SHOWN = 0.9, 1.08


def sizes_shown_as(gpu: Gpu, size: int) -> Sequence[int]:
    """Give the memories of a card that are told so: 15 GB of 16 and 192 of 180."""
    sold = () if gpu.vram_sizes and gpu.unified_memory else sizes_of(gpu)
    most = 1 if gpu.unified_memory else _MOST_SHOWN
    return [one for one in sold if _LEAST_SHOWN * one <= size <= most * one]


def larger_chip(cards: Sequence[Gpu], named: Gpu) -> Reading | None:
    """Take the next of a series for a card that has not so much memory.

    ``M1 32GB`` is an M1 Pro, ``4070 Ti 16GB`` a 4070 Ti SUPER where it alone of that number has it.

    Args:
        cards: Those of the series with the memory said.
        named: The card that has it not.
    """
    if not cards:
        return None
    least = min(cards, key=lambda one: one.bandwidth_bytes_s or 0.0)
    size = f"{(least.vram_bytes or 0) / GIB:g} GB"
    if all(MAKERS[one.vendor].one_memory for one in cards):
        how = f" with {size}, the smallest of its series that has so much"
        return Reading(least, None, tuple(cards), how)
    own = set(gpu_core(named.name))
    marked = [one for one in cards if _MARKS_AFTER.issuperset(_told(one) - own)]
    how = f" with {size}, the one of that number that has so much"
    return Reading(marked[0], None, (), how) if len(marked) == 1 else None


def _told(gpu: Gpu) -> set[str]:
    return {word for word in gpu_core(gpu.name) if not is_size_word(word)}


_MARKS_AFTER = frozenset({"super", "ti", "xt", "xtx"})


def sizes_wanted(gpu: Gpu, text: str) -> RequestError:
    """Say that the memory has to be stated, with the sizes that are known."""
    sizes = sizes_of(gpu)
    named = [f"'{text}:{size / GIB:g}GB'" for size in sizes]
    hint = f"Write one of these: {', '.join(named)}."
    if not named:
        hint = f"Write NAME:SIZE, for example '{text}:32GB'."
    return RequestError(f"'{gpu.name}' is sold with several memory sizes.", hint=hint)


_WORDS = {
    "a": 1, "an": 1, "one": 1, "single": 1, "solo": 1, "mono": 1,
    "two": 2, "dual": 2, "duel": 2, "twin": 2, "pair": 2, "double": 2,
    "three": 3, "triple": 3, "four": 4, "quad": 4, "quadruple": 4, "five": 5, "six": 6, "hexa": 6,
    "seven": 7, "eight": 8, "octa": 8, "octo": 8, "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip
_SIGN = r"(?:(?<!\b[GRgr][Tt])(?<!\b[Rr])[xX]|[\u00d7\u0445*]|\u2716\ufe0f?|[\u2715\u2a2f\uff0a])"
_CARD = r"(?i:gpus?|cards?)"
_OF = rf"(?:\s+{_CARD}\b)?(?:\s+of\b)?"
_BEFORE = re.compile(rf"\(?(\d{{1,3}})\s*(?:{_SIGN}\s*\)?|[- ]?{_CARD}\b|\s){_OF}\s*(\S.*)")
_AFTER = re.compile(
    rf"(\S.*?)[\s,]*\(?\s*(?:{_SIGN}\s*(\d{{1,3}})(?:\s*{_CARD})?|(\d{{1,3}})\s*(?:{_SIGN}|{_CARD}(?=\s*\))))\s*\)?"
)
_INSIDE = re.compile(
    rf"(\S.*?)(?:\s\(?(\d{{1,2}})\s*{_SIGN}\s*|(?:\s\(?{_SIGN}|[*\u00d7])\s?(\d{{1,2}})\s+)(\S.*)"
)
_GLUED = re.compile(r"([2-9]|1[0-6])((?:[ahlvtp]\d|b\d\d)\d{0,2}s?\b.*)", re.IGNORECASE)
_WORD = re.compile(rf"(?:a\s+)?({'|'.join(_WORDS)})[\s-]{_OF}\s*(\S.*)", re.IGNORECASE)
_LISTED = re.compile(r"(.*\d\s*gi?b\b[^,]*),\s*(\d{1,2})", re.IGNORECASE)
_WORD_AFTER = re.compile(r"(\S.*?)[\s,]+\(?(dual|twin|pair|double|triple|quad)\)?", re.IGNORECASE)
_BETWEEN = re.compile(
    r"\s*(?:[,;&]|(?<!\bw)/)\s*|\s+(?:and|plus|und|et|y|with)\s+|(?<=\w)\s+(?=\d{1,2}\s?x\s?[a-z]*\s?\d{4}\b)",
    re.IGNORECASE,
)


def counts_in(text: str) -> Iterator[tuple[int, str]]:
    """Give each way to read a text as so many of something, the likeliest first."""
    for count, rest in _in_latin(text) if is_chinese(text) else ():
        yield from ((count, rest), *(() if count else counts_in(rest)))
    if found := _BEFORE.fullmatch(text):
        yield int(found[1]), found[2]
    if found := _AFTER.fullmatch(text):
        yield int(found[2] or found[3]), found[1]
    if found := _INSIDE.fullmatch(text):
        yield int(found[2] or found[3]), f"{found[1]} {found[4]}"
    for kind, at, name in ((_GLUED, 1, 2), (_LISTED, 2, 1), (_WORD, 1, 2), (_WORD_AFTER, 2, 1)):
        if found := kind.fullmatch(text):
            yield _WORDS.get(found[at].casefold()) or int(found[at]), found[name]


_NUMERALS = dict(
    zip(
        "\u5355\u4e00\u53cc\u4e24\u4e8c\u4e09\u56db\u4e94\u516d\u516b\u5341",
        (1, 1, 2, 2, 2, 3, 4, 5, 6, 8, 10),
        strict=True,
    )
)
_COUNTED_SO = re.compile(
    rf"(\d{{1,3}}|[{''.join(_NUMERALS)}])\s*[\u5f20\u5361\u5757\u4e2a\u7247\u679a]\s*|([{''.join(_NUMERALS)}])(?=\s*[A-Za-z0-9])"
)
_TOTAL = re.compile(r"[\uff0c,]?\s*(?:\u603b\u8ba1?|\u603b?\u5171)\s*(\d+)\s*[Gg][Bb]?")
_MEANS_CARD = re.compile(
    "\u663e\u5361|\u663e\u5b58|\u5185\u5b58|\u5361|\u7684|[\u5404\u6bcf][\u5f20\u5361\u5757\u4e2a\u7247]?|\uff0c|\u534e\u4e3a|[\u6607\u5347]\u817e|\u82f1\u4f1f\u8fbe|\u5bd2\u6b66\u7eaa|\u6c90\u66e6|\u6469\u5c14\u7ebf\u7a0b"
)


def _in_latin(text: str) -> Iterator[tuple[int, str]]:
    """Give a count as Chinese has it, 0 where none is said, and the name beside it.

    Nothing where a word is left over.
    """
    found = _COUNTED_SO.search(text)
    count = _NUMERALS.get(found[1] or found[2]) or int(found[1]) if found else 0
    name = f"{text[: found.start()]} {text[found.end() :]}" if found else text
    name = _TOTAL.sub(r" \1GB", name)
    name = _MEANS_CARD.sub(" ", name).strip(" x*\u00d7")
    if not is_chinese(name):
        yield count, name


def without_cpus(pieces: Sequence[str]) -> Sequence[str]:
    """Leave the processors and their memory out of a list of what a machine has."""
    no = (_NO_CARD, ONLY_MEMORY) if any(map(is_cpu, pieces)) else (_NO_CARD,)
    return [p for p in pieces if not (is_cpu(p) or any(one.fullmatch(p.strip()) for one in no))]


_NO_CARD = re.compile(
    r"[a-z]\d[a-z]?-(?:standard|highmem|highcpu|custom)-[\d-]+|(?:and\s+)?\d{1,4}\s*gi?b(?:\s+(?:of|system|host|cpu|main|ddr\d\S*))*\s+(?:s?d?ram|memory|ddr\d\S*)",
    re.IGNORECASE,
)
"""Memory of the computer, and instances of Google's cloud that have no card of their own."""


_LANGUAGES = "other_languages.tsv"


def _elsewhere() -> tuple[re.Pattern[str], dict[str, str]]:
    """Read what other languages say, the longest first, and what it means."""
    rows = table_rows(_LANGUAGES)
    meant = {w.replace("_", " "): english for english, said in rows for w in said.split()}
    longest = sorted(meant, key=len, reverse=True)
    whole = "|".join(re.escape(w) for w in longest if w < "\u3000")
    inside = "|".join(re.escape(w) for w in longest if w >= "\u3000")
    pattern = rf"(?<![\w-])(?:{whole})(?![\w-])|(?<=\d)\u0433\u0431\b|{inside}"
    return re.compile(pattern, re.IGNORECASE), meant


_FOREIGN, _MEANT = _elsewhere()


def in_english(text: str) -> str:
    """Write counts, memory and the like of other languages as English has them."""
    return _FOREIGN.sub(lambda said: f" {_MEANT[said[0].casefold()]} ", text)


def split_at_words(text: str) -> Sequence[str]:
    """Cut a list of cards that has commas or words where the plus should be."""
    return [piece for piece in _BETWEEN.split(text) if piece]


MEMORY_BEHIND = re.compile(rf"(?:{_BETWEEN.pattern})(?=\d{{1,4}}\s*gi?[bo]?\b)", re.IGNORECASE)
"""What joins memory to the machine that has it: ``M4 Pro, 48GB``."""
_LETTERS = re.compile(r"[a-z]{4,}")
_CLOSE = 0.8
_BESIDE_CPU = re.compile(
    r"\b(?:ryzen|athlon|core|phoenix|strix)\b.*?(?:\bw/|\bwith\b|\()\s*(.+?)\)?$", re.IGNORECASE
)
"""A chip's graphics behind its processor: ``AMD Ryzen AI 9 HX 370 w/ Radeon 890M``."""


def otherwise_spelled(knowledge: Knowledge, text: str) -> Iterator[tuple[str, str]]:
    """Give a card's name without its processor, and with slips put right, each with a remark.

    Names of makers and machines, and marks as ULTRA; no word that a card may have is touched.
    """
    known, right = _words_of_makers(knowledge), dict[str, str]()
    if (alone := as_computer(text, " alone")) != text:
        yield alone, ""
    if beside := _BESIDE_CPU.search(text):
        yield beside[1], ""
    less = _REMARK.sub(lambda found: _of_a_card(known, found[0]), text)
    for spelling in dict.fromkeys((_cut_anew(known, text), _cut_anew(known, less))):
        yield spelling, ""
    for word in _LETTERS.findall(text.casefold()):
        close = (
            get_close_matches(word, known["made"], 1, _CLOSE) if word not in known["any"] else ()
        )
        right |= dict.fromkeys([word] if close else [], "".join(close))
    if computers_named()["maker"].search(text) and (less := _less_series(known, text)):
        yield less, ""
    if right:
        put = _LETTERS.sub(lambda found: right.get(found[0], found[0]), text.casefold())
        yield put, "".join(f", with {new} for {typed}" for typed, new in right.items())


_REMARK = re.compile(
    r"\((?!\s*[x\u00d7*]?\s*\d{1,2}\s*[x\u00d7*]?\s*\))(?![^()]*(?:\bmig\b|vgpu|slice|half|\dg\.|\d\s*(?:[x\u00d7*]|gpu|card)|[x\u00d7*]\s*\d))[^()]*\)?",
    re.IGNORECASE,
)
"""What stands in brackets and is no count and no part of a card."""
_TOKEN = re.compile(r"\d{1,4}\s*gi?b\b|[^\W_]+(?:\.\d+)?")
_OWNED = re.compile(r"['\u2019]s\b")


def _of_a_card(known: Mapping[str, frozenset[str]], remark: str) -> str:
    """Leave of a remark in brackets what a card may be called by, and its memory."""
    said = [word for word in _TOKEN.findall(remark.casefold()) if not word.isdigit()]
    return " ".join(
        w for w in said if ONLY_MEMORY.fullmatch(w) or known["cards"].issuperset(gpu_words(w))
    )


def _cut_anew(known: Mapping[str, frozenset[str]], text: str) -> str:
    """Cut a name where the words of cards are: ``TeslaP40``, ``mi 50``, ``RX 6600 M``."""
    said = _TOKEN.findall(_OWNED.sub(" ", text.casefold()))
    cut = [piece for word in said for piece in _pieces(known["any"], word)]
    for size in (3, 2):
        for at in range(len(cut) - size + 1):
            parts = cut[at : at + size]
            if "".join(parts) in known["cards"] and _is_one_word(parts):
                cut[at : at + size] = ["".join(parts), *[""] * (size - 1)]
    return " ".join(filter(None, cut))


def _is_one_word(parts: Sequence[str]) -> bool:
    """Whether letters and a number may have been typed apart: ``L 40 S``."""
    kinds = [part.isdigit() for part in parts]
    short = all(len(part) <= _SHORT for part in parts if part.isalpha())
    return short and any(kinds) and all(one != other for one, other in pairwise(kinds))


def _pieces(known: frozenset[str], word: str) -> Sequence[str]:
    """Cut a word into the fewest that are known; all of it where it is one, or cannot be cut."""
    if word in known or not _LEAST_CUT <= len(word) <= _LONG:
        return (word,)
    best: list[Sequence[str] | None] = [(), *[None] * len(word)]
    for end in range(2, len(word) + 1):
        for at in range(end - 1):
            part, before = word[at:end], best[at]
            inside = at and part[0].isdigit() and word[at - 1].isdigit()
            if before is None or inside or not (part in known or _SOLD.fullmatch(part)):
                continue
            if len(before) + 1 < len(best[end] or word):
                best[end] = (*before, part)
    return best[-1] or (word,)


_SHORT, _LEAST_CUT, _LONG = 3, 4, 40
_SOLD = re.compile(r"\d{1,3}gi?b?")
_SERIES = re.compile(r"(?<![\w+.-])([a-z]{3,})(\d{2,3})?\+?(?![\w.-])", re.IGNORECASE)


def _less_series(known: Mapping[str, frozenset[str]], text: str) -> str:
    """Leave out words that no card, maker or machine is called by: a board's series."""

    def put(said: re.Match[str]) -> str:
        kept = known["cards" if said[2] else "own"]
        return said[0] if said[1].casefold() in kept else " "

    less = _SERIES.sub(put, text)
    return less if less != text else ""


@by_identity  # 1.57 of questions
def _words_of_makers(knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Give every word of a card's name, and those that name makers, brands and machines."""
    said, spelled = card_names(knowledge), spellings_of(knowledge)
    cards = {word for _, words, _ in spelled for word in words.split()}
    noise = {word for phrase in said.words for word in gpu_words(phrase)}
    products = {w for m in said.machines for name in (m.name, *m.aliases) for w in gpu_words(name)}
    brands = {word for maker in MAKERS.values() for word in maker.words}
    boards = {phrase for phrase in said.words if " " not in phrase}
    own = frozenset(word for word in cards | boards if _LETTERS.fullmatch(word))
    series = cards & {"jetson", "instinct", "ultra", "super", "mobile"} | {"laptop"}
    made = frozenset(w for w in products | brands | boards | series if _LETTERS.fullmatch(w))
    whole = frozenset(cards | noise) | made
    return {"any": whole, "made": made, "cards": frozenset(cards), "own": own | made}


@by_identity  # 1.27 of questions
def _noise(knowledge: Knowledge) -> Mapping[str, Sequence[tuple[str, ...]]]:
    """Give the words that mean nothing by the first of them, the longest phrases first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(map(gpu_words, card_names(knowledge).words), key=len, reverse=True):
        found.setdefault(phrase[0], []).append(phrase)
    return found


def less_noise(knowledge: Knowledge, words: Sequence[str]) -> Iterator[str]:
    """Leave out of the words of a name those that mean nothing."""
    noise, at = _noise(knowledge), 0
    while at < len(words):
        phrases = noise.get(words[at], ())
        said = next((p for p in phrases if tuple(words[at : at + len(p)]) == p), None)
        if said is None:
            yield words[at]
        at += len(said or "x")


_LETTER_O = re.compile(r"(?<=\d)o+|o+(?=[0-9o]*\d)", re.IGNORECASE)


def with_zeros(text: str) -> str:
    """Write the letter O as the digit where it stands among digits: ``4O9O``."""
    return _LETTER_O.sub(lambda m: "0" * len(m[0]), text)
