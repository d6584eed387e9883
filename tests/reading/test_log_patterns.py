"""The file of lines: what is wrong with it is told, and no form takes long on any line."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest

from advisor.errors import KnowledgeError, UserError
from advisor.knowledge import check_knowledge, load_knowledge
from advisor.knowledge.log_patterns import (
    CAUSES,
    FIELDS,
    NOTHING,
    load_log_patterns,
    log_pattern_problems,
)
from advisor.knowledge.names import find_format_candidates
from advisor.reading.log_file import read_log
from advisor.reading.logs import read_lines
from advisor.report.diagnosis import Row
from advisor.report.figures import words_of

SECONDS = 3


def wrong(entry: str) -> str:
    text = f"- line: mine\n  source: x y.py:1\n{entry}\n"
    return "\n".join(str(problem) for problem in log_pattern_problems({"logs.yaml": text.encode()}))


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("took {weigths GiB} GiB", "Did you mean 'weights'"),
        ("took {weights TiB} TiB", "It takes GiB, MiB"),
        ("took {context GiB} GiB", "It takes blocks"),
        ("took {weights GiB}{cache GiB}", "side by side"),
        ("{weights GiB}", "no text of its own"),
        ("took {weights GiB", "a brace is no field"),
        ("took {weights GiB} of {...}", "ends with a gap"),
        ("x" * 401, "Make it shorter"),
    ],
)
def test_a_form_that_cannot_be_read_is_told(says: str, told: str) -> None:
    assert told in wrong(f"  says: ['{says}']")


def test_everything_wrong_is_told_at_once() -> None:
    told = wrong("  says: ['{x} a']\n  cause: weightz\n  of: cards\n  begin: yes")
    for part in ("unknown field 'x'", "unknown cause 'weightz'", "unknown of 'cards'", "'begin'"):
        assert part in told


def test_an_entry_without_source_is_refused() -> None:
    problems = log_pattern_problems({"logs.yaml": b"- line: a\n  says: [b]\n"})
    assert "the key 'source' is missing" in str(problems[0])


def test_the_built_in_lines_have_a_known_program_a_source_and_words() -> None:
    patterns, knowledge, words = load_log_patterns(), load_knowledge(), words_of(None)
    assert {line.runtime for line in patterns.lines} - {""} <= set(knowledge.frameworks)
    for line in patterns.lines:
        assert re.search(r"/|smi", line.source), line.name
    assert all(f"log.cause.{cause}" in words for cause in CAUSES)
    for name in set(patterns.words["precision"].values()) - {"", NOTHING}:
        assert find_format_candidates(knowledge, name)


def test_an_expert_adds_a_line_and_replaces_one(tmp_path: Path) -> None:
    (tmp_path / "logs.yaml").write_text(
        "- line: our-server\n  runtime: vLLM\n  says: ['weights: {weights MiB} mebibytes']\n"
        "  of: card\n  source: house/server main.py:12\n"
        "- line: vllm-room\n  runtime: vLLM\n  says: ['cache room {cache_room GiB}']\n"
        "  source: house/server main.py:13\n"
    )
    text = "weights: 512 mebibytes\nAvailable KV cache memory: 3 GiB\ncache room 4\n"
    log = read_lines(read_log(None, io.BytesIO(text.encode())), load_log_patterns(tmp_path))
    assert log.figure("weights") == 512 * 2**20
    assert log.figure("cache_room") == 4 * 2**30
    assert check_knowledge(tmp_path, log_pattern_problems) == []


def test_a_wrong_file_of_lines_is_told_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "logs.yaml").write_text("- line: a\n  says: ['{nothing_like_it} x']\n  source: b\n")
    with pytest.raises((KnowledgeError, UserError), match=r"logs\.yaml:2"):
        load_log_patterns(tmp_path)


def test_no_line_takes_long() -> None:
    """Lines made to be almost every form, many times over, are read in time."""
    patterns = load_log_patterns()
    begins = [form.begin or form.needle for line in patterns.lines for form in line.forms][::4]
    needles = " ".join(form.needle for line in patterns.lines for form in line.forms)
    lines = [f"{begin} " * 200 + needles for begin in begins]
    lines += [f"{begin} {'1 ' * 4000}{needles}" for begin in begins]
    lines += [f"{begin}{'x' * 8000}{needles}" for begin in begins]
    text = read_log(None, io.BytesIO("\n".join(lines).encode()))
    started = time.process_time()
    read_lines(text, patterns)
    assert time.process_time() - started < SECONDS


def test_every_figure_that_is_compared_has_words() -> None:
    assert "figure" in Row.__struct_fields__
    words = {name.removeprefix("log.figure.") for name in words_of(None) if "log.figure." in name}
    memory = {name for name, kind in FIELDS.items() if kind == "memory"}
    told = {"used", "other", "cache_state", "host_required", "host_free"}
    assert memory - told <= words
