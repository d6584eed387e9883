"""The nearest valid names, for every message that names an unknown one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

_SHORT = 2
"""In a word of two letters a wrong one leaves too little: the first letter has to do."""


def nearest(word: str, choices: Iterable[str], *, most: int = 3) -> list[str]:
    """List up to ``most`` choices close to ``word``, best first, case-blind."""
    by_fold: dict[str, str] = {}
    for choice in choices:
        by_fold.setdefault(choice.casefold(), choice)
    typed = word.casefold()
    found = get_close_matches(typed, list(by_fold), n=most, cutoff=0.6)
    if not found and len(typed) <= _SHORT:
        begin_alike = [name for name in by_fold if name[:1] == typed[:1]]
        found = get_close_matches(typed, begin_alike, n=most, cutoff=0.0)
    return [by_fold[name] for name in found]


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Give ``Did you mean 'x'?`` or an empty string."""
    names = nearest(word, choices)
    if not names:
        return ""
    quoted = [f"'{name}'" for name in names]
    listed = quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
    return f"Did you mean {listed}?"


_LETTERS = 3
_SEPARATORS = str.maketrans("-_", "  ")
_MOST_COMPARED = 12
"""Comparing letter by letter takes a hundred times as long as counting groups in common."""


def by_letters(choices: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Key many choices by the groups of letters that they hold, for ``most_alike``."""
    keys: dict[str, list[str]] = {}
    for choice in choices:
        for group in sorted(_groups(choice)):
            keys.setdefault(group, []).append(choice)
    return keys


def most_alike(word: str, keyed: Mapping[str, Sequence[str]]) -> list[str]:
    """List the choices that share most groups of letters with a word, of equals the shortest."""
    alike = Counter(choice for group in sorted(_groups(word)) for choice in keyed.get(group, ()))
    return sorted(alike, key=lambda one: (-alike[one], len(one)))[:_MOST_COMPARED]


def _groups(text: str) -> set[str]:
    folded = text.casefold().translate(_SEPARATORS)
    return {folded[at : at + _LETTERS] for at in range(len(folded) - _LETTERS + 1)}
