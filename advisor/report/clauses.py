"""What a report says beside figures: notes as clauses, whose entries it rests on, safe text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from advisor.report import figures as f
from advisor.report.figures import say
from advisor.units import plain

if TYPE_CHECKING:
    from markupsafe import Markup

    from advisor.advice.document import Advice
    from advisor.knowledge.layers import UserEntry


_ASIDE = re.compile(r"\s*\([^)]*\)")
_GRID = re.compile(r"\((?:H|image)/(\d+)\)")
_TILE = re.compile(r"(\d+) per (\d+)px (tile|view)")
_PLAIN = re.compile(r"(up to )?(\d[\d,]*)(?: to (\d[\d,]*))?")
_PARTS = {
    "weights": "rough.weights",
    "compute buffer": "rough.compute",
    "activations": "rough.compute",
    "overhead": "rough.overhead",
    "KV cache": "rough.kv",
    "shards": "rough.shards",
    "split": "rough.split",
    "runtime": "rough.runtime",
}
_SPELLED_WITH_A_VOWEL = "aefhilmnorsx"


def _head(note: str | None) -> str:
    """The first statement of a note, without its asides."""
    text = plain(note or "")
    return text if _GRID.match(text) else re.split(r"[;:,] ", _ASIDE.sub("", text))[0]


def image_tokens(note: str | None) -> str:
    """Write the image-token note of a model as a quantity; empty where it gives none.

    ``576 (24x24, 336px/14)`` becomes ``576 tokens``, ``(H/28)*(W/28); patch 14`` becomes
    ``one token for every 28 x 28 pixels``.
    """
    head = _head(note)
    if found := _TILE.match(head):
        return say("image.tile", n=_count(found[1]), pixels=found[2], kind=found[3])
    if found := _GRID.match(head):
        return say("image.grid", side=found[1])
    if head == "1 text token":
        return say("image.one")
    if found := _PLAIN.fullmatch(head):
        if found[3]:
            return say("image.range", low=_count(found[2]), high=_count(found[3]))
        return say("image.most" if found[1] else "image.plain", n=_count(found[2]))
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
        part, _, how = plain(phrase).partition(": ")
        by_part.setdefault(say(_PARTS[part]) if part in _PARTS else part, []).append(how)
    return f.listed(
        [
            say("rough.how", part=part, how="; ".join(how)) if any(how) else part
            for part, how in by_part.items()
        ]
    )


def article(name: str) -> str:
    """Give ``a`` or ``an`` for a type name that is read letter by letter: ``an fp8``."""
    vowel = name[:1].lower() in _SPELLED_WITH_A_VOWEL
    return say("change.article.vowel" if vowel else "change.article")


_WORDS = {"gpu": "card", "format": "weight format", "kv_type": "KV-cache type"}


def said(entry: UserEntry | None) -> str:
    """Say in a sentence where an entry of the user's stands; empty for a built-in one."""
    if entry is None:
        return ""
    text = str(entry)
    return f"{text[:1].upper()}{text[1:]}."


def whose(doc: Advice) -> str:
    """Name everything of the user's that a report rests on; empty where there is nothing."""
    made = doc.provenance
    parts = [named(entry) for entry in made.yours]
    off = [f"{item.name} ({item.at}: {item.reason.rstrip('.')})" for item in made.switched_off]
    sentences = [
        *([f"Yours: {_joined(parts)}."] if parts else []),
        *([f"Switched off: {_joined(off)}."] if off else []),
    ]
    return " ".join(sentences)


def named(entry: UserEntry) -> str:
    """Name an entry of the user's with its place, and which of its figures are built in."""
    what = _WORDS.get(entry.what, entry.what)
    other = entry.replaces
    behind = "" if other is None else ", replaces the built-in one"
    if other not in {None, entry.name}:
        behind = f", replaces {other}"
    elif not entry.over_built_in:
        behind = f", replaces {entry.replaces_at}"
    return f"{what} {entry.name} ({entry.at}{behind}{entry.inherited})"


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts).rstrip(".")


_SPECIAL = re.compile(r"([\\*\[\]<|#]|^>)")
_MARKS = "\\*[]<|#>"
_CODE = re.compile(r"`([^`]*)`")


def escaped(text: str) -> str:
    """Make text safe inside Markdown; code spans stay code."""
    if not any(map(text.__contains__, _MARKS)):
        return text
    pieces = _CODE.split(text)
    return "".join(
        f"`{piece}`" if index % 2 else _SPECIAL.sub(r"\\\1", piece)
        for index, piece in enumerate(pieces)
    )


def coded(text: str) -> Markup:
    """Escape text for HTML and turn its code spans into ``code`` elements."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    parts = [
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(_CODE.split(text))
    ]
    return Markup("").join(parts)
