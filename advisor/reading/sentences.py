"""A question in plain words: what of it is a card, a model, a format, a number; no model reads it.

Numbers with a meaning come out first (``32k context``, ``4 users``, ``64GB RAM``), then the names
that the knowledge base has, the longest stretch of words first. What is left over is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from advisor.errors import RequestError
from advisor.knowledge import names
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.types import Knowledge
from advisor.reading import find_cards, is_read, read_model
from advisor.reading.name_parts import SIZE, unsized_card
from advisor.reading.name_parts import words as name_words
from advisor.reading.public_list import containing
from advisor.reading.ram import as_computer
from advisor.reading.sentence_cards import (
    EXAMPLE,
    Read,
    asks_number,
    assume_card,
    boards_with_figures,
    card_in,
    command_for,
    means_known_card,
    on_processor,
    ram_of_processor,
    refuse_other_architecture,
    refuse_other_cards,
    refuse_unknown_machine,
    take_processor,
    unexplained,
)
from advisor.reading.sentence_names import (
    LONGEST_NAME,
    MODEL_WAS,
    PIECE,
    STOP,
    apart_machines,
    is_of_name,
    join_machines,
    memory_of_ram,
    take_models,
    take_names,
    take_other_cards,
    vocabulary,
)
from advisor.reading.sentence_numbers import (
    HOLE,
    read_limits,
    read_numbers,
    read_ranks,
    read_wishes,
)
from advisor.reading.sentence_spelling import apart, as_told

_TRAINS = re.compile(r"\bfine[\s-]?tun(?:e|ing)\b|\btrain(?:ing)?\b|\u5fae\u8c03", re.IGNORECASE)
_ROUNDED = 0.1
"""How far a size that is told may lie from the parameters."""
_SIZED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?[bm](?![\w.])", re.IGNORECASE)
_TIMES = re.compile(r"x(\d{1,2})|(\d{1,2})x", re.IGNORECASE)
_SIZE_TIMES = re.compile(r"(\d{1,3})gi?b?x(\d{1,2})", re.IGNORECASE)
_GB = re.compile(r"\d{1,3}(?:gi?b|go?)", re.IGNORECASE)
_SPACES = re.compile(r"\s{2,}")
_LETTERS = re.compile(r"[A-Za-z]{3}")
_WORD = re.compile(r"[^\s,;?!()\"']+")


def read_sentence(text: str, knowledge: Knowledge, *, card_known: bool = False) -> Read:
    """Read a question into the settings of a request.

    Args:
        text: The question.
        knowledge: Where names are looked up.
        card_known: Whether a card is known that is meant where none is named.

    Raises:
        RequestError: Nothing in it is known, or two names say different things.
    """
    text = _SPACES.sub(" ", text)
    if said := _TRAINS.search(text):
        raise RequestError(f"'{said[0]}': training is not sized here, only what runs a model")
    read = Read()
    machines = _numbers(text, knowledge, read)
    words: Sequence[str] = [word.strip(".:") for word in _WORD.findall(read.text)]
    words = take_names(words, knowledge, read)
    why, unsized, _ = unsized_card(text) or (None, "", False)
    if why and str(read.settings.get("gpu", "")).casefold() in unsized.casefold():
        raise why
    words = _tag_beside(words, knowledge, read)
    _context_of_name(knowledge, read)
    words = _other_models(words, knowledge, read)
    words = take_other_cards(words, knowledge, read)
    if on_processor(text) or "cpu" in read.settings:
        words = ram_of_processor(words, read.settings)
    others = vocabulary(knowledge)["gpu"] - STOP
    words, read.assumed = assume_card(words, others, knowledge, read.settings)
    if read.assumed and "gpu" in read.settings:
        _refuse_other_maker(knowledge, read)
    memory_of_ram(knowledge, read.settings)
    words = _share_cards(words, knowledge, read)
    join_machines(machines, knowledge, read)
    words = _sized_model(words, knowledge, read, card_known=card_known)
    words = _wishes(words, read)
    _leave(words, knowledge, read)
    if read.assumed:
        refuse_unknown_machine(text, read.left)
    _refuse_half_names(words, knowledge, read)
    take_processor(text, read, card_known=card_known)
    card_known = card_known and means_known_card(text, read)
    if not read.settings and not card_known:
        raise RequestError(f"nothing is understood in '{text[:80]}'", hint=EXAMPLE)
    _family(knowledge, read)
    read.asks = command_for(text, read, card_known=card_known)
    read.how_many = read.asks == "advise" and asks_number(text, knowledge)
    read.left = list(map(as_told, read.left))
    return read


def _numbers(text: str, knowledge: Knowledge, read: Read) -> str:
    """Take numbers with a meaning out of a question; give what machines it tells."""
    rest = boards_with_figures(knowledge)["named"].sub(" ", as_computer(text))
    rest, machines = apart_machines(apart(rest))
    rest = read_limits(rest, read.wanted)
    rest = read_ranks(rest, read.settings)
    read.text = read_numbers(rest, read.settings)
    return machines


def _leave(words: Iterable[str], knowledge: Knowledge, read: Read) -> None:
    """Keep the words that mean something and were not understood."""
    model = str(read.settings.get("model", ""))
    meant = (word for word in words if _means_something(word))
    left = (word for word in meant if not (model and _is_its_size(word, model, knowledge)))
    read.left = unexplained(left, knowledge, read.settings.get("gpu"))


def _refuse_other_maker(knowledge: Knowledge, read: Read) -> None:
    """Refuse memory alone beside a back end that the usual card of so much has not.

    Raises:
        RequestError: It has not.
    """
    backend, gpu = (
        read.settings.get("backend"),
        find_cards(knowledge, str(read.settings["gpu"])).gpu,
    )
    if backend and gpu.vendor in MAKERS and backend not in MAKERS[gpu.vendor].backends:
        raise RequestError(
            f"no card is named, and a {gpu.name}, the usual one of its memory, has no {backend}",
            hint="Name the card.",
        )


def _tag_beside(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take the tag that says the model more exactly: ``Qwen3.6 (qwen3.6:35b)``."""
    tags = (one for one in words if ":" in one and is_read(knowledge, one))
    if "model" not in read.settings or not (tag := next(tags, "")):
        return words
    read.settings["model"] = tag
    return [word for word in words if word != tag]


