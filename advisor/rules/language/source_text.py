"""A rule file as it was written: values as typed, with their comments and empty lines.

Read from parser events, whose marks say where everything stands; what lies between two of them
is white space, punctuation and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from advisor.errors import RuleFileError
from advisor.yamlfile import parse_yaml

if TYPE_CHECKING:
    import yaml

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
