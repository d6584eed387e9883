"""The README's counts are true, and its one line is the command whose answer it shows."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.cli.running import run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_line_asks_what_is_answered_below() -> None:
    command = re.search(r"\.venv/bin/(advisor advise .*)", README)
    assert command
    assert f"```console\n$ {command[1]}\n" in README


def test_the_counts_are_those_of_the_knowledge_base(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "knowledge", "check").out
    for part in out.split(":")[0].split(", "):
        number, what = part.split()
        assert f"{number} " in README, what


def test_the_speeds_are_those_of_the_page() -> None:
    with gzip.open(ROOT / "knowledge" / "measurements" / "speed.csv.gz", "rt") as file:
        assert f"on {sum(1 for _ in file) - 1:,} published measurements" in README
    page = (ROOT / "docs" / "speed-accuracy.md").read_text(encoding="utf-8")
    medians = re.findall(r"^\| (?:another machine|a card nobody).*?([\d.]+ %)", page, re.MULTILINE)
    said = README.partition("honest speed")[2].partition("\n")[0]
    assert re.findall(r"[\d.]+ %", said) == medians
