"""YAML with positions: plain data only, bounded, and strict about duplicate keys.

Built from parser events rather than by ``yaml.compose``, so that no depth of nesting can
overflow the stack and aliases are refused before they are followed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.errors import Source, UserError, raise_problems

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 8_000_000
MAX_DEPTH = 24
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels."
_ENTRY = "- "
_MOST_PARTS = 40
"""Mistakes in the writing of one file after which reading goes on."""

Scalar = str | int | float | bool | None
_NAMED_WHERE_THEY_BEGIN = (
    "while scanning a quoted scalar",
    "while scanning a simple key",
    "while parsing a flow sequence",
    "while parsing a flow mapping",
)
_IN_WORDS = (
    (
        "scanning a simple key",
        "not YAML: this line has no ':' behind its key.",
        "Write 'key: value'.",
    ),
    (
        "cannot start any token",
        "not YAML: a text cannot begin with this character.",
        "Put the text in quotes.",
    ),
    (
        "mapping values are not allowed",
        "not YAML: a ': ' stands where no value can begin.",
        "Indent the line as those above, and put a text that holds ': ' in quotes.",
    ),
    (
        "parsing a flow sequence",
        "not YAML: a list that begins with '[' does not end with ']'.",
        "Close it, and put a comma between any two names.",
    ),
    (
        "parsing a flow mapping",
        "not YAML: what begins with '{' does not end with '}'.",
        "Close it, and put a comma between any two entries.",
    ),
    (
        "parsing a block mapping",
        "not YAML: this line is not 'key: value', or is not indented as the lines above.",
        "Check the indentation and the quotes.",
    ),
    (
        "parsing a block collection",
        "not YAML: this line belongs to no entry of the list above it.",
        "Indent it as the keys above, or begin it with '- '.",
    ),
)
"""A part of what the parser says -> the same in words, and what to do."""
_SYMBOL = re.compile(r":\s+[\"']?(>=?|<=?|==?|!=)\s*[\w.\-]")
_NOT_ALLOWED = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Node(Struct, frozen=True):
    """A value with its place.

    ``value`` is a str, int, float, bool, None, a list of nodes, or a dict of nodes by key;
    ``text`` is a scalar as written (``yes``, ``2024-05-07``), dates stay text.
    """

    value: Scalar | Sequence[Node] | Mapping[str, Node]
    source: Source
    text: str = ""
    key_sources: Mapping[str, Source] | None = None

    def plain(self) -> object:
        """Give the value without positions."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def parse_yaml(content: bytes, shown: str, error: type[UserError]) -> Node:
    """Parse one document; ``shown`` is the file name that messages carry.

    Raises:
        UserError: As ``error``: not UTF-8, too large, too deep, an alias, a tab, bad
            indentation, a duplicate key, an empty file; several come as ``Problems``.
    """
    problems: list[UserError] = []
    root = read_yaml(content, shown, error, problems)
    raise_problems(problems)
    assert root is not None
    return root


def read_yaml(
    content: bytes, shown: str, error: type[UserError], problems: list[UserError]
) -> Node | None:
    """Parse one document as far as it goes; what is wrong is noted in ``problems``.

    Of two equal keys the last counts. In a file that is a list, an entry that cannot be read is
    left out, and reading goes on at the next line that begins with ``- ``.

    Returns:
        What could be read; None: nothing.
    """
    try:
        text = _decoded(content, shown, error)
    except UserError as bad:
        problems.append(bad)
        return None
    before = len(problems)
    root = _parts(text, _Reader(shown, error), problems)
    if root is None and len(problems) == before:
        problems.append(error("the file is empty.", source=Source(shown, 1, 1), lint="empty-file"))
    return root


def _parts(text: str, reader: _Reader, problems: list[UserError]) -> Node | None:
    """Read a document and, after a mistake that ends it, what begins as an entry further on."""
    entries: list[Node] = []
    lines = text.splitlines(keepends=True)
    for _ in range(_MOST_PARTS):
        failed = _failed(text, reader)
        problems += reader.problems
        if failed is None:
            root = reader.root
            if not entries or root is None or not isinstance(root.value, list):
                return _list_of(entries) or root
            return _list_of([*entries, *root.value])
        if not problems or str(problems[-1]) != str(failed):
            problems.append(failed)
        line = failed.source.line if failed.source else 0
        entries += reader.entries_above(_entry_at(lines, line))
        begin = _next_entry(lines, line, reader.first_line)
        if begin is None or not line:
            break
        text = "".join(lines[begin:])
        reader = _Reader(reader.shown, reader.error, first_line=begin)
    return _list_of(entries)


