"""What every part of the rule parser needs to know, and the values it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from advisor.errors import Edit, RequestError, RuleFileError, Source, correction, guess
from advisor.knowledge.names import find_format_candidates, find_framework, find_kv_type, find_model
from advisor.knowledge.types import Format, Framework, Gpu, Knowledge, KvType, ModelRecord, Names
from advisor.knowledge.vocabulary import FactType, Vocabulary
from advisor.knowledge.yaml_fields import Collector, listed
from advisor.reading import find_gpu
from advisor.units import DIMENSIONS, Quantity, UnitError, UnknownUnitError, as_sold, parse_quantity
from advisor.yamlfile import parse_yaml

if TYPE_CHECKING:
    import yaml

MAX_TEXT_BYTES = 1000
_LEAST, _MOST = 1e-4, 1e16
_FLAGS = {"yes": True, "no": False}
_FACT_LIKE = re.compile(r"[A-Za-z_]+\.[A-Za-z_][A-Za-z0-9_]*")


class Reading(Struct, frozen=True):
    """One run of the parser over all files.

    ``templates`` and ``names`` are None where nothing is known to check against.
    """

    vocabulary: Vocabulary
    problems: Collector
    templates: Collection[str] | None = None
    names: Mapping[str, Collection[str]] | None = None

    def fact(self, name: str, source: Source | None) -> FactType | None:
        """Find a fact; an unknown one is a problem."""
        found = self.vocabulary.facts.get(name)
        if found is None:
            hint = self.vocabulary.suggest(name) or "'advisor rules facts' lists them all."
            self.problems.add(
                f"unknown fact '{name}'.",
                source,
                hint,
                lint="unknown-fact",
                edit=correction(name.rpartition(".")[2], hint) or correction(name, hint),
            )
        return found

    def means_fact(self, text: str) -> bool:
        """Whether a value is meant to be another fact (``memory.usable``)."""
        if text in self.vocabulary.facts:
            return True
        return bool(_FACT_LIKE.fullmatch(text)) and text.partition(".")[0] in self.vocabulary.groups

    def number(self, fact: FactType, text: str, source: Source | None) -> float | None:
        """Read a number with its unit into the base unit of the fact's dimension."""
        try:
            quantity = parse_quantity(as_sold(text) if fact.as_sold else text)
        except UnknownUnitError as bad:
            hint = guess(bad.unit, _units(fact)) or _takes(fact)
            edit = _same_unit(correction(bad.unit, hint))
            self.problems.add(
                f"unknown unit '{bad.unit}'.", source, hint, lint="wrong-unit", edit=edit
            )
            return None
        except UnitError as bad:
            self.problems.add(str(bad), source, _takes(fact), lint="wrong-number")
            return None
        if quantity.dimension != fact.dimension:
            message, hint = _wrong_dimension(fact, text, quantity)
            lint = "wrong-unit" if quantity.unit else "missing-unit"
            self.problems.add(message, source, hint, lint=lint)
            return None
        if quantity.value and not _LEAST <= abs(quantity.value) < _MOST:
            message = f"'{text}' is outside the range that rules can compare."
            hint = "In base units a number is 0 or from 1e-4 to 1e16."
            self.problems.add(message, source, hint, lint="wrong-number")
            return None
        return quantity.value

    def name(self, fact: FactType, text: str, source: Source | None) -> str | None:
        """Read a value of an enum or a text."""
        if fact.kind == "enum" and text not in fact.values:
            hint = guess(text, fact.values) or f"It is one of {listed(fact.values)}."
            message = f"'{text}' is not a value of {fact.name}."
            edit = correction(text, hint)
            self.problems.add(message, source, hint, lint="unknown-enum", edit=edit)
            return None
        table = (self.names or {}).get(fact.of or "")
        if fact.kind == "text" and table is not None and text not in table:
            return self._meant(fact, text, source)
        if len(text.encode()) > MAX_TEXT_BYTES:
            message = f"a value of {fact.name} is longer than {MAX_TEXT_BYTES} bytes."
            self.problems.add(message, source, "Shorten it.", lint="engine-limits")
            return None
        return text

    def _meant(self, fact: FactType, text: str, source: Source | None) -> str | None:
        """Resolve what is no canonical name; a wrong one has no edit, as any would be a guess."""
        table, names = fact.of or "", self.names or {}
        message = f"'{text}' is not a name of {fact.name}."
        hint = guess(text, names[table]) or f"Write it as in knowledge/, table {table}."
        if isinstance(names, Names):
            try:
                return canonical(names.knowledge, table, text)
            except RequestError as refused:
                unread = set(names[table]).difference(getattr(names.knowledge, table))
                hint = guess(text, unread) or refused.hint
                if not refused.message.startswith("unknown"):
                    message = refused.message
        self.problems.add(message, source, hint, lint="unknown-enum")
        return None

    def flag(self, fact: FactType, text: str, source: Source | None) -> bool | None:
        """Read yes or no."""
        if text not in _FLAGS:
            message = f"'{text}' is not a value of {fact.name}."
            self.problems.add(message, source, "It is yes or no.", lint="unknown-enum")
        return _FLAGS.get(text)

    def value(self, fact: FactType, text: str, source: Source | None) -> float | str | bool | None:
        """Read a value of any kind; None when it is wrong."""
        if fact.kind == "number":
            return self.number(fact, text, source)
        if fact.kind == "flag":
            return self.flag(fact, text, source)
        return self.name(fact, text, source)

    def template(self, name: str, source: Source | None) -> None:
        """Check that a template exists."""
        if self.templates is not None and name not in self.templates:
            hint = guess(name, self.templates) or "Create it in templates/."
            self.problems.add(
                f"unknown template '{name}'.",
                source,
                hint,
                lint="unknown-template",
                edit=correction(name, hint),
            )


