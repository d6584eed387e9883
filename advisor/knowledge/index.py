"""The precomputed lookup of names: built once with the knowledge, stored beside it as JSON.

Each part is read when it is first asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import TypedDict, TypeVar

from msgspec import Struct

from advisor.errors import RequestError, UserError
from advisor.files import table_rows
from advisor.knowledge.catalogue import MAKERS
from advisor.knowledge.types import Gpu, Knowledge, ModelRecord
from advisor.memo import decoded, table

_BRANDS = {name: maker.words for name, maker in MAKERS.items()}
_FILLER = frozenset({"gpu", "graphics", "generation", "card", "r", "tm"})
_SERIES = frozenset({"rtx", "gtx", "rx"})
_BOARD = re.compile(
    r"\d+gb|pcie|sxm\d?|nvl|hbm\w+|gddr\w+|[0-9]+gbps|(?:ga|ad)10\d|tu1\d\d|gb20[2-9]|"
    r"ada|blackwell|quadro|jetson|agx|rtx|gtx|rx"
)
_SIZE = re.compile(r"\d+gb")


def spellings(use: str) -> Sequence[tuple[str, str]]:
    """Give the expressions of ``name_spellings.tsv`` for a use, each with what is written."""
    rows = table_rows("name_spellings.tsv")
    return [(pattern, written) for kind, pattern, written in rows if kind == use]


def card_spellings(use: str) -> Sequence[tuple[re.Pattern[str], str]]:
    """The same for names of cards, compiled; a _ is a space."""
    return [(re.compile(how), written.replace("_", " ")) for how, written in spellings(use)]


_GPU_REWRITES = card_spellings("card")
_WORD = re.compile(r"[^\W_]+")
_MODEL_WORD = re.compile(
    r"a\d+(?:\.\d+)?b(?![a-z0-9])|\d+(?:\.\d+)*[bmk](?![a-z0-9])|\d+(?:\.\d+)*|[a-z]+"
)
_POINT = re.compile(r"(?<=\d)_(?=\d+(?![\d.]*[bmk](?![a-z0-9])))")
"""Not before a size: llama_3_8b is no 3.8b."""
_MODEL_FILLER = frozenset({"instruct", "chat", "it", "hf", "base"})


class Form(Struct, frozen=True):
    """One spelling of a card.

    ``words`` are all its tokens; ``core`` those that are not vendor, series or filler words.
    """

    words: frozenset[str]
    core: frozenset[str]

    @property
    def key(self) -> str:
        """Equal for spellings that mean the same."""
        return " ".join(sorted(self.core))

    @property
    def bare(self) -> str:
        """The key less GTX, RTX and RX: two cards must differ in more than these."""
        return " ".join(sorted(self.core - _SERIES))


def in_latin(text: str) -> str:
    """Write a name with Latin letters where Cyrillic ones that look alike stand beside others."""
    return text if text.isascii() else _LOOKS_LATIN.sub(lambda m: m[0].translate(_LATIN), text)


_CYRILLIC = (
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425"
    "\u0430\u0441\u0435\u043e\u0440\u0445"
)
_LATIN = str.maketrans(_CYRILLIC, "ABEKMHOPCTXaceopx")
_LOOKS_LATIN = re.compile(
    rf"(?<!\w)(?=[\w-]*[A-Za-z0-9])(?=[\w-]*[{_CYRILLIC}])[A-Za-z0-9{_CYRILLIC}-]+(?!\w)"
)


def is_chinese(text: str) -> bool:
    """Whether it has a character of Chinese, which counts cards in one word with their name."""
    return any("\u3400" <= one <= "\u9fff" for one in text)


def gpu_words(text: str) -> tuple[str, ...]:
    """Cut a card's name into tokens: ``RTX 3060 12GB Laptop GPU`` -> rtx 3060 12gb mobile gpu."""
    folded = in_latin(text).casefold().replace("(r)", " ").replace("(tm)", " ")
    for pattern, new in _GPU_REWRITES:
        folded = pattern.sub(new, folded)
    return tuple(_WORD.findall(folded))


def gpu_form(text: str, vendor: str, name: str) -> Form:
    """Cut one spelling of the card ``name``.

    GTX, RTX and RX may be left out where the model number alone says which card it is:
    consumer cards and the lettered workstation numbers (A6000), not ``RTX 6000``.
    """
    words = gpu_words(text)
    brands = _BRANDS.get(vendor, frozenset())
    core = frozenset(words) - _FILLER - brands
    if "titan" not in core and (_is_consumer(name) or any(re.match(r"a\d", w) for w in core)):
        core -= _SERIES
    return Form(frozenset(words) | brands | _FILLER, core)


def gpu_core(text: str) -> tuple[str, ...]:
    """The tokens of a card's name that are no maker, series or filler word."""
    brands = frozenset().union(*_BRANDS.values())
    return tuple(w for w in gpu_words(text) if w not in brands | _SERIES | _FILLER)


