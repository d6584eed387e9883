"""Scores: ``base``, terms per unit of a fact, and points for conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.errors import Source
from advisor.knowledge.fact_type import FactType
from advisor.knowledge.yaml_fields import Fields
from advisor.rules.language.conditions import read_tests
from advisor.rules.language.context import Reading
from advisor.rules.language.model import PerTerm, Score, WhenTerm
from advisor.yamlfile import Node

_HIGHEST = 100
_PER = re.compile(r"([-+]?\d+(?:\.\d+)?)\s+(?:per\s+(.+)|each)")


def read_score(node: Node, reading: Reading) -> Score | None:
    """Read the score of a recommendation."""
    fields = Fields.of(node, "'score'", reading.problems)
    if fields is None:
        return None
    fields.only(("base", "add", "when"))
    fields.require("base", "Write a number from 0 to 100.")
    base = read_base(fields, "base")
    add = tuple(_per_term(item, reading) for item in _items(fields, "add"))
    when = tuple(_when_term(item, reading) for item in _items(fields, "when"))
    return Score(
        base, tuple(t for t in add if t is not None), tuple(t for t in when if t is not None)
    )


def read_base(fields: Fields, key: str) -> float:
    """Read a number from 0 to 100; 0 when it is absent or wrong."""
    base = fields.number(key)
    if base is not None and not 0 <= base <= _HIGHEST:
        message = f"'{key}' must lie between 0 and {_HIGHEST}."
        fields.problems.add(message, fields.values[key].source, lint="wrong-score")
    return base or 0.0


def _items(fields: Fields, key: str) -> Sequence[Node]:
    node = fields.node(key)
    if node is None:
        return ()
    if not isinstance(node.value, list):
        hint = "Begin every term with '- '."
        message = f"'{key}' of a score must be a list."
        fields.problems.add(message, fields.at(key), hint, lint="wrong-shape")
        return ()
    return node.value


def _per_term(node: Node, reading: Reading) -> PerTerm | None:
    fields = Fields.of(node, "a term of 'add'", reading.problems)
    if fields is None:
        return None
    fields.only(("per", "points", "cap"))
    name, points = fields.require("per"), fields.require("points")
    cap = fields.number("cap")
    if cap is not None and cap <= 0:
        place = fields.values["cap"].source
        reading.problems.add("'cap' must be above 0.", place, lint="wrong-score")
    fact = reading.fact(name.text, name.source) if name else None
    if name is None or points is None or fact is None:
        return None
    if fact.kind != "number":
        message = f"{fact.name} is not a number."
        hint = "Give points for it under 'when'."
        reading.problems.add(message, name.source, hint, lint="wrong-score")
        return None
    return _points_per(fact, points, cap, name.source, reading)


def _points_per(
    fact: FactType, node: Node, cap: float | None, source: Source, reading: Reading
) -> PerTerm | None:
    text = " ".join(node.text.split())
    each = "each" if not fact.unit else f"per {fact.unit}"
    match = _PER.fullmatch(text)
    if not match:
        message = f"'{text}' does not say how many points per how much."
        hint = f"Write for example '-2 {each}'."
        reading.problems.add(message, node.source, hint, lint="wrong-score")
        return None
    amount = match[2] or "1"
    amount = amount if amount[0].isdigit() else f"1 {amount}"
    value = reading.number(fact, amount, node.source)
    if value is None:
        return None
    if value <= 0:
        message = f"'{amount}' must be above 0."
        reading.problems.add(message, node.source, lint="wrong-score")
        return None
    return PerTerm(fact.name, float(match[1]), value, text, cap, source)


def _when_term(node: Node, reading: Reading) -> WhenTerm | None:
    fields = Fields.of(node, "a term of 'when'", reading.problems)
    if fields is None:
        return None
    fields.require("points")
    points = fields.number("points")
    tests = read_tests(fields, reading, besides="points")
    if len(fields.values) == 1:
        message = "no condition earns these points."
        reading.problems.add(message, fields.source, "Name a fact.", lint="wrong-score")
    if points is None or not tests:
        return None
    text = ", ".join(
        f"{key} {' '.join(value.text.split())}"
        for key, value in fields.values.items()
        if key != "points"
    )
    return WhenTerm(tests, points, text)
