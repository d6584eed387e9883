"""The break-even row of a report says what the document holds."""

from __future__ import annotations

import html
import re
from functools import lru_cache

import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.scenario.settings import Request

CASES = {
    "too big": (
        Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16"),
        (
            "At this context llama.cpp fits formats up to Q8_0. "
            "As asked it needs 2 of these cards, or one of 28 GiB."
        ),
    ),
    "too many sequences": (
        Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", context=8192, batch=32),
        (
            "It only just fits with at most 3,872 tokens of context per sequence, or with 15 "
            "sequences. As asked it needs 2 of these cards, or one of 41 GiB."
        ),
    ),
    "shared memory": (
        Request(gpu="DGX Spark", model="llama-3.1-405b", precision="Q2_K"),
        (
            "At this context llama.cpp fits formats up to IQ2_XXS. "
            "As asked it needs a machine of 177 GiB."
        ),
    ),
    "fits": (
        Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", batch=8),
        (
            "A card of 13 GiB would still hold it; with 31 sequences it no longer fits. "
            "Even BF16, without quantisation, fits at this context."
        ),
    ),
    "several cards": (
        Request(gpu="RTX 4090", model="llama-3-70b", precision="Q4_K_M", gpus=2, context=32_768),
        (
            "At this context llama.cpp fits formats up to Q3_K_L. "
            "As asked it needs 3 of these cards, or cards of 27 GiB each."
        ),
    ),
    "a reserve that goes by the card": (
        Request(
            gpu="4x RTX 4060 Ti 16GB",
            model="qwen3.6-27b",
            precision="INT4",
            context=32768,
            framework="SGLang",
        ),
        (
            "Cards of 11 GiB each would still hold it, or 2 of these, keeping less for prompts; "
            "there is room for 8 full-length requests at once."
        ),
    ),
    "larger where the cards share it in stages": (
        Request(gpu="6x RTX 3090", model="gemma-4-31b-it", precision="INT4", framework="vLLM"),
        "Even BF16, without quantisation, fits at this context.",
    ),
    "nothing larger": (
        Request(gpu="RTX 4090", model="qwen3-32b", precision="Q5_K_M"),
        (
            "Less memory would not hold it; with 2 sequences it no longer fits. "
            "No larger format worth having fits at this context."
        ),
    ),
}


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load(engine="reference")


@lru_cache(maxsize=len(CASES))
def doc(case: str) -> Advice:
    return document(advisor().advise(CASES[case][0]))


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_report_has_the_row(case: str) -> None:
    said = CASES[case][1]
    assert said in " ".join(render_text(doc(case)).split())
    assert said in render_markdown(doc(case), length="full")
    assert said in html.unescape(render_html(doc(case)))


def test_what_sglang_keeps_for_prompts_is_said_of_what_it_needs() -> None:
    kept = doc("a reserve that goes by the card")
    text = " ".join(render_text(kept).split())
    free = f"{kept.memory.compute_buffer_bytes / 2**30:.1f} GiB"
    assert re.search(rf"Needs \d\S+ GiB \(.* GiB\), {free} of it for prompts", text)
    assert "room for prompts and overhead" in text
    assert "work buffers and overhead" not in text
    assert "of it for prompts" not in render_text(doc("fits"))


def test_a_short_report_has_no_such_row() -> None:
    assert "Break-even" not in render_text(doc("fits"), length="short")


def test_the_document_holds_the_points() -> None:
    edges = doc("several cards").break_even
    assert edges.largest_format == "Q3_K_L"
    assert edges.fewest_gpus == 3
    assert edges.smallest_capacity_bytes == 27 * 2**30
    assert edges.too_large_batch == 1
    assert edges.max_context_tokens == 8192
    assert edges.missing_bytes