def nothing_but_brands(words: Iterable[str]) -> bool:
    """Whether tokens name makers, series and sizes alone, and so no card."""
    brands = frozenset().union(*_BRANDS.values())
    return all(w in brands | _SERIES | _FILLER or is_size_word(w) for w in words)


def names_a_series(text: str) -> bool:
    """Whether a text can only be a card's: it has a maker, a brand or a series in it."""
    return bool(makers_named(text)) or not _SERIES.isdisjoint(gpu_words(text))


def makers_named(text: str) -> frozenset[str]:
    """The makers whose name, or that of a brand of theirs, is in the text."""
    words = {*gpu_words(text)}
    return frozenset(maker for maker, brands in _BRANDS.items() if words & brands)


def is_board_word(word: str) -> bool:
    """Whether a token tells boards of one model apart: size, socket, memory, chip."""
    return _BOARD.fullmatch(word) is not None


def is_size_word(word: str) -> bool:
    """Whether a token is a memory size."""
    return _SIZE.fullmatch(word) is not None


def model_words(text: str) -> tuple[str, ...]:
    """Cut a model's name into tokens: ``Llama3.1:8B-Instruct`` -> llama 3.1 8b instruct.

    Publishers write a version 1.5 as ``1_5`` too, and people ``r+`` for R Plus.
    """
    folded = text.casefold().replace("+", " plus ") if "+" in text else text.casefold()
    return tuple(_MODEL_WORD.findall(_POINT.sub(".", folded)))


def model_key(text: str) -> str:
    """Equal for spellings of one model that differ in case and punctuation alone."""
    return " ".join(model_words(text))


def model_core(text: str) -> tuple[str, ...]:
    """The tokens less the words that name a tuning: instruct, chat, it, hf, base."""
    return tuple(w for w in model_words(text) if w not in _MODEL_FILLER)


def of_one_family(one: str, other: str) -> bool:
    """Whether two names of models share a word, or nearly, that is neither size nor tuning.

    True where one of them has no such word.
    """
    ours, theirs = ([w for w in model_core(name) if w.isalpha()] for name in (one, other))
    if not (ours and theirs) or not set(ours).isdisjoint(theirs):
        return True
    return any(get_close_matches(word, theirs) for word in ours)


def plain_key(text: str) -> str:
    """Letters and digits only: ``Q4_K_M``, ``q4-k-m`` and ``q4km`` are one spelling."""
    return "".join(filter(str.isalnum, text.casefold()))


def _is_consumer(name: str) -> bool:
    return name.startswith(("GeForce", "Radeon RX"))


_Found = TypeVar("_Found")

_MOST_ENTRIES = 8192
_LONGEST_TEXT = 200
_LONGEST_NAME = 4_000
"""A request may name 64 cards one by one; patterns of names are not made for more."""

Spelling = tuple[str, str, str]
"""Card, words, core."""
Cores = list[tuple[str, str]]
_Called = dict[str, list[str]]
_Published = dict[str, str]


class Index(Struct, frozen=True):
    """How cards and models are found."""

    spellings: str
    """Card, words and core of each spelling, a line each: a start reads a few of 1,300."""
    exact: _Called
    """Key -> models."""
    hf: _Published
    """Hugging Face id -> model."""
    cores: Cores
    """Model and the words of its core."""


def spellings_of(knowledge: Knowledge) -> list[Spelling]:
    """Give every spelling of a card: its name, all words, those of the core."""
    return [_spelling(line) for line in _spelled(knowledge).splitlines()]


def spellings_with(knowledge: Knowledge, word: str) -> Iterator[Spelling]:
    """Give the spellings of cards that have a word, or a longer one with it inside."""
    text, at = _spelled(knowledge), 0
    while (at := text.find(word, at)) >= 0:
        end = text.find("\n", at)
        yield _spelling(text[text.rfind("\n", 0, at) + 1 : end])
        at = end


def _spelled(knowledge: Knowledge) -> str:
    if (found := decoded(knowledge.index.get("spellings"), str)) is None:
        return _index(knowledge).spellings
    return found


def _spelling(line: str) -> Spelling:
    name, words, core = line.split("\t")
    return name, words, core


def models_called(knowledge: Knowledge) -> Mapping[str, Sequence[str]]:
    """Give the models by the keys of their names."""
    if (found := decoded(knowledge.index.get("exact"), _Called)) is None:
        return _index(knowledge).exact
    return found


def models_published(knowledge: Knowledge) -> Mapping[str, str]:
    """Give the models by their repositories, in lower case."""
    if (found := decoded(knowledge.index.get("hf"), _Published)) is None:
        return _index(knowledge).hf
    return found


def model_cores(knowledge: Knowledge) -> Cores:
    """Give the models with the words of their names that name no tuning."""
    if (found := decoded(knowledge.index.get("cores"), Cores)) is None:
        return _index(knowledge).cores
    return found


def _index(knowledge: Knowledge) -> Index:
    """Build it for knowledge that was made by hand."""
    return build_index(map(named, knowledge.gpus.values()), map(named, knowledge.models.values()))


class Named(TypedDict):
    """What an index needs of a record."""

    name: str
    vendor: str
    hf_id: str
    aliases: Sequence[str]