def canonical(knowledge: Knowledge, table: str, text: str) -> str:
    """Give the name of the record that a text names, as names are read everywhere else.

    Raises:
        RequestError: Unknown, or it names several, or a card in one of its sizes alone.
    """
    found = _FINDERS[table](knowledge, text)
    names = [record.name for record in found]
    if len(names) > 1:
        raise RequestError(f"'{text}' names several: {listed(names)}.", hint="Write one of these.")
    if getattr(knowledge, table).get(names[0]) != found[0]:
        message = f"'{text}' is {names[0]} in one size, and it has this name in all sizes."
        raise RequestError(message, hint=f"Write '{names[0]}', and gpu.vram for the size.")
    return names[0]


_Record = Gpu | ModelRecord | Format | KvType | Framework
_FINDERS: Mapping[str, Callable[[Knowledge, str], Sequence[_Record]]] = {
    "gpus": lambda knowledge, text: [find_gpu(knowledge, text)],
    "models": lambda knowledge, text: [find_model(knowledge, text)],
    "formats": find_format_candidates,
    "kv_types": lambda knowledge, text: [find_kv_type(knowledge, text)],
    "frameworks": lambda knowledge, text: [find_framework(knowledge, text)],
}


def _same_unit(edit: Edit | None) -> Edit | None:
    """Keep the correction of a unit whose letters have another case: not b and B, nor m and M."""
    if edit is None or edit.old.casefold() != edit.new.casefold():
        return None
    changed = {old for old, new in zip(edit.old, edit.new, strict=True) if old != new}
    return None if changed & set("bBmM") else edit


def _units(fact: FactType) -> Sequence[str]:
    return [unit for unit in DIMENSIONS[fact.dimension] if unit]


def _takes(fact: FactType) -> str:
    if not fact.unit:
        return f"{fact.name} is a plain number."
    return f"{fact.name} takes {listed(_units(fact))}."


def _wrong_dimension(fact: FactType, text: str, quantity: Quantity) -> tuple[str, str]:
    unit = quantity.unit
    if not unit:
        return f"'{text}' has no unit.", f"Write '{text} {fact.unit}'; {_takes(fact)}"
    if not fact.unit:
        number = text.removesuffix(unit).strip()
        return f"{fact.name} is a plain number, without '{unit}'.", f"Write '{number}'."
    message = f"'{unit}' is a unit of {quantity.dimension}, and {fact.name} is in {fact.unit}."
    return message, f"Use {listed(_units(fact))}."


Kind = Literal["scalar", "map", "list"]


class Value(Struct):
    """A scalar, mapping or list."""

    kind: Kind
    begin: int
    """Offset of its first character in the text."""
    end: int = 0
    column: int = 0
    flow: bool = False
    """Whether it stands in brackets or braces."""
    raw: str = ""
    """A scalar as typed, quotes and line breaks included."""
    items: list[Item] = field(default_factory=list)


