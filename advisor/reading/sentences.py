"""A question in plain words: what of it is a card, a model, a format, a number; no model reads it.

Numbers with a meaning come out first (``32k context``, ``4 users``, ``64GB RAM``), then the names
that the knowledge base has, the longest stretch of words first. What is left over is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from advisor.errors import RequestError, UserError
from advisor.knowledge import names
from advisor.knowledge.cards import Cards
from advisor.knowledge.catalogue import BACKEND_OF_WORD
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity
from advisor.reading.cards import find_cards
from advisor.reading.public_list import find_public
from advisor.reading.sentence_numbers import COUNTS, HOLE, read_numbers
from advisor.units import GIB

_LONGEST_NAME = 8
"""Words of a name; no card or model has more."""
_GLUED_COUNT = re.compile(r"\b(\d{1,2}x)(?=[a-z])", re.IGNORECASE)
_MODEL_WAS = "|model|"
"""What stands where the model was taken out."""
_EXAMPLE = 'Name a card and a model: "can I run llama 3.1 8b on an RTX 3060 12GB".'
_PLURAL = re.compile(r"(?<=[0-9a-z])s\b", re.IGNORECASE)
_TRAINS = re.compile(r"\bfine[\s-]?tun(?:e|ing)\b|\btrain(?:ing)?\b", re.IGNORECASE)
_MEMORY = re.compile(r"\d{1,3}\s?(?:gi?b|go?)", re.IGNORECASE)
_BITS = re.compile(r"([48])[\s-]?bits?|(?:q|int)([48])", re.IGNORECASE)
_ENGLISH = frozenset({"full", "half"})
"""Words for formats that mean other things in a sentence."""
_WORD = re.compile(r"[^\s,;?!()\"']+")
_PIECE = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:gi?b|g|go|b|bit|bpw)?")
_STOP = frozenset(
    """
    a about all also am an and any anyone are as at be but by can card cards could do does for from
    get gpu gpus graphics good hello help hey hi how i if in is it just let llm load local
    locally machine me memory model models my need of ok okay on one or our out pc please possible
    question rig run running runs serve serving setup should so some start tell that the their them
    there this to try use used using vram want we what when which will with work works would you
    your possible enough fit fits big large me us was have has had got computer thanks which
    where while without than then only really quite well host hosting inference quantized quant
    quantised version format precision weights cache kv each per max maximum context window
    length tokens token size long fine-tuned finetuned
    """.split()  # noqa: SIM905  a table of words
)


class Read(Struct):
    """What a sentence says: keys of a request, and the words that were not understood."""

    settings: dict[str, object] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def read_sentence(text: str, knowledge: Knowledge) -> Read:
    """Read a question into the settings of a request.

    Raises:
        RequestError: Nothing in it is known, or two names say different things.
    """
    if said := _TRAINS.search(text):
        raise RequestError(f"'{said[0]}': training is not sized here, only what runs a model")
    read = Read()
    rest = read_numbers(_GLUED_COUNT.sub(r"\1 ", text), read.settings)
    words: Sequence[str] = [word.strip(".:") for word in _WORD.findall(rest)]
    for name, find in _FINDERS.items():
        words = _taken(words, name, find, knowledge, read)
    read.left = [word for word in words if _means_something(word)]
    if not read.settings:
        raise RequestError(f"nothing is understood in '{text[:80]}'", hint=_EXAMPLE)
    _refuse_half_names(words, knowledge, read)
    return read


def _means_something(word: str) -> bool:
    known = word.casefold() in _STOP or word in {HOLE, _MODEL_WAS}
    return not known and any(map(str.isalnum, word))


def _refuse_half_names(words: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a sentence whose model or cards are named by more words than were understood.

    Raises:
        RequestError: The nearest names, or the word or number that cannot be.
    """
    known = _vocabulary(knowledge)
    counts = [number for word in read.left if (number := _counted(word)) > 1]
    if "gpu" in read.settings and counts:
        find_cards(knowledge, f"{counts[0]}x {read.settings['gpu']}")
    if "model" in read.settings:
        at = words.index(_MODEL_WAS)
        for word in filter(_means_something, (*words[at - 1 : at][:1], *words[at + 1 : at + 2])):
            if _PIECE.search(word.casefold()) and _is_of_name(word, known["model"]):
                raise RequestError(
                    f"'{word}' beside '{read.settings['model']}' is not understood",
                    hint="Write the name of the model as it is published, or leave the word out.",
                )
    sizes = [word for word in read.left if _MEMORY.fullmatch(word)]
    if "gpu" not in read.settings and sizes:
        raise _no_card(sizes[0], knowledge)
    for name, find in (("gpu", find_cards), ("model", names.find_model)):
        unknown = [word for word in read.left if _is_of_name(word, known[name])]
        if name not in read.settings and unknown:
            find(knowledge, " ".join(unknown))


