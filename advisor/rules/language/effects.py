"""What a rule does: ``conclude``, ``recommend``, ``veto`` or ``note``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from advisor.knowledge.vocabulary import ACTION_FACT
from advisor.knowledge.yaml_fields import Fields, listed
from advisor.rules.language.context import MAX_TEXT_BYTES, Reading
from advisor.rules.language.model import Rule, Score
from advisor.rules.language.scores import read_base, read_score
from advisor.yamlfile import Node

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
        return replace(rule, note=_sentence("note", fields, reading))
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