def _list_of(entries: list[Node]) -> Node | None:
    return Node(entries, entries[0].source) if entries else None


def _entry_at(lines: Sequence[str], line: int) -> int:
    """Number of the line on which the entry begins that a line belongs to."""
    last = min(line, len(lines))
    found = (number for number in range(last, 0, -1) if lines[number - 1].startswith(_ENTRY))
    return next(found, 0)


def _next_entry(lines: Sequence[str], line: int, first_line: int) -> int | None:
    """Index of the line at which to go on after a mistake in a line.

    A mistake that shows at the beginning of an entry may be one of the entry before it: that line
    is tried again, unless reading began there.
    """
    again = line - 1 if line - 1 > first_line else line
    found = (number for number in range(again, len(lines)) if lines[number].startswith(_ENTRY))
    return next(found, None)


def _decoded(content: bytes, shown: str, error: type[UserError]) -> str:
    if len(content) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 10**6} MB."
        raise error(message, source=Source(shown), lint="yaml-limits")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = content.count(b"\n", 0, bad.start) + 1
        column = bad.start - content.rfind(b"\n", 0, bad.start)
        place = Source(shown, line, column)
        hint = "Save it as UTF-8."
        raise error("the file is not UTF-8.", source=place, hint=hint, lint="encoding") from None
    if bad_character := _NOT_ALLOWED.search(text):
        at = bad_character.start()
        place = Source(shown, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        code = f"U+{ord(bad_character[0]):04X}"
        message = f"the character {code} is not allowed in YAML."
        raise error(message, source=place, hint="Delete it.", lint="encoding")
    return text


def _failed(text: str, reader: _Reader) -> UserError | None:
    """Parse; give the mistake that ends it."""
    try:
        _parsed(text, reader)
    except UserError as bad:
        return bad
    return None


def _parsed(text: str, reader: _Reader) -> None:
    import yaml  # noqa: PLC0415 - a warm start must not pay for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader.resolver = yaml.resolver.Resolver()
    try:
        for event in yaml.parse(text, loader):
            reader.take(event)
    except yaml.MarkedYAMLError as bad:
        begun = bad.context in _NAMED_WHERE_THEY_BEGIN and bad.context_mark
        place = reader.place(begun or bad.problem_mark or bad.context_mark)
        lint, message, hint = _plain_problem(text, bad, place, reader.first_line)
        raise reader.error(message, source=place, hint=hint, lint=lint) from None
    except yaml.YAMLError as bad:
        first = str(bad).splitlines()[0]
        message = f"not YAML: {first}."
        raise reader.error(message, source=Source(reader.shown), lint="yaml-syntax") from None


def _plain_problem(
    text: str, bad: yaml.MarkedYAMLError, place: Source, first_line: int
) -> tuple[str, str, str]:
    lines = text.splitlines()
    number = place.line - first_line
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in str(bad.problem):
        return "tab", "a tab is used for indentation.", "Use spaces."
    if bad.context == "while scanning a quoted scalar":
        return "yaml-syntax", "a quote is opened and not closed.", "Close it on the same line."
    if symbol := _SYMBOL.search(line):
        hint = "Write it in words: 'above', 'at least' ..."
        return "unknown-verb", f"'{symbol[1]}' cannot start a value.", hint
    if "maximum nesting" in str(bad.problem):  # of newer parsers, which read ahead so far
        return "yaml-limits", _TOO_DEEP, ""
    for part, message, hint in _IN_WORDS:
        if part in f"{bad.context}: {bad.problem}":
            return "yaml-syntax", message, hint
    context = f"{bad.context}: " if bad.context else ""
    message = f"not YAML: {context}{bad.problem}."
    return "yaml-syntax", message, "Check the indentation and the quotes."


class _Open(Struct):
    """A list or mapping whose end has not been read yet."""

    source: Source
    items: list[Node] | None = None
    pairs: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Source] = field(default_factory=dict)
    key: str | None = None
    """The key whose value comes next; None: a key comes next."""
    ignored: bool = False
    """The value that comes next belongs to a key that was refused."""