_DRAFT = re.compile(r"\bdraft(?!ed)", re.IGNORECASE)
_BESIDE = re.compile(r"\bembed|\bmmproj\b|\bbased\s+on\b|\bspeculat\w+$", re.IGNORECASE)
"""What a second model is for, beside the one that is asked about."""
_MOST_MODELS = 4


def _other_models(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take further models that are named, or further sizes of the one; give what is left."""
    model = str(read.settings.get("model", ""))
    if not model or not is_read(knowledge, model) or _BESIDE.search(read.text):
        return words
    if _DRAFT.search(read.text):
        words, draft = _another(words, model, knowledge)
        if not draft:
            return words
        read.settings["draft_model"] = draft
        return [word for word in words if not _DRAFT.match(word)]
    known = {read_model(knowledge, model).model.name}
    while len(known) < _MOST_MODELS:
        words, other = _another(words, model, knowledge)
        if not other:
            break
        found = read_model(knowledge, other)
        if found.model.name not in known:
            known.add(found.model.name)
            read.more.append({"model": other} | ({"precision": None} if found.precision else {}))
    return words


def _another(words: Sequence[str], model: str, knowledge: Knowledge) -> tuple[Sequence[str], str]:
    """Find one more model: by its name, which has a figure, or by its size alone."""
    beside = Read()
    rest = take_models(words, knowledge, beside)
    other = str(beside.settings.get("model", ""))
    if any(map(str.isdigit, other)) and is_read(knowledge, other):
        return rest, other
    for at, word in enumerate(words):
        if SIZE.fullmatch(word.casefold()) and not _is_its_size(word, model, knowledge):
            other = _SIZED.sub(word, model, count=1)
            if other != model and _alone(words[:at]) and is_read(knowledge, other):
                return [*words[:at], HOLE, *words[at + 1 :]], other
    return words, ""


def _alone(before: Sequence[str]) -> bool:
    """Whether a size has no name of its own before it: ``sparkle 14b`` is no size of another."""
    word = before[-1].casefold() if before else HOLE
    return word == "draft" or not _means_something(word) or bool(SIZE.fullmatch(word))


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


def _sized_model(
    words: Sequence[str], knowledge: Knowledge, read: Read, *, card_known: bool
) -> Sequence[str]:
    """Take words that stand beside a size for a model's name: ``goliath 120b``; or it alone.

    Raises:
        RequestError: They are none; the nearest names.
    """
    sized = (at for at, word in enumerate(words) if SIZE.fullmatch(word.casefold()))
    for at in sized if "model" not in read.settings else ():
        first = at
        while first and _means_something(words[first - 1]) and at - first < LONGEST_NAME:
            first -= 1
        tuned = takewhile(lambda w: w.casefold() in name_words().tunings, words[at + 1 :])
        end = at + 1 + len(list(tuned))
        name = " ".join(words[first:end])
        wished = read_wishes(name, {}).split() != [*words[first:at], HOLE, *words[at + 1 : end]]
        if any(map(_LETTERS.search, words[first:at])) and not wished:
            read_model(knowledge, name)
            read.settings["model"] = name
            return [*words[:first], MODEL_WAS, *words[end:]]
        machine = card_known or {"gpu", "cpu", "ram"} & read.settings.keys()
        if not (machine or on_processor(read.text)):  # the most usual one of that size
            read.settings["model"] = words[at]
            return [*words[:at], MODEL_WAS, *words[at + 1 :]]
    return words


def _wishes(words: Sequence[str], read: Read) -> Sequence[str]:
    """Take out what is wished of models or cards, where one of them is not named."""
    if "model" in read.settings and not read.settings.keys().isdisjoint({"gpu", "cpu"}):
        return words
    return read_wishes(" ".join(words), read.wanted).split()


def _means_something(word: str) -> bool:
    known = word.casefold() in STOP or word in {HOLE, MODEL_WAS}
    return not known and any(map(str.isalnum, word))


def _refuse_half_names(words: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a sentence whose model or cards are named by more words than were understood.

    Raises:
        RequestError: The nearest names, or the word or number that cannot be.
    """
    known = vocabulary(knowledge)
    if "gpu" in read.settings:
        refuse_other_architecture(knowledge, str(read.settings["gpu"]), read.left)
        refuse_other_cards(knowledge, str(read.settings["gpu"]), read.left)
    if "model" in read.settings:
        _refuse_other_model(words, knowledge, read)
    for name, find in (("gpu", find_cards), ("model", read_model)):
        unknown = [word for word in read.left if is_of_name(word, known[name])]
        if name not in read.settings and unknown:
            _refuse_two_models(unknown, knowledge, read)
            find(knowledge, " ".join(unknown))


def _refuse_two_models(unknown: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a second model, which would be looked up as a card.

    Raises:
        RequestError: There is one.
    """
    second = (word for word in unknown if "model" in read.settings and is_read(knowledge, word))
    if other := next(second, ""):
        raise RequestError(
            f"'{read.settings['model']}' and '{other}' are two models", hint="Ask for one of them."
        )


def _refuse_other_model(words: Sequence[str], knowledge: Knowledge, read: Read) -> None:
    """Refuse a model beside a word that its name may go on with, or a size that is not its own."""
    model, at = str(read.settings["model"]), words.index(MODEL_WAS)
    beside = filter(_means_something, (*words[at - 1 : at][:1], *words[at + 1 : at + 2]))
    for word in (*beside, *(one for one in read.left if SIZE.fullmatch(one.casefold()))):
        if (
            PIECE.search(word.casefold())
            and not _says_other(word, model, knowledge, read)
            and _goes_on(model, word, knowledge)
        ):
            if SIZE.fullmatch(word.casefold()) and not _SIZED.search(model):
                raise names.unknown_model(knowledge, f"{model} {word}")
            raise RequestError(
                f"'{word}' beside '{model}' is not understood",
                hint="Write the name of the model as it is published, or leave the word out.",
            )


def _says_other(word: str, model: str, knowledge: Knowledge, read: Read) -> bool:
    """Whether a word is a size, or a card, or stands behind a sign that parts it from the name."""
    if _GB.fullmatch(word) or _is_its_size(word, model, knowledge):
        return True
    if "gpu" in read.settings and card_in(word, knowledge):
        return True
    last = re.escape(re.split(r"[\s:/]", model)[-1])
    behind = rf"{last}\W*[,;()|]\W*{re.escape(word)}(?!\w)|(?<!\w){re.escape(word)}\W*[,;()|]"
    return not SIZE.fullmatch(word.casefold()) and bool(re.search(behind, read.text))


def _goes_on(model: str, word: str, knowledge: Knowledge) -> bool:
    """Whether a word may be part of the model's name: one of names, or listed behind its last."""
    if is_of_name(word, vocabulary(knowledge)["model"]):
        return True
    if name_words().kind.search(word.casefold()):
        return read_model(knowledge, model).model.modality == "text"
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


def _splits_tensors(settings: Mapping[str, object], knowledge: Knowledge) -> bool:
    """Whether ``tensor split`` is meant as a server's; of llama.cpp it sets shares of layers."""
    named = str(settings.get("framework", next(iter(knowledge.frameworks))))
    return "tensor" in knowledge.frameworks[named].multi_gpu


def _share_cards(words: Sequence[str], knowledge: Knowledge, read: Read) -> Sequence[str]:
    """Take ``x8`` for the cards; requests apart as they are served; of four cards two for ``tp 2``.

    Servers copy a dense model to every card then, and divide the experts of a mixture.
    Gives the words that are left then.
    """
    settings = read.settings
    gpu, model = str(settings.get("gpu", "")), str(settings.get("model", ""))
    if settings.get("split") == "tensor split":
        if _splits_tensors(settings, knowledge):
            settings["split"] = "tensor"
        else:
            words = [*words, f"~{str(settings.pop('split')).replace(' ', '~')}"]
    if gpu and card_in(gpu, knowledge):
        named = find_cards(knowledge, gpu)
        times = next((word for word in words if _TIMES.fullmatch(word)), None)
        if times and not named.counted:
            settings["gpu"] = f"{times.strip('xX')}x {gpu}"
            words = [HOLE if word == times else word for word in words]
        sized = next((said for word in words if (said := _SIZE_TIMES.fullmatch(word))), None)
        if sized and not named.counted and card_in(each := f"{gpu} {sized[1]}gb", knowledge):
            settings["gpu"] = f"{sized[2]}x {each}"
            words = [HOLE if word == sized[0] else word for word in words]
        ranks = settings.get("gpus")
        if isinstance(ranks, int) and ranks < named.count and not named.each:
            settings["gpu"] = f"{settings.pop('gpus')}x {named.gpu.name}"
            read.assumed = f"The split is over {ranks} of the {named.count} cards."
    if settings.get("split") == "data" and model and is_read(knowledge, model):
        moe = read_model(knowledge, model).model.shape.moe
        settings["split"] = "dp-attention" if moe else "data"
    return words
