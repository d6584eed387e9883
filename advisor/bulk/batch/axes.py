"""The lists of a plan: cards, models, formats and frameworks, by name, preset or filter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from advisor.bulk.batch.plan import absolute, card_name
from advisor.errors import RequestError, UserError, as_sentence, guess, raise_problems
from advisor.knowledge import names
from advisor.knowledge.field_kinds import is_date
from advisor.knowledge.types import Gpu, Knowledge, ModelRecord
from advisor.knowledge.yaml_fields import Collector, Fields
from advisor.models import model_from_record
from advisor.models.stored_tensors import Model
from advisor.reading import find_cards
from advisor.scenario.asked_format import formats_named
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.settings import number_problems, request_from
from advisor.units import UnitError, parse_quantity, parse_size_as_sold
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
        problems.add(f"{key}: {as_sentence(bad)}", node.source)
        return None


def _day(key: str, node: Node, problems: Collector) -> str:
    if is_date(node.text):
        return node.text
    hint = "Write a year, a month or a day: 2024, 2024-05 or 2024-05-07."
    problems.add(f"{key}: '{node.text}' is not a date.", node.source, hint)
    return ""


T = TypeVar("T")


class Card(Struct, frozen=True):
    """A card of a plan; ``text`` finds it again."""

    text: str
    gpu: Gpu
    """The card, or the least of several unequal ones."""
    counted: bool = False
    """Whether the text says how many cards there are."""


class Choice(Struct, frozen=True):
    """A model of a plan; ``model`` is None where it cannot be sized, ``why_not`` says why."""

    text: str
    model: Model | None
    why_not: str = ""


class Axis(Struct, Generic[T], frozen=True):
    """How one list of a plan is read."""

    kind: str
    """``gpus``, ``models``, ``formats``, ``contexts``: the key in the plan and in presets."""
    named: Callable[[str], T]
    every: Callable[[], Iterable[T]]
    text: Callable[[T], str] = str
    conditions: Mapping[str, Callable[[Node, Collector], Condition]] = {}
    value: Callable[[T, str], object] = lambda _one, _key: None
    """The figure of one entry that a condition of this name looks at."""


def gpu_axis(knowledge: Knowledge) -> Axis[Card]:
    """Cards: vendor, segment, architecture, vram, released."""
    cards = knowledge.gpus.values()
    return Axis(
        kind="gpus",
        named=lambda text: _card(text, knowledge),
        every=lambda: (Card(gpu.name, gpu) for gpu in cards if gpu.vram_bytes),
        text=lambda card: card.text,
        conditions={
            "vendor": _words("vendor", lambda: {gpu.vendor for gpu in cards}),
            "segment": _words("segment", lambda: {gpu.segment for gpu in cards}),
            "architecture": _words("architecture", lambda: {gpu.architecture for gpu in cards}),
            "vram": lambda node, problems: read_between("vram", node, parse_size_as_sold, problems),
            "released": lambda node, problems: read_days("released", node, problems),
        },
        value=lambda card, key: getattr(card.gpu, "vram_bytes" if key == "vram" else key),
    )


def _card(text: str, knowledge: Knowledge) -> Card:
    if text.casefold() == "local":
        raise RequestError("a plan names its cards", hint="Write the card's name.")
    cards = find_cards(knowledge, text)
    name = text if cards.counted else card_name(text, cards, knowledge)
    return Card(name, cards.gpu, counted=cards.counted)


def model_axis(knowledge: Knowledge) -> Axis[Choice]:
    """Models: family, modality, publisher, parameters, released."""
    records = knowledge.models.values()
    return Axis(
        kind="models",
        named=lambda text: _choice(text, knowledge),
        every=lambda: (_from_record(record, knowledge) for record in records),
        text=lambda choice: choice.text,
        conditions={
            "family": _words("family", lambda: {m.family for m in records}),
            "modality": _words("modality", lambda: {m.modality for m in records}),
            "publisher": _words("publisher", lambda: {_publisher(m.hf_id) for m in records} - {""}),
            "parameters": lambda node, problems: read_between(
                "parameters", node, _parameters, problems
            ),
            "released": lambda node, problems: read_days("released", node, problems),
        },
        value=lambda choice, key: _model_value(choice, key, knowledge),
    )


def _choice(text: str, knowledge: Knowledge) -> Choice:
    if absolute(text):
        raise RequestError(
            f"'{text}' is an absolute path, which would end up in the reports",
            hint="Run from a folder near it and write the path from there.",
        )
    try:
        record = names.find_model(knowledge, text)
    except RequestError:
        return Choice(text, find_model_named(text, knowledge))
    try:
        model = find_model_named(text, knowledge)
    except UserError:
        return _from_record(record, knowledge)
    plain = model.hf_id == record.hf_id and not model.told_format
    return _from_record(record, knowledge) if plain else Choice(text, model)


def _from_record(record: ModelRecord, knowledge: Knowledge) -> Choice:
    try:
        return Choice(record.name, model_from_record(record, knowledge))
    except UserError as bad:
        return Choice(record.name, None, str(bad).removeprefix("knowledge: "))


def _model_value(choice: Choice, key: str, knowledge: Knowledge) -> object:
    record = knowledge.models.get(choice.text)
    if key == "parameters":
        return choice.model.parameters if choice.model else record and record.parameters
    if key == "publisher":
        return _publisher(record.hf_id if record else None)
    return getattr(record or choice.model, key, None)


def _publisher(hf_id: str | None) -> str:
    return (hf_id or "").partition("/")[0]


def _parameters(text: str) -> float:
    found = parse_quantity(text)
    if found.dimension not in {"parameters", "count"}:
        raise UnitError(f"'{text}' is not a number of parameters; write for example 8B.")
    return found.value


def _words(key: str, known: Callable[[], set[str]]) -> Callable[[Node, Collector], Condition]:
    return lambda node, problems: read_words(key, node, known(), problems)


def format_axis(knowledge: Knowledge) -> Axis[str]:
    """Weight formats, and family names such as INT4."""
    return Axis(
        kind="formats",
        named=lambda text: _format(text, knowledge),
        every=lambda: (f.name for f in knowledge.formats.values() if f.offered),
    )


def _format(text: str, knowledge: Knowledge) -> str:
    found = formats_named(text, knowledge)
    same = [one.name for one in found if one.name.casefold() == text.casefold()]
    if same or len(found) > 1:
        return same[0] if same else text.upper()
    return found[0].name


def framework_axis(knowledge: Knowledge) -> Axis[str]:
    """Frameworks by name."""
    return Axis(
        kind="frameworks",
        named=lambda text: names.find_framework(knowledge, text).name,
        every=lambda: (f.name for f in knowledge.frameworks.values() if f.sized),
    )


def kv_axis(knowledge: Knowledge) -> Axis[str]:
    """Types of the KV cache by name."""
    return Axis(
        kind="kv_cache",
        named=lambda text: names.find_kv_type(knowledge, text).name,
        every=lambda: iter(knowledge.kv_types),
    )


def count_axis(kind: str, of: str) -> Axis[int]:
    """Whole numbers of a setting of a request."""
    return Axis(
        kind=kind,
        named=lambda text: _count(of, text),
        every=tuple,
    )


def _count(of: str, text: str) -> int:
    request = request_from({of: text})
    raise_problems(number_problems(request))
    found: int = getattr(request, of)
    return found


def refuse(bad: UserError, node: Node, problems: Collector, near: str = "") -> None:
    """Note an error at the place of the value that led to it; ``near`` goes before its hint."""
    problems.add(f"{bad.message.removesuffix('.')}.", node.source, near or bad.hint)


class Reader(Struct, Generic[T], frozen=True):
    """Reads one list, presets included."""

    axis: Axis[T]
    presets: Mapping[str, Node]
    """By name: the mapping with include and exclude."""
    problems: Collector

    def select(self, node: Node) -> list[T]:
        """Give what a list, a mapping with include and exclude, or one entry takes."""
        taken = self._taken(node)
        if not taken and not self.problems.errors:
            self.problems.add(f"'{self.axis.kind}' takes nothing.", node.source, "Widen it.")
        return list(taken.values())

    def _taken(self, node: Node, depth: int = 0) -> dict[str, T]:
        if not (isinstance(node.value, Mapping) and {"include", "exclude"} & set(node.value)):
            return self._all(node, depth)
        fields = Fields.of(node, "a selection", self.problems)
        assert fields
        known = ("include", "exclude", *(("preset", "of", "why", "source") if depth else ()))
        fields.only(known)
        include, exclude = fields.node("include"), fields.node("exclude")
        taken = self._all(include, depth) if include else self._whole()
        for text in self._all(exclude, depth) if exclude else ():
            taken.pop(text, None)
        return taken

    def _whole(self) -> dict[str, T]:
        return {self.axis.text(one): one for one in self.axis.every()}

    def _all(self, node: Node, depth: int) -> dict[str, T]:
        taken: dict[str, T] = {}
        for entry in node.value if isinstance(node.value, list) else [node]:
            taken.update(self._entry(entry, depth))
        return taken

    def _entry(self, node: Node, depth: int) -> dict[str, T]:
        if isinstance(node.value, Mapping):
            return self._filtered(node)
        if isinstance(node.value, list) or not node.text.strip():
            self.problems.add("an entry is a name, a preset or a filter.", node.source)
            return {}
        preset = self.presets.get(node.text.strip().casefold())
        return self._taken(preset, depth + 1) if preset and not depth else self._named(node)

    def _named(self, node: Node) -> dict[str, T]:
        try:
            found = self.axis.named(node.text.strip())
        except UserError as bad:
            refuse(bad, node, self.problems, near=guess(node.text.strip(), self.presets))
            return {}
        return {self.axis.text(found): found}

    def _filtered(self, mapping: Node) -> dict[str, T]:
        fields = Fields.of(mapping, "a filter", self.problems)
        assert fields
        if not self.axis.conditions and fields.values:
            self.problems.add(f"'{self.axis.kind}' takes names, not filters.", mapping.source)
            return {}
        fields.only(tuple(self.axis.conditions))
        conditions = {
            key: read(node, self.problems)
            for key, read in self.axis.conditions.items()
            if (node := fields.node(key)) is not None
        }
        look = self.axis.value
        return {
            text: one
            for text, one in self._whole().items()
            if all(condition.takes(look(one, key)) for key, condition in conditions.items())
        }