class _Reader(Struct):
    shown: str
    error: type[UserError]
    problems: list[UserError] = field(default_factory=list)
    root: Node | None = None
    resolver: yaml.resolver.Resolver | None = None
    stack: list[_Open] = field(default_factory=list)
    documents: int = 0
    first_line: int = 0
    """Lines of the file before what is parsed."""

    def place(self, mark: yaml.error.Mark | yaml._yaml.Mark | None) -> Source:
        if mark is None:
            return Source(self.shown)
        return Source(self.shown, self.first_line + mark.line + 1, mark.column + 1)

    def entries_above(self, before: int) -> Sequence[Node]:
        """Give the entries of an outer list that were read to their end above a line."""
        if self.root is not None or not self.stack or self.stack[0].items is None:
            return ()
        return [node for node in self.stack[0].items if node.source.line < before]

    def take(self, event: yaml.Event) -> None:
        import yaml  # noqa: PLC0415

        if isinstance(event, yaml.NodeEvent):
            self._refuse_extras(event)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event, [] if isinstance(event, yaml.SequenceStartEvent) else None)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._start_document(event)

    def _start_document(self, event: yaml.Event) -> None:
        self.documents += 1
        if self.documents > 1:
            place = self.place(event.start_mark)
            message = "'---' starts a second document."
            raise self.error(message, source=place, hint="Delete it.", lint="yaml-extras")

    def _refuse_extras(self, event: yaml.NodeEvent) -> None:
        import yaml  # noqa: PLC0415

        place = self.place(event.start_mark)
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise self.error(
                "anchors ('&') and aliases ('*') are not allowed.",
                source=place,
                hint="Write the value out, or put it in quotes.",
                lint="yaml-extras",
            )
        tag = getattr(event, "tag", None)
        if tag and tag != "!":
            message = "a tag ('!') is not allowed."
            raise self.error(message, source=place, hint="Use quotes.", lint="yaml-extras")

    def _start(self, event: yaml.Event, items: list[Node] | None) -> None:
        place = self.place(event.start_mark)
        if len(self.stack) >= MAX_DEPTH:
            raise self.error(_TOO_DEEP, source=place, lint="yaml-limits")
        self.stack.append(_Open(place, items))

    def _end(self) -> None:
        done = self.stack.pop()
        value = done.pairs if done.items is None else done.items
        self._put(Node(value, done.source, key_sources=done.keys if done.items is None else None))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        import yaml  # noqa: PLC0415

        place = self.place(event.start_mark)
        assert self.resolver is not None
        tag = self.resolver.resolve(  # type: ignore[no-untyped-call] # untyped in types-pyyaml
            yaml.ScalarNode, event.value, event.implicit
        )
        self._put(Node(_typed(str(tag), str(event.value)), place, str(event.value)))

    def _put(self, node: Node) -> None:
        if not self.stack:
            self.root = None if node.value is None else node
            return
        parent = self.stack[-1]
        if parent.items is not None:
            parent.items.append(node)
        elif parent.ignored:
            parent.ignored = False
        elif parent.key is None:
            self._put_key(parent, node)
        else:
            parent.pairs[parent.key] = node
            parent.key = None

    def _put_key(self, parent: _Open, node: Node) -> None:
        key = node.text
        if isinstance(node.value, list | dict):
            message = "a key must be plain text."
            self.problems.append(self.error(message, source=node.source, lint="wrong-shape"))
            parent.ignored = True
        elif key in parent.pairs:
            first = parent.keys[key].line
            message = f"key '{key}' stands twice (first in line {first})."
            hint = "Keep one of them."
            self.problems.append(
                self.error(message, source=node.source, hint=hint, lint="duplicate-key")
            )
            parent.key = key
        else:
            parent.keys[key] = node.source
            parent.key = key


def _typed(tag: str, text: str) -> Scalar:
    kind = tag.rsplit(":", 1)[-1]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in {"yes", "true", "on"}
    try:
        if kind == "int":
            return int(text.replace("_", ""), 0)
        if kind == "float":
            return float(text.replace("_", ""))
    except ValueError:
        return text
    return text
