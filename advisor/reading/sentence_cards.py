"""What a question asks, and of which cards: by name, counted in words, by memory or RAM alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct, field

from advisor.errors import RequestError, UserError
from advisor.knowledge.catalogue import MAKERS, PROCESSOR, Cards
from advisor.knowledge.merit import use_said
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards
from advisor.reading.name_parts import SIZE
from advisor.reading.near import ONLY_MEMORY, in_english
from advisor.reading.sentence_numbers import COUNTS, HOLE, counted
from advisor.units import GIB, shell_word

EXAMPLE = 'Name a card and a model: "can I run llama 3.1 8b on an RTX 3060 12GB".'
_PLURAL = re.compile(r"(?<=[0-9a-z])s\b", re.IGNORECASE)
_MEMORY = re.compile(
    rf"(?<![\w.~])(?P<c>(?:\d{{1,2}}x|{'|'.join(COUNTS)})\s+)?(?P<n>\d{{1,3}})\s?(?:gi?b|go?)\b",
    re.IGNORECASE,
)
_OF_CARD = re.compile(r"\b(?:v-?ram|gpu|graphics)\b", re.IGNORECASE)
_PORTABLE = frozenset({"laptop", "notebook"})


class Read(Struct):
    """What a sentence says: keys of a request, and the words that were not understood."""

    settings: dict[str, object] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    """Flags of ``models-for`` and ``gpus-for`` that are none of a request."""
    asks: Literal["advise", "models-for", "gpus-for"] = "advise"
    """The command that answers it."""
    assumed: str = ""  # what was taken for granted, a sentence
    more: list[dict[str, object]] = field(default_factory=list)
    """Settings that are others for each further model or card; None takes one away."""
    text: str = ""  # the question, less its numbers
    how_many: bool = False  # whether it asks how many of the card it takes


def assume_card(
    words: Sequence[str], names: frozenset[str], knowledge: Knowledge, settings: dict[str, object]
) -> tuple[Sequence[str], str]:
    """Take the usual card of a memory where nothing else is said of the card.

    A laptop that is spoken of has the card's mobile part: ``my laptop with a 4060``.

    Gives the words that are left then, and what was assumed, a sentence; ``settings`` take the
    card. Where one of ``names``, the words of cards, is left, it is named and not understood.

    Raises:
        RequestError: No usual card has so much.
    """
    portable = [word for word in words if word.casefold() in _PORTABLE]
    gpu = _portable(str(settings.get("gpu", "")), knowledge) if portable else ""
    if gpu:
        settings["gpu"] = gpu
    if gpu or (portable and "gpu" not in settings):
        words = [word for word in words if word not in portable]
    said = _MEMORY.search(text := " ".join(words))
    if not said:
        return words, ""
    if portable and not gpu and not _OF_CARD.search(text):
        return ram_of_processor(words, settings), ""
    rest = [*text[: said.start()].split(), HOLE, *text[said.end() :].split()]
    if "gpu" in settings:
        more = len(_MEMORY.findall(text)) > 1
        told = _take_memory(int(said["n"]), knowledge, settings, of_card=more)
        return assume_card(rest, names, knowledge, settings) if more else (rest, told)
    boards = board_words(knowledge)
    said_of = (word for word in rest if word.casefold() not in boards)
    if any(word.casefold() in names or _has_figure(word) for word in said_of):
        return words, ""
    usual = (knowledge.gpus[name] for name in card_names(knowledge).of_memory)
    name = next((gpu.name for gpu in usual if gpu.vram_bytes == int(said["n"]) * GIB), None)
    if name is None:
        raise _no_card(int(said["n"]), knowledge)
    name = (portable and _portable(name, knowledge)) or name
    count = counted(said["c"].split()[0]) if said["c"] else 1
    settings["gpu"] = f"{count}x {name}" if count > 1 else name
    return rest, (
        f"No card is named: {said['n']} GB are taken as those of a "
        f"{find_cards(knowledge, name).gpu.name}; what fits is alike on others, speeds are not."
    )


def ram_of_processor(words: Sequence[str], settings: dict[str, object]) -> Sequence[str]:
    """Take memory that stands beside a processor alone for system RAM; give what is left."""
    said = _MEMORY.search(text := " ".join(words))
    if not said or said["c"] or {"gpu", "ram"} & settings.keys():
        return words
    settings["ram"] = f"{said['n']}GB"
    return [*text[: said.start()].split(), HOLE, *text[said.end() :].split()]


def _take_memory(
    size: int, knowledge: Knowledge, settings: dict[str, object], *, of_card: bool
) -> str:
    """Give a card the memory beside it; more than it has is the computer's, which is said.

    ``of_card``: another size is named behind it, so that this one is no RAM.

    Raises:
        RequestError: No such card has so little.
    """
    sized = f"{settings['gpu']} {size}gb"
    if with_size := card_in(sized, knowledge):
        settings["gpu"] = with_size
        return ""
    cards = find_cards(knowledge, str(settings["gpu"]))
    each = cards.each or (cards.gpu,) * cards.count
    total = sum(gpu.vram_bytes or 0 for gpu in each)
    if size * GIB == total:
        return ""
    if cards.gpu.unified_memory and size * GIB < total and _SIZED.search(str(settings["gpu"])):
        return f"{size} GB are taken as what its graphics may use of its memory."
    if of_card or size * GIB < total or "ram" in settings or cards.gpu.unified_memory:
        find_cards(knowledge, sized)
    settings["ram"] = f"{size}GB"
    return f"{size} GB are taken as the computer's RAM: {cards.gpu.name} has no such memory."


def board_words(knowledge: Knowledge) -> AbstractSet[str]:
    """Give the words that boards are called by, and their makers."""
    boards = {word for phrase in card_names(knowledge).words for word in phrase.split()}
    return boards | {word for one in MAKERS.values() for word in one.words}


def boards_with_figures(knowledge: Knowledge) -> Mapping[str, re.Pattern[str]]:
    """Give what finds series of boards that bear a figure, ``Ventus 2X``, which counts nothing."""
    named = (re.escape(one) for one in card_names(knowledge).words if re.search(r" .*\d", one))
    return {"named": re.compile(rf"\b(?:{'|'.join(named)})\b", re.IGNORECASE)}


def unexplained(left: Iterable[str], knowledge: Knowledge, gpu: object) -> list[str]:
    """Leave out what says no more than which board it is, or the card once more."""
    if not gpu:
        return list(left)
    boards, asked = board_words(knowledge), find_cards(knowledge, str(gpu))
    meant = [word for word in left if word.casefold().strip("+") not in boards]
    if not asked.gpu.stands_alone:
        return meant
    named = ((word, card_in(word, knowledge)) for word in meant)
    return [word for word, card in named if not (card and _is_same(knowledge, card, asked))]


_SIZED = re.compile(r"\d\s?gi?b\b", re.IGNORECASE)


def _portable(card: str, knowledge: Knowledge) -> str:
    """Give the mobile part of a card as it is typed, or the card where it is one; else nothing."""
    portable = card_in(f"{card} laptop", knowledge) if card else None
    if portable is None:
        return ""
    same = find_cards(knowledge, portable).gpu.name == find_cards(knowledge, card).gpu.name
    return card if same else portable


def _has_figure(word: str) -> bool:
    """Whether a word may name a card: it has a figure and is no size of a model."""
    return any(map(str.isdigit, word)) and not SIZE.fullmatch(word.casefold())


def refuse_other_architecture(knowledge: Knowledge, cards: str, left: Sequence[str]) -> None:
    """Refuse cards beside a word that says another architecture: ``blackwell``.

    Raises:
        RequestError: There is one.
    """
    gpu = find_cards(knowledge, cards).gpu
    known = {one.architecture.casefold() for one in knowledge.gpus.values()}
    others = known - {gpu.architecture.casefold()}
    if other := next((word for word in left if word.casefold() in others), ""):
        raise RequestError(
            f"'{other}' is not understood: '{cards}' is {gpu.name}, of {gpu.architecture}",
            hint="Write the card's name as in 'advisor knowledge find'.",
        )


_BESIDE_MEMORY = re.compile(r"\d\s?g(?:i?b|o)?\s+([a-z]{3,})", re.IGNORECASE)


def refuse_unknown_machine(text: str, left: Sequence[str]) -> None:
    """Refuse memory alone beside a word that may be the machine: ``a 32GB powerbook``.

    Raises:
        RequestError: There is one.
    """
    for said in _BESIDE_MEMORY.finditer(text):
        if said[1] in left:
            raise RequestError(f"'{said[1]}' is not understood, and no card is named", hint=EXAMPLE)


# words of a card's name that name none
_OF_BOARDS = frozenset({"ti", "xt", "xtx", "gre", "super", "max-q", "duo"})


def refuse_other_cards(knowledge: Knowledge, cards: str, left: Sequence[str]) -> None:
    """Refuse cards beside a word that is left over and may be another, or more of the name.

    Raises:
        RequestError: There is one.
    """
    asked = find_cards(knowledge, cards)
    figures = (w for w in left if re.search(r"^(?!gfx)[^~]*(?:\d{3}|[a-z]\d)", w, re.IGNORECASE))
    named = [
        word
        for word in figures
        if (card := card_in(word, knowledge)) and not _is_same(knowledge, card, asked)
    ]
    of_boards = _OF_BOARDS | ({"gtx", "rtx"} if asked.gpu.unified_memory else set())
    of_name = [word for word in left if word.casefold() in of_boards]
    of_name += [w for w in left if counted(w) > 1 and (not asked.counted or w[:1].isdigit())]
    if named and asked.gpu.stands_alone:
        find_cards(knowledge, f"{cards} + {card_in(named[0], knowledge)}")
    if other := next(iter((*named, *of_name)), ""):
        raise RequestError(
            f"'{other}' beside '{cards}' is not understood",
            hint="Join several cards by a plus, for example 'RTX 3090 + RTX 3060:12GB'.",
        )


def _is_same(knowledge: Knowledge, card: str, asked: Cards) -> bool:
    """Whether a chip's graphics are named beside the chip: ``Ryzen AI Max+ 395, Radeon 8060S``."""
    alone = bool(asked.gpu.stands_alone) and is_settled(card, knowledge)
    return alone and find_cards(knowledge, card).gpu.name == asked.gpu.name