def _no_card(size: str, knowledge: Knowledge) -> RequestError:
    """Say that a size of memory is no card, and name the newest usual ones that have it."""
    held = int(size[: -len(size.lstrip("0123456789"))]) * GIB
    newest = sorted(knowledge.gpus.values(), key=lambda gpu: gpu.released or "", reverse=True)
    named = [g.name for g in newest if g.segment == "consumer" and g.vram_bytes == held]
    hint = f"Name yours; some with so much: {', '.join(named[:4])}." if named else _EXAMPLE
    return RequestError(f"no card is named, only {size} of memory", hint=hint)


def _counted(word: str) -> int:
    """How many a word says there are; 0 for a word that says none."""
    glued = re.fullmatch(r"(\d{1,2})x", word, re.IGNORECASE)
    return int(glued[1]) if glued else COUNTS.get(word.casefold(), 0)


def _is_of_name(word: str, known: frozenset[str]) -> bool:
    """Whether a word is part of a name: it has a figure, a hyphen, or stands in known names."""
    return word.casefold() in known or "-" in word or any(map(str.isdigit, word))


# ---- names


def _taken(
    words: Sequence[str],
    name: str,
    find: Callable[[str, Knowledge], str | None],
    knowledge: Knowledge,
    read: Read,
) -> Sequence[str]:
    """Take the longest stretch of words that names something; give what is left."""
    known = _vocabulary(knowledge)[name]
    for size in range(min(_LONGEST_NAME, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            part = words[at : at + size]
            if not _may_name(part, known, name):
                continue
            if found := find(" ".join(part), knowledge):
                read.settings[name] = found
                hole = _MODEL_WAS if name == "model" else HOLE
                return [*words[:at], hole, *words[at + size :]]
    return words


def _may_name(part: Sequence[str], known: frozenset[str], name: str) -> bool:
    """Whether every word may belong to such a name, so that asking is worth it."""
    if part[0].casefold() in _STOP - COUNTS.keys() or part[-1].casefold() in _STOP:
        return False
    return all(_belongs(word.casefold(), known, name) for word in part)


def _belongs(word: str, known: frozenset[str], name: str) -> bool:
    if word in known or (name == "gpu" and word in COUNTS) or _SIZE.fullmatch(word):
        return True
    if name == "model" and ("/" in word or word.endswith(".gguf")):
        return True
    pieces = _PIECE.findall(word)
    return bool(pieces) and all(p in known or p in {"x", "s"} or p[0].isdigit() for p in pieces)


def _card(text: str, knowledge: Knowledge) -> str | None:
    """Give a card as ``find_cards`` takes it; a plural and a number in words are read too."""
    for spelling in _spellings(text):
        try:
            named = find_cards(knowledge, spelling)
        except UserError as error:
            if "several cards" in error.message:
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


def _model(text: str, knowledge: Knowledge) -> str | None:
    try:
        names.find_model(knowledge, text)
    except RequestError as error:
        known = "several models" in error.message or "/" in text or text.endswith(".gguf")
        return text if known or _is_listed(text) else None
    return text


def _is_listed(text: str) -> bool:
    try:
        return find_public(text) is not None
    except RequestError:
        return False


def _format(text: str, knowledge: Knowledge) -> str | None:
    if text.casefold() in _ENGLISH:
        return None
    try:
        names.find_format_candidates(knowledge, text)
    except RequestError:
        matched = _BITS.fullmatch(text)
        return f"INT{matched[1] or matched[2]}" if matched else None
    return text


def _framework(text: str, knowledge: Knowledge) -> str | None:
    try:
        return names.find_framework(knowledge, text).name
    except RequestError:
        return None


def _backend(text: str, _knowledge: Knowledge) -> str | None:
    return BACKEND_OF_WORD.get(text.casefold())


_FINDERS: Mapping[str, Callable[[str, Knowledge], str | None]] = {
    "precision": _format,
    "framework": _framework,
    "backend": _backend,
    "gpu": _card,
    "model": _model,
}
"""In this order: a format of two words may begin with the name of a framework."""


@by_identity
def _vocabulary(knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Give the words that names of each kind are made of."""
    return {
        "framework": _words_of(knowledge.frameworks.values()),
        "backend": frozenset(BACKEND_OF_WORD),
        "gpu": _words_of(knowledge.gpus.values()) | {"gb", "gib", "g", "go"},
        "model": _words_of(knowledge.models.values()) | {"b", "m"},
        "precision": _words_of(knowledge.formats.values()) | {"bit", "bits"},
    }


def _words_of(records: object) -> frozenset[str]:
    found: set[str] = set()
    for record in records:  # type: ignore[attr-defined]  # records with names
        for spelling in (record.name, *record.aliases):
            folded = spelling.casefold()
            found.update(folded.split())
            found.update(_PIECE.findall(folded))
    return frozenset(found)
