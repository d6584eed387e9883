"""Advice for unequal cards: every remedy is proved, and the report names each card."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from itertools import product
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.bulk import read_rows
from advisor.bulk.estimates import estimate_row
from advisor.errors import UserError
from advisor.remedies.sharing import names_cards
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.report.sentence_check import contradictions
from advisor.scenario.resolve import apply_change
from advisor.scenario.settings import Request

MIXED = "RTX 3090 + RTX 3060:12GB"
MACHINES = (MIXED, "2x RTX 3090 + RTX 3060:12GB", "RTX 4060 + RTX 3090", "2x RTX 3090",
            "RX 7900 XTX + RX 7600", "H100 SXM + A100 SXM4 80GB")  # fmt: skip
MODELS = ("llama-3.1-70b", "phi-3-medium", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-3-27b")


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def requests() -> list[Request]:
    """Draw the same forty requests every time."""
    rng = random.Random(5)
    every = list(product(MACHINES, MODELS, ("FP16", "Q4_K_M", "AWQ", "FP8"), (None, 16_384)))
    return [
        Request(gpu=card, model=model, precision=precision, context=context,
                ram_gib=rng.choice((None, 64.0)), gpu_layers=rng.choice((None, None, 20)))
        for card, model, precision, context in rng.sample(every, 40)
    ]  # fmt: skip


def test_a_change_applied_and_run_again_gives_exactly_its_figures() -> None:
    proved, replaced = 0, set[str]()
    for request in requests():
        try:
            advice = advisor().advise(request)
        except UserError:
            continue
        for option in advice.options:
            again = advisor().estimate(
                apply_change(request, dict(option.change)), all_cards=names_cards(option.change)
            )
            assert again.memory == option.memory, (request.stated(), option.key)
            if option.fits:
                assert again.speed == option.speed, (request.stated(), option.key)
            proved += 1
            replaced |= {option.action} if "gpu" in option.change else set()
    assert proved > 300
    assert {"add-gpus", "upgrade-gpu"} <= replaced


def test_no_report_of_unequal_cards_contradicts_itself() -> None:
    read = 0
    for request in requests():
        try:
            doc = document(advisor().advise(request))
        except UserError:
            continue
        assert contradictions(doc) == [], request.stated()
        read += 1
    assert read > 20


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_the_report_shows_both_cards_and_what_each_holds(render) -> None:  # type: ignore[no-untyped-def]  # one of three
    doc = document(advisor().advise(Request(gpu=MIXED, model="llama-3.1-70b", precision="Q3_K_M")))
    text = " ".join(render(doc).split())
    large, small = doc.memory.per_gpu
    assert (large.name, small.name) == ("GeForce RTX 3090", "GeForce RTX 3060 12 GB")
    for card in (large, small):
        assert f"{card.required_bytes / 2**30:.1f} GiB on the {card.name}" in text


def test_facts_are_those_of_the_least_card() -> None:
    facts = advisor().advise(Request(gpu=MIXED, model="llama-3.1-70b", precision="Q3_K_M")).facts
    assert facts["gpu.vram"] == 12 * 2**30
    assert facts["gpu.bandwidth"] == 360e9
    assert facts["gpu.tdp"] == 350
    assert facts["request.gpus"] == 2


def test_a_slower_second_card_costs_speed_and_more_of_the_fast_one_does_not() -> None:
    def pace(cards: str) -> float:
        base = advisor().estimate(Request(gpu=cards, model="llama-3.1-70b", precision="Q3_K_M"))
        assert base.speed is not None
        return base.speed.decode_tok_s.estimate

    assert pace("2x RTX 3060:12GB + RTX 3090") < pace(MIXED) < pace("2x RTX 3090")


def test_a_number_beside_a_list_must_agree_with_it() -> None:
    with pytest.raises(UserError, match="gpus is 3"):
        advisor().estimate(Request(gpu=MIXED, gpus=3, model="phi-3-medium"))
    base = advisor().estimate(
        Request(gpu="2x RTX 3090", gpus=2, model="phi-3-medium"), all_cards=True
    )
    assert base.scenario.gpus == 2


def test_the_weakest_card_bars_a_format() -> None:
    """FP8 with vLLM needs 8.9 for activations; the RTX 3090 has 8.6, the RTX 2080 Ti 7.5."""
    with pytest.raises(UserError, match="needs compute capability"):
        advisor().estimate(
            Request(gpu="RTX 4090 + GTX 1080", model="phi-3-medium", precision="FP8")
        )


def test_estimate_takes_the_same_words_in_csv_and_json(tmp_path: Path) -> None:
    table = tmp_path / "plan.csv"
    table.write_text(f"id,gpu,model,precision\n1,{MIXED},llama-3.1-70b,Q3_K_M\n", encoding="utf-8")
    lines = tmp_path / "plan.jsonl"
    given = {"id": 1, "gpu": MIXED, "model": "llama-3.1-70b", "precision": "Q3_K_M"}
    lines.write_text(json.dumps(given), encoding="utf-8")
    answers = []
    for path in (table, lines):
        with path.open("rb") as stream:
            rows = list(read_rows(stream, path.name))
        answers += [estimate_row(row, advisor().knowledge)[0] for row in rows]
    first, second = answers
    assert first.memory == second.memory is not None
    assert first.error is None


def test_the_command_leaves_the_split_to_free_memory() -> None:
    """Equal shares would overfill the smaller card; by itself llama.cpp splits as sized."""
    mixed = advisor().advise(Request(gpu=MIXED, model="llama-3.1-70b", precision="Q4_K_M"))
    equal = advisor().advise(Request(gpu="2x RTX 3090", model="phi-3-medium", precision="FP16"))
    shown = [*document(mixed).commands, *document(equal).commands]
    texts = [command.text for command in shown if command.text.startswith("llama-server")]
    assert texts == [text for text in texts if ("-ts 1,1" in text) == ("70B" not in text)]
    assert not [command for command in document(mixed).commands if command.gaps]


def test_a_machine_taken_in_place_of_several_cards_is_one() -> None:
    advice = advisor().advise(
        Request(gpu="RTX 3090", gpus=2, model="llama-3.1-70b", precision="Q8_0")
    )
    machines = [o for o in advice.options if o.scenario.gpu and o.scenario.gpu.stands_alone]
    assert machines
    for option in machines:
        assert option.scenario.gpus == 1
        assert advisor().estimate(apply_change(advice.request, dict(option.change))).memory
