"""What a standard report has words for: which remedies, told or named, and which remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from advisor.advice.document import Advice, Recommendation

STANDARD_WORDS = 500
"""All that is read in a standard report: title, figures, sentences, headings, last line."""
_FRAME_WORDS, _RUN_WORDS, _USER_WORDS = 21, 6, 3
"""Of those, headings and last line; what leads to the command; the user's own measurements."""
_REMEDIES, _REMARKS = 6, 7
_REMARKS_FIRST, _TEXTS_FIRST = 5, 2
"""So many remarks, and then texts of further remedies, before more of either."""
_REMARKS_SURE, _REMEDIES_SURE = 3, 4
"""So many remarks are there if they can be; remedies after the fourth make way for them."""

_KEPT = 4_096
"""Texts whose words are counted once; remarks recur, and each text is asked for three times."""


class Choice(Struct, frozen=True):
    """What a report says of remedies and remarks."""

    items: Sequence[Recommendation]
    told: frozenset[int]
    """Ranks of the remedies that are told in full, not only named with a brief word."""
    watch: Sequence[str]


@lru_cache(maxsize=_KEPT)
def words_in(text: str) -> int:
    """Count what holds a letter or a digit; of what else stands alone there is only ``%``."""
    return len(text.split()) - text.count(" %")


def everything(items: Sequence[Recommendation], notes: Sequence[str]) -> Choice:
    """Take all there is."""
    return Choice(items, _ranks(items), notes)


def within_room(doc: Advice, briefs: Mapping[int, str], used: int) -> Choice:
    """Choose for a standard report.

    The best remarks, then remedies' texts, then more of both, while words are left. A remedy that
    is not told still stands there with its title and a brief word.

    Args:
        doc: The result document with its sentences.
        briefs: The brief word on each remedy but the best, by rank.
        used: Words of what stands in the report in any case.
    """
    notes = [note.text for note in doc.notes]
    taken = {
        item.rank: words_in(item.title) + words_in(briefs.get(item.rank, ""))
        for item in doc.recommendations
    }
    user = _USER_WORDS if doc.provenance.measurements_sha256 else 0
    room = STANDARD_WORDS - _FRAME_WORDS - user - (_RUN_WORDS if doc.commands else 0) - used
    least = sum(map(words_in, notes[:_REMARKS_SURE]))
    shown = doc.recommendations[:_REMEDIES]
    while len(shown) > _REMEDIES_SURE and sum(taken[i.rank] for i in shown) + least > room:
        shown = shown[:-1]
    return _filled(shown, notes, briefs, room - sum(taken[item.rank] for item in shown))


def _ranks(items: Sequence[Recommendation]) -> frozenset[int]:
    return frozenset(item.rank for item in items)


def _filled(
    items: Sequence[Recommendation], notes: Sequence[str], briefs: Mapping[int, str], room: int
) -> Choice:
    filling = _Filling(room)
    remarks = filling.take(notes, _REMARKS_FIRST)
    told = filling.tell(items[1:], briefs, _TEXTS_FIRST)
    left = [note for note in notes if note not in remarks]
    remarks += filling.take(left, _REMARKS - len(remarks))
    named = [item for item in items[1:] if item.rank not in told]
    told |= filling.tell(named, briefs, len(named))
    kept = [note for note in notes if note in remarks]
    return Choice(items, told | _ranks(items[:1]), kept)


class _Filling(Struct):
    """Words that are left, and what is taken out of them."""

    room: int

    def take(self, texts: Sequence[str], most: int) -> list[str]:
        """Take texts in order while they fit."""
        taken = list[str]()
        for text in texts:
            if len(taken) < most and words_in(text) <= self.room:
                taken.append(text)
                self.room -= words_in(text)
        return taken

    def tell(
        self, items: Sequence[Recommendation], briefs: Mapping[int, str], most: int
    ) -> frozenset[int]:
        """Put texts in place of their brief words, in order while they fit; give the ranks."""
        told = list[int]()
        for item in items:
            more = words_in(item.text) - words_in(briefs[item.rank])
            if len(told) < most and more <= self.room:
                told.append(item.rank)
                self.room -= more
        return frozenset(told)
