"""The vocabulary, ``facts.yaml``: every fact that rules may use, with its unit or values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from msgspec import Struct

from advisor.errors import KnowledgeError, Source, did_you_mean, guess, nearest, raise_problems
from advisor.files import compiled, data_dir, hashed, read_whole, real
from advisor.knowledge.layers import Stack, layers, stack
from advisor.units import UnitError, dimension_of, format_quantity, gib

if TYPE_CHECKING:
    from advisor.knowledge.yaml_fields import Collector, Fields

FactKind = Literal["number", "enum", "flag", "text"]
Origin = Literal["input", "knowledge", "estimate", "option", "rules", "text"]
"""Where a fact comes from; what only templates name is ``text``."""
Folder = Literal["actions", "notes", "report", "site"]
"""Folders of templates."""


class FactType(Struct, frozen=True, gc=False):
    """One fact of the vocabulary."""

    name: str
    group: str
    kind: FactKind
    unit: str
    """The unit to show; empty for counts and for facts that are not numbers."""
    dimension: str
    """See ``units.DIMENSIONS``; empty for facts that are not numbers."""
    values: tuple[str, ...]
    """The closed list of an enum."""
    of: str | None
    """The knowledge table that holds the valid names of a text."""
    origin: Origin
    help: str
    as_sold: bool = False
    """Whether GB means GiB here, as on the box of a card."""
    formerly: str = ""
    """What templates called it before rules and texts had one name for it."""
    texts: bool = True
    """Whether templates may name it."""
    at: str = ""
    """Where the document, or for `option` a recommendation of it, has the figure."""
    print: str = ""
    """How templates print it, where that is not as its unit is usually printed."""
    only_in: tuple[Folder, ...] = ()
    """The folders of templates that alone know it; empty for all that tell of its subject."""


FactValue = float | str | bool


FILE = "facts.yaml"
ACTION_FACT = "option.family"
"""The action of a what-if: what rules may recommend are the values of this fact."""
OPTION = "option"
"""The group of what is said of one change."""
_LAYOUT = 5
"""Raised when the compiled form changes shape."""


class Vocabulary(Struct, frozen=True):
    """Every fact by name, in file order."""

    facts: Mapping[str, FactType]
    sha256: str = ""
    texts: Mapping[str, FactType] = {}
    """What templates may name beside facts."""

    def named_in(self, folder: Folder) -> Mapping[str, FactType]:
        """Give what templates of one folder may name: facts and texts."""
        every = {n: one for n, one in (*self.facts.items(), *self.texts.items()) if one.texts}
        if folder == "site":
            return {name: one for name, one in every.items() if folder in one.only_in}
        return {
            name: one
            for name, one in every.items()
            if (folder in one.only_in or not one.only_in)
            and not (folder == "notes" and one.group == OPTION)
        }

    def renamed(self) -> Mapping[str, str]:
        """Give what templates called facts and texts once, with the name of today."""
        every = [one for one in (*self.facts.values(), *self.texts.values()) if one.texts]
        dotted = [one.name for one in every if one.group]
        return {name.replace(".", "_"): name for name in dotted} | {
            one.formerly: one.name for one in every if one.formerly
        }

    @property
    def groups(self) -> tuple[str, ...]:
        """Names before the dot, in file order."""
        return tuple(dict.fromkeys(fact.group for fact in self.facts.values()))

    def fact(self, name: str) -> FactType:
        """Find a fact.

        Raises:
            KnowledgeError: There is none of this name.
        """
        try:
            return self.facts[name]
        except KeyError:
            raise KnowledgeError(f"unknown fact '{name}'.", hint=self.suggest(name)) from None

    def suggest(self, name: str, among: Collection[str] | None = None) -> str:
        """Give ``Did you mean 'memory.deficit'?`` or an empty string.

        ``name`` may be without its group or in the wrong one.
        """
        names = self.facts if among is None else among
        sure = nearest(name, names, most=1)
        last = name.rpartition(".")[2]
        moved = [known for known in names if known.rpartition(".")[2] == last]
        if moved and name.casefold() not in map(str.casefold, sure):
            return did_you_mean(moved[0], moved)
        return guess(name, names)


def show(fact: FactType, value: float | str | bool) -> str:  # noqa: FBT001 - a fact's value
    """Print a base-unit value with its display unit: ``5.3 GiB``, ``yes``, ``needs_offload``."""
    return shown_in(fact.unit, value)


def shown_in(unit: str, value: float | str | bool | None) -> str:  # noqa: FBT001 - likewise
    """Print a base-unit value with this unit; ``unknown`` for none."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return gib(value) if unit == "GiB" else format_quantity(value, unit)


