"""The vocabulary: every fact that rules may read or conclude, with its unit or values."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from advisor.errors import KnowledgeError
from advisor.files import compiled, data_dir
from advisor.knowledge.fact_type import FactType, Folder
from advisor.units import format_quantity, gib

__all__ = ["FactType", "Vocabulary", "load_vocabulary", "show", "shown_in"]

FILE = "facts.yaml"
ACTION_FACT = "option.family"
"""The action of a what-if: what rules may recommend are the values of this fact."""
OPTION = "option"
"""The group of what is said of one change."""
_LAYOUT = 5
"""Raised when the compiled form changes shape."""
"""Texts of values kept; neighbouring reports quote the same ones."""


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

        Args:
            name: What was written, perhaps without its group or in the wrong one.
            among: Names to choose from; all facts by default.
        """
        from advisor.knowledge.yaml_fields import guess  # noqa: PLC0415 - likewise
        from advisor.suggest import did_you_mean, nearest  # noqa: PLC0415 - for mistakes only

        names = self.facts if among is None else among
        sure = nearest(name, names, most=1)
        own = name.rpartition(".")[2]
        moved = [known for known in names if known.rpartition(".")[2] == own]
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


def load_vocabulary(folder: Path | None = None) -> Vocabulary:
    """Read ``facts.yaml`` of a knowledge folder, over the built-in one.

    A fact that both declare is the folder's; a folder without the file adds nothing.

    Raises:
        KnowledgeError: The file is wrong; several problems come as ``Problems``.
    """
    layers = _layers(folder)
    sha256 = hashlib.sha256(
        b"".join(f"{_LAYOUT} {shown}\0".encode() + content for shown, content in layers)
    ).hexdigest()
    facts = compiled("vocabulary", sha256, lambda: _read(layers), tuple[FactType, ...])
    return vocabulary_of(facts, sha256)


def vocabulary_of(declared: Iterable[FactType], sha256: str = "") -> Vocabulary:
    """Part what rules may name from what templates alone may."""
    facts, texts = dict[str, FactType](), dict[str, FactType]()
    for one in declared:
        (texts if one.origin == "text" else facts)[one.name] = one
    return Vocabulary(facts, sha256, texts)


def _layers(folder: Path | None) -> Sequence[tuple[str, bytes]]:
    own = data_dir("knowledge")
    layers = [(f"knowledge/{FILE}", _content(own / FILE))]
    if folder is not None and folder.resolve() != own and (folder / FILE).is_file():
        layers.append((f"{folder.resolve().name}/{FILE}", _content(folder / FILE)))
    return layers


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as bad:
        raise KnowledgeError(f"cannot read {path}: {bad.strerror}.") from None


def _read(layers: Sequence[tuple[str, bytes]]) -> tuple[FactType, ...]:
    from advisor.knowledge.fact_file import read_layers  # noqa: PLC0415 - a warm start does without it

    return tuple(read_layers(layers).values())
