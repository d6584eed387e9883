"""``advisor rules`` and ``advisor knowledge``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]


def test_built_in_rules_pass_the_check(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "check", "--quick")
    assert outcome.code == 0, outcome.err
    assert "no problem found" in outcome.out


def test_a_folder_without_rules_is_an_error(capsys: Capture, tmp_path: Path) -> None:
    outcome = run(capsys, "rules", "check", str(tmp_path))
    assert outcome.code == 1
    assert "no rule file" in outcome.err


def test_one_rule_can_be_tested(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "test", "--rule", "quantize-to-fit")
    assert outcome.code == 0, outcome.out
    assert re.fullmatch(r"(\d+) of \1 cases hold\n", outcome.out)


def test_an_unknown_rule_is_named(capsys: Capture) -> None:
    outcome = run(capsys, "rules", "test", "--rule", "quantise-to-fit")
    assert outcome.code == 1
    assert "quantize-to-fit" in outcome.err


def test_the_schema_is_json_schema(capsys: Capture) -> None:
    schema = json.loads(run(capsys, "rules", "schema").out)
    assert "$schema" in schema


def test_knowledge_check_counts_what_is_there(capsys: Capture) -> None:
    known = load_knowledge()
    out = run(capsys, "knowledge", "check").out
    assert f"{len(known.gpus)} GPUs, {len(known.models)} models" in out


def test_knowledge_find(capsys: Capture) -> None:
    out = run(capsys, "knowledge", "find", "4090").out
    assert "GeForce RTX 4090" in out


def test_knowledge_find_nothing(capsys: Capture) -> None:
    assert run(capsys, "knowledge", "find", "no such thing").code == 1
