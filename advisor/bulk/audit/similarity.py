"""How alike the texts are: near-duplicates by MinHash, and what most reports share word for word.

A text is the set of its runs of five words. One pass over the runs fills 64 bins with the
smallest hash that falls into each; the share of equal bins estimates how much two sets overlap
(one-permutation MinHash; Li, Owen, Zhang: One Permutation Hashing, NIPS 2012). Texts that agree
in four neighbouring bins are looked at, so no text is held against every other.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

from msgspec import Struct, field

_RUN, _BINS, _BAND = 5, 64, 4
_EMPTY = 0xFFFFFFFF
_SHIFT = 26
"""A hash has 32 bits; the upper six say which of the 64 bins it falls into."""
_LOOK_AT = 4
"""Texts of a band that a new one is held against."""
_WORD = re.compile(r"[\w.,:%/-]*\w|\S")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MOST_WORDS = 4
"""A sentence has more words than this; shorter lines are labels."""


def runs(text: str) -> set[int]:
    """Hash every run of five words of a text."""
    words = _WORD.findall(text.casefold())
    last = max(len(words) - _RUN + 1, 1)
    return {crc32(" ".join(words[at : at + _RUN]).encode()) for at in range(last)}


def signature(found: Iterable[int]) -> array[int]:
    """Give the smallest hash of each bin."""
    bins = array("I", [_EMPTY]) * _BINS
    for value in found:
        place = value >> _SHIFT
        bins[place] = min(bins[place], value)
    return bins


def alike(one: Sequence[int], other: Sequence[int]) -> float:
    """Estimate how much two texts overlap, 0 to 1, from their signatures."""
    filled = same = 0
    for left, right in zip(one, other, strict=True):
        if left != _EMPTY or right != _EMPTY:
            filled += 1
            same += left == right
    return same / filled if filled else 1.0


def overlap(one: set[int], other: set[int]) -> float:
    """Give the share of runs that two texts have in common, 0 to 1 (Jaccard)."""
    return len(one & other) / (len(one | other) or 1)


def sentences(text: str) -> Iterator[str]:
    """Give the sentences of a text, code and table lines left out."""
    for piece in _SENTENCE.split(text):
        said = piece.strip(" *->#").strip()
        if len(said.split()) > _MOST_WORDS and not said.startswith(("|", "```")):
            yield said


class Alike(Struct):
    """Gathers signatures and joins what is alike into groups."""

    threshold: float
    names: list[str] = field(default_factory=list)
    pairs: list[tuple[float, int, int]] = field(default_factory=list)
    _signatures: list[array[int]] = field(default_factory=list)
    _bands: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _parent: list[int] = field(default_factory=list)

    def add(self, name: str, bins: array[int]) -> None:
        """Take a text; joins it with those it is like."""
        number = len(self.names)
        self.names.append(name)
        self._signatures.append(bins)
        self._parent.append(number)
        seen: set[int] = set()
        for start in range(0, _BINS, _BAND):
            key = (start, hash(tuple(bins[start : start + _BAND])))
            others = self._bands.setdefault(key, [])
            seen.update(others[:_LOOK_AT])
            if len(others) < _LOOK_AT:
                others.append(number)
        for other in sorted(seen):
            share = alike(bins, self._signatures[other])
            if share >= self.threshold:
                self.pairs.append((share, other, number))
                self._parent[self._root(number)] = self._root(other)

    def _root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def groups(self) -> list[list[str]]:
        """Give the groups of two and more, the largest first."""
        found: dict[int, list[str]] = {}
        for number, name in enumerate(self.names):
            found.setdefault(self._root(number), []).append(name)
        several = [sorted(group) for group in found.values() if len(group) > 1]
        return sorted(several, key=lambda group: (-len(group), group))

    def closest(self, most: int) -> list[tuple[str, str]]:
        """Name the closest pairs."""
        best = sorted(self.pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:most]
        return [(self.names[one], self.names[other]) for _, one, other in best]


class Common(Struct):
    """What most texts share, over a sample of them."""

    texts: int = 0
    _runs: Counter[int] = field(default_factory=Counter)
    _sizes: list[int] = field(default_factory=list)
    _sentences: Counter[str] = field(default_factory=Counter)

    def add(self, found: Iterable[int], said: Iterable[str]) -> None:
        """Take the runs and sentences of one text."""
        several = set(found)
        self.texts += 1
        self._runs.update(several)
        self._sizes.append(len(several))
        self._sentences.update(set(said))

    def share(self) -> float | None:
        """Give the share of an average text that more than half of all texts have, too."""
        if self.texts < 2:  # noqa: PLR2004  one text shares nothing
            return None
        common = sum(count for count in self._runs.values() if 2 * count > self.texts)
        return common / (sum(self._sizes) or 1)

    def repeated(self, most: int) -> Mapping[str, float]:
        """Give the sentences that stand in most texts, with the share of texts."""
        ordered = sorted(self._sentences.items(), key=lambda pair: (-pair[1], pair[0]))
        return {text: count / self.texts for text, count in ordered[:most] if count > 1}
