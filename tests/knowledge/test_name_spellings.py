"""``name_spellings.tsv``: every line is an expression that can be read, and does something."""

from __future__ import annotations

import re

import pytest

from advisor.files import table_rows
from advisor.knowledge.index import card_spellings, gpu_words, spellings
from advisor.reading.format_patterns import said_in

ROWS = table_rows("name_spellings.tsv")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_line_has_a_use_an_expression_and_what_is_written(row: list[str]) -> None:
    use, pattern, written = row
    assert use in {"card", "card said", "format"}
    groups = re.compile(pattern).groups
    assert all(int(number) <= groups for number in re.findall(r"\\(?:g<)?(\d)", written))


def test_lines_count_from_top_to_bottom() -> None:
    assert [how for how, _ in spellings("card")] == [row[1] for row in ROWS if row[0] == "card"]
    assert gpu_words("MIG 1g.5gb") == ("mig", "1slices", "5gb")
    assert said_in("qwen-GPTQ-Int8").precision == "GPTQ 8-bit"
    assert said_in("qwen-int4").precision == "INT4"


def test_an_underline_is_a_space_in_names_of_cards_alone() -> None:
    assert all("_" not in written for _, written in card_spellings("card said"))
    assert ("Q3_K_S") in [written for _, written in spellings("format")]
