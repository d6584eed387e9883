"""What is proposed to be bought is the smallest that holds the request; models come as released."""

from __future__ import annotations

import pytest

import advisor
from advisor.reading import read_model
from advisor.remedies import model
from advisor.scenario.settings import Request
from tests.remedies import asking


@pytest.mark.parametrize(
    ("gpu", "model", "context", "bought"),
    [
        ("M4:16GB", "gpt-oss-20b", 4_096, "Apple M4:24GB"),
        ("M4:16GB", "gemma-4-26b-a4b-it", 131_072, "Apple M4"),
        ("M1 Max:32GB", "llama-3.3-70b", 8_192, "Apple M4 Max (40-core GPU):64GB"),
    ],
)
def test_a_machine_that_shares_its_memory_is_proposed_in_the_size_that_is_enough(
    gpu: str, model: str, context: int, bought: str
) -> None:
    found = advisor.advise(gpu=gpu, model=model, context=context).rows()
    machines = [row for row in found if row["action"] == "upgrade-gpu"]
    assert [row["change"] for row in machines] == [{"gpu": bought}]


def test_the_size_that_is_proposed_is_the_one_that_is_sized_when_it_is_asked_for() -> None:
    asked: dict[str, object] = {"model": "gpt-oss-20b", "context": 4_096}
    rows = advisor.advise(gpu="M4:16GB", **asked).rows()
    change = next(row["change"] for row in rows if row["action"] == "upgrade-gpu")
    assert isinstance(change, dict)
    again = advisor.advise(**asked, **change).to_dict()
    assert again["memory"]["capacity_bytes"] == 24 * 2**30


def test_another_model_is_offered_in_the_format_that_its_publisher_released() -> None:
    """DeepSeek-V4-Flash is published in FP4+FP8; eight bits of it hold no more."""
    cards, context = "4x RTX PRO 6000 Blackwell", 16_384
    asked = Request(gpu=cards, model="kimi-k2-instruct", precision="FP8", context=context)
    base = asking.advisor().estimate(asked)
    flash = read_model(base.knowledge, "deepseek-v4-flash").model
    option = model._in_best_format(base, flash, model.REMEDY)
    assert option
    assert option.change["precision"] == "FP4+FP8"
    itself = advisor.advise(model=flash.name, framework="vLLM", gpu=cards, context=context)
    assert "vllm serve deepseek-ai/DeepSeek-V4-Flash " in itself.written()
