"""How many cards: ``3090x2``, ``4x4090``, ``dual 3090``, ``two 4090s``, ``8 H100``, ``a and b``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WORDS = {
    "a": 1, "an": 1, "one": 1, "single": 1, "solo": 1, "mono": 1,
    "two": 2, "dual": 2, "twin": 2, "pair": 2, "double": 2,
    "three": 3, "triple": 3, "four": 4, "quad": 4, "quadruple": 4, "five": 5, "six": 6, "hexa": 6,
    "seven": 7, "eight": 8, "octa": 8, "octo": 8, "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip
_SIGN = r"[xX\u00d7\u0445*]"
_OF = r"(?:\s+(?:gpus?|cards?)\b)?(?:\s+of\b)?"
_BEFORE = re.compile(
    rf"\(?(\d{{1,3}})\s*(?:{_SIGN}\s*\)?|[- ]?(?:gpus?|cards?)\b|\s){_OF}\s*(\S.*)"
)
_AFTER = re.compile(rf"(\S.*?)[\s,]*\(?\s*(?:{_SIGN}\s*(\d{{1,3}})|(\d{{1,3}})\s*{_SIGN})\s*\)?")
_INSIDE = re.compile(rf"(\S.*?\s)\(?(\d{{1,2}})\s*{_SIGN}\s*(\d+\s*[gG].*)")
_WORD = re.compile(rf"(?:a\s+)?({'|'.join(_WORDS)})[\s-]{_OF}\s*(\S.*)", re.IGNORECASE)
_WORD_AFTER = re.compile(r"(\S.*?)[\s,]+\(?(dual|twin|pair|double|triple|quad)\)?", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[,;&/]\s*|\s+(?:and|plus|und|et|y|with)\s+", re.IGNORECASE)


def counts_in(text: str) -> Iterator[tuple[int, str]]:
    """Give each way to read a text as so many of something, the likeliest first."""
    if found := _BEFORE.fullmatch(text):
        yield int(found[1]), found[2]
    if found := _AFTER.fullmatch(text):
        yield int(found[2] or found[3]), found[1]
    if found := _INSIDE.fullmatch(text):
        yield int(found[2]), f"{found[1]}{found[3]}"
    if found := _WORD.fullmatch(text):
        yield _WORDS[found[1].casefold()], found[2]
    if found := _WORD_AFTER.fullmatch(text):
        yield _WORDS[found[2].casefold()], found[1]


def split_at_words(text: str) -> Sequence[str]:
    """Cut a list of cards that has commas or words where the plus should be."""
    return [piece for piece in _BETWEEN.split(text) if piece]
