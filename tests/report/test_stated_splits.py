"""What a report says about a split that the request states: short RAM, and the way back."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from advisor.advice.document import Advice
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.report.sentence_check import contradictions
from advisor.scenario.settings import Request
from tests.report.catalogue import advisor

EXPERTS_SHORT = Request(
    gpu="RTX 4090", model="qwen3-30b-a3b", precision="Q8_0", cpu_experts="all", ram_gib=16
)
LAYERS_SHORT = Request(
    gpu="RTX 4090 Laptop", model="llama-3-8b", precision="FP16", gpu_layers=10, ram_gib=4
)
LAYERS = Request(gpu="RTX 4090 Laptop", model="llama-3-8b", precision="FP16", gpu_layers=10)
EXPERTS = Request(
    gpu="RTX 4090",
    model="qwen3-30b-a3b",
    precision="Q8_0",
    cpu_experts=20,
    ram_gib=64,
    ram_bandwidth_gb_s=80,
)
SHORT = (EXPERTS_SHORT, LAYERS_SHORT)


@lru_cache
def told(request: Request) -> Advice:
    return document(advisor().advise(request))


def text_of(request: Request) -> str:
    return " ".join(render_text(told(request), width=100).split())


@pytest.mark.parametrize("request_", SHORT)
def test_short_ram_is_named_where_the_card_holds_its_part(request_: Request) -> None:
    doc, needed = told(request_), {EXPERTS_SHORT: "29.0", LAYERS_SHORT: "10.7"}[request_]
    assert doc.verdict.state == "too_big"
    verdict = doc.verdict.sentence
    assert f"does not run with {request_.ram_gib} GiB of system RAM" in verdict
    assert f"at least {needed} GiB" in verdict
    for page in (text_of(request_), render_markdown(doc), render_html(doc)):
        assert not re.search(
            r"(?<!\d)0\.0\s+GiB|out-of-memory|does not fit|would still hold|no longer fits", page
        )
    assert f"With {needed} GiB of system RAM" in text_of(request_)


@pytest.mark.parametrize(
    ("request_", "change", "words"),
    [
        (EXPERTS_SHORT, {"cpu_experts": 14}, "Move the experts of 34 layers back to the card"),
        (LAYERS_SHORT, {"gpu_layers": "all"}, "Put the whole model on the card"),
        (LAYERS, {"gpu_layers": "all"}, "Put the whole model on the card"),
        (EXPERTS, {"cpu_experts": 14}, "Move the experts of 6 layers back to the card"),
    ],
)
def test_the_way_back_to_the_card_comes_first_and_is_worded_so(
    request_: Request, change: dict[str, object], words: str
) -> None:
    first = told(request_).recommendations[0]
    assert first.change == change
    assert first.title == words
    assert "to system RAM" not in first.text.split("That uses the card")[0]
    assert "slower memory sets the pace" not in first.text


@pytest.mark.parametrize("ram", [12, 64])
def test_layers_and_experts_left_in_ram_both_come_back(ram: int) -> None:
    both = Request(
        gpu="RTX 4090",
        model="qwen3-30b-a3b",
        precision="Q8_0",
        gpu_layers=20,
        cpu_experts=40,
        ram_gib=ram,
    )
    first = told(both).recommendations[0]
    assert first.change == {"gpu_layers": "all", "cpu_experts": 14}
    assert first.title == "Move 29 layers and the experts of 26 layers back to the card"
    assert list(contradictions(told(both))) == []


@pytest.mark.parametrize("request_", [EXPERTS_SHORT, LAYERS_SHORT, LAYERS, EXPERTS])
def test_every_figure_in_the_words_is_in_the_document(request_: Request) -> None:
    assert list(contradictions(told(request_))) == []


@pytest.mark.parametrize(("layers", "host"), [(0, "15.6 GiB"), (10, "10.7 GiB"), (32, "1.4 GiB")])
def test_the_verdict_names_what_lies_in_system_ram(layers: int, host: str) -> None:
    sentence = told(
        Request(gpu="RTX 4090 Laptop", model="llama-3-8b", precision="FP16", gpu_layers=layers)
    ).verdict.sentence
    assert f"with {host} of it left in system RAM" in sentence
    assert "room to spare" not in sentence


def test_the_rule_of_thumb_is_not_explained_where_it_is_not_shown() -> None:
    for request in (EXPERTS, EXPERTS_SHORT, LAYERS):
        assert "rule of thumb" not in text_of(request).casefold()
    whole = Request(gpu="RTX 4090", model="qwen3-30b-a3b", precision="Q8_0")
    assert text_of(whole).casefold().count("rule of thumb") >= 1


def test_a_smaller_format_that_fits_whole_drops_the_split() -> None:
    found = next(i for i in told(EXPERTS).recommendations if i.action == "quantize")
    assert found.change == {"precision": "Q5_K_M", "cpu_experts": 0}
    assert found.after.host_bytes < 2**30
    assert found.title == "Use Q5_K_M weights, all on the card"


def test_less_on_the_card_keeps_its_own_words() -> None:
    first = next(
        item
        for item in told(
            Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16")
        ).recommendations
        if item.action == "offload-layers"
    )
    assert first.title.startswith("Keep ")
    assert "system RAM" in first.text


@pytest.mark.parametrize(
    ("action", "request_", "words"),
    [
        (
            "offload-layers",
            Request(gpu="RTX 4090", model="qwen3-32b", precision="Q8_0", gpu_layers=64),
            "In addition, 21 layers move to system RAM, which then holds 11.8 GiB",
        ),
        (
            "offload-experts",
            Request(gpu="RTX 4090", model="qwen3-30b-a3b", precision="Q8_0", cpu_experts=5),
            "In addition, the experts of 9 layers move to system RAM, which then holds 8.7 GiB",
        ),
    ],
)
def test_more_in_system_ram_is_worded_with_its_number(
    action: str, request_: Request, words: str
) -> None:
    found = next(i for i in told(request_).recommendations if i.action == action)
    assert words in found.text
    assert list(contradictions(told(request_))) == []


def test_one_drafted_token_is_one_token() -> None:
    doc = told(Request(gpu="H200 SXM", model="deepseek-v3", gpus=8, mtp=1, framework="vLLM"))
    text = " ".join(render_text(doc, width=100).split())
    assert "1 token drafted by its own head" in text
    assert "1 tokens" not in text
