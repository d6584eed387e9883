"""Entries of knowledge files -> records, by what the fields of each type declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from advisor.errors import KnowledgeError, Source, UserError, did_you_mean
from advisor.knowledge.field_kinds import (
    Flaw,
    FlawedError,
    Kind,
    as_it_is,
    is_text,
    items_of,
    nodes,
)
from advisor.units import plain, typed
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

    def at_config(self, key: str) -> Source:
        """Where a key of a model's ``config`` stands, or where that begins."""
        config = self.values.get("config")
        held = config.value if config is not None else None
        inner = held.get("text_config") if isinstance(held, Mapping) else None
        for node in (inner, config):
            if node is not None and key in (node.key_sources or {}):
                return (node.key_sources or {})[key]
        return self.at("config")

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
        hint = did_you_mean(first, [kind]) if first != kind else ""
        instead = f"not '{first}:'." if first != kind else "and this one has none."
        message = f"a record must begin with '{kind}:' and a name, {instead}"
        problems.append(KnowledgeError(message, source=node.source, hint=hint))
        return None
    if typed(name.text) != name.text or "\n" in name.text.strip():
        message = f"the name '{plain(name.text)}' holds control or invisible characters."
        problems.append(KnowledgeError(message, source=name.source, hint="Delete them."))
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


_UNDECLARED = "Declare it in sources.yaml, or in a sources-mine.yaml of yours."
_R = TypeVar("_R", bound=Struct)


def record_of(kind: type[_R], entry: Entry, ids: Collection[str] = ()) -> _R:
    """Read an entry; a field that is wrong is collected as a problem and left at its default.

    A required field that is wrong is ``None`` in it; ``ids`` are the sources that it may name.
    """
    try:
        made = _model(kind).model_validate(entry.values)
    except ValidationError as error:
        wrong = {str(item["loc"][0]) for item in error.errors()}
        _collect(error, entry, _keys(kind))
        right = {key: node for key, node in entry.values.items() if key not in wrong}
        made = _model(kind, partial=True).model_validate(right)
    found = dict(made.__dict__)
    if _has_sources(kind):
        whole, by_field = found.pop("source"), found.pop("sources")
        found["sources"] = _sources(entry, ids, whole, by_field, _keys(kind))
    return kind(**found)


def _collect(error: ValidationError, entry: Entry, known: Sequence[str]) -> None:
    for item in error.errors():
        key = str(item["loc"][0])
        if item["type"] == "missing":
            entry.problem(f"'{key}' is missing")
        elif item["type"] == "extra_forbidden":
            hint = did_you_mean(key, known) or f"Known keys: {', '.join(known)}."
            entry.problem(f"unknown key '{key}'.", at=entry.at(key), hint=hint)
        else:
            flawed = item["ctx"]["error"]
            assert isinstance(flawed, FlawedError)
            entry.flaws(flawed.flaws, key)


def _keys(kind: type[Struct]) -> Sequence[str]:
    """The keys that an entry may have."""
    return [info.alias or "" for info in _model(kind).model_fields.values()]


@cache
def _model(kind: type[Struct], *, partial: bool = False) -> type[BaseModel]:
    """The pydantic model with the fields of a record that are read from a file."""
    hints = get_type_hints(kind, include_extras=True)
    declared: dict[str, Any] = {
        f.name: (hints[f.name], Field(alias=f.encode_name, **_default(f, partial=partial)))
        for f in fields(kind)
        if _is_read(f)
    }
    if _has_sources(kind):
        absent: dict[str, Any] = {"default": None} if partial else {}
        declared["source"] = (Annotated[Node, Kind(as_it_is)], Field(alias="source", **absent))
        declared["sources"] = (
            Annotated[Mapping[str, Node], Kind(nodes)],
            Field(alias="sources", default_factory=dict),
        )
    rules = ConfigDict(extra="forbid", protected_namespaces=())
    return create_model(kind.__name__, __config__=rules, **declared)


def _has_sources(kind: type[Struct]) -> bool:
    return "sources" in kind.__struct_fields__


def _default(info: FieldInfo, *, partial: bool) -> dict[str, Any]:
    """What a field is where it is left out: unknown, or no words; none where it must be there."""
    if info.default_factory is not NODEFAULT:
        return {"default_factory": info.default_factory}
    if info.default is not NODEFAULT:
        return {"default": info.default}
    if type(None) in get_args(info.type):
        return {"default": None}
    if get_args(info.type)[0] == tuple[str, ...]:
        return {"default": ()}
    return {"default": None} if partial else {}


def _is_read(info: FieldInfo) -> bool:
    parts = (info.type, *get_args(info.type))
    return any(isinstance(m, Kind) for part in parts for m in getattr(part, "__metadata__", ()))


def _sources(
    entry: Entry,
    ids: Collection[str],
    whole: Node | None,
    by_field: Mapping[str, Node],
    known: Sequence[str],
) -> dict[str, str]:
    """Join ``source`` and ``sources``: field -> source ids, key ``""`` for the record."""
    found = {"": _ids(entry, "source", whole, ids)} if whole is not None else {}
    for key, node in by_field.items():
        if key not in known:
            message = f"'sources' names the unknown field '{key}'."
            entry.problem(message, at=node.source, hint=did_you_mean(key, known))
        else:
            found[key] = _ids(entry, "sources", node, ids)
    return {key: stated for key, stated in found.items() if stated}


def _ids(entry: Entry, key: str, node: Node, ids: Collection[str]) -> str:
    for item in items_of(node):
        if not is_text(item) or item.text not in ids:
            message = f"'{key}' names the undeclared source '{item.text}'."
            hint = did_you_mean(item.text, ids) or _UNDECLARED
            entry.problem(message, at=item.source, hint=hint)
    return ", ".join(item.text for item in items_of(node))
