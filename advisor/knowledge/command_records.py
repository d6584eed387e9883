"""commands.yaml: how each runtime is started, read and checked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from advisor.knowledge.command_settings import PLACEHOLDERS, SETTINGS, SWITCHES
from advisor.knowledge.fields import Record
from advisor.suggest import did_you_mean
from advisor.yamlfile import Node

PLACEHOLDER = re.compile(r"\{([a-z_]+)(?::(raw|json))?\}")
"""A placeholder in a template: ``{name}``, ``{name:json}`` or ``{name:raw}``."""

_Fields = dict[str, object]


def command_fields(record: Record) -> _Fields:
    """Read one program as JSON-able data; what is wrong is collected in the record."""
    words = {key: _words(record, key) for key in ("by_format", "on_load")}
    names = [*PLACEHOLDERS, *(name for table in words.values() for name in table)]
    python = [piece for node in _listed(record, "python") for piece in _pieces(node)]
    lines = [_pieces(node) for node in _listed(record, "lines", required=True)]
    fields: _Fields = {
        "framework": record.text("framework", required=True) or "",
        "version": record.text("version", required=True) or "",
        "what": record.text("what", required=True) or "",
        "python": [_read(piece, record, names) for piece in python],
        "lines": [[_read(piece, record, names) for piece in line] for line in lines],
        **words,
        "kv_types": _texts(record, "kv_types"),
        "kv_equal": record.flag("kv_equal") is True,
        "own_code": record.texts("own_code"),
        "cannot": _texts(record, "cannot"),
        "sources": {},
    }
    _check_settings(record)
    if not python:
        _check_shell(record, lines)
    return fields


def _listed(record: Record, key: str, *, required: bool = False) -> list[Node]:
    node = record.get(key, required=required)
    if node is None:
        return []
    return node.value if isinstance(node.value, list) else [node]


def _pieces(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else [node]


def _read(node: Node, record: Record, names: Collection[str]) -> _Fields:
    when, text = _parts(node)
    if when and when not in SWITCHES:
        hint = did_you_mean(when, SWITCHES) or f"Switches: {', '.join(SWITCHES)}."
        record.problem(f"there is no switch '{when}'.", at=node.source, hint=hint)
    if not text:
        record.problem(
            "a piece must be a text or {when: SWITCH, add: TEXT}",
            at=node.source,
            hint="Put a text that holds braces in quotes.",
        )
    for name in placeholders(text):
        if name not in names:
            hint = did_you_mean(name, names) or f"Placeholders: {', '.join(names)}."
            record.problem(f"there is no placeholder '{name}'.", at=node.source, hint=hint)
    return {"when": when, "text": text}


def _parts(node: Node) -> tuple[str, str]:
    if not isinstance(node.value, Mapping):
        return "", node.text if not isinstance(node.value, list) else ""
    when, text = node.value.get("when"), node.value.get("add")
    if set(node.value) != {"when", "add"} or when is None or text is None:
        return "", ""
    return when.text, text.text


def placeholders(text: str) -> Iterator[str]:
    """Name the placeholders of a template text."""
    return (found[1] for found in PLACEHOLDER.finditer(text))


def _words(record: Record, key: str) -> dict[str, dict[str, str]]:
    """Read placeholder -> format or family -> word."""
    found: dict[str, dict[str, str]] = {}
    for name, node in record.mapping(key).items():
        if isinstance(node.value, Mapping):
            found[name] = {word: item.text for word, item in node.value.items()}
        else:
            record.problem(f"'{name}' must be a mapping of formats to words", at=node.source)
    return found


def _texts(record: Record, key: str) -> dict[str, str]:
    return {name: node.text for name, node in record.mapping(key).items()}


def _check_settings(record: Record) -> None:
    reasons = record.mapping("cannot")
    node = record.get("cannot")
    for name in reasons:
        if name not in SETTINGS:
            at = ((node.key_sources if node else None) or {}).get(name)
            hint = did_you_mean(name, SETTINGS) or f"Settings: {', '.join(SETTINGS)}."
            record.problem(f"there is no setting '{name}'.", at=at, hint=hint)


def _check_shell(record: Record, lines: list[list[Node]]) -> None:
    for node in (piece for line in lines for piece in line):
        try:
            shlex.split(_parts(node)[1])
        except ValueError as error:
            record.problem(f"a quote is left open: {error}", at=node.source)
