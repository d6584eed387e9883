"""Notes of the knowledge base and the estimator, rewritten as clauses of a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.render import figures as f

_ASIDE = re.compile(r"\s*\([^)]*\)")
_GRID = re.compile(r"\((?:H|image)/(\d+)\)")
_TILE = re.compile(r"(\d+) per (\d+)px (tile|view)")
_PLAIN = re.compile(r"(up to )?(\d[\d,]*)(?: to (\d[\d,]*))?")
_PART_NAMES = {
    "weights": "the weights",
    "compute buffer": "the work buffers",
    "activations": "the work buffers",
    "overhead": "the overhead",
    "KV cache": "the KV cache",
    "shards": "the shares of the cards",
    "split": "the split",
}
_SPELLED_WITH_A_VOWEL = "aefhilmnorsx"


def _head(note: str | None) -> str:
    """The first statement of a note, without its asides."""
    text = f.plain(note or "")
    return text if _GRID.match(text) else re.split(r"[;:,] ", _ASIDE.sub("", text))[0]


def image_tokens(note: str | None) -> str:
    """Write the image-token note of a model as a quantity; empty where it gives none.

    ``576 (24x24, 336px/14)`` becomes ``576 tokens``, ``(H/28)*(W/28); patch 14`` becomes
    ``one token for every 28 x 28 pixels``.
    """
    head = _head(note)
    if found := _TILE.match(head):
        return f"{_count(found[1])} tokens per {found[2]}-pixel {found[3]}"
    if found := _GRID.match(head):
        return f"one token for every {found[1]} x {found[1]} pixels"
    if head == "1 text token":
        return "one token"
    if found := _PLAIN.fullmatch(head):
        upper = f" to {_count(found[3])}" if found[3] else ""
        return f"{found[1] or ''}{_count(found[2])}{upper} tokens"
    return ""


def images_held(note: str | None, context_tokens: int) -> str:
    """How many images of the largest size a context holds; empty where no size is given."""
    found = _PLAIN.fullmatch(_head(note))
    most = int((found[3] or found[2]).replace(",", "")) if found else 0
    return f.count(context_tokens // most) if most else ""


def _count(digits: str) -> str:
    return f.count(int(digits.replace(",", "")))


def estimated_parts(phrases: Sequence[str]) -> str:
    """Write ``weights: sized by average`` and its like as ``the weights (sized by average)``."""
    by_part: dict[str, list[str]] = {}
    for phrase in phrases:
        part, _, how = f.plain(phrase).partition(": ")
        by_part.setdefault(_PART_NAMES.get(part, part), []).append(how)
    return f.listed(
        [f"{part} ({'; '.join(how)})" if any(how) else part for part, how in by_part.items()]
    )


def article(name: str) -> str:
    """Give ``a`` or ``an`` for a type name that is read letter by letter: ``an fp8``."""
    return "an" if name[:1].lower() in _SPELLED_WITH_A_VOWEL else "a"