def is_settled(text: str, knowledge: Knowledge) -> bool:
    """Whether a text is understood as cards, and as one kind."""
    try:
        return bool(find_cards(knowledge, text))
    except UserError:
        return False


def card_in(text: str, knowledge: Knowledge) -> str | None:
    """Give a card as ``find_cards`` takes it; a plural and a number in words are read too."""
    if ONLY_MEMORY.fullmatch(text):
        return None
    for spelling in (one for one in _spellings(text) if not ONLY_MEMORY.fullmatch(one)):
        try:
            named = find_cards(knowledge, spelling)
        except UserError as error:
            if "several cards" in error.message or "several memory sizes" in error.message:
                return spelling
            continue
        return _singular(spelling, named, knowledge)
    return None


def _singular(spelling: str, named: Cards, knowledge: Knowledge) -> str:
    """Leave the s of ``3090s`` out, but not of ``L40S``, which is another card without it."""
    try:
        same = find_cards(knowledge, shorter := _PLURAL.sub("", spelling))
    except UserError:
        return spelling
    return shorter if same.gpu is named.gpu else spelling


def _spellings(text: str) -> Iterator[str]:
    first, _, rest = text.partition(" ")
    count = COUNTS.get(first.casefold())
    glued = re.fullmatch(r"(\d+)\s*x\s*(.+)|(.+?)\s*x\s*(\d+)", text, re.IGNORECASE)
    if count and rest:
        for one in (rest, _PLURAL.sub("", rest)):
            yield f"{count}x {one}" if count > 1 else one
    if glued:
        yield f"{glued[1] or glued[4]}x {glued[2] or glued[3]}"
    yield from (text, _PLURAL.sub("", text))


