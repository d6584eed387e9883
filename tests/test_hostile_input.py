"""Mistakes of users that are far from usual: each is told, and none is called a bug."""

from __future__ import annotations

import gc
import json
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from advisor.bulk import read_rows
from advisor.bulk.batch.product import load_plan
from advisor.bulk.estimates import estimate_row
from advisor.errors import RequestError, UserError
from advisor.files import data_dir, opened, read_kept, read_tree
from advisor.knowledge import load_knowledge
from advisor.knowledge.file_records import unfold
from advisor.knowledge.names import find_model
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vocabulary import load_vocabulary
from advisor.reading import find_cards
from advisor.reading.sentences import read_sentence
from advisor.remedies import rule_vocabulary
from advisor.rules.language import load_rules
from advisor.rules.language.model import RuleSet
from advisor.units import UnitError, json_line, parse_quantity, parse_size_as_sold

HUGE = ["9" * digits for digits in (310, 400, 5_000)]
SPACES = " " * 60_000
SPARSE = 20 * 2**30
RULE = """
- rule: odd
  why: it stands in a folder of an odd name
  source: none
  when: {request.batch: at least 9}
  note: It serves many.
  cases:
    - {name: many, given: {gpu: RTX 4090, model: phi-3-mini, batch: 9}, expect: fires}
    - {name: few, given: {gpu: RTX 4090, model: phi-3-mini}, expect: silent}
"""


def rules_in(folder: Path) -> RuleSet:
    return load_rules(folder, vocabulary=rule_vocabulary())


def sparse(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(SPARSE)
    return path


@pytest.mark.parametrize("number", HUGE)
def test_a_number_beyond_all_bounds_is_told(number: str) -> None:
    for read in (parse_size_as_sold, parse_quantity):
        with pytest.raises(UnitError) as told:
            read(f"{number}GB")
        assert len(str(told.value)) < 200


@pytest.mark.parametrize("number", HUGE[1:])
def test_a_size_beyond_all_bounds_of_a_card_is_told(number: str) -> None:
    with pytest.raises(UserError, match=r"too (large|long)"):
        find_cards(load_knowledge(), f"RTX 4090:{number}GB")


@pytest.mark.parametrize("number", HUGE)
def test_a_plan_with_a_number_beyond_all_bounds_is_told(number: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"gpus: [RTX 4090]\nmodels: [phi-3-medium]\nshard_size: {number}\n")
    with pytest.raises(UserError, match="shard_size"):
        load_plan(plan, load_knowledge())


@pytest.mark.parametrize("text", ["a/" * 3_000, "a/b/c", "/" * 70_000])
def test_a_name_of_many_parts_is_an_unknown_one(text: str) -> None:
    with pytest.raises(RequestError, match=r"unknown model|too long"):
        find_model(load_knowledge(), text)


@pytest.mark.parametrize(
    "pattern", ["(S)9999999999", f"(S){'9' * 5_000}", "((S)999)999", "(" * 9 + "S" + ")99" * 9]
)
def test_a_layer_pattern_that_grows_without_end_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="more than"):
        unfold(pattern)


@pytest.mark.parametrize(("pattern", "written"), [("(SSF)2 S", "SSFSSFS"), ("((S)2F)2", "SSFSSF")])
def test_a_layer_pattern_is_written_out(pattern: str, written: str) -> None:
    assert unfold(pattern) == written


def test_many_spaces_cost_no_time() -> None:
    knowledge = load_knowledge()
    begun = time.process_time()
    for text in (f"RTX 4090{SPACES}x", f"RTX 4090{SPACES}", f"2{SPACES}x", f"RTX 4090 +{SPACES}+"):
        with suppress(UserError):
            find_cards(knowledge, text + "?")
    for text in (f"1{SPACES}?", f"{SPACES}1{SPACES}?", "1" * 60_000 + "?", f"1.{SPACES}"):
        for read in (parse_size_as_sold, parse_quantity):
            with suppress(UnitError):
                read(text)
    read_sentence(f"will{SPACES}phi-3-mini run on{SPACES}rtx 4090", knowledge)
    assert time.process_time() - begun < 3


def test_a_link_to_itself_is_a_file_that_is_not_there(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(RequestError, match="cannot write"), opened(loop) as file:
        file.write("")
    assert loop.is_symlink()
    assert load_vocabulary(loop).sha256 == load_vocabulary().sha256
    for read in (load_knowledge, rules_in):
        with pytest.raises(UserError, match="no folder"):
            read(loop)


def test_a_name_that_is_not_utf_8_is_told_or_written_as_unreadable(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"r\xfe")
    odd.mkdir()
    (odd / "m.yaml").write_text(RULE)
    assert rules_in(odd).rule("odd").id == "odd"
    (odd / "m.yaml").rename(odd / os.fsdecode(b"m\xfe.yaml"))
    with pytest.raises(UserError, match="is not UTF-8"):
        rules_in(odd)
    assert json_line({"model": odd.name, "tokens": 1}) == b'{"model":"r\xef\xbf\xbd","tokens":1}\n'


def test_a_kept_file_of_any_size_is_dropped(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    kept = sparse(tmp_path / "kept.json")
    kept.chmod(0o600)
    assert read_kept(kept, "kept") is None


def test_a_file_is_not_read_whole_before_its_size_is_known(tmp_path: Path) -> None:
    plan = sparse(tmp_path / "plan.yaml")
    with pytest.raises(UserError, match="larger than"):
        load_plan(plan, load_knowledge())
    with pytest.raises(UserError, match="larger than"):
        read_tree(tmp_path, [".yaml"])


def test_a_line_without_end_ends_the_reading(tmp_path: Path) -> None:
    lines = sparse(tmp_path / "lines.jsonl")
    with lines.open("rb") as stream, pytest.raises(RequestError, match="no end of a line"):
        list(read_rows(stream, str(lines)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu": f"RTX 4090:{HUGE[1]}GB"},
        {"ram": f"{HUGE[1]}GB"},
        {"context": int(HUGE[1])},
        {"model": "a/" * 3_000},
        {"gpu": f"RTX 4090{SPACES}x"},
        {"model": "\udcff\udcfe"},
        {"config": {"model_type": "llama", "num_hidden_layers": int(HUGE[1])}},
    ],
)
def test_one_line_fails_alone(wrong: dict[str, object], tmp_path: Path) -> None:
    right = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16"}
    if "config" in wrong:
        right.pop("model")
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(one)[:60_000] for one in (right | wrong, right)) + "\n")
    knowledge = load_knowledge()
    with lines.open("rb") as stream:
        failures = [estimate_row(row, knowledge)[1] for row in read_rows(stream, str(lines))]
    assert failures[0] is not None
    assert failures[0].bug is None
    if "model" in right:
        assert failures[1] is None


def knowledge_alive() -> int:
    gc.collect()
    return sum(isinstance(one, Knowledge) for one in gc.get_objects())


def test_what_is_kept_of_knowledge_goes_with_it(tmp_path: Path) -> None:
    policy = (data_dir("knowledge") / "policy.yaml").read_text()
    before = knowledge_alive()
    for number in range(24):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "policy.yaml").write_text(f"{policy}# {number}\n")
        knowledge = load_knowledge(folder)
        find_model(knowledge, "phi-3-medium")
        find_cards(knowledge, "RTX 4090")
    del knowledge
    assert knowledge_alive() - before < 16
