"""How a report reads: words, sentences, Flesch reading ease, sentences said again and again.

All of it is counted on the Markdown report. Commands (fenced blocks) are never read, so never
counted. What is *read* is everything else, tables and headings included. *Prose* is what is left
without tables, headings and the last line: paragraphs and list items.

Words are what stands between spaces and holds a letter or a digit. Syllables are counted by groups
of vowels, the usual rule for English, with three additions for what a dictionary does not know:

- a figure such as ``27.0``, ``4,096`` or ``450`` counts two syllables, of one or two digits one;
- a name with letters and digits (``RTX 4090``, ``Q4_K_M``, ``Phi-3-medium-4k-instruct``) counts
  piece by piece at hyphens, underscores, dots and slashes: each is a word, a figure or letters;
- letters that are spelled (``RTX``, ``KV``, ``CPU``) count one each, ``GiB`` and ``GB`` two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_MARKS = re.compile(r"[*`>]|^- |\\(?=\W)", re.MULTILINE)
_PIECE = re.compile(r"[A-Za-z]+|\d[\d,.]*")
_VOWELS = re.compile(r"[aeiouy]+")
_SILENT = re.compile(r"(?:[^laeiouy]e|[^aeiouydt]ed|[aeiouy][^aeiouyscxzg]es)$")
_UNITS = {"gib": 2, "gb": 2, "tok": 1, "s": 1, "w": 1, "llama": 2, "cpp": 3, "vllm": 4}
_SHORT_FIGURE = 2
_FULL_SCORE, _PER_SENTENCE, _PER_SYLLABLE = 206.835, 1.015, 84.6
"""Constants of the formula: R. Flesch, "A new readability yardstick", 1948."""


def read(markdown: str) -> str:
    """Give what is read of a report: everything but its commands."""
    return _FENCED.sub("", markdown)


def words(text: str) -> list[str]:
    """List the words of a text: what holds a letter or a digit."""
    return [word for word in text.split() if any(map(str.isalnum, word))]


def prose(markdown: str) -> list[str]:
    """List paragraphs and list items of a report, without marks of Markdown."""
    lines = [line.strip() for line in read(markdown).splitlines()]
    kept = [line for line in lines if line and line[0] not in "#|" and not _is_last(line)]
    return [_MARKS.sub("", line).strip() for line in kept]


def _is_last(line: str) -> bool:
    return line.startswith("*advisor ") and line.endswith("*")


def sentences(paragraphs: Iterable[str]) -> list[str]:
    """Split paragraphs at full stops, question and exclamation marks."""
    return [part for text in paragraphs for part in _SENTENCE_END.split(text) if words(part)]


@lru_cache(maxsize=65_536)
def syllables(word: str) -> int:
    """Count the syllables of a word, at least one."""
    return max(1, sum(_of_piece(piece) for piece in _PIECE.findall(word)))


def _of_piece(piece: str) -> int:
    if piece[0].isdigit():
        return 1 if sum(map(str.isdigit, piece)) <= _SHORT_FIGURE else 2
    small = piece.lower()
    if small in _UNITS:
        return _UNITS[small]
    if piece.isupper() or not _VOWELS.search(small):
        return len(piece) + small.count("w") * 2
    return max(1, len(_VOWELS.findall(small)) - bool(_SILENT.search(small)))


class Reading(Struct, frozen=True):
    """Counts of a text."""

    sentences: int
    words: int
    syllables: int

    @property
    def ease(self) -> float:
        """Flesch reading ease: 60 to 70 is plain English, 30 to 50 is hard."""
        per_sentence, per_word = self.words / self.sentences, self.syllables / self.words
        return _FULL_SCORE - _PER_SENTENCE * per_sentence - _PER_SYLLABLE * per_word


def reading(paragraphs: Sequence[str]) -> Reading:
    """Count sentences, words and syllables of at least one paragraph with a word in it."""
    found = sentences(paragraphs)
    said = [word for sentence in found for word in words(sentence)]
    return Reading(len(found), len(said), sum(map(syllables, said)))


def repeated(reports: Iterable[Iterable[str]], longer_than: int) -> Mapping[str, int]:
    """Count in how many reports each sentence of more than so many words stands, word for word."""
    found: Counter[str] = Counter()
    for paragraphs in reports:
        found.update({s for s in sentences(paragraphs) if len(words(s)) > longer_than})
    return found
