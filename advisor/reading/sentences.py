"""A question in plain words: what of it is a card, a model, a format, a number; no model reads it.

Numbers with a meaning come out first (``32k context``, ``4 users``, ``64GB RAM``), then the names
that the knowledge base has, the longest stretch of words first. What is left over is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from advisor.errors import RequestError
from advisor.knowledge import names
from advisor.knowledge.catalogue import BACKEND_OF_WORD
from advisor.knowledge.merit_scale import card_names
from advisor.knowledge.types import Knowledge
from advisor.memo import by_identity
from advisor.reading import find_cards, is_read, read_model
from advisor.reading.known import read_format
from advisor.reading.name_match import names_family
from advisor.reading.name_parts import SIZE
from advisor.reading.name_parts import words as name_words
from advisor.reading.public_list import containing, find_public
from advisor.reading.sentence_cards import (
    EXAMPLE,
    Read,
    apart_machines,
    assume_card,
    card_in,
    command_for,
    join_machines,
    means_own,
    memory_of_ram,
    on_processor,
    ram_of_processor,
    refuse_other_architecture,
    refuse_other_cards,
    refuse_unknown_machine,
    share_cards,
    take_processor,
)
from advisor.reading.sentence_numbers import (
    COUNTS,
    HOLE,
    apart,
    read_limits,
    read_numbers,
    read_wishes,
)

_LONGEST_NAME = 8  # words; no card or model has more
_LONGEST_CARDS = 14  # words of cards that are joined
_MODEL_WAS = "|model|"  # what stands where the model was taken out
_TRAINS = re.compile(r"\bfine[\s-]?tun(?:e|ing)\b|\btrain(?:ing)?\b", re.IGNORECASE)
_AS_FILES = re.compile(r".*\.gguf|(?=.*\d)\w[\w.]*(?:[-_][\w.]+){2,}")
"""A word that is written as files and repositories are."""
_BESIDE_CARDS = frozenset({"gb", "gib", "g", "go", "laptop", "notebook", "mobile"})
_ROUNDED = 0.1
"""How far a size that is told may lie from the parameters."""
_BITS = re.compile(r"([48])[\s-]?bits?|(?:q|int)([48])", re.IGNORECASE)
_ENGLISH = frozenset({"full", "half"})  # words for formats that mean other things
_GB = re.compile(r"\d{1,3}(?:gi?b|go?)", re.IGNORECASE)
_WORD = re.compile(r"[^\s,;?!()\"']+")
_PIECE = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:gi?b|g|go|b|bit|bpw)?")
_STOP = frozenset(
    """
    a about all also am an and any anyone are as at be but by can card cards could do does for from
    get gpu gpus graphics good hello help hey hi how i if in is it just let llm load local locally
    machine me memory model models my need of ok okay on one or our out pc please possible question
    rig run running runs serve serving setup should so some start tell that the their them there
    this to try use used using vram want we what when which will with work works would you your
    enough fit fits big large us was have has had got computer thanks where while without than then
    only really quite well host hosting inference quantized quant quantised version format precision
    weights cache kv each per max maximum context window length tokens token size long fine-tuned
    finetuned best better biggest largest smartest smarter strongest powerful cheapest recommend
    recommended recommendation recommendations suggest suggestions decent minimum needed required
    requirements require requires hardware graphic buy buying getting budget most many much more
    there's what's whats here now currently today still new newest llms ai home own owner people
    someone thing things anything something option options choice handle afford build s re ll ve t m
    d fastest smallest t/s tok/s tps colab kaggle flag flags auf mit mein meine meiner einer einem
    eine ein kann ich man braucht brauche brauch f\u00fcr und oder modell modelle karte kontext
    l\u00e4uft laufen welche welches welcher wie viel viele sur avec mon ma une pour peut je puis-je
    faire tourner carte mod\u00e8le modele quel quelle con en mi una para puedo correr modelo
    tarjeta cu\u00e1l cual que qu\u00e9
    """.split()  # noqa: SIM905  a table of words
)
_OF_NAMES = frozenset({"ai", "max", "large"})
"""Those of them that names begin or end with."""
_JOINED = frozenset({"+", "and", "plus", "&", "und", "et", "y"})
"""What stands between cards that are used together."""
_BEFORE = (_STOP - COUNTS.keys() - _OF_NAMES) | _JOINED


def read_sentence(text: str, knowledge: Knowledge, *, own_card: bool = False) -> Read:
    """Read a question into the settings of a request.

    Args:
        text: The question.
        knowledge: Where names are looked up.
        own_card: Whether a card is known that is meant where none is named.

    Raises:
        RequestError: Nothing in it is known, or two names say different things.
    """
    if said := _TRAINS.search(text):
        raise RequestError(f"'{said[0]}': training is not sized here, only what runs a model")
    read = Read()
    rest, machines = apart_machines(apart(text))
    rest = read_numbers(read_limits(rest, read.wanted), read.settings)
    words: Sequence[str] = [word.strip(".:") for word in _WORD.findall(rest)]
    for name, find in _FINDERS.items():
        words = _taken(words, name, find, knowledge, read)
    words = _tag_beside(words, knowledge, read)
    _context_of_name(knowledge, read)
    if on_processor(text) or "cpu" in read.settings:
        words = ram_of_processor(words, read.settings)
    others = _vocabulary(knowledge)["gpu"] - _STOP
    words, read.assumed = assume_card(words, others, knowledge, read.settings)
    memory_of_ram(knowledge, read.settings)
    words = share_cards(words, knowledge, read.settings)
    join_machines(machines, knowledge, read)
    words = _sized_model(words, knowledge, read)
    words = _wishes(words, read)
    model = str(read.settings.get("model", ""))
    told = (word for word in words if _means_something(word))
    read.left = [word for word in told if not (model and _is_its_size(word, model, knowledge))]
    if read.assumed:
        refuse_unknown_machine(text, read.left)
    _refuse_half_names(words, knowledge, read)
    take_processor(text, read, own_card=own_card)
    own_card = own_card and means_own(text, read)
    if not read.settings and not own_card:
        raise RequestError(f"nothing is understood in '{text[:80]}'", hint=EXAMPLE)
    _family(knowledge, read)
    read.asks = command_for(text, read, own_card=own_card)
    return read


def _tag_beside(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take the tag that says the model more exactly: ``Qwen3.6 (qwen3.6:35b)``."""
    tags = (one for one in words if ":" in one and is_read(knowledge, one))
    if "model" not in read.settings or not (tag := next(tags, "")):
        return words
    read.settings["model"] = tag
    return [word for word in words if word != tag]


