"""Whether a result document may leave the program: what must hold of every one.

Every number is finite, every size and figure is 0 or more, sums match, bounds are in order, and
no text holds a control character. Each check gives what is wrong, with the place in the document.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins

if TYPE_CHECKING:
    from advisor.advice.configuration import MemoryDoc
    from advisor.advice.document import Advice
    from advisor.scenario.figures import CardMemory

_MAY_BE_NEGATIVE = (".quality", "quality_change", "points", "score")
"""Ends of places whose numbers may lie below zero, as those of facts may."""
_ORDERED = ("low", "estimate", "high")
_LINES = frozenset("\n\t")


def wrong_in(doc: Advice) -> list[str]:
    """List what does not hold of a document, each with its place; nothing where all does."""
    return [*wrong_figures(doc, doc.memory), *_verdict(doc), *_ranks(doc)]


def wrong_figures(doc: Struct, memory: MemoryDoc | None) -> list[str]:
    """List what does not hold of the values of any document, and of its memory."""
    held = _memory(memory) if memory else ()
    return [*_values(to_builtins(doc, str_keys=True), ""), *held]


def _values(value: object, at: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _in_order(value, at)
        for key, inner in value.items():
            yield from _text(str(key), at)
            yield from _values(inner, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _values(inner, f"{at}[{number}]")
    elif isinstance(value, str):
        yield from _text(value, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, at)


def _number(value: float, at: str) -> Iterator[str]:
    if not math.isfinite(value):
        yield f"{at} is {value}, not a finite number"
    elif value < 0 and not _may_be_negative(at):
        yield f"{at} is {value}, below zero"


def _may_be_negative(at: str) -> bool:
    return at.startswith("facts.") or at.endswith(_MAY_BE_NEGATIVE) or ".because[" in at


def _text(value: str, at: str) -> Iterator[str]:
    if value.isascii() and value.isprintable():
        return
    for letter in value:
        if letter not in _LINES and unicodedata.category(letter) in {"Cc", "Cs"}:
            yield f"{at} holds the control character U+{ord(letter):04X}"
            return


def _in_order(value: Mapping[str, object], at: str) -> Iterator[str]:
    bounds = [value[key] for key in _ORDERED if isinstance(value.get(key), int | float)]
    if bounds != sorted(bounds):  # type: ignore[type-var]  # numbers alone
        yield f"{at} has bounds out of order: {' '.join(map(str, bounds))}"


def _memory(memory: MemoryDoc) -> Iterator[str]:
    parts: list[tuple[str, MemoryDoc | CardMemory]] = [("memory", memory)]
    parts += [(f"memory of {card.name}", card) for card in memory.per_gpu]
    for at, part in parts:
        if not part.low_bytes <= part.required_bytes <= part.high_bytes:
            bounds = f"{part.low_bytes} {part.required_bytes} {part.high_bytes}"
            yield f"{at} has bounds out of order: {bounds}"
        total = sum(getattr(part, name) for name in _PARTS)
        if total != part.required_bytes:
            yield f"{at} needs {part.required_bytes}, and its parts come to {total}"
    for name in (*_PARTS, "required_bytes") if memory.per_gpu else ():
        total = sum(getattr(card, name) for card in memory.per_gpu)
        if total != getattr(memory, name):
            yield f"memory.{name} is {getattr(memory, name)}, and its cards come to {total}"


_PARTS = ("weights_bytes", "kv_cache_bytes", "compute_buffer_bytes", "overhead_bytes")


def _verdict(doc: Advice) -> Iterator[str]:
    fits = doc.verdict.state in {"fits", "tight"}
    if fits and doc.memory.deficit_bytes:
        yield f"verdict.state is {doc.verdict.state} with a deficit of {doc.memory.deficit_bytes}"


def _ranks(doc: Advice) -> Iterator[str]:
    ranks = [item.rank for item in doc.recommendations]
    if ranks != list(range(1, len(ranks) + 1)):
        yield f"recommendations are ranked {ranks}"
