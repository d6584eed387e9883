"""Readers for the fields of a knowledge record: units, closed lists, sources, unknown keys.

Every reader gives ``None`` for an absent key and collects a problem, with its place, for a
bad one; nothing is raised before all files are read.

    for record in records(content, "formats.yaml", "format", problems):
        bits = record.quantity("bits_per_weight", "bits")
        ...
        sources = record.sources(ids)
        record.finish()
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date

from msgspec import Struct, field

from advisor.errors import KnowledgeError, Source, UserError
from advisor.suggest import did_you_mean
from advisor.units import DIMENSIONS, UnitError, parse_quantity
from advisor.yamlfile import Node
from advisor.yamlfile import read_yaml as parsed_as_far_as_it_goes

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHARED_KEYS = ("source", "sources")


class Record(Struct):
    """One mapping of a table and the keys that were asked for.

    ``name`` is the value of the record's first key, ``kind`` that key (``gpu``).
    """

    node: Node
    kind: str
    name: str
    problems: list[UserError]
    asked: dict[str, None] = field(default_factory=dict)

    @property
    def place(self) -> Source:
        """Where the record begins."""
        return self.node.source

    def problem(self, message: str, *, at: Source | None = None, hint: str = "") -> None:
        """Collect a problem of this record; ``at`` defaults to its beginning."""
        shown = f"{self.kind} '{self.name}': {message}"
        self.problems.append(KnowledgeError(shown, source=at or self.place, hint=hint))

    def get(self, key: str, *, required: bool = False) -> Node | None:
        """Give the node of a key, ``None`` when it is absent."""
        self.asked[key] = None
        assert isinstance(self.node.value, Mapping)
        found = self.node.value.get(key)
        if found is None and required:
            self.problem(f"'{key}' is missing")
        elif found is not None and found.value is None:
            self.problem(
                f"'{key}' is empty", at=found.source, hint="Leave the key out where it is unknown."
            )
            return None
        return found

    def at(self, key: str) -> Source:
        """Where a key stands, or where the record begins."""
        return (self.node.key_sources or {}).get(key, self.place)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """Read a text; numbers and dates give what is written."""
        node = self.get(key, required=required)
        if node is None:
            return None
        if not node.text.strip() or isinstance(node.value, Mapping | list):
            self.problem(f"'{key}' must be a text", at=node.source)
            return None
        return node.text.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts (or one text), empty when absent."""
        node = self.get(key)
        if node is None:
            return ()
        items = node.value if isinstance(node.value, list) else [node]
        good = [item.text.strip() for item in items if _is_text(item)]
        if len(good) < len(items):
            self.problem(f"'{key}' must be a list of texts", at=node.source)
        return tuple(good)

    def choice(self, key: str, values: Sequence[str], *, required: bool = False) -> str | None:
        """Read one of a closed list."""
        text = self.text(key, required=required)
        if text is None or text in values:
            return text
        hint = did_you_mean(text, values) or f"It must be one of: {', '.join(values)}."
        self.problem(f"'{text}' is not a valid '{key}'.", at=self._value_at(key), hint=hint)
        return None

    def choices(self, key: str, values: Sequence[str]) -> tuple[str, ...]:
        """Read a list whose items all come from a closed list."""
        found = self.texts(key)
        for text in found:
            if text not in values:
                hint = did_you_mean(text, values) or f"It must be one of: {', '.join(values)}."
                self.problem(
                    f"'{text}' is not valid in '{key}'.", at=self._value_at(key), hint=hint
                )
        return tuple(text for text in found if text in values)

    def flag(self, key: str) -> bool | None:
        """Read ``yes`` or ``no``."""
        node = self.get(key)
        if node is None or isinstance(node.value, bool):
            return node.value if node is not None and isinstance(node.value, bool) else None
        self.problem(f"'{key}' must be yes or no", at=node.source)
        return None

    def quantity(
        self, key: str, dimension: str, *, required: bool = False, zero: bool = False
    ) -> float | None:
        """Read a number with a unit of ``dimension``, in its base unit.

        Args:
            key: The field.
            dimension: A key of ``units.DIMENSIONS``; ``count`` for plain numbers.
            required: Collect a problem when absent.
            zero: Allow 0; negative numbers are never allowed.
        """
        node = self.get(key, required=required)
        if node is None:
            return None
        try:
            found = parse_quantity(node.text)
        except UnitError as bad:
            self.problem(f"'{key}': {bad}", at=node.source, hint=_example(dimension))
            return None
        if found.dimension != dimension:
            got = found.dimension if found.unit else "a number without a unit"
            self.problem(f"'{key}' is {got}", at=node.source, hint=_example(dimension))
            return None
        if found.value < 0 or (found.value == 0 and not zero):
            self.problem(
                f"'{key}' must be above zero",
                at=node.source,
                hint="Leave the key out where it is unknown.",
            )
            return None
        return found.value

    def number(self, key: str, *, required: bool = False, zero: bool = False) -> float | None:
        """Read a plain positive number."""
        return self.quantity(key, "count", required=required, zero=zero)

    def count(self, key: str, *, required: bool = False, zero: bool = False) -> int | None:
        """Read a plain positive whole number."""
        value = self.number(key, required=required, zero=zero)
        if value is None or value == int(value):
            return None if value is None else int(value)
        self.problem(f"'{key}' must be a whole number", at=self._value_at(key))
        return None

    def whole(self, key: str, dimension: str, *, zero: bool = False) -> int | None:
        """Read a quantity as a whole number of base units (bytes, parameters, tokens)."""
        value = self.quantity(key, dimension, zero=zero)
        return None if value is None else round(value)

    def day(self, key: str) -> str | None:
        """Read a date, ``2024-05-07``."""
        text = self.text(key)
        if text is None:
            return None
        if _DAY.fullmatch(text) and _is_day(text):
            return text
        message = f"'{key}': '{text}' is not a date"
        self.problem(message, at=self._value_at(key), hint="Write 2024-05-07.")
        return None

    def plain(self, key: str) -> object:
        """Give a value as plain data, unchecked; ``None`` when absent."""
        node = self.get(key)
        return None if node is None else node.plain()

    def mapping(self, key: str) -> Mapping[str, Node]:
        """Read a mapping, empty when absent."""
        node = self.get(key)
        if node is None:
            return {}
        if isinstance(node.value, Mapping):
            return node.value
        self.problem(f"'{key}' must be a mapping of keys to values", at=node.source)
        return {}

    def sources(self, ids: Collection[str], *, also: Collection[str] = ()) -> dict[str, str]:
        """Read ``source`` and ``sources``: field -> source ids, key ``""`` for the record.

        Call it after every other field was asked for.

        Args:
            ids: The declared ids.
            also: Names that ``sources`` may use although they are no keys of the record.
        """
        found: dict[str, str] = {}
        self.get("source", required=True)
        if stated := self._ids("source", self.get("source"), ids):
            found[""] = stated
        fields = [*self.asked, *also]
        for key, node in self.mapping("sources").items():
            if key not in fields:
                self.problem(
                    f"'sources' names the unknown field '{key}'.",
                    at=node.source,
                    hint=did_you_mean(key, fields),
                )
            elif stated := self._ids("sources", node, ids):
                found[key] = stated
        return found

    def finish(self) -> None:
        """Collect the keys that nothing asked for."""
        assert isinstance(self.node.value, Mapping)
        known = [self.kind, *self.asked, *_SHARED_KEYS]
        for key in self.node.value:
            if key not in known:
                hint = did_you_mean(key, known) or f"Known keys: {', '.join(known)}."
                self.problem(f"unknown key '{key}'.", at=self.at(key), hint=hint)

    def _value_at(self, key: str) -> Source:
        assert isinstance(self.node.value, Mapping)
        return self.node.value[key].source

    def _ids(self, key: str, node: Node | None, ids: Collection[str]) -> str:
        if node is None:
            return ""
        items = node.value if isinstance(node.value, list) else [node]
        for item in items:
            if not _is_text(item) or item.text not in ids:
                self.problem(
                    f"'{key}' names the undeclared source '{item.text}'.",
                    at=item.source,
                    hint=did_you_mean(item.text, ids)
                    or "Declare it in sources.yaml, or in a sources-mine.yaml of yours.",
                )
        return ", ".join(item.text for item in items)


