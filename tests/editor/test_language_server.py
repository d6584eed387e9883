"""Completion, help and messages while a rule is typed, in the server behind VS Code and others."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.files import data_dir
from advisor.knowledge.vocabulary import Vocabulary, load_vocabulary
from advisor.rules.language.schema import rules_schema
from tests.editor.server import Server, installed, missing

RULE = """\
- rule: hot-card
  why: Heat slows the card down.
  source: board makers
  when:
    gpu.tdp: above 300 W
    gpu.segment: is consumer
  note: Mind the airflow.
  cases:
    - {name: a 4090, given: {gpu: RTX 4090, model: phi-3-mini}, expect: fires}
    - {name: a 4060, given: {gpu: RTX 4060, model: phi-3-mini}, expect: silent}
"""


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, vocabulary: Vocabulary) -> Iterator[Server]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("editor")
    schema = folder / "rules.schema.json"
    schema.write_text(json.dumps(rules_schema(vocabulary)), encoding="utf-8")
    running = Server(installed(), folder, schema)
    yield running
    running.close()


def test_all_facts_are_offered_after_when_with_their_help(
    server: Server, vocabulary: Vocabulary
) -> None:
    server.open("when.yaml", RULE.split("    gpu.tdp", maxsplit=1)[0] + "    \n")
    offered = server.complete("when.yaml", 4, 4)
    assert set(offered) == {*vocabulary.facts, "any", "not"}
    for fact in vocabulary.facts.values():
        assert offered[fact.name]["documentation"].startswith(fact.help)
        assert offered[fact.name]["insertText"].startswith(f"{fact.name}: ")


def test_verbs_that_go_with_a_fact_are_offered_with_examples(server: Server) -> None:
    server.open("verb.yaml", RULE.replace(" above 300 W", " "))
    offered = server.complete("verb.yaml", 4, 13)
    assert {"above ...", "at least ...", "between ..."} <= set(offered)
    assert "one of ..." not in offered
    assert offered["above ..."]["documentation"].startswith("more than a number: `above 5 GiB`")


def test_a_rule_and_a_ladder_are_offered_at_the_begin(server: Server) -> None:
    server.open("begin.yaml", "- ")
    assert {"rule", "ladder"} <= set(server.complete("begin.yaml", 0, 2))


def test_hover_shows_unit_and_help(server: Server, vocabulary: Vocabulary) -> None:
    server.open("hover.yaml", RULE)
    shown = server.hover("hover.yaml", 4, 6)
    assert vocabulary.facts["gpu.tdp"].help in shown
    assert "a number in W (W, kW)" in shown


def test_hover_shows_the_values_of_a_name(server: Server) -> None:
    server.open("names.yaml", RULE)
    assert "one of consumer, mobile, workstation" in server.hover("names.yaml", 5, 6)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("gpu.tdp", "gpu.tpd", 4, "Property gpu.tpd is not allowed."),
        ("  note:", "  nots:", 6, "Property nots is not allowed."),
        ("- rule:", "- rul:", 0, "Property rul is not allowed."),
        ("300 W", "300", 4, "Write for example 'at least 8 W'. gpu.tdp takes above,"),
        ("above 300", "over 300", 4, "Write for example 'at least 8 W'. gpu.tdp takes above,"),
        ("is consumer", "is consumr", 5, "it is consumer, mobile, workstation,"),
        ("expect: fires", "expect: fire", 8, 'Valid values: "fires", "silent".'),
    ],
)
def test_a_mistake_is_shown_on_its_line(
    server: Server, old: str, new: str, line: int, said: str
) -> None:
    found = server.open(f"bad {new}.yaml".replace(":", ""), RULE.replace(old, new, 1))
    assert any(said in one["message"] and one["range"]["start"]["line"] == line for one in found), (
        found
    )


def test_a_valid_file_has_no_message(server: Server) -> None:
    assert server.open("good.yaml", RULE) == []


@pytest.mark.parametrize(
    "path", sorted(data_dir("rules").glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_built_in_rules_have_no_message(server: Server, path: Path) -> None:
    assert server.open(path.name, path.read_text(encoding="utf-8")) == []
