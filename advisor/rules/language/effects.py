"""What a rule does: ``conclude``, ``recommend``, ``veto`` or ``note``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, cast

from msgspec.structs import replace

from advisor.errors import Source, correction, guess
from advisor.knowledge.vocabulary import ACTION_FACT, FactType
from advisor.knowledge.yaml_fields import Fields, listed
from advisor.rules.language.conditions import read_tests
from advisor.rules.language.context import MAX_TEXT_BYTES, Reading
from advisor.rules.language.model import Case, PerTerm, Rule, Score, WhenTerm
from advisor.scenario.settings import SETTINGS
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


_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")
_SHORT = "short"
EFFECTS = ("conclude", "recommend", "veto", "note")


def read_effect(rule: Rule, fields: Fields, reading: Reading) -> Rule:
    """Add to a rule what it does; a rule that does nothing, or two things, is a problem."""
    given = [key for key in EFFECTS if key in fields]
    if len(given) != 1:
        message = "a rule needs exactly one of conclude, recommend, veto and note."
        hint = f"It has {' and '.join(given)}: split it." if given else "Add one."
        reading.problems.add(message, fields.source, hint, lint="one-effect")
    for key in given:
        rule = _READERS[key](rule, fields, reading)
    return rule


def _conclude(rule: Rule, fields: Fields, reading: Reading) -> Rule:
    block = Fields.of(fields.values["conclude"], "'conclude'", reading.problems)
    if block is None:
        return rule
    if not block.values:
        message = "'conclude' is empty."
        reading.problems.add(message, fields.at("conclude"), lint="empty-value")
    found = {}
    for name, value_node in block.values.items():
        value = read_conclusion(name, value_node, block, reading)
        if value is not None:
            found[name] = value
    return replace(rule, conclude=found)


def read_conclusion(
    name: str, node: Node, block: Fields, reading: Reading
) -> float | str | bool | None:
    """Read a value that rules give to the fact ``name``."""
    if not concludable(name, block, reading):
        return None
    text = block.scalar(name, node)
    if text is None:
        return None
    return reading.value(reading.vocabulary.facts[name], text, node.source)


def concludable(name: str, block: Fields, reading: Reading) -> bool:
    """Whether rules may conclude this fact; if not, that is a problem."""
    fact = reading.fact(name, block.at(name))
    if fact is not None and fact.origin != "rules":
        concluded = [f.name for f in reading.vocabulary.facts.values() if f.origin == "rules"]
        message = f"{name} cannot be concluded: it comes from {fact.origin}."
        hint = reading.vocabulary.suggest(name, concluded) or f"Rules conclude {listed(concluded)}."
        reading.problems.add(message, block.at(name), hint, lint="not-concludable")
    return fact is not None and fact.origin == "rules"


def _recommend(rule: Rule, fields: Fields, reading: Reading) -> Rule:
    block = Fields.of(fields.values["recommend"], "'recommend'", reading.problems)
    if block is None:
        return rule
    block.only(("action", "score", "supersedes", "text"))
    block.require("action")
    block.require("score", "Write at least 'score: {base: 50}'.")
    block.require("text", "Name a template of templates/.")
    families = reading.vocabulary.facts.get(ACTION_FACT)
    action = block.choice("action", families.values if families else ())
    score = read_score(block.values["score"], reading) if "score" in block else None
    return replace(
        rule,
        action=action,
        score=score,
        supersedes=block.words("supersedes"),
        text=_template(block, reading),
    )


def _template(block: Fields, reading: Reading) -> str | None:
    name = block.text("text")
    if name is not None:
        reading.template(name, block.values["text"].source)
    return name


def _veto(rule: Rule, fields: Fields, reading: Reading) -> Rule:
    text = _sentence("veto", fields, reading)
    for name in _PLACEHOLDER.findall(text or ""):
        if name != _SHORT:
            reading.fact(name, fields.values["veto"].source)
    return replace(rule, veto=text)


def _note(rule: Rule, fields: Fields, reading: Reading) -> Rule:
    node = fields.values["note"]
    if not isinstance(node.value, Mapping):
        text = _sentence("note", fields, reading)
        for name in _PLACEHOLDER.findall(text or ""):
            if "." in name:
                reading.fact(name, node.source)
        return replace(rule, note=text)
    block = Fields.of(node, "'note'", reading.problems)
    assert block is not None
    block.only(("text", "score"))
    block.require("text", "Name a template, or write the note as one text.")
    score = Score(read_base(block, "score")) if "score" in block else None
    return replace(rule, text=_template(block, reading), score=score)


def _sentence(key: str, fields: Fields, reading: Reading) -> str | None:
    text = fields.text(key)
    if text and len(text.encode()) > MAX_TEXT_BYTES:
        message = f"'{key}' is longer than {MAX_TEXT_BYTES} bytes."
        place = fields.values[key].source
        reading.problems.add(message, place, "Shorten it.", lint="engine-limits")
    return text


_READERS = {"conclude": _conclude, "recommend": _recommend, "veto": _veto, "note": _note}


_KEYS = ("name", "given", "expect", "change", "rank", "says")
Expect = Literal["fires", "silent"]


def read_cases(
    fields: Fields,
    reading: Reading,
    expected: Collection[str] | None = ("fires", "silent"),
) -> tuple[tuple[Case, str], ...]:
    """Read the cases of a rule or ladder, each with what it expects.

    Cases of a ladder expect one of its values, None when those could not be read.
    """
    found = []
    names: set[str] = set()
    for node in _cases(fields, reading):
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


def _cases(fields: Fields, reading: Reading) -> Sequence[Node]:
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
