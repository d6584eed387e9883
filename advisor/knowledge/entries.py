"""Entries of knowledge files: mappings with their place, before they are records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from advisor.errors import KnowledgeError, Source, UserError
from advisor.knowledge.field_kinds import Flaw, is_text
from advisor.suggest import did_you_mean
from advisor.yamlfile import Node, read_yaml


class Entry(Struct):
    """One mapping of a table; ``name`` is the value of its first key, ``kind`` that key."""

    node: Node
    kind: str
    name: str
    problems: list[UserError]

    @property
    def values(self) -> Mapping[str, Node]:
        """Its values by key."""
        assert isinstance(self.node.value, Mapping)
        return self.node.value

    @property
    def place(self) -> Source:
        """Where it begins."""
        return self.node.source

    def text(self, key: str) -> str:
        """Give a value as written, empty when it is absent."""
        found = self.values.get(key)
        return found.text.strip() if found is not None else ""

    def at(self, key: str) -> Source:
        """Where a key stands, or where the entry begins."""
        return (self.node.key_sources or {}).get(key, self.place)

    def problem(self, message: str, *, at: Source | None = None, hint: str = "") -> None:
        """Collect a problem of this entry; ``at`` defaults to its beginning."""
        shown = f"{self.kind} '{self.name}': {message}"
        self.problems.append(KnowledgeError(shown, source=at or self.place, hint=hint))

    def flaws(self, flaws: Iterable[Flaw], key: str = "") -> None:
        """Collect what is wrong with a value."""
        for flaw in flaws:
            message = flaw.message.replace("{key}", key)
            self.problem(message, at=flaw.at, hint=flaw.hint)


def nodes_of(content: bytes, shown: str, kind: str, problems: list[UserError]) -> Sequence[Node]:
    """Parse a table into its entries; a broken file has none, with the problem collected."""
    root = read_yaml(content, shown, KnowledgeError, problems)
    if root is None:
        return []
    if isinstance(root.value, list):
        return root.value
    hint = f"Begin every record with '- {kind}: NAME'."
    problems.append(KnowledgeError("the file must be a list", source=root.source, hint=hint))
    return []


def entry_of(node: Node, kind: str, problems: list[UserError]) -> Entry | None:
    """Take one entry of a table; ``None`` when it is none, with the problem collected."""
    if not isinstance(node.value, Mapping) or not node.value:
        message = f"a record must be a mapping that begins with '{kind}:'"
        problems.append(KnowledgeError(message, source=node.source))
        return None
    first = next(iter(node.value))
    name = node.value.get(kind)
    if name is None or not is_text(name):
        hint = did_you_mean(first, [kind])
        message = f"a record must begin with '{kind}:' and a name, not '{first}:'."
        problems.append(KnowledgeError(message, source=node.source, hint=hint))
        return None
    return Entry(node, kind, name.text.strip(), problems)


def report_duplicates(entries: Iterable[Entry], what: str, problems: list[UserError]) -> None:
    """Collect every name that stands a second time, exactly as given."""
    first: dict[str, Source] = {}
    for entry in entries:
        if entry.name in first:
            message = f"the {what} '{entry.name}' stands twice (first in {first[entry.name]})"
            problems.append(KnowledgeError(message, source=entry.place))
        first.setdefault(entry.name, entry.place)
