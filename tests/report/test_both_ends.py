"""A long context is told with both ends: the speed of an empty cache and of a full one."""

from __future__ import annotations

import pytest

from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.units import rate
from tests.remedies.asking import advised

LONG = {"gpu": "RTX 4090", "model": "llama-3.1-8b", "precision": "Q4_K_M", "context": 32768}


def test_the_full_end_is_that_of_the_depth() -> None:
    both, deep = document(advised(**LONG)), document(advised(**LONG, depth=32767))
    assert both.speed
    assert both.speed_full
    assert deep.speed
    assert both.speed_full.decode_tok_s == deep.speed.decode_tok_s
    assert both.speed_full.first_token_s == deep.speed.first_token_s
    assert both.speed_full.decode_tok_s.estimate < both.speed.decode_tok_s.estimate
    assert deep.speed_full is None


@pytest.mark.parametrize(
    "given",
    [
        {"context": 4096},
        {"model": "llama-3.3-70b", "context": 65536},
        {"model": "bge-m3", "precision": "FP16"},
    ],
)
def test_short_contexts_and_what_does_not_run_have_one(given: dict[str, object]) -> None:
    assert document(advised(**{**LONG, **given})).speed_full is None


def test_the_report_gives_both() -> None:
    text = " ".join(render_markdown(document(advised(**LONG))).split())
    assert "at the start of a conversation, about" in text
    assert "when all of the context is in use" in text
    assert "after one of 32,767" in text


def test_no_end_of_the_full_range_lies_above_the_empty_one() -> None:
    many = {"gpu": "RTX PRO 6000 Blackwell", "gpus": 4, "model": "glm-4.5-air", "framework": "vLLM"}
    doc = document(advised(**many, precision="BF16", context=32768))
    assert doc.speed
    assert doc.speed_full
    assert doc.speed_full.decode_tok_s.high <= doc.speed.decode_tok_s.high
    assert doc.speed_full.decode_tok_s.low < doc.speed.decode_tok_s.low


SPLIT = {
    "gpu": "RTX 3050 8GB", "model": "mistral-small-3.2-24b-instruct-2506", "precision": "Q4_K_M",
    "context": 8192, "framework": "Ollama",
}  # fmt: skip


@pytest.mark.parametrize(("ram", "said"), [(32, True), (8, False)])
def test_what_the_cards_do_not_hold_is_told_with_a_part_in_ram(ram: int, *, said: bool) -> None:
    advice = advised(**SPLIT, ram_gib=ram)
    text = " ".join(render_markdown(document(advice)).split())
    moved = next((o for o in advice.options if o.action == "offload-layers" and o.fits), None)
    assert ("of it in system RAM about" in text) is said
    if said:
        assert moved
        assert moved.speed
        assert f"about {rate(moved.speed.decode_tok_s.estimate)} tok/s" in text
