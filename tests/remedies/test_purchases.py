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


_ASKED: dict[str, dict[str, object]] = {
    "BF16 that no card here runs in vLLM": {
        "gpu": "8x L4", "model": "deepseek-v3.2", "precision": "BF16", "context": 16_384,
        "framework": "vLLM", "batch": 128,
    },
    "FP8 in SGLang on RDNA 3": {
        "gpu": "RX 7900 XTX", "model": "qwen3-235b-a22b-instruct-2507", "precision": "FP8",
        "framework": "SGLang",
    },
    "FP8 in TensorRT-LLM on AMD": {
        "gpu": "MI210", "model": "llama-3.3-70b-instruct", "precision": "FP8",
        "framework": "TensorRT-LLM",
    },
    "FP8 in vLLM on a P40": {
        "gpu": "P40", "model": "qwen3-32b", "precision": "FP8", "framework": "vLLM", "batch": 8,
    },
    "BF16 in vLLM on a T4": {
        "gpu": "2x T4", "model": "gemma-3-27b-it", "precision": "BF16", "framework": "vLLM",
        "batch": 8,
    },
    "BF16 in SGLang on a V100": {
        "gpu": "V100 PCIe 16 GB", "model": "qwen3-32b", "precision": "BF16",
        "framework": "SGLang", "batch": 4,
    },
}  # fmt: skip


@pytest.mark.parametrize("asked", _ASKED.values(), ids=_ASKED)
def test_a_card_to_rent_or_buy_runs_what_was_stated_where_it_can(asked: dict[str, object]) -> None:
    """Another runtime and format were for the card at hand alone."""
    given = Request(**asked)  # type: ignore[arg-type]  # keys of a request
    advice = advisor.Session()._answered(given, complete=False)
    assert advice.scenario.framework.name != asked["framework"]
    rented = [one.scenario for one in advice.options if one.action == "cloud"]
    stated = [one for one in rented if one.framework.name == asked["framework"]]
    assert stated
    assert {one.precision.name for one in stated} <= {asked["precision"], "FP8"}
    assert "llama.cpp" not in {one.framework.name for one in rented}


@pytest.mark.parametrize(
    ("gpu", "model", "precision", "framework", "batch"),
    [
        ("4x L40S", "kimi-k2-instruct", "INT4", "vLLM", 32),
        ("2x L40S", "qwen3-235b-a22b-instruct-2507", "FP8", "vLLM", 16),
        ("RTX 4090", "llama-3.3-70b-instruct", "FP8", "vLLM", 8),
        ("2x RTX 4090", "qwen2.5-72b-instruct", "AWQ", "SGLang", 64),
        ("2x L4", "gpt-oss-120b", "MXFP4", "vLLM", 64),
        ("L40S", "qwen3-32b", "BF16", "vLLM", 32),
        ("A10", "mistral-small-3.2-24b-instruct-2506", "BF16", "vLLM", 16),
    ],
)
def test_a_rented_card_holds_every_request_at_the_upper_end_of_its_range(
    gpu: str, model: str, precision: str, framework: str, batch: int
) -> None:
    asked = {"gpu": gpu, "model": model, "precision": precision, "framework": framework}
    advice = asking.advised(**asked, batch=batch)
    rented = [one.option for one in advice.recommendations if one.option.action == "cloud"]
    for one in rented:
        assert one.memory.held_sequences == batch
        assert all(card.high_bytes <= card.usable_bytes for card in one.memory.per_gpu)
    assert rented
