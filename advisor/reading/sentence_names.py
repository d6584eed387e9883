"""The words of a question: its format, runtime, back end, cards, machines and model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from advisor.errors import RequestError, UserError
from advisor.files import table_rows
from advisor.knowledge import names
from advisor.knowledge.catalogue import BACKEND_OF_WORD, are_machines, sizes_of
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity
from advisor.reading import find_cards, is_read
from advisor.reading.format_patterns import why_unread
from advisor.reading.known import read_format
from advisor.reading.name_match import names_family
from advisor.reading.name_parts import SIZE
from advisor.reading.name_parts import words as name_words
from advisor.reading.public_list import beginning, find_public
from advisor.reading.sentence_cards import Read, card_in, is_settled
from advisor.reading.sentence_numbers import COUNTS, GB, HOLE, counted, read_numbers
from advisor.reading.sentence_spelling import apart

LONGEST_NAME = 8  # words; no card or model has more
_LONGEST_CARDS = 14  # words of cards that are joined
MODEL_WAS = "|model|"  # what stands where the model was taken out
_AS_FILES = re.compile(r".*\.gguf|(?=.*\d)\w[\w.]*(?:[-_][\w.]+){2,}")
"""A word that is written as files and repositories are."""
_BESIDE_CARD = 3  # words of a model's name on each side of one that is a card's too
_BESIDE_CARDS = frozenset({"gb", "gib", "g", "go", "laptop", "notebook", "mobile"})
_QUANT = re.compile(r"i?q\d[a-z0-9_]*")
"""A type of GGUF, however it is written: ``Q4KM``."""
_BITS = re.compile(r"([2-4]|8)[\s-]?bits?|(?:q|int)([48])", re.IGNORECASE)
_ENGLISH = frozenset({"full", "half"})  # words for formats that mean other things
PIECE = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:gi?b|g|go|b|bit|bpw)?")
STOP = frozenset(word for row in table_rows("question_words.tsv") for word in row[0].split())
_OF_NAMES = frozenset({"ai", "max", "large", "server", "d"})
"""Those of them that names begin or end with."""


_JOINED = frozenset({"+", "and", "plus", "&", "und", "et", "y"})
"""What stands between cards that are used together."""
_BEFORE = (STOP - COUNTS.keys() - _OF_NAMES) | _JOINED


def take_names(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take what names a format, a runtime, a back end, cards and a model; give what is left."""
    for name, find in _FINDERS.items():
        words = _taken(words, name, find, knowledge, read)
        if name == "precision" and name in read.settings:
            words = _other_formats(words, knowledge, read)
    return words


_CHOOSES = frozenset({"or", "vs", "versus", "than", "and", "oder", "und", "ou", "et", "o"})
"""What stands between formats to choose between."""