class Item(Struct):
    """An entry of a list, or a key with its value."""

    begin: int
    column: int
    """Of the key, or of the hyphen."""
    value: Value
    key: str = ""
    """As typed; empty in a list."""
    above: list[str] = field(default_factory=list)
    """Comments on lines of their own before it; an empty text is an empty line."""
    beside: str = ""
    """The comment at the end of its first line."""
    below: list[str] = field(default_factory=list)
    """Comments after everything it holds that stand at least as far in as it does."""


class Remark(Struct, frozen=True):
    """A comment."""

    at: int
    column: int
    text: str
    alone: bool
    """Whether nothing stands before it on its line."""


class Written(Struct):
    """A whole file."""

    root: Value
    remarks: Sequence[Remark]
    text: str


def read_written(content: bytes, shown: str) -> Written:
    """Read a file of rules.

    Raises:
        RuleFileError: It is not YAML that rules may use.
    """
    parse_yaml(content, shown, RuleFileError)
    text = content.decode("utf-8-sig")
    text = re.sub(r"\r\n?|[\x85\u2028\u2029]", "\n", text)
    builder = _Builder(text)
    for event in _events(text):
        builder.take(event)
    assert builder.root is not None
    return Written(builder.root, builder.remarks(), text)


def _events(text: str) -> Iterator[yaml.Event]:
    import yaml  # noqa: PLC0415 - a warm start must not pay for it

    yield from yaml.parse(text, yaml.SafeLoader)


class _Builder(Struct):
    text: str
    root: Value | None = None
    open: list[Value] = field(default_factory=list)
    keys: list[Value | None] = field(default_factory=list)
    """For each open mapping the key that waits for its value."""
    covered: list[tuple[int, int]] = field(default_factory=list)
    """Where scalars stand, in which ``#`` begins no comment."""

    def take(self, event: yaml.Event) -> None:
        import yaml  # noqa: PLC0415

        assert event.start_mark is not None
        assert event.end_mark is not None
        begin, end = event.start_mark.index, event.end_mark.index
        column = event.start_mark.column
        if isinstance(event, yaml.ScalarEvent):
            self.covered.append((begin, end))
            raw = self.text[begin:end]
            self._put(Value("scalar", begin, end, column, raw=raw))
        elif isinstance(event, yaml.CollectionStartEvent):
            kind: Kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
            flow = bool(getattr(event, "flow_style", False))
            self._put(Value(kind, begin, end, column, flow=flow))
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self.open.pop()
            closed.end = end
            self.keys.pop()

    def _put(self, value: Value) -> None:
        if self.open:
            self._into(self.open[-1], value)
        else:
            self.root = value
        if value.kind != "scalar":
            self.open.append(value)
            self.keys.append(None)

    def _into(self, parent: Value, value: Value) -> None:
        if parent.kind == "list":
            begin = value.begin if parent.flow else self._hyphen(value.begin)
            column = begin - (self.text.rfind("\n", 0, begin) + 1)
            parent.items.append(Item(begin, column, value))
        elif self.keys[-1] is None:
            self.keys[-1] = value
        else:
            key = self.keys[-1]
            parent.items.append(Item(key.begin, key.column, value, key.raw))
            self.keys[-1] = None

    def _hyphen(self, begin: int) -> int:
        """The hyphen before an entry, comments between the two skipped."""
        place = begin
        while True:
            place = self.text.rindex("-", 0, place)
            line = self.text.rfind("\n", 0, place) + 1
            if not self.text[line:place].strip(" -"):
                return place

    def remarks(self) -> Sequence[Remark]:
        """List the comments."""
        found = []
        inside = sorted(self.covered)
        place, number = 0, 0
        while (place := self.text.find("#", place)) >= 0:
            while number < len(inside) and inside[number][1] <= place:
                number += 1
            if number < len(inside) and inside[number][0] <= place:
                place = inside[number][1]
                continue
            line = self.text.rfind("\n", 0, place) + 1
            end = self.text.find("\n", place)
            end = len(self.text) if end < 0 else end
            alone = not self.text[line:place].strip()
            found.append(Remark(place, place - line, self.text[place:end].rstrip(), alone))
            place = end
        return found