def records(content: bytes, shown: str, kind: str, problems: list[UserError]) -> Iterator[Record]:
    """Read a table: a list of mappings whose first key is ``kind``.

    Args:
        content: The file.
        shown: Its name in messages.
        kind: ``gpu``, ``format`` ...
        problems: Takes what is wrong; a broken record is left out.
    """
    for node in nodes_of(content, shown, kind, problems):
        record = record_of(node, kind, problems)
        if record is not None:
            yield record


def nodes_of(content: bytes, shown: str, kind: str, problems: list[UserError]) -> Sequence[Node]:
    """Parse a table into its entries; a broken file has none, with the problem collected."""
    root = read_yaml(content, shown, problems)
    if root is None:
        return []
    if isinstance(root.value, list):
        return root.value
    hint = f"Begin every record with '- {kind}: NAME'."
    problems.append(KnowledgeError("the file must be a list", source=root.source, hint=hint))
    return []


def read_yaml(content: bytes, shown: str, problems: list[UserError]) -> Node | None:
    """Parse one file as far as it goes; ``None`` when nothing can be read."""
    return parsed_as_far_as_it_goes(content, shown, KnowledgeError, problems)


def report_duplicates(
    names: Iterable[tuple[str, Source]], what: str, problems: list[UserError]
) -> None:
    """Collect every name that stands a second time, exactly as given."""
    first: dict[str, Source] = {}
    for name, place in names:
        if name in first:
            message = f"the {what} '{name}' stands twice (first in {first[name]})"
            problems.append(KnowledgeError(message, source=place))
        first.setdefault(name, place)


def record_of(node: Node, kind: str, problems: list[UserError]) -> Record | None:
    """Take one entry of a table; ``None`` when it is none, with the problem collected."""
    if not isinstance(node.value, Mapping) or not node.value:
        message = f"a record must be a mapping that begins with '{kind}:'"
        problems.append(KnowledgeError(message, source=node.source))
        return None
    first = next(iter(node.value))
    name = node.value.get(kind)
    if name is None or not _is_text(name):
        hint = did_you_mean(first, [kind])
        message = f"a record must begin with '{kind}:' and a name, not '{first}:'."
        problems.append(KnowledgeError(message, source=node.source, hint=hint))
        return None
    return Record(node, kind, name.text.strip(), problems)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_text(node: Node) -> bool:
    return bool(node.text.strip()) and not isinstance(node.value, Mapping | list)


def _example(dimension: str) -> str:
    unit = next(
        (u for u in ("GiB", "GB/s", "TFLOPS", "ms") if u in DIMENSIONS[dimension]),
        next(iter(DIMENSIONS[dimension])),
    )
    return f"Write it like '12 {unit}'." if unit else "Write a plain number."