def _other_formats(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take further formats to choose between, ``q4 or q8``; give what is left."""
    for at in range(len(words) - 2):
        first, second = (word.casefold() in _CHOOSES for word in words[at + 1 : at + 3])
        if words[at] == HOLE and (first or second):
            end = at + 2 + first  # a list has its word before the last: ``q4, q5 or q6``
            maker, word = str(read.settings["precision"]).rpartition(" ")[0], words[end - 1]
            found = _format(f"{maker} {word}".strip(), knowledge) or _format(word, knowledge)
            if found is not None:
                read.more.append({"precision": found})
                return _other_formats([*words[: at + 1], *words[end:]], knowledge, read)
    return words


def take_models(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take what names a model; give what is left."""
    return _taken(words, "model", _model, knowledge, read)


_BETWEEN = (
    r"(?: (?:or|vs\.?|versus|(?:\w+ )?than|oder|ou|o|\u8fd8\u662f|\u6216)(?: (?:an?|one|the|on))*)"
)
_CHOICE = re.compile(
    rf"{re.escape(HOLE)}(?:{_BETWEEN}? {re.escape(HOLE)})*{_BETWEEN} {re.escape(HOLE)}",
    re.IGNORECASE,
)
"""Cards to choose between, taken out: ``3090, 4090 or a 5090``."""
_MOST_CARDS = 4


def take_other_cards(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take further cards to choose between, ``a 3090 or a 4090``; give what is left."""
    rest, others = words, set[object]()
    while "gpu" in read.settings and len(others) < _MOST_CARDS - 1:
        beside = Read()
        rest = _taken(rest, "gpu", card_in, knowledge, beside)
        if not beside.settings:
            break
        others.add(beside.settings["gpu"])
    choice = _CHOICE.search(" ".join(rest))
    if not others or not choice or choice[0].count(HOLE) <= len(others):
        return words
    told = sorted(others, key=lambda card: read.text.find(str(card)))
    read.more += [{**one, "gpu": card} for card in told for one in ({}, *read.more)]
    return rest


def _taken(
    words: Sequence[str],
    name: str,
    find: Callable[[str, Knowledge], str | None],
    knowledge: Knowledge,
    read: Read,
) -> Sequence[str]:
    """Take the longest stretch of words that names something; give what is left."""
    known = vocabulary(knowledge)[name]
    known |= _beside_models(knowledge) if name == "model" else frozenset()
    longest = _LONGEST_CARDS if name == "gpu" else LONGEST_NAME
    for size in range(min(longest, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            part = words[at : at + size]
            listed = name == "model" and _begins_listed(part)
            if not (listed or _may_name(part, known, name)):
                continue
            found = find(" ".join(part), knowledge)
            if found and not (name == "gpu" and _of_a_model(words, at, size, knowledge)):
                read.settings[name] = found
                hole = MODEL_WAS if name == "model" and MODEL_WAS not in words else HOLE
                return [*words[:at], hole, *words[at + size :]]
    return words


def _of_a_model(words: Sequence[str], at: int, size: int, knowledge: Knowledge) -> bool:
    """Whether what may be a card is a part of a model's name: ``nemotron 3 nano 30b``."""
    if _begins_listed(words[max(at - 1, 0) : at + size]):
        return True
    if any(len(word) > 1 and any(map(str.isdigit, word)) for word in words[at : at + size]):
        return False
    wider = (
        words[first:end]
        for first in range(max(at - _BESIDE_CARD, 0), at)
        for end in range(at + size, min(at + size + _BESIDE_CARD, len(words)) + 1)
    )
    return any(_is_bordered(one, "model") and is_read(knowledge, " ".join(one)) for one in wider)


def _begins_listed(part: Sequence[str]) -> bool:
    """Whether words begin the name of a listed repository, of more than one word: ``bge m3``."""
    parted = len(part) > 1 or "-" in part[0]
    return parted and _is_bordered(part, "model") and any(beginning("-".join(part)))


def _may_name(part: Sequence[str], known: frozenset[str], name: str) -> bool:
    """Whether every word may belong to such a name, so that asking is worth it."""
    return _is_bordered(part, name) and all(_belongs(w.casefold(), known, name) for w in part)


def _is_bordered(part: Sequence[str], name: str) -> bool:
    """Whether words begin and end as a name may, and none of them is none of a name."""
    first, last = part[0].casefold(), part[-1].casefold()
    if first in _BEFORE or last in STOP - _OF_NAMES or any(map(_NO_NAME.match, part)):
        return False
    return last not in _JOINED or (name == "model" and last == "plus")


def _belongs(word: str, known: frozenset[str], name: str) -> bool:
    if name == "gpu" and word in _JOINED:
        return True
    if (
        word in known
        or word.removesuffix("s") in known
        or (name == "gpu" and word in COUNTS)
        or _SIZE.fullmatch(word)
    ):
        return True
    if name == "precision" and _QUANT.fullmatch(word):
        return True
    if name == "model" and ("/" in word.strip("/") or _AS_FILES.fullmatch(word)):
        return True
    if name == "gpu" and any(map(str.isdigit, word)):
        word = word.replace("o", "0")
    pieces = PIECE.findall(word)
    return bool(pieces) and all(p in known or p in {"x", "s"} or p[0].isdigit() for p in pieces)


def _beside_models(knowledge: Knowledge) -> frozenset[str]:
    """Give what may stand in a name beside a model's own words: fine-tunes, tunings, formats."""
    listed = name_words()
    named = (*listed.releases, *listed.same, *listed.built_on, *listed.short, *listed.slips)
    found = {word for name in named for word in name.split("-")}
    found |= listed.tuned | listed.filler | listed.packers | set(listed.tunings)
    return frozenset(found - STOP) | vocabulary(knowledge)["precision"]


def _model(text: str, knowledge: Knowledge) -> str | None:
    if SIZE.fullmatch(text.casefold()) or re.fullmatch(r"[vV]?\d+(?:\.\d+)?", text):
        return None
    is_path = "/" in text.strip("/") and " " not in text
    if is_path or text.endswith(".gguf") or is_read(knowledge, text):
        return text
    try:
        names.find_model(knowledge, text)
    except RequestError as error:
        several = "several models" in error.message and names_family(knowledge, text)
        return text if several or _is_listed(text) else None
    return text if names_family(knowledge, text) else None


def _is_listed(text: str) -> bool:
    try:
        return find_public(text) is not None
    except RequestError:
        return False


def _format(text: str, knowledge: Knowledge) -> str | None:
    if text.casefold() in _ENGLISH:
        return None
    try:
        read_format(knowledge, text)
    except RequestError:
        matched = _BITS.fullmatch(text)
        plain = f"INT{matched[1] or matched[2]}" if matched else None
        return text if why_unread(text) else plain
    return text


def _framework(text: str, knowledge: Knowledge) -> str | None:
    found = names.framework_called(knowledge, text)
    return found.name if found else None


def _backend(text: str, _knowledge: Knowledge) -> str | None:
    return BACKEND_OF_WORD.get(text.casefold())


_FINDERS: Mapping[str, Callable[[str, Knowledge], str | None]] = {
    "precision": _format,
    "framework": _framework,
    "backend": _backend,
    "gpu": card_in,
    "model": _model,
}
"""In this order: a format of two words may begin with the name of a framework."""


@by_identity  # 4.3 of questions
def vocabulary(knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Give the words that names of each kind are made of."""
    formats = knowledge.formats.values()
    return {
        "framework": _words_of(knowledge.frameworks.values()),
        "backend": frozenset(BACKEND_OF_WORD),
        "gpu": _words_of(knowledge.gpus.values()) | _machine_words(knowledge) | _BESIDE_CARDS,
        "model": _words_of(knowledge.models.values()) | {"b", "m"},
        "precision": _words_of(formats)
        | {w for one in formats for near in one.near for w in PIECE.findall(near.casefold())}
        | {"bit", "bits", "ud", "xl"}
        | name_words().unread.keys(),
    }


def _machine_words(knowledge: Knowledge) -> frozenset[str]:
    products = (name for m in card_names(knowledge).machines for name in (m.name, *m.aliases))
    found = frozenset(word for name in products for word in name.casefold().split())
    return found - (STOP - _OF_NAMES)


def _words_of(records: object) -> frozenset[str]:
    found: set[str] = set()
    for record in records:  # type: ignore[attr-defined]  # records with names
        for spelling in (record.name, *record.aliases):
            folded = spelling.casefold()
            found.update(folded.split())
            found.update(PIECE.findall(folded))
    return frozenset(found)


def is_of_name(word: str, known: frozenset[str]) -> bool:
    """Whether a word is part of a name: it has a figure, a hyphen, or stands in known names."""
    if _NO_NAME.match(word):
        return False
    return word.casefold() in known or "-" in word or any(map(str.isdigit, word))


_NO_NAME = re.compile(r"-{1,2}[a-z]|~|v?\d+(?:\.\d+){2,}\w*$", re.IGNORECASE)
"""Flags, what is only told, versions of programs."""
_BESIDE_CPU = re.compile(
    r"\b(?:cpu|processor|only|alone|with|and|of|ram|memory|no|without|an?|gpu|desktop|laptop|w"
    r"|mini pc|(?:(?:intel|amd|integrated|iris|xe|uhd|radeon|arc|vega) )*graphics(?: \d{3})?"
    r"|intel(?: arc)?|arc|igpu|apu|uhd(?: \d{3})?|iris(?: xe)?|vega(?: \d{1,2})?)\b"
    r"|[\s,;()|+/\"-]+",
    re.IGNORECASE,
)


def processor_said(text: str) -> Mapping[str, object] | None:
    """Read a text that names a processor and its memory, and nothing else: keys of a request."""
    settings: dict[str, object] = {}
    rest = read_numbers(apart(text), settings)
    size = re.search(rf"(?<![\w.]){GB}(?!\w)", rest, re.IGNORECASE)
    if size and "ram" not in settings:
        settings["ram"] = f"{size['n']}GB"
        rest = f"{rest[: size.start()]} {rest[size.end() :]}"
    said = "cpu" in settings and settings.keys() <= {"cpu", "ram", "ram_type"}
    return settings if said and not _BESIDE_CPU.sub("", rest) else None


_COUNT = rf"(?:\d{{1,2}}|{'|'.join(COUNTS)})"
_MACHINES = re.compile(
    rf"(?<![\w.])(?:(?P<n>{_COUNT})[\s-]+(?P<of>(?:(?!{_COUNT}\s)[^\s,;]+\s+){{0,4}}?)"
    r"(?:machine|node|server|host|mini[\s-]?pc)s?|multi[\s-]?node)\b(?:\s+(?:cluster|with|of)\b)*",
    re.IGNORECASE,
)


def apart_machines(text: str) -> tuple[str, str]:
    """Take out how many machines there are: ``two DGX Spark nodes``, ``2 nodes of 8x H100``.

    Returns:
        The text without, and the words that say so; nothing of one.
    """
    said = _MACHINES.search(text)
    if said is None or (said["n"] or "").casefold() in {"1", "a", "an", "one", "single", "my"}:
        return text, ""
    return f"{text[: said.start()]} {said['of'] or ''} {HOLE} {text[said.end() :]}", said[0]


def join_machines(said: str, knowledge: Knowledge, read: Read) -> None:
    """Count the cards of several machines: as many of a kind, or those of each together.

    Raises:
        RequestError: How many cards that makes does not follow.
    """
    gpu = str(read.settings.get("gpu", ""))
    if not said or not gpu:
        return
    first = re.split(r"[\s-]", said.strip())[0]
    count = int(first) if first.isdigit() else counted(first)
    named = find_cards(knowledge, gpu)
    if count == 0 or named.each or not (are_machines(named.gpu) or named.counted):
        raise RequestError(
            f"'{said.strip()}': how many cards these machines have is not understood",
            hint="Name them all, for example 16x H100; they are sized as if one machine held them.",
        )
    each = named.gpu.name if named.counted else gpu
    read.settings["gpu"] = f"{count * named.count}x {each}"
    if not are_machines(named.gpu):
        read.assumed = (
            f"{count * named.count} cards of {count} machines are sized as those of one: what the "
            "network between them costs in speed is not."
        )


_SAID_SIZE = re.compile(r"\d\s?g(?:i?b)?\b", re.IGNORECASE)


def memory_of_ram(knowledge: Knowledge, settings: dict[str, object]) -> None:
    """Give what has no memory of its own, a Mac or a processor's graphics, the computer's RAM."""
    gpu, ram = settings.get("gpu"), settings.get("ram")
    if not (gpu and ram):
        return
    whole, machine = f"{gpu}:{ram}", f"{gpu} {ram}"
    shares = _shares_memory(knowledge, str(gpu))
    if shares or (not is_settled(str(gpu), knowledge) and is_settled(machine, knowledge)):
        settings["gpu"] = machine
        del settings["ram"]
    elif _has_any_memory(knowledge, str(gpu)) and card_in(whole, knowledge):
        settings["gpu"] = whole
        del settings["ram"]


def _shares_memory(knowledge: Knowledge, text: str) -> bool:
    """Whether a text names a machine of unified memory, as sold in several sizes, and no size."""
    if _SAID_SIZE.search(text) or not is_settled(text, knowledge):
        return False
    named = find_cards(knowledge, text)
    listed = knowledge.gpus.get(named.gpu.name)
    return bool(named.count == 1 and named.gpu.unified_memory and listed and sizes_of(listed))


def _has_any_memory(knowledge: Knowledge, text: str) -> bool:
    try:
        named = find_cards(knowledge, text)
    except UserError as error:
        return "several memory sizes" in error.message
    listed = knowledge.gpus.get(named.gpu.name)
    return listed is not None and not sizes_of(listed) and "GB" not in text.upper()