@cache
def vocabulary() -> Vocabulary:
    """Give what rules and templates may name, of the built-in files; both sides of a report ask."""
    return load_vocabulary()


def load_vocabulary(folders: Stack = None) -> Vocabulary:
    """Read ``facts.yaml`` of knowledge folders, over the built-in one.

    A fact that two declare is the later folder's; a folder without the file adds nothing.

    Raises:
        KnowledgeError: The file is wrong; several problems come as ``Problems``.
    """
    files = _layers(folders)
    sha256 = hashed(b"".join(f"{_LAYOUT} {shown}\0".encode() + content for shown, content in files))
    facts = compiled(
        "vocabulary", sha256, lambda: tuple(read_layers(files).values()), tuple[FactType, ...]
    )
    return vocabulary_of(facts, sha256)


def vocabulary_of(declared: Iterable[FactType], sha256: str = "") -> Vocabulary:
    """Part what rules may name from what templates alone may."""
    facts, texts = dict[str, FactType](), dict[str, FactType]()
    for one in declared:
        (texts if one.origin == "text" else facts)[one.name] = one
    return Vocabulary(facts, sha256, texts)


def _layers(folders: Stack) -> Sequence[tuple[str, bytes]]:
    built_in = data_dir("knowledge")
    found = [(f"knowledge/{FILE}", _content(built_in / FILE))]
    paths = stack(folders)
    return found + [
        (f"{layer.label}/{FILE}", _content(layer.folder / FILE))
        for layer in layers(paths, real(paths[0]).name if paths else "")
        if (layer.folder / FILE).is_file() and real(layer.folder) != built_in
    ]


def _content(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError as bad:
        raise KnowledgeError(f"cannot read {path}: {bad.strerror}.") from None


TABLES = ("gpus", "models", "formats", "frameworks", "kv_types")
_KEYS = (
    "fact", "unit", "as_sold", "values", "type", "of", "from", "help", "formerly", "texts", "in",
    "at", "print",
)  # fmt: skip
_TEXT_KEYS = ("text", "in", "help", "formerly", "at", "print")
_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


def read_layers(layers: Sequence[tuple[str, bytes]]) -> Mapping[str, FactType]:
    """Read files, each over those before it.

    Raises:
        KnowledgeError: A file is wrong; several problems come as ``Problems``.
    """
    from advisor.knowledge.yaml_fields import Collector  # noqa: PLC0415 - a warm start does without

    problems = Collector(KnowledgeError)
    merged: dict[str, FactType] = {}
    for shown, content in layers:
        merged.update(read_facts(content, shown, problems, merged))
    raise_problems(problems.errors)
    return merged


def read_facts(
    content: bytes,
    shown: str,
    problems: Collector,
    below: Mapping[str, FactType] | None = None,
) -> Mapping[str, FactType]:
    """Read one file of facts, noting what is wrong in ``problems``.

    What the facts ``below`` mean stays.
    """
    facts: dict[str, FactType] = {}
    for node in problems.entries(content, shown, "- fact: GROUP.NAME"):
        entry = problems.mapping(node, "a fact")
        if entry is None:
            continue
        key = "text" if "text" in entry else "fact"
        for fact in _texts(entry) if key == "text" else _fact(entry):
            if fact.name in facts:
                problems.add(f"the {key} '{fact.name}' is declared twice.", entry.at(key))
            facts[fact.name] = fact
            if below:
                _fits_over(fact, below, entry.at(key), problems)
    return facts


_MEANING = ("group", "kind", "dimension", "values", "of", "origin", "as_sold", "texts", "only_in")
_SUPPLIED = ("rules",)
"""Where a fact of the user's can come from: for another nothing would give it a value."""


def _fits_over(
    fact: FactType, below: Mapping[str, FactType], at: Source, problems: Collector
) -> None:
    """Refuse what would mean something else to the rules and texts that know the fact."""
    known = below.get(fact.name)
    if known is None:
        if fact.origin not in _SUPPLIED:
            message = f"nothing gives '{fact.name}' a value: a fact of yours comes from rules."
            hint = "Write 'from: rules' and a rule with 'conclude:'."
            problems.add(message, at, hint)
        return
    other = [key for key in _MEANING if getattr(fact, key) != getattr(known, key)]
    if other:
        message = f"'{fact.name}' is built in, and this entry changes its {', '.join(other)}."
        problems.add(message, at, "Give yours another name; unit and help alone may differ.")


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
