"""What is needed, what is there and what is missing or free add up as they are printed."""

from __future__ import annotations

import re

import pytest

from advisor.report.assembly import document
from advisor.report.figures import amount, rest
from advisor.report.prose import report
from advisor.units import GIB
from tests.remedies.asking import advised

CARDS = ("RTX 4060", "RTX 3060 12GB", "RTX 4090", "RX 7900 XTX", "RTX 3050 8 GB", "T4")
MODELS = ("phi-3-medium", "llama-3-8b", "qwen2.5-14b", "gemma-2-27b")
NEEDS = re.compile(r"It needs ([\d.,]+) GiB and ([\d.,]+) GiB is usable, so ([\d.,]+) GiB")
OF = re.compile(r"Of the ([\d.,]+) GiB it needs, ([\d.,]+) GiB is missing: ([\d.,]+) GiB")


def test_the_rest_adds_up_to_the_tenth() -> None:
    assert rest(4.96 * GIB, 3.25 * GIB) == "1.8 GiB"
    assert amount(4.96 * GIB - 3.25 * GIB) == "1.7 GiB"
    assert rest(5.0 * GIB, 4.97 * GIB) == "0.03 GiB"
    assert rest(None, GIB) == ""


@pytest.mark.parametrize("gpu", CARDS)
def test_no_verdict_is_a_tenth_off(gpu: str) -> None:
    for model in MODELS:
        sentence = document(advised(gpu=gpu, model=model)).verdict.sentence
        if found := NEEDS.search(sentence):
            needed, usable, missing = (float(n.replace(",", "")) for n in found.groups())
        elif found := OF.search(sentence):
            needed, missing, usable = (float(n.replace(",", "")) for n in found.groups())
        else:
            continue
        assert round(needed - usable - missing, 6) == 0, sentence


def test_a_harsh_remedy_says_what_it_loses_wherever_it_stands() -> None:
    given = {"gpu": "RTX 4090", "model": "llama-3.1-70b", "framework": "llama.cpp"}
    doc = document(advised(**given, ram_gib=8.0))
    harsh = [r for r in report(doc, "full").remedies if "IQ2_S" in r.title]
    assert harsh
    assert all(remedy.figures["loss"].startswith("perplexity +") for remedy in harsh)


def test_a_split_that_ram_cannot_hold_has_no_command_to_run() -> None:
    given = {"gpu": "RTX 4090", "model": "llama-3.1-70b", "precision": "Q4_K_M", "gpu_layers": 30}
    assert document(advised(**given, ram_gib=8.0)).commands == []
    assert document(advised(**given, ram_gib=64.0)).commands


def test_the_shorter_context_says_why_it_is_less_than_what_just_fits() -> None:
    doc = document(advised(gpu="RTX 4090", model="llama-3.1-8b", precision="Q8_0", context=131_072))
    (shorter,) = [r for r in doc.recommendations if r.action == "shrink-context"]
    most = doc.memory.max_context_tokens
    assert most
    assert f"Up to {most:,} tokens would just fit" in shorter.text