def _no_card(size: int, knowledge: Knowledge) -> RequestError:
    """Say that a size of memory is no card, and name the newest usual ones that have it."""
    newest = sorted(knowledge.gpus.values(), key=lambda gpu: gpu.released or "", reverse=True)
    named = [g.name for g in newest if g.segment == "consumer" and g.vram_bytes == size * GIB]
    hint = f"Name yours; some with so much: {', '.join(named[:4])}." if named else EXAMPLE
    return RequestError(f"no card is named, only {size} GB of memory", hint=hint)


_ON_CPU = re.compile(
    r"\bcpu[\s-]+(?:only|inference)\b|\b(?:only|pure|just)\s+(?:on\s+)?(?:a\s+|the\s+|my\s+)?cpu\b"
    r"|\b(?:on|with)\s+(?:a\s+|the\s+|my\s+)?cpu\b|\bgpu\s*:\s*(?:none|no|n/?a)\b"
    r"|\b(?:no|without(?:\s+an?)?|(?:don'?t|do\s+not)\s+have\s+an?)\s+(?:\w+\s+)?(?:gpu|(?:graphics|video)\s+card)\b"
    r"|\bintegrated\s+(?:graphics|gpu)\b|\bi-?gpu\b",
    re.IGNORECASE,
)
_ELSEWHERE = (
    r"welche\w*|wie\s?viele?|beste\w*|quel(?:le)?s?|combien|meilleure?s?|qu[e\u00e9]|cu[a\u00e1]l(?:es)?"
    r"|cu[a\u00e1]nt[ao]s?|mejor|quale|quanta|\u0447\u0442\u043e|\u043a\u0430\u043a\w+|\u0441\u043a\u043e\u043b\u044c\u043a\u043e"
)
"""What asks in German, French, Spanish, Italian and Russian; Chinese has no word borders."""
_ASKS_MODELS = re.compile(
    r"\b(?:what|which|best|good|biggest|largest|smartest|strongest|fastest|recommend\w*|suggest\w*"
    rf"|any|{_ELSEWHERE})\b|\u4ec0\u4e48\u6a21\u578b|\u54ea(?:\u4e2a|\u4e9b|\u6b3e)\u6a21\u578b",
    re.IGNORECASE,
)
_ASKS_CARDS = re.compile(
    r"\b(?:what|which|best|cheapest|smallest|fastest|minimum|how\s+much|recommend\w*|suggest\w*|need"
    rf"|buy|required?|requirements?|hardware|{_ELSEWHERE})\b|\u9700\u8981|\u591a\u5c11|\u4ec0\u4e48\u663e\u5361",
    re.IGNORECASE,
)


