"""What knowledge files declare beside the records of ``types``; read when files are compiled."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from msgspec import Struct, field

from advisor.knowledge.command_settings import PLACEHOLDERS, SETTINGS, SWITCHES
from advisor.knowledge.field_kinds import (
    Count,
    Flag,
    Flaw,
    FlawedError,
    Kind,
    Number,
    Text,
    Texts,
    Words,
    any_quantity,
    choice,
    items_of,
    mapping,
    nodes,
    written,
)
from advisor.suggest import did_you_mean
from advisor.yamlfile import Node

PLACEHOLDER = re.compile(r"\{([a-z_]+)(?::(raw|json))?\}")
"""A placeholder in a template: ``{name}``, ``{name:json}`` or ``{name:raw}``."""


class Piece(Struct, frozen=True):
    """A stretch of a command; it is left out where its switch is off."""

    when: str
    text: str
    node: Node

    @property
    def placeholders(self) -> Iterator[str]:
        """Name the placeholders of its text."""
        return (found[1] for found in PLACEHOLDER.finditer(self.text))

    def flaws(self, names: Collection[str]) -> Iterator[Flaw]:
        """Say what is wrong with it; ``names`` are the placeholders there are."""
        at = self.node.source
        if self.when and self.when not in SWITCHES:
            hint = did_you_mean(self.when, SWITCHES) or f"Switches: {', '.join(SWITCHES)}."
            yield Flaw(f"there is no switch '{self.when}'.", at, hint)
        if not self.text:
            message = "a piece must be a text or {when: SWITCH, add: TEXT}"
            yield Flaw(message, at, "Put a text that holds braces in quotes.")
        for name in self.placeholders:
            if name not in names:
                hint = did_you_mean(name, names) or f"Placeholders: {', '.join(names)}."
                yield Flaw(f"there is no placeholder '{name}'.", at, hint)


def _piece(node: Node) -> Piece:
    if not isinstance(node.value, Mapping):
        return Piece("", node.text if not isinstance(node.value, list) else "", node)
    when, text = node.value.get("when"), node.value.get("add")
    if set(node.value) != {"when", "add"} or when is None or text is None:
        return Piece("", "", node)
    return Piece(when.text, text.text, node)


def _line(node: Node) -> tuple[Piece, ...]:
    return tuple(map(_piece, items_of(node)))


def _pieces(node: Node) -> tuple[Piece, ...]:
    return tuple(piece for line in _lines(node) for piece in line)


def _lines(node: Node) -> tuple[tuple[Piece, ...], ...]:
    return tuple(map(_line, items_of(node)))


def _words(node: Node) -> Mapping[str, Mapping[str, str]]:
    """Read placeholder -> format or family -> word."""
    flaws = [
        Flaw(f"'{name}' must be a mapping of formats to words", words.source)
        for name, words in nodes(node).items()
        if not isinstance(words.value, Mapping)
    ]
    if flaws:
        raise FlawedError(*flaws)
    return mapping(mapping(written))(node)


class Program(Struct, frozen=True):
    """A program of a framework and how it is started (commands.yaml)."""

    name: Text = field(name="command")
    framework: Text
    version: Text
    what: Text
    lines: Annotated[tuple[tuple[Piece, ...], ...], Kind(_lines)]
    python: Annotated[tuple[Piece, ...], Kind(_pieces)] = ()
    by_format: Annotated[Mapping[str, Mapping[str, str]], Kind(_words)] = field(
        default_factory=dict
    )
    on_load: Annotated[Mapping[str, Mapping[str, str]], Kind(_words)] = field(default_factory=dict)
    kv_types: Words = field(default_factory=dict)
    kv_equal: Flag = False
    own_code: Texts = ()
    cannot: Annotated[Mapping[str, str], Kind(mapping(written, SETTINGS, "setting"))] = field(
        default_factory=dict
    )
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def placeholders(self) -> list[str]:
        """Name what its pieces may hold."""
        return [*PLACEHOLDERS, *self.by_format, *self.on_load]


class Policy(Struct, frozen=True):
    """A named number that an expert may change."""

    name: Text = field(name="policy")
    value: Annotated[float, Kind(any_quantity)]
    kind: Annotated[str, Kind(choice(("sourced", "derived", "policy")))]
    why: Text
    sources: Mapping[str, str] = field(default_factory=dict)


class SecondCard(Struct, frozen=True):
    """A card that is tried beside another one."""

    name: Text = field(name="second_card")
    why: Text
    sources: Mapping[str, str] = field(default_factory=dict)


class Multiprocessor(Struct, frozen=True):
    """What one multiprocessor of a compute capability has."""

    capability: Number = field(name="compute_capability")
    cores: Count = field(name="cores_per_multiprocessor")
    sources: Mapping[str, str] = field(default_factory=dict)


class Declared(Struct, frozen=True):
    """Where figures come from (sources.yaml)."""

    name: Text = field(name="id")
    what: Text
    kind: Annotated[
        str, Kind(choice(("datasheet", "measured", "derived", "background", "community")))
    ]
    url: Text | None = None
    licence: Text | None = None
    as_of: Text | None = None
