"""Findings for people, programs, code scanning and pull requests."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import Edit, Source
from advisor.workbench.lint.problem import (
    LINTS,
    Problem,
    as_github,
    as_json,
    as_sarif,
    as_text,
    in_order,
    problem,
)

SCHEMA = Path(__file__).parents[1] / "data" / "sarif-2.1.0-extract.json"
FOUND = [
    problem(
        "missing-unit", "'300' has no unit.", Source("my rules/a.yaml", 5, 14), "Write '300 W'."
    ),
    problem(
        "needless-list", "'one of x' lists one name.", Source("b.yaml", 2, 3), "", Edit("a", "b")
    ),
    problem("cannot-load", "50 % of: it,\nis missing", Source("c.yaml")),
    problem("cannot-load", "nowhere.", None),
]


def wrong(
    value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any], at: str
) -> Iterator[str]:
    """The part of JSON Schema that the extract uses."""
    if "$ref" in schema:
        yield from wrong(value, whole["definitions"][schema["$ref"].split("/")[-1]], whole, at)
        return
    kinds = {"object": dict, "array": list, "string": str, "integer": int}
    if not isinstance(value, kinds.get(schema.get("type", ""), object)):
        yield f"{at} is no {schema['type']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value}"
    elif value < schema.get("minimum", value) if isinstance(value, int) else False:
        yield f"{at} is too small"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from wrong(item, schema["items"], whole, f"{at}[{number}]")
    elif isinstance(value, dict):
        yield from (f"{at} has no {key}" for key in schema.get("required", ()) if key not in value)
        for key, inner in value.items():
            if key not in schema["properties"]:
                yield f"{at} has {key}"
            else:
                yield from wrong(inner, schema["properties"][key], whole, f"{at}.{key}")


def test_sarif_is_as_the_standard_wants_it() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert list(wrong(json.loads(as_sarif(FOUND)), schema, schema, "log")) == []
    assert list(wrong(json.loads(as_sarif([])), schema, schema, "log")) == []


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("runs", 0, "results", 0, "level"), "fatal", "level is fatal"),
        (("runs", 0, "results", 0, "rule_id"), "x", "has rule_id"),
        (("runs", 0, "columnKind"), "bytes", "columnKind is bytes"),
        (("version",), 2.1, "version is 2.1"),
    ],
)
def test_the_extract_of_the_standard_refuses(
    place: tuple[str | int, ...], value: object, said: str
) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    log = json.loads(as_sarif(FOUND))
    inner = log
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert any(said in one for one in wrong(log, schema, schema, "log"))


def test_sarif_names_each_kind_once_and_points_at_it() -> None:
    run = json.loads(as_sarif(FOUND))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["cannot-load", "missing-unit", "needless-list"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first = run["results"][0]["locations"][0]["physicalLocation"]
    assert first["artifactLocation"]["uri"] == "my%20rules/a.yaml"
    assert first["region"] == {"startLine": 5, "startColumn": 14}


def test_text_is_a_line_for_each() -> None:
    assert as_text(FOUND[:2]).splitlines() == [
        "my rules/a.yaml:5:14: '300' has no unit. Write '300 W'. [missing-unit]",
        "b.yaml:2:3: warning: 'one of x' lists one name. [needless-list]",
    ]


def test_annotations_escape_what_the_runner_would_read() -> None:
    assert as_github(FOUND).splitlines() == [
        (
            "::error file=my rules/a.yaml,line=5,col=14,title=missing-unit::"
            "'300' has no unit. Write '300 W'."
        ),
        "::warning file=b.yaml,line=2,col=3,title=needless-list::'one of x' lists one name.",
        "::error file=c.yaml,title=cannot-load::50 %25 of: it,%0Ais missing",
        "::error title=cannot-load::nowhere.",
    ]


def test_json_counts_and_gives_the_correction() -> None:
    made = json.loads(as_json(FOUND))
    assert (made["errors"], made["warnings"]) == (3, 1)
    assert made["problems"][0]["line"] == 5
    assert made["problems"][1]["fix"] == {"old": "a", "new": "b"}
    assert made["problems"][3]["file"] is None


def test_findings_are_sorted_by_place_and_said_once() -> None:
    one = Problem(LINTS["tab"], "a.", Source("a.yaml", 10, 1))
    two = Problem(LINTS["tab"], "a.", Source("a.yaml", 9, 1))
    assert in_order([one, two, one]) == [two, one]