def _context_of_name(knowledge: Knowledge, read: Read) -> None:
    """Take a context that a model bears in its name for both: ``phi3 mini 128k``."""
    model, context = read.settings.get("model"), read.settings.get("context")
    if model and isinstance(context, int) and context % 1024 == 0:
        longer = f"{model} {context // 1024}k"
        names_ = [
            read_model(knowledge, one).model.name
            for one in (str(model), longer)
            if is_read(knowledge, one)
        ]
        if len(set(names_)) > 1:
            read.settings["model"] = longer


def _family(knowledge: Knowledge, read: Read) -> None:
    """Ask for all of a family where a card is named and of the model nothing but that."""
    said = str(read.settings.get("model", ""))
    if "gpu" in read.settings and said and not is_read(knowledge, said):
        family = names.family_called(knowledge, said)
        if family:
            del read.settings["model"]
            read.wanted["family"] = family


def _sized_model(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take words that stand beside a size for a model's name: ``goliath 120b``.

    Raises:
        RequestError: They are none; the nearest names.
    """
    sized = (at for at, word in enumerate(words) if SIZE.fullmatch(word.casefold()))
    for at in sized if "model" not in read.settings else ():
        first = at
        while first and _means_something(words[first - 1]) and at - first < _LONGEST_NAME:
            first -= 1
        name = " ".join(words[first : at + 1])
        wished = read_wishes(name, {}).split() != [*words[first:at], HOLE]
        if any(map(str.isalpha, words[first:at])) and not wished:
            read_model(knowledge, name)
            read.settings["model"] = name
            return [*words[:first], _MODEL_WAS, *words[at + 1 :]]
    return words


def _wishes(words: Sequence[str], read: Read) -> Sequence[str]:
    """Take out what is wished of models or cards, where one of them is not named."""
    if {"gpu", "model"} <= read.settings.keys():
        return words
    return read_wishes(" ".join(words), read.wanted).split()


def _means_something(word: str) -> bool:
    known = word.casefold() in _STOP or word in {HOLE, _MODEL_WAS}
    return not known and any(map(str.isalnum, word))


def _refuse_half_names(words: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a sentence whose model or cards are named by more words than were understood.

    Raises:
        RequestError: The nearest names, or the word or number that cannot be.
    """
    known = _vocabulary(knowledge)
    if "gpu" in read.settings:
        refuse_other_architecture(knowledge, str(read.settings["gpu"]), read.left)
        refuse_other_cards(knowledge, str(read.settings["gpu"]), read.left)
    if "model" in read.settings:
        _refuse_other_model(words, knowledge, read)
    for name, find in (("gpu", find_cards), ("model", names.find_model)):
        unknown = [word for word in read.left if _is_of_name(word, known[name])]
        if name not in read.settings and unknown:
            find(knowledge, " ".join(unknown))


def _refuse_other_model(words: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a model beside a word that its name may go on with, or a size that is not its own."""
    model, at = str(read.settings["model"]), words.index(_MODEL_WAS)
    beside = filter(_means_something, (*words[at - 1 : at][:1], *words[at + 1 : at + 2]))
    for word in (*beside, *(one for one in read.left if SIZE.fullmatch(one.casefold()))):
        sized = _GB.fullmatch(word) or _is_its_size(word, model, knowledge)
        if not sized and _PIECE.search(word.casefold()) and _goes_on(model, word, knowledge):
            raise RequestError(
                f"'{word}' beside '{model}' is not understood",
                hint="Write the name of the model as it is published, or leave the word out.",
            )


def _goes_on(model: str, word: str, knowledge: Knowledge) -> bool:
    """Whether a word may be part of the model's name: one of names, or listed behind its last."""
    if _is_of_name(word, _vocabulary(knowledge)["model"]):
        return True
    last = re.split(r"[\s:/]", model)[-1]
    return word.isascii() and word.isalpha() and bool(containing(f"{last}-{word}", 1))


def _is_its_size(word: str, model: str, knowledge: Knowledge) -> bool:
    """Whether a word says how many parameters the model has, all or those of a token: ``744B``."""
    if not SIZE.fullmatch(word.casefold()) or not is_read(knowledge, model):
        return False
    found = read_model(knowledge, model).model
    said = float(word[:-1]) * (1e9 if word[-1] in "bB" else 1e6)
    counts = (found.parameters, found.active_parameters, found.read_parameters)
    return any(abs(said - count) <= _ROUNDED * count for count in counts)


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
    known |= _beside_models(knowledge) if name == "model" else frozenset()
    longest = _LONGEST_CARDS if name == "gpu" else _LONGEST_NAME
    for size in range(min(longest, len(words)), 0, -1):
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
    first, last = part[0].casefold(), part[-1].casefold()
    if first in _BEFORE or last in _STOP - _OF_NAMES:
        return False
    if last in _JOINED and not (name == "model" and last == "plus"):
        return False
    return all(_belongs(word.casefold(), known, name) for word in part)


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
    if name == "model" and ("/" in word.strip("/") or _AS_FILES.fullmatch(word)):
        return True
    if name == "gpu" and any(map(str.isdigit, word)):
        word = word.replace("o", "0")
    pieces = _PIECE.findall(word)
    return bool(pieces) and all(p in known or p in {"x", "s"} or p[0].isdigit() for p in pieces)


@by_identity
def _beside_models(knowledge: Knowledge) -> frozenset[str]:
    """Give what may stand in a name beside a model's own words: fine-tunes, tunings, formats."""
    listed = name_words()
    named = (*listed.releases, *listed.same, *listed.built_on, *listed.short)
    found = {word for name in named for word in name.split("-")}
    found |= listed.tuned | listed.filler | listed.packers | set(listed.tunings)
    return frozenset(found - _STOP) | _vocabulary(knowledge)["precision"]


def _model(text: str, knowledge: Knowledge) -> str | None:
    if SIZE.fullmatch(text.casefold()):
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
        return f"INT{matched[1] or matched[2]}" if matched else None
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


@by_identity
def _vocabulary(knowledge: Knowledge) -> Mapping[str, frozenset[str]]:
    """Give the words that names of each kind are made of."""
    return {
        "framework": _words_of(knowledge.frameworks.values()),
        "backend": frozenset(BACKEND_OF_WORD),
        "gpu": _words_of(knowledge.gpus.values()) | _machine_words(knowledge) | _BESIDE_CARDS,
        "model": _words_of(knowledge.models.values()) | {"b", "m"},
        "precision": _words_of(knowledge.formats.values()) | {"bit", "bits", "ud", "xl"},
    }


def _machine_words(knowledge: Knowledge) -> frozenset[str]:
    products = (name for m in card_names(knowledge).machines for name in (m.name, *m.aliases))
    found = frozenset(word for name in products for word in name.casefold().split())
    return found - (_STOP - _OF_NAMES)


def _words_of(records: object) -> frozenset[str]:
    found: set[str] = set()
    for record in records:  # type: ignore[attr-defined]  # records with names
        for spelling in (record.name, *record.aliases):
            folded = spelling.casefold()
            found.update(folded.split())
            found.update(_PIECE.findall(folded))
    return frozenset(found)
