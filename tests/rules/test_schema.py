import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from advisor.knowledge.vocabulary import Vocabulary
from advisor.rules.language.schema import rules_schema


@pytest.fixture(scope="module")
def schema(vocabulary: Vocabulary) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(rules_schema(vocabulary)))
    return plain


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_reference_has_a_definition(schema: dict[str, Any]) -> None:
    names = {f"#/definitions/{name}" for name in schema["definitions"]}
    assert set(references(schema)) <= names


def test_every_fact_is_offered_with_its_help(
    schema: dict[str, Any], vocabulary: Vocabulary
) -> None:
    offered = schema["definitions"]["when"]["properties"]
    assert set(offered) == {*vocabulary.facts, "any", "not"}
    for fact in vocabulary.facts.values():
        assert fact.help in schema["definitions"][f"condition-{fact.name}"]["description"]


def test_only_facts_of_rules_can_be_concluded(
    schema: dict[str, Any], vocabulary: Vocabulary
) -> None:
    concluded = {fact.name for fact in vocabulary.facts.values() if fact.origin == "rules"}
    assert set(schema["definitions"]["conclude"]["properties"]) == concluded


@pytest.mark.parametrize(
    ("fact", "condition", "right"),
    [
        ("gpu.tdp", "above 300 W", True),
        ("gpu.tdp", "above 0.3kW", True),
        ("gpu.tdp", "between 200 and 300 W", True),
        ("gpu.tdp", "is known", True),
        ("gpu.tdp", "above 300", False),
        ("gpu.tdp", "above 3 GB", False),
        ("gpu.tdp", "over 300 W", False),
        ("memory.weights", "above memory.usable", True),
        ("request.gpus", "is 2", True),
        ("request.gpus", "is 2 GB", False),
        ("gpu.segment", "one of apple, edge", True),
        ("gpu.segment", "is aple", False),
        ("gpu.laptop", "is yes", True),
        ("gpu.laptop", "is true", False),
        ("fit.state", "is unknown", False),
        ("gpu.name", "is RTX 4090", True),
        ("option.framework", "is not framework.name", True),
    ],
)
def test_patterns_agree_with_the_language(
    fact: str,
    condition: str,
    right: bool,  # noqa: FBT001 - a parameter of the table
    schema: dict[str, Any],
) -> None:
    pattern = schema["definitions"][f"condition-{fact}"]["pattern"]
    assert bool(re.search(pattern, condition)) is right


def test_a_rule_does_exactly_one_thing(schema: dict[str, Any]) -> None:
    ways = [way["required"] for way in schema["definitions"]["rule"]["oneOf"]]
    assert ways == [["conclude"], ["recommend"], ["veto"], ["note"]]
