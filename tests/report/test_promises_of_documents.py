"""What every document that leaves the program promises, and what happens to one that does not."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.document import Advice, wrong_in
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.report.prose import MOST_WORDS, Length, too_long, words_read
from advisor.report.prose import report as written
from advisor.scenario.settings import request_from
from tests.cli.running import advise
from tests.readability import read, words
from tests.report.generated import requests, wrong_with

LONG: list[dict[str, Any]] = [
    {"gpu": "Apple M2 Max", "model": "Qwen3.5-9B", "precision": "MLX 4-bit", "use": "batch"},
    {"gpu": "Tesla P100 SXM2 + GeForce RTX 3080 12 GB", "model": "Qwen2.5-VL-72B-Instruct",
     "precision": "IQ3_XXS", "framework": "LM Studio", "context": 131_072, "batch": 64},
    {"gpu": "4x Radeon RX 6800 XT", "model": "CodeLlama-34b-hf", "precision": "MXFP4_MOE",
     "framework": "LM Studio", "ram": "64GB"},
    {"gpu": "4x GeForce RTX 3060 8 GB GA104 + GeForce RTX 4060 Ti 8 GB", "model": "Qwen3-1.7B",
     "precision": "Q4_1", "context": 8_192, "batch": 64},
    {"gpu": "8x RTX 4500 Ada Generation + A800 PCIe 80 GB", "model": "SOLAR-10.7B-Instruct-v1.0",
     "precision": "GPTQ 8-bit", "framework": "vLLM"},
]  # fmt: skip
"""Requests whose reports were longer than their length promises."""


@pytest.fixture(scope="module")
def advisor() -> Advisor:
    return Advisor.load()


@pytest.fixture(scope="module")
def doc(advisor: Advisor) -> Advice:
    asked = {"gpu": "2x RTX 3090", "model": "llama-3.1-70b", "precision": "Q4_K_M", "context": 8192}
    return document(advisor.advise(request_from(asked)))


@pytest.mark.parametrize("given", LONG)
@pytest.mark.parametrize("length", ["short", "standard"])
def test_a_report_keeps_to_its_length(
    advisor: Advisor, given: dict[str, Any], length: Length
) -> None:
    doc = document(advisor.advise(request_from(given)))
    counted = len(words(read(render_markdown(doc, length=length))))
    assert counted <= MOST_WORDS[length]
    assert counted <= words_read(written(doc, length), length)
    assert not too_long(doc, length)


def test_what_is_left_out_are_reasons_and_never_what_to_do(advisor: Advisor) -> None:
    doc = document(advisor.advise(request_from(LONG[0])))
    short = written(doc, "short")
    assert short.unsaid.startswith("Not in this command: context and images.")
    assert short.remedies[0].unsaid == "Not in this command: context and images."
    assert short.first == " ".join(doc.recommendations[0].text.split())


def test_every_document_of_generated_requests_holds(advisor: Advisor) -> None:
    seen = Counter[str]()
    drawn = islice(requests(advisor.knowledge, seed=17), 100)
    wrong = {str(given): found for given in drawn if (found := wrong_with(advisor, given, seen))}
    assert not wrong
    assert seen["refused"] < 50


def test_a_right_document_holds(doc: Advice) -> None:
    assert wrong_in(doc) == []


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("weights_bytes", -1),
        ("low_bytes", 10**15),
        ("high_bytes", 0),
        ("required_bytes", 1),
        ("overhead_bytes", 1),
        ("bits_per_weight", float("nan")),
        ("usable_bytes", -5),
        ("approximate", ("a\x1b[31mb",)),
    ],
)
def test_one_wrong_figure_of_memory_is_told(doc: Advice, part: str, value: object) -> None:
    assert wrong_in(replace(doc, memory=replace(doc.memory, **{part: value})))


def test_one_wrong_figure_elsewhere_is_told(doc: Advice) -> None:
    speed = doc.speed
    assert speed is not None
    assert speed.decode_tok_s is not None
    slow = replace(speed.decode_tok_s, low=speed.decode_tok_s.high + 1)
    for wrong in (
        replace(doc, speed=replace(speed, decode_tok_s=slow)),
        replace(doc, warnings=["a\x07b"]),
        replace(doc, facts={"x": float("inf")}),
        replace(doc, recommendations=doc.recommendations[1:]),
    ):
        assert wrong_in(wrong)


def test_strict_writes_what_holds_and_refuses_what_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16"}
    assert advise(capsys, "--strict", **asked).out == advise(capsys, **asked).out
    monkeypatch.setattr("advisor.api.results.wrong_in", lambda _: ["a is -1, below zero"])
    refused = advise(capsys, "--strict", **asked)
    assert (refused.code, refused.out) == (70, "")
    assert "does not hold: a is -1, below zero" in refused.err