def build_index(cards: Iterable[Named], models: Iterable[Named]) -> Index:
    """Index all names and aliases."""
    spelled = ""
    for card in cards:
        for key, form in {form.key: form for form in _forms(card)}.items():
            spelled += "\t".join((card["name"], " ".join(sorted(form.words)), key)) + "\n"
    return _with_models(spelled, list(models))


def named(record: Gpu | ModelRecord) -> Named:
    """Pick what the index needs of a record."""
    return {
        "name": record.name,
        "vendor": getattr(record, "vendor", ""),
        "hf_id": getattr(record, "hf_id", None) or "",
        "aliases": record.aliases,
    }


def _forms(card: Named) -> list[Form]:
    return [gpu_form(t, card["vendor"], card["name"]) for t in (card["name"], *card["aliases"])]


def card_keys(card: Named) -> dict[str, str]:
    """Give the keys a card is found by, each with its spelling."""
    return {
        gpu_form(text, card["vendor"], card["name"]).bare: text
        for text in (card["name"], *card["aliases"])
    }


def model_keys(model: Named) -> dict[str, str]:
    """Give the keys a model is found by, each with its spelling."""
    return {model_key(text): text for text in (model["name"], *model["aliases"])}


def _with_models(spellings: str, models: Sequence[Named]) -> Index:
    exact: dict[str, list[str]] = {}
    cores: Cores = []
    for model in models:
        keys = model_keys(model)
        short = model["hf_id"].rpartition("/")[2]
        for key in dict.fromkeys([*keys, *([model_key(short)] if short else [])]):
            exact.setdefault(key, []).append(model["name"])
        texts = dict.fromkeys(" ".join(model_core(text)) for text in keys.values())
        cores += [(model["name"], core) for core in texts if core]
    hf = {model["hf_id"].casefold(): model["name"] for model in models if model["hf_id"]}
    return Index(spellings, exact, hf, cores)


# ---- look-ups, remembered: a bulk run asks for the same few names many thousand times
def by_text(
    find: Callable[[Knowledge, str], _Found],
) -> Callable[[Knowledge, str], _Found]:
    """Remember what ``find`` gave, or refused, for the same knowledge and the same text.

    An entry holds its knowledge, so an identity cannot be reused while the entry lives.
    """
    kept: dict[tuple[int, str], tuple[Knowledge, _Found | UserError]] = table()

    @wraps(find)
    def remembered(knowledge: Knowledge, text: str) -> _Found:
        if len(text) > _LONGEST_TEXT:
            return find(knowledge, _bounded(text))
        key = (id(knowledge), text)
        entry = kept.get(key)
        if entry is None:
            if len(kept) >= _MOST_ENTRIES:
                kept.clear()
            entry = kept[key] = (knowledge, _outcome(find, knowledge, text))
        found = entry[1]
        if isinstance(found, UserError):
            raise found.with_traceback(None)
        return found

    return remembered


def _bounded(text: str) -> str:
    words = " ".join(text.split())
    if len(words) > _LONGEST_NAME:
        raise RequestError(f"'{words[:_LONGEST_TEXT]}...' is too long for a name")
    return words


def _outcome(
    find: Callable[[Knowledge, str], _Found], knowledge: Knowledge, text: str
) -> _Found | UserError:
    try:
        return find(knowledge, text)
    except UserError as error:
        return error


_PRINTED = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\|\s*\d+\s+([A-Z]\S[^|]*?)\s+(?:On|Off|N/A)\s*\|",
        r"GPU \d+:\s*(.+?)\s*\(UUID",
        r"(?:controller|accelerators?)(?: \[\w+\])?: .*?\[(?!AMD/ATI\]|[\da-f]{4}:)([^\]\n]+)\]",
        r"Device \d+: (.+?), (?:compute|gfx)",
        r"^(?:CUDA|Vulkan|ROCm|SYCL|MTL|Metal)\d*\s*[:(]\s*(.+?)(?:\s\(\w+ \w+\))?\)?$",
        r"^ggml_vulkan: \d+ = (.+?) \(.*\|",
        r"^ANGLE \([^,]+, (.+?) (?:\(0x|Direct3D)",
        r"\b(?:Chip(?:set Model)?|Card [Ss]eries|Product Name):\s*([A-Z].+?)(?=\s+\w+:|$)",
        r"^(?:\w+ )?GPU(?: \d+)?:\s*([A-Z].+)",
    )
)
"""What nvidia-smi, lspci, llama.cpp, browsers, system_profiler and rocm-smi print of a card."""


def cards_printed(text: str) -> str:
    """Give the cards of what a program printed, or the text itself."""
    rows = next(filter(None, (one.findall(text) for one in _PRINTED)), ())
    if either := next((one for one in rows if re.search(r"/\s*(?:RX )?\d", one)), ""):
        raise RequestError(f"'{either}' is one of several cards", hint="Write which it is.")
    ram = re.search(r"\bMemory:\s*(\d+ GB)", text)
    return f"{' + '.join(rows)}{f' {ram[1]}' if ram else ''}" if rows else text
