"""Which command answers a question: by the names it has, and the words that ask for others."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct, field

from advisor.errors import RequestError
from advisor.reading.sentence_cards import EXAMPLE
from advisor.units import shell_word

_ON_CPU = re.compile(r"\bcpu[\s-]only\b|\b(?:on|with)\s+(?:a\s+|the\s+|my\s+)?cpu\b", re.IGNORECASE)
_ELSEWHERE = (
    r"welche\w*|wie\s?viele?|beste\w*|quel(?:le)?s?|combien|meilleure?s?|qu[e\u00e9]|cu[a\u00e1]l(?:es)?"
    r"|cu[a\u00e1]nt[ao]s?|mejor|quale|quanta|\u0447\u0442\u043e|\u043a\u0430\u043a\w+|\u0441\u043a\u043e\u043b\u044c\u043a\u043e"
)
"""What asks in German, French, Spanish, Italian and Russian."""
_ASKS_MODELS = re.compile(
    r"\b(?:what|which|best|good|biggest|largest|smartest|strongest|fastest|recommend\w*|suggest\w*"
    rf"|any|{_ELSEWHERE})\b",
    re.IGNORECASE,
)
_ASKS_CARDS = re.compile(
    r"\b(?:what|which|best|cheapest|smallest|fastest|minimum|how\s+much|recommend\w*|suggest\w*|need"
    rf"|buy|required?|requirements?|hardware|{_ELSEWHERE})\b",
    re.IGNORECASE,
)


class Read(Struct):
    """What a sentence says: keys of a request, and the words that were not understood."""

    settings: dict[str, object] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    wanted: dict[str, str] = field(default_factory=dict)
    """Flags of ``models-for`` and ``gpus-for`` that are none of a request."""
    asks: Literal["advise", "models-for", "gpus-for"] = "advise"
    """The command that answers it."""
    assumed: str = ""
    """What was taken for granted, a sentence."""


def means_own(text: str, read: Read) -> bool:
    """Whether a question without a card is about one's own: no word of it may be another card."""
    if "model" in read.settings:
        return not (read.left or read.wanted or _ASKS_CARDS.search(text) or _ON_CPU.search(text))
    return bool(_ASKS_MODELS.search(text)) and not (read.left or _ON_CPU.search(text))


def command_for(
    text: str, read: Read, *, own_card: bool
) -> Literal["advise", "models-for", "gpus-for"]:
    """Say which command answers: where a name is missing, what asks for it, or leaves no word over.

    Raises:
        RequestError: Neither a card nor a model is named, or a word may be the one that is missing.
    """
    has_card, has_model = own_card or "gpu" in read.settings, "model" in read.settings
    if has_card and has_model:
        read.left += [f"{flag.replace('_', '-')} {value}" for flag, value in read.wanted.items()]
        return "advise"
    if has_card and (_ASKS_MODELS.search(text) or read.wanted or not read.left):
        return "models-for"
    if (
        has_model
        and not _ON_CPU.search(text)
        and (_ASKS_CARDS.search(text) or read.wanted or not read.left)
    ):
        return "gpus-for"
    if not has_card and _ON_CPU.search(text):
        raise RequestError("what runs on the processor alone is not sized here", hint=EXAMPLE)
    missing, known = ("model", "gpu") if has_card else ("card", "model")
    command = "models-for --gpu" if has_card else "gpus-for --model"
    named = shell_word(str(read.settings.get(known, "")))
    hint = f"For all that would do: advisor {command} {named}." if known in read.settings else ""
    raise RequestError(f"no {missing} is named in this question", hint=hint)
