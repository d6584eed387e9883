"""Look-ups by name, remembered: a bulk run asks for the same few names many thousand times."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from advisor.errors import UserError
from advisor.knowledge.types import Knowledge

_Found = TypeVar("_Found")

_MOST_ENTRIES = 8192
_LONGEST_TEXT = 200


def by_text(
    find: Callable[[Knowledge, str], _Found],
) -> Callable[[Knowledge, str], _Found]:
    """Remember what ``find`` gave, or refused, for the same knowledge and the same text.

    An entry holds its knowledge, so an identity cannot be reused while the entry lives.
    """
    kept: dict[tuple[int, str], tuple[Knowledge, _Found | UserError]] = {}

    @wraps(find)
    def remembered(knowledge: Knowledge, text: str) -> _Found:
        if len(text) > _LONGEST_TEXT:
            return find(knowledge, text)
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


def _outcome(
    find: Callable[[Knowledge, str], _Found], knowledge: Knowledge, text: str
) -> _Found | UserError:
    try:
        return find(knowledge, text)
    except UserError as error:
        return error
