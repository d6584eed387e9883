"""How names are cut into tokens, for matching that is blind to case and punctuation."""

from __future__ import annotations

import re
from difflib import get_close_matches

from msgspec import Struct

from advisor.knowledge.vendors import MAKERS

_BRANDS = {name: maker.words for name, maker in MAKERS.items()}
_FILLER = frozenset({"gpu", "graphics", "generation", "card", "r", "tm"})
_SERIES = frozenset({"rtx", "gtx", "rx"})
_BOARD = re.compile(
    r"\d+gb|pcie|sxm\d?|nvl|hbm\w+|gddr\w+|[0-9]+gbps|(?:ga|ad)10\d|tu1\d\d|gb20[2-9]|"
    r"ada|blackwell|quadro|jetson|agx|rtx|gtx|rx"
)
_SIZE = re.compile(r"\d+gb")

_GPU_REWRITES = (
    (re.compile(r"\blaptop\b"), "mobile"),
    (re.compile(r"\bmax[ -]?q\b"), "maxq"),
    (re.compile(r"\b(\d+)[ -]?(?:gib|gb|g)\b"), r"\1gb"),
    (re.compile(r"\b(\d+)[ -]cores?\b"), r"\1core"),
    (re.compile(r"\b(rtx|gtx|rx)(?=[a-z]?\d)"), r"\1 "),
    (re.compile(r"\b(\d{4})(ti|super|xtx|xt|gre)\b"), r"\1 \2"),
    (re.compile(r"\bti(super)\b"), r"ti \1"),
    (re.compile(r"\bgaudi(\d)\b"), r"gaudi \1"),
)
_WORD = re.compile(r"[a-z0-9]+")
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


def gpu_words(text: str) -> tuple[str, ...]:
    """Cut a card's name into tokens: ``RTX 3060 12GB Laptop GPU`` -> rtx 3060 12gb mobile gpu."""
    folded = text.casefold().replace("(r)", " ").replace("(tm)", " ")
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

    Publishers write a version 1.5 as ``1_5`` too.
    """
    return tuple(_MODEL_WORD.findall(_POINT.sub(".", text.casefold())))


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
    return not (ours and theirs) or any(get_close_matches(word, theirs) for word in ours)


def plain_key(text: str) -> str:
    """Letters and digits only: ``Q4_K_M``, ``q4-k-m`` and ``q4km`` are one spelling."""
    return "".join(c for c in text.casefold() if c.isalnum())


def _is_consumer(name: str) -> bool:
    return name.startswith(("GeForce", "Radeon RX"))
