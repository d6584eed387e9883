"""One condition of a filter: words, a range of figures, a range of days."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from advisor.knowledge.field_kinds import is_date
from advisor.knowledge.yaml_fields import Collector, Fields, guess
from advisor.units import UnitError
from advisor.yamlfile import Node


class Words(Struct, frozen=True):
    """Takes a text that is one of these, case-blind."""

    words: frozenset[str]

    def takes(self, value: object) -> bool:
        """Whether a field's value is one of them."""
        return isinstance(value, str) and value.casefold() in self.words


class Between(Struct, frozen=True):
    """Takes a figure within bounds, both included; an unknown figure is never taken."""

    least: float | None
    most: float | None

    def takes(self, value: object) -> bool:
        """Whether a figure is known and within."""
        if not isinstance(value, int | float):
            return False
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )


class Days(Struct, frozen=True):
    """Takes an ISO date from one day, month or year to another, both included."""

    first: str
    last: str

    def takes(self, value: object) -> bool:
        """Whether a date is known and within."""
        if not isinstance(value, str):
            return False
        return value >= self.first and (not self.last or value[: len(self.last)] <= self.last)


Condition = Words | Between | Days


def read_words(key: str, node: Node, known: Collection[str], problems: Collector) -> Words:
    """Read one word or a list; each must be among the known values."""
    by_fold = {word.casefold(): word for word in known}
    taken = set()
    for item in node.value if isinstance(node.value, list) else [node]:
        word = item.text.strip()
        if word.casefold() in by_fold:
            taken.add(word.casefold())
        else:
            hint = guess(word, by_fold.values()) or f"Known: {', '.join(sorted(known)[:12])}."
            problems.add(f"unknown {key} '{word}'.", item.source, hint)
    return Words(frozenset(taken))


def read_between(
    key: str, node: Node, parse: Callable[[str], float], problems: Collector
) -> Between:
    """Read one figure, or a mapping with ``min``, ``max`` or both."""
    if not isinstance(node.value, Mapping):
        only = _figure(key, node, parse, problems)
        return Between(only, only)
    fields = _bounds(node, ("min", "max"), problems)
    least, most = (
        _figure(key, bound, parse, problems) if (bound := fields.get(name)) else None
        for name in ("min", "max")
    )
    if least is not None and most is not None and least > most:
        problems.add(f"{key}: min is above max.", node.source)
    return Between(least, most)


def read_days(key: str, node: Node, problems: Collector) -> Days:
    """Read one year, month or day, or a mapping with ``from``, ``to`` or both."""
    if not isinstance(node.value, Mapping):
        day = _day(key, node, problems)
        return Days(day, day)
    fields = _bounds(node, ("from", "to"), problems)
    first, last = (
        _day(key, bound, problems) if (bound := fields.get(name)) else "" for name in ("from", "to")
    )
    return Days(first, last)


def _bounds(node: Node, known: tuple[str, str], problems: Collector) -> Mapping[str, Node]:
    fields = Fields.of(node, "a range", problems)
    if fields is None:
        return {}
    fields.only(known)
    if not fields.values:
        problems.add("the range is empty.", node.source, f"Write {known[0]}, {known[1]} or both.")
    return fields.values


def _figure(
    key: str, node: Node, parse: Callable[[str], float], problems: Collector
) -> float | None:
    try:
        return parse(node.text)
    except UnitError as bad:
        problems.add(f"{key}: {_sentence(str(bad))}", node.source)
        return None


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _day(key: str, node: Node, problems: Collector) -> str:
    if is_date(node.text):
        return node.text
    hint = "Write a year, a month or a day: 2024, 2024-05 or 2024-05-07."
    problems.add(f"{key}: '{node.text}' is not a date.", node.source, hint)
    return ""
