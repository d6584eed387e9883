"""A figure of several requests says of which: of each, of all together, or of how many of them."""

from __future__ import annotations

import re

import pytest

from advisor.advice.document import Advice
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.report.catalogue import advisor

ASKED = (
    Request(gpu="RTX 5090", model="qwen3.6-27b", precision="Q4_K_M", context=16_384, batch=4),
    Request(gpu="RTX 4090", model="llama-3.1-8b", framework="Ollama", context=16_384, batch=4),
    Request(gpu="L40S", model="llama-3.1-8b", precision="FP8", framework="SGLang", batch=16),
    Request(gpu="A100 80GB", model="qwen2.5-32b", framework="vLLM", context=8_192, batch=32),
    Request(gpu="L40S", model="qwen3-32b", framework="SGLang", context=16_384, batch=32),
    Request(gpu="2x H100 PCIe", model="qwen3-235b-a22b", framework="vLLM", batch=32),
)
SPEED = re.compile(r"[\d.,]+ tok/s(?: \([\d.,]+ to [\d.,]+\))?")
OF_EACH = (" each", " for each request")
OF_ALL = ("for the ", "over all requests")
ALL_TOGETHER = re.compile(r"for \d+ requests")
TOTAL = re.compile(
    r"(?:together give|Together they produce|In total that gives|All together) about $"
)


def page(doc: Advice) -> str:
    return " ".join(render_text(doc, width=100).split())


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.gpu}-{r.framework}")
def test_every_speed_is_of_each_request_or_of_all(request_: Request) -> None:
    doc = document(advisor().advise(request_))
    held = [item.after.held_sequences or item.setup.batch for item in doc.recommendations]
    if doc.speed and not doc.memory.deficit_bytes:
        held.append(doc.memory.held_sequences or doc.scenario.batch)
    text, found, unsaid = page(doc), 0, []
    for speed in SPEED.finditer(text):
        before, after = text[: speed.start()], text[speed.end() :].lstrip()
        said = any(f" {after}".startswith(words) for words in OF_EACH)
        total = TOTAL.search(before) or after.startswith(OF_ALL) or ALL_TOGETHER.match(after)
        found += said
        if not said and not total:
            unsaid.append(text[speed.start() - 60 : speed.end() + 30])
    assert found
    assert len(unsaid) <= 2 * held.count(1), unsaid


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.gpu}-{r.framework}")
def test_what_is_needed_is_said_for_how_many(request_: Request) -> None:
    doc = document(advisor().advise(request_))
    held = doc.memory.held_sequences or request_.batch
    words = {request_.batch: f"for {held} requests at once", 1: f"for one of {request_.batch}"}
    named = words.get(held, f"for {held} of {request_.batch} requests at once")
    needs = page(doc).partition(" Needs ")[2].partition(" Usable ")[0]
    assert named in needs
    assert f"tokens of context for each of {request_.batch} sequences" in page(doc)


def test_where_none_fits_the_cards_that_start_it_are_told_of_one_request() -> None:
    for request, words in (
        (ASKED[-1], True),
        (Request(gpu="RTX 3060 12GB", model="qwen3-32b", precision="Q8_0", batch=4), False),
    ):
        told = page(document(advisor().advise(request)))
        assert ("With one request at a time it needs" in told) is words
        assert ("As asked it needs" in told) is not words


def test_one_request_says_nothing_of_others() -> None:
    told = page(document(advisor().advise(Request(gpu="RTX 4090", model="llama-3.1-8b"))))
    for words in ("each request", "tok/s each", "requests at once", "no other to read"):
        assert words not in told
