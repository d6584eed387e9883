"""Cases: the examples beside a rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, cast

from advisor.knowledge.yaml_fields import Fields, correction, guess
from advisor.rules.language.context import Reading
from advisor.rules.language.model import Case
from advisor.scenario.settings import SETTINGS
from advisor.yamlfile import Node

_KEYS = ("name", "given", "expect", "change", "rank", "says")
Expect = Literal["fires", "silent"]


def read_cases(
    fields: Fields,
    reading: Reading,
    expected: Collection[str] | None = ("fires", "silent"),
) -> tuple[tuple[Case, str], ...]:
    """Read the cases of a rule or ladder, each with what it expects.

    Args:
        fields: The rule; its key ``cases`` may be absent.
        reading: The run of the parser.
        expected: What ``expect`` may say; a ladder's cases expect one of its values, and
            None when they could not be read.
    """
    found = []
    names: set[str] = set()
    for node in _items(fields, reading):
        block = Fields.of(node, "a case", reading.problems)
        read = _case(block, expected, reading) if block else None
        if block is None or read is None:
            continue
        if read[0].name in names:
            message = f"two cases are called '{read[0].name}'."
            hint = "Give each its own name."
            reading.problems.add(message, block.at("name"), hint, lint="duplicate-case")
        names.add(read[0].name)
        found.append(read)
    return tuple(found)


def _items(fields: Fields, reading: Reading) -> Sequence[Node]:
    node = fields.node("cases")
    if node is None:
        return ()
    if not isinstance(node.value, list):
        hint = "Begin every case with '- name: ...'."
        message = "'cases' must be a list."
        reading.problems.add(message, fields.at("cases"), hint, lint="wrong-shape")
        return ()
    return node.value


def _case(
    block: Fields, expected: Collection[str] | None, reading: Reading
) -> tuple[Case, str] | None:
    block.only(_KEYS)
    for key in ("name", "given", "expect"):
        block.require(key)
    name = block.text("name")
    expect = block.text("expect") if expected is None else block.choice("expect", expected)
    given, change = _request(block, "given", reading), _request(block, "change", reading)
    rank = _rank(block)
    says = block.text("says")
    if expect == "silent":
        for key in ("rank", "says"):
            if key in block:
                message = f"a case that expects silence cannot have '{key}'."
                place = block.at(key)
                reading.problems.add(message, place, "Delete it.", lint="wrong-case")
    if name is None or expect is None or given is None:
        return None
    fires: Expect = "silent" if expect == "silent" else "fires"
    return Case(name, given, fires, change, rank, says, block.source), expect


def _request(block: Fields, key: str, reading: Reading) -> Mapping[str, object] | None:
    node = block.node(key)
    if node is None:
        return None
    inner = Fields.of(node, f"'{key}'", reading.problems)
    if inner is None:
        return None
    if not inner.values:
        hint = "State at least one input."
        reading.problems.add(f"'{key}' is empty.", block.at(key), hint, lint="empty-value")
    for name, value in inner.values.items():
        if name not in SETTINGS:
            hint = guess(name, SETTINGS) or f"Known inputs: {', '.join(SETTINGS)}."
            edit = correction(name, hint)
            message = f"unknown input '{name}'."
            reading.problems.add(message, inner.at(name), hint, lint="unknown-input", edit=edit)
        elif isinstance(value.value, list | Mapping) or value.value is None:
            message = f"the input '{name}' has no plain value."
            reading.problems.add(message, inner.at(name), lint="wrong-shape")
    return cast("Mapping[str, object]", node.plain())


def _rank(block: Fields) -> int | None:
    rank = block.number("rank")
    if rank is not None and (rank < 1 or rank != int(rank)):
        message = "'rank' must be a whole number from 1."
        block.problems.add(message, block.values["rank"].source, lint="wrong-value")
        return None
    return None if rank is None else int(rank)
