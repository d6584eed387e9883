"""``facts.yaml`` -> the vocabulary; what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

from advisor.errors import KnowledgeError, raise_problems
from advisor.knowledge.fact_type import FactKind, FactType, Folder, Origin
from advisor.knowledge.yaml_fields import Collector, Fields
from advisor.units import UnitError, dimension_of

TABLES = ("gpus", "models", "formats", "frameworks", "kv_types")
_KEYS = (
    "fact", "unit", "as_sold", "values", "type", "of", "from", "help", "formerly", "texts", "in",
    "at", "print",
)  # fmt: skip
_TEXT_KEYS = ("text", "in", "help", "formerly", "at", "print")
_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


def read_layers(layers: Sequence[tuple[str, bytes]]) -> Mapping[str, FactType]:
    """Read files, each over those before it.

    Args:
        layers: Name in messages and content of every file.

    Raises:
        KnowledgeError: A file is wrong; several problems come as ``Problems``.
    """
    problems = Collector(KnowledgeError)
    merged: dict[str, FactType] = {}
    for shown, content in layers:
        merged.update(read_facts(content, shown, problems))
    raise_problems(problems.errors)
    return merged


def read_facts(content: bytes, shown: str, problems: Collector) -> Mapping[str, FactType]:
    """Read one file of facts, noting what is wrong in ``problems``."""
    facts: dict[str, FactType] = {}
    for node in problems.entries(content, shown, "- fact: GROUP.NAME"):
        entry = Fields.of(node, "a fact", problems)
        if entry is None:
            continue
        key = "text" if "text" in entry else "fact"
        for fact in _texts(entry) if key == "text" else _fact(entry):
            if fact.name in facts:
                problems.add(f"the {key} '{fact.name}' is declared twice.", entry.at(key))
            facts[fact.name] = fact
    return facts


def _texts(entry: Fields) -> Iterator[FactType]:
    """Read what templates alone may name: phrases, lists and the parts of pages."""
    entry.only(_TEXT_KEYS)
    entry.require("help")
    folders = _folders(entry)
    help_text = entry.text("help") or ""
    for name in entry.words("text"):
        if not (folders or _NAME.fullmatch(name)):
            hint = "Write group.name, or say with 'in' which folder of templates knows it."
            entry.problems.add(f"'{name}' is not the name of a text.", entry.at("text"), hint)
        group = name.rpartition(".")[0]
        former = entry.text("formerly") or ""
        yield FactType(
            name,
            group,
            "text",
            "",
            "",
            (),
            None,
            "text",
            help_text,
            formerly=former,
            at=entry.text("at") or "",
            print=entry.text("print") or "",
            only_in=folders,
        )


def _folders(entry: Fields) -> tuple[Folder, ...]:
    folders = entry.words("in")
    if not set(folders) <= set(get_args(Folder)):
        hint = f"There are {', '.join(get_args(Folder))}."
        entry.problems.add("'in' is for folders of templates.", entry.at("in"), hint)
    return cast("tuple[Folder, ...]", folders)


def _fact(entry: Fields) -> Iterator[FactType]:
    before = len(entry.problems.errors)
    entry.only(_KEYS)
    for key in ("fact", "from", "help"):
        entry.require(key)
    name = entry.text("fact") or ""
    if name and not _NAME.fullmatch(name):
        hint = "Write group.name in small letters, digits and underscores."
        entry.problems.add(f"'{name}' is not a fact name.", entry.at("fact"), hint)
    kind = _kind(entry)
    unit, dimension = _unit(entry)
    origin = entry.choice("from", [name for name in get_args(Origin) if name != "text"])
    of = _table(entry)
    values = _values(entry)
    as_sold = entry.flag("as_sold")
    help_text = entry.text("help") or ""
    former = entry.text("formerly") or ""
    texts, folders = "texts" not in entry or entry.flag("texts"), _folders(entry)
    if len(entry.problems.errors) > before or kind is None:
        return
    group = name.partition(".")[0]
    yield FactType(
        name,
        group,
        kind,
        unit,
        dimension,
        values,
        of,
        cast("Origin", origin),
        help_text,
        as_sold,
        former,
        texts,
        entry.text("at") or "",
        entry.text("print") or "",
        folders,
    )


def _kind(entry: Fields) -> FactKind | None:
    given = [key for key in ("unit", "values", "type") if key in entry]
    if len(given) != 1:
        hint = "Numbers have 'unit', enums 'values', the rest 'type: flag' or 'type: text'."
        message = "a fact has exactly one of 'unit', 'values' and 'type'."
        entry.problems.add(message, entry.source, hint)
        return None
    if given == ["type"]:
        return cast("FactKind | None", entry.choice("type", ("flag", "text")))
    return "number" if given == ["unit"] else "enum"


def _unit(entry: Fields) -> tuple[str, str]:
    written = entry.text("unit")
    if written is None:
        return "", ""
    unit = "" if written == "count" else written
    try:
        return unit, dimension_of(unit)
    except UnitError as bad:
        entry.problems.add(str(bad), entry.at("unit"))
        return unit, ""


def _table(entry: Fields) -> str | None:
    if "of" in entry and entry.text("type") != "text":
        entry.problems.add("'of' is for facts of 'type: text'.", entry.at("of"))
    return entry.choice("of", TABLES)


def _values(entry: Fields) -> tuple[str, ...]:
    node = entry.node("values")
    if node is None:
        return ()
    if not isinstance(node.value, list) or not node.value:
        entry.problems.add("'values' must be a list with at least one name.", entry.at("values"))
        return ()
    for item in node.value:
        if not isinstance(item.value, str) or "," in item.text:
            hint = "Put it in quotes if it is one; a comma cannot be part of it."
            entry.problems.add(f"'{item.text}' is not a name.", item.source, hint)
    values = entry.words("values")
    if len(set(values)) < len(values):
        entry.problems.add("a value stands twice.", entry.at("values"))
    return values
