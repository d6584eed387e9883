"""The JSON Schema of rule files: completion, help and first checks in any editor."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from advisor.knowledge.vocabulary import ACTION_FACT, FactType, Vocabulary
from advisor.knowledge.yaml_fields import listed
from advisor.rules.language.conditions import BY_KIND, KINDS, VERBS, example
from advisor.rules.language.effects import EFFECTS
from advisor.rules.language.entries import Status
from advisor.scenario.settings import SETTINGS
from advisor.units import DIMENSIONS

Schema = dict[str, object]
Facts = Collection[FactType]

_ID: Schema = {
    "type": "string",
    "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$",
    "description": "A unique name: small letters, digits and hyphens.",
}
_TEXT: Schema = {"type": "string", "minLength": 1}
_TEMPLATE: Schema = {"type": "string", "pattern": r"\.j2$", "description": "A file in templates/."}
_FACT = r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*"
_NUMBER = r"[-+]?[0-9][0-9_,]*(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_POINTS = r"^[-+]?[0-9]+(\.[0-9]+)? +(per .+|each)$"


def rules_schema(vocabulary: Vocabulary) -> dict[str, object]:
    """Describe rule files for editors; the parser stays the judge of what is right."""
    facts = vocabulary.facts.values()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Rules of the advisor",
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": {"rule": _ID, "ladder": _ID},
            "if": {"required": ["ladder"]},
            "then": _ref("ladder"),
            "else": {
                "if": {"required": ["disable"]},
                "then": _ref("disable"),
                "else": _ref("rule"),
            },
        },
        "definitions": {
            "disable": _disable(),
            "rule": _rule(),
            "ladder": _ladder(facts),
            "when": _when(facts),
            "conclude": _object({f.name: _value(f) for f in facts if f.origin == "rules"}),
            "recommend": _recommend(vocabulary),
            "score": _score(facts),
            "inputs": _object({key: {} for key in SETTINGS}),
            "range": _object({"from": _TEXT, "to": _TEXT}),
            **{_condition_name(fact): _condition(fact) for fact in facts},
        },
    }


def describe(fact: FactType) -> str:
    """Say in two lines what a fact is and which conditions it takes."""
    units = [unit for unit in DIMENSIONS.get(fact.dimension, ()) if unit]
    kind = f"a number in {fact.unit} ({', '.join(units)})" if units else KINDS[fact.kind]
    kind = f"one of {', '.join(fact.values)}" if fact.values else kind
    verbs = ", ".join((*BY_KIND[fact.kind], "is known", "is unknown"))
    return f"{fact.help}\n{kind}, from {fact.origin}. Verbs: {verbs}."


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _object(
    properties: Mapping[str, object], required: Sequence[str] = (), help_text: str = ""
) -> Schema:
    found: Schema = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        found["required"] = list(required)
    return found | ({"description": help_text} if help_text else {})


def _list(items: Schema, least: int = 1, **more: object) -> Schema:
    return {"type": "array", "minItems": least, "items": items, **more}


def _disable() -> Schema:
    reason = _TEXT | {"description": "One sentence: why the rule is switched off."}
    name = _ID | {"description": "The built-in rule or ladder that shall not count."}
    help_text = "Switches a built-in rule off, in rules of your own."
    return _object({"disable": name, "reason": reason}, ["disable", "reason"], help_text)


def _about() -> Schema:
    replaced = "In rules of your own: the built-in rule or ladder whose place this one takes."
    return {
        "replaces": _ID | {"description": replaced},
        "why": _TEXT | {"description": "One sentence: why the rule holds."},
        "source": _TEXT | {"description": "Where every number of the rule comes from."},
        "status": {"enum": list(get_args(Status)), "description": "stable unless said otherwise."},
        "since": {"description": "The version that brought the rule."},
        "replaced_by": _ID | {"description": "For a deprecated rule: the better one."},
    }


def _rule() -> Schema:
    note = _object({"text": _TEMPLATE, "score": _points_base()}, ["text"])
    effects: Schema = {
        "conclude": _ref("conclude"),
        "recommend": _ref("recommend"),
        "veto": _TEXT | {"description": "Bars the what-if; the text is the reason shown."},
        "note": {"anyOf": [_TEXT, note], "description": "A remark that changes nothing."},
    }
    properties = {
        "rule": _ID,
        **_about(),
        "when": _ref("when"),
        **effects,
        "cases": _list(_case({"enum": ["fires", "silent"]}), 2),
    }
    help_text = "A rule: when all of this holds, do one thing."
    rule = _object(properties, ["rule", "why", "when", "cases"], help_text)
    return rule | {"oneOf": [{"required": [key]} for key in EFFECTS]}


def _ladder(facts: Facts) -> Schema:
    names = [fact.name for fact in facts if fact.kind == "number"]
    numbers: Schema = {"enum": names}
    concluded = {"enum": [fact.name for fact in facts if fact.origin == "rules"]}
    row = {"from": _TEXT, "to": _TEXT, "value": {}}
    row |= {name: _ref("range") for name in names}
    properties = {
        "ladder": _ID,
        **_about(),
        "when": _ref("when"),
        "over": {"anyOf": [numbers, _list(numbers, maxItems=2)]},
        "conclude": concluded,
        "rows": _list(_object(row, ["value"])),
        "cases": _list(_case(_TEXT | {"description": "The value expected, or silent."})),
    }
    required = ["ladder", "why", "over", "conclude", "rows", "cases"]
    return _object(properties, required, "A table over one or two numbers.")


def _when(facts: Facts) -> Schema:
    alternatives = _list(_ref("when"), description="At least one of these blocks must hold.")
    negated = {"allOf": [_ref("when")], "description": "This block must not hold as a whole."}
    block = _object(_conditions(facts) | {"any": alternatives, "not": negated})
    return block | {"minProperties": 1, "description": "Every entry must hold."}


def _conditions(facts: Facts) -> Schema:
    return {fact.name: _ref(_condition_name(fact)) for fact in facts}


def _condition_name(fact: FactType) -> str:
    return f"condition-{fact.name}"


def _condition(fact: FactType) -> Schema:
    return {
        "type": "string",
        "pattern": f"^({'|'.join(_patterns(fact))})$",
        "patternErrorMessage": _wanted(fact),
        "description": describe(fact),
        "defaultSnippets": [
            {"label": f"{verb} ...", "description": VERBS[verb], "body": f"{verb} $1"}
            for verb in BY_KIND[fact.kind]
        ],
    }


def _wanted(fact: FactType) -> str:
    """Say what a condition needs, where the pattern would say nothing to a reader."""
    known = () if fact.origin == "rules" else ("is known", "is unknown")
    verbs = listed((*BY_KIND[fact.kind], *known))
    units = [unit for unit in DIMENSIONS.get(fact.dimension, ()) if unit]
    value = f"a number in {listed(units)}" if units else KINDS[fact.kind]
    value = listed(fact.values) if fact.values else value
    return f"Write for example '{example(fact)}'. {fact.name} takes {verbs}; it is {value}."


def _patterns(fact: FactType) -> Sequence[str]:
    known = () if fact.origin == "rules" else ("is known", "is unknown")
    if fact.kind == "flag":
        return ("is (yes|no)", *known)
    if fact.kind == "number":
        value = _quantity(fact)
        low = f"{_NUMBER}.*" if fact.unit else _NUMBER
        return (
            f"(above|at least|below|at most) ({value}|{_FACT})",
            f"between {low} and {value}",
            f"is( not)? {value}",
            *known,
        )
    name = "|".join(map(re.escape, fact.values)) if fact.values else "[^,]+"
    return (f"is( not)? ({name}|{_FACT})", f"one of ({name})(, *({name}))*", *known)


def _quantity(fact: FactType) -> str:
    units = [re.escape(unit) for unit in DIMENSIONS[fact.dimension] if unit]
    return f"{_NUMBER} *({'|'.join(units)})" if units else _NUMBER


def _value(fact: FactType) -> Schema:
    about: Schema = {"description": fact.help}
    if fact.kind == "enum":
        return about | {"enum": list(fact.values)}
    if fact.kind == "flag":
        return about | {"type": "boolean"}
    if fact.kind == "number" and not fact.unit:
        return about | {"type": "number"}
    return about | {"type": "string"}


def _recommend(vocabulary: Vocabulary) -> Schema:
    families = vocabulary.facts.get(ACTION_FACT)
    properties = {
        "action": {"enum": list(families.values if families else ())},
        "score": _ref("score"),
        "supersedes": _list(_ID, 0, description="Recommendations that this one makes needless."),
        "text": _TEMPLATE,
    }
    return _object(properties, ["action", "score", "text"], "Offers the what-if as advice.")


def _points_base() -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 100, "description": "From 0 to 100."}


def _score(facts: Facts) -> Schema:
    numbers = {"enum": [fact.name for fact in facts if fact.kind == "number"]}
    points = {"type": "string", "pattern": _POINTS, "description": "'-3 per %' or '2 each'."}
    cap = {"type": "number", "exclusiveMinimum": 0, "description": "Most points either way."}
    per = _object({"per": numbers, "points": points, "cap": cap}, ["per", "points"])
    earned = _object(
        _conditions(facts) | {"points": {"type": "number"}},
        ["points"],
    )
    properties = {"base": _points_base(), "add": _list(per, 0), "when": _list(earned, 0)}
    return _object(properties, ["base"], "How high the advice ranks.")


def _case(expect: Schema) -> Schema:
    properties = {
        "name": _TEXT,
        "given": _ref("inputs"),
        "expect": expect,
        "change": _ref("inputs"),
        "rank": {"type": "integer", "minimum": 1},
        "says": _TEXT,
    }
    return _object(properties, ["name", "given", "expect"])
