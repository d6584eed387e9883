"""The verbs of conditions: which exist, what they go with, and what people write instead."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.knowledge.fact_type import FactKind
from advisor.knowledge.yaml_fields import guess, listed

VERBS: Mapping[str, str] = {
    "above": "more than a number: `above 5 GiB`, `above memory.usable`",
    "at least": "this number or more: `at least 10 %`",
    "below": "less than a number: `below 3.5 bit`",
    "at most": "this number or less: `at most 5 %`",
    "between": "from one number to another, both included: `between 4 and 6 bit`",
    "is": "exactly this: `is quantize`, `is yes`, `is 2`",
    "is not": "known, and something else: `is not apple`",
    "one of": "any of several names: `one of needs_offload, too_big`",
    "is known": "the fact has a value",
    "is unknown": "the fact has no value",
}

BY_KIND: Mapping[FactKind, tuple[str, ...]] = {
    "number": ("above", "at least", "below", "at most", "between", "is", "is not"),
    "enum": ("is", "is not", "one of"),
    "text": ("is", "is not", "one of"),
    "flag": ("is",),
}
"""What each kind takes besides ``is known`` and ``is unknown``."""

KINDS: Mapping[FactKind, str] = {
    "number": "a number",
    "enum": "one of a list of names",
    "text": "a name",
    "flag": "yes or no",
}

_LONGEST_FIRST = sorted(VERBS, key=len, reverse=True)
_INSTEAD: Mapping[str, str] = {
    "is more than": "above",
    "is greater than": "above",
    "is above": "above",
    "more than": "above",
    "greater than": "above",
    "larger than": "above",
    "exceeds": "above",
    "over": "above",
    ">=": "at least",
    "is at least": "at least",
    "no less than": "at least",
    ">": "above",
    "is less than": "below",
    "is below": "below",
    "less than": "below",
    "smaller than": "below",
    "under": "below",
    "<=": "at most",
    "is at most": "at most",
    "no more than": "at most",
    "up to": "at most",
    "<": "below",
    "is between": "between",
    "is equal to": "is",
    "equals": "is",
    "==": "is",
    "=": "is",
    "!=": "is not",
    "isn't": "is not",
    "not": "is not",
    "is one of": "one of",
    "is in": "one of",
    "any of": "one of",
    "in": "one of",
    "is set": "is known",
    "exists": "is known",
    "is missing": "is unknown",
}


def split_verb(text: str) -> tuple[str, str] | None:
    """Split ``at most 5 %`` into verb and rest; None when no verb begins it."""
    if _starts(text, _INSTEAD):
        return None
    verb = _starts(text, _LONGEST_FIRST)
    return (verb, text[len(verb) :].strip()) if verb else None


def verb_hint(text: str) -> str:
    """Say what to write for a condition whose verb is unknown."""
    said = _starts(text.casefold(), _INSTEAD)
    if said:
        return f"Write '{_INSTEAD[said]}'."
    words = text.split()
    close = guess(" ".join(words[:2]), VERBS) or guess(words[0], VERBS)
    return close or f"Verbs: {listed(VERBS)}."


def unknown_verb(text: str) -> str:
    """Name the word that stands where a verb should."""
    return _starts(text.casefold(), _INSTEAD) or text.split(maxsplit=1)[0]


def _starts(text: str, words: Mapping[str, str] | list[str]) -> str:
    for word in words:
        end = len(word)
        if text.startswith(word) and (
            len(text) == end or text[end].isspace() or not word[-1].isalpha()
        ):
            return word
    return ""