_HOW_MANY = re.compile(r"\bhow\s+many\s+(.+)", re.IGNORECASE | re.DOTALL)
_CARD_WORD = re.compile(r"gpu|card|graphics|video", re.IGNORECASE)
_LONGEST_CARD = 5
"""Words of a card's name."""


def asks_number(text: str, knowledge: Knowledge) -> bool:
    """Whether a question asks how many cards it takes: cards, or a name of one, stand behind it."""
    said = _HOW_MANY.search(in_english(text))
    words = said[1].split()[:_LONGEST_CARD] if said else []
    starts = (" ".join(words[:end]).strip("?,.") for end in range(len(words), 0, -1))
    return bool(words) and (
        bool(_CARD_WORD.match(words[0])) or any(card_in(one, knowledge) for one in starts)
    )


def means_known_card(text: str, read: Read) -> bool:
    """Whether a question without a card is about one's own: no word of it may be another card."""
    if "model" in read.settings:
        return not (read.left or read.wanted or _ASKS_CARDS.search(text) or _ON_CPU.search(text))
    return bool(_ASKS_MODELS.search(text)) and not (read.left or _ON_CPU.search(text))


def on_processor(text: str) -> bool:
    """Whether a question says that there is no card, or that none is used."""
    return bool(_ON_CPU.search(text))


def take_processor(text: str, read: Read, *, card_known: bool) -> None:
    """Take the processor for what computes where it, or RAM alone, is named and no card."""
    said, settings = on_processor(text), read.settings
    asks_cards = "model" in settings and _ASKS_CARDS.search(text)
    if "gpu" in settings or ((card_known or asks_cards) and not said):
        return
    if said or not settings.keys().isdisjoint({"cpu", "ram"}):
        settings["gpu"] = PROCESSOR.name
        if not said:
            read.assumed = read.assumed or "No card is named: it is sized for the processor alone."


def command_for(
    text: str, read: Read, *, card_known: bool
) -> Literal["advise", "models-for", "gpus-for"]:
    """Say which command answers: where a name is missing, what asks for it, or leaves no word over.

    Raises:
        RequestError: Neither a card nor a model is named, or a word may be the one that is missing.
    """
    has_card, has_model = card_known or "gpu" in read.settings, "model" in read.settings
    if has_card and has_model:
        read.left += [f"{flag.replace('_', '-')} {value}" for flag, value in read.wanted.items()]
        return "advise"
    if has_card and (_ASKS_MODELS.search(text) or read.wanted or all(map(use_said, read.left))):
        return "models-for"
    if has_model and (_ASKS_CARDS.search(text) or read.wanted or not read.left):
        return "gpus-for"
    missing, known = ("model", "gpu") if has_card else ("card", "model")
    command = "models-for --gpu" if has_card else "gpus-for --model"
    named = shell_word(str(read.settings.get(known, "")))
    hint = f"For all that would do: advisor {command} {named}." if known in read.settings else ""
    raise RequestError(f"no {missing} is named in this question", hint=hint)
