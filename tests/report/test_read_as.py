"""How a request was read stands near the top of every report, and as a key of the JSON."""

from __future__ import annotations

import json
from html import unescape

import pytest
from msgspec.structs import replace

from advisor.report import FORMATS, Page
from advisor.report.assembly import document
from advisor.scenario import size_key, whole_key
from tests.report.samples import SAMPLES

LINE = "'gpt-oss:20b' is read as gpt-oss-20b in MXFP4."


def read(lines: tuple[str, ...]) -> Page:
    found = next(iter(SAMPLES.values()))()
    scenario = replace(found.scenario, read_as=lines)
    return Page(document(replace(found, scenario=scenario)), "standard", None)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_every_format_says_it_before_the_figures(name: str) -> None:
    text = " ".join(unescape(FORMATS[name].write(read((LINE,)))).split())
    plain = " ".join(unescape(FORMATS[name].write(read(()))).split())
    assert LINE in text
    assert text.index(LINE) < len(text) / 2
    assert LINE not in plain


def test_the_document_has_it_as_a_list() -> None:
    assert json.loads(FORMATS["json"].write(read((LINE,))))["scenario"]["read_as"] == [LINE]
    assert json.loads(FORMATS["json"].write(read(())))["scenario"]["read_as"] == []


def test_the_wording_of_a_request_makes_no_other_situation() -> None:
    scenario = next(iter(SAMPLES.values()))().scenario
    worded = replace(scenario, read_as=(LINE,))
    assert whole_key(worded)[0] == whole_key(scenario)[0]
    assert size_key(worded, None)[0] == size_key(scenario, None)[0]
