"""The published schemas: current, complete, and true of what is printed and of what once was."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Advisor
from advisor.cli import completion as command
from advisor.report import render_json
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.cli.running import run
from tests.published_schemas import DOCUMENTS, numeric, path_of, problems, schema, written

RELEASED = Path(__file__).parent / "data" / "documents-0.1.0.jsonl.gz"
NEW = {"doctor"}
"""Documents that the last release did not have."""


def released(what: str = "document") -> list[tuple[str, Any]]:
    """Give the documents of the last release, or the ``keys`` of its schemas by type."""
    lines = map(json.loads, gzip.decompress(RELEASED.read_bytes()).decode().splitlines())
    return [(line["schema"], line[what]) for line in lines if what in line]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schema_is_current(name: str) -> None:
    """On failure: ``python -m tests.published_schemas``, and read the difference."""
    assert path_of(name).read_text(encoding="utf-8") == written(name)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_property_says_what_it_is_and_every_number_its_unit(name: str) -> None:
    """On failure write a docstring below the field, with ``[unit]`` where its name has none."""
    found = schema(name)
    assert re.fullmatch(rf"urn:advisor:schema:{name}:\d+\.\d+", found["$id"])
    for owner, one in found["$defs"].items():
        assert one.get("description"), owner
        for key, held in one["properties"].items():
            assert held.get("description"), f"{owner}.{key}"
            assert held.get("x-unit") or not numeric(held), f"{owner}.{key} names no unit"


def test_documents_of_the_last_release_keep_to_the_schemas_of_today() -> None:
    """A key may be added: last of its type, with a default. None may go, or change its type."""
    names = set()
    for name, doc in released():
        names.add(name)
        found = schema(name)
        assert problems(doc, found, found["$defs"]) == [], name
    assert names == set(DOCUMENTS) - NEW


def test_no_key_of_the_last_release_is_gone() -> None:
    """Of types too that no document above holds."""
    for name, types in released("keys"):
        defs = schema(name)["$defs"]
        gone = {(t, key) for t, keys in types.items() for key in keys} - {
            (t, key) for t, found in defs.items() for key in found.get("properties", {})
        }
        assert gone == set(), name


def test_what_is_wrong_in_a_document_is_found() -> None:
    found = schema("report")
    doc = next(doc for name, doc in released() if name == "report")
    for key, value, said in (
        ("verdict", None, "/verdict"),
        ("warnings", [1], "/warnings/0"),
        ("colour", "red", "colour is not named"),
        ("request", {"gpu": 3}, "/request/gpu"),
        ("facts", {"fit.gap": "wide"}, "/facts/fit.gap"),
    ):
        assert said in problems(doc | {key: value}, found, found["$defs"])[0]
    del doc["memory"]["low_bytes"]
    assert problems(doc, found, found["$defs"]) == ["/memory: low_bytes is missing"]


@pytest.mark.parametrize("batch", [1, 40])
def test_documents_of_today_hold_nothing_that_is_not_described(batch: int) -> None:
    request = Request(gpu="2x RTX 3090", model="qwen3-30b-a3b", framework="vLLM", batch=batch)
    found = schema("report")
    doc = json.loads(render_json(document(Advisor.load().advise(request))))
    assert problems(doc, found, found["$defs"]) == []


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(command.DOCUMENTS) == list(DOCUMENTS)
    listed = run(capsys, "schema")
    assert [line.split()[0] for line in listed.out.splitlines()] == list(DOCUMENTS)
    for name in DOCUMENTS:
        assert run(capsys, "schema", name).out == written(name)
    wrong = run(capsys, "schema", "reports")
    assert (wrong.code, wrong.out) == (1, "")
    assert "no document is called 'reports'. Did you mean 'report'?" in wrong.err
