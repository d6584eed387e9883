"""Where a request does not run, what makes it run is said, even where its price is high."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice.preparation import prepare, with_last_resort
from advisor.report.assembly import document
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor
from tests.remedies.promises import broken

HARSH = (
    {"gpu": "RTX A2000 Max-Q 8 GB", "model": "dots.llm1.inst", "precision": "Q3_K_M",
     "context": 131_072, "batch": 16, "kv_cache": "q8_0", "prefer": "speed"},
    {"gpu": "RTX A500", "model": "dots.llm1.inst", "precision": "FP16", "context": 131_072,
     "batch": 16, "gpus": 2, "ram_bandwidth_gb_s": 80.0, "framework": "llama.cpp"},
)  # fmt: skip


@pytest.mark.parametrize("given", HARSH, ids=lambda g: f"{g['model']} on {g['gpu']}")
def test_what_scores_nothing_is_said_where_nothing_else_is(given: dict[str, object]) -> None:
    advice = advised(**given)
    (only,) = advice.recommendations
    assert only.score <= 0
    assert only.option.fits
    assert broken(advisor(), advice) == []


BARRED = (
    {  # one layer of 80 fits on the card
        "gpu": "Radeon RX 550", "model": "Qwen1.5-110B-Chat", "precision": "Q4_K_M", "batch": 4,
        "framework": "Ollama", "backend": "Vulkan", "flash_attention": False, "ubatch": 2048,
        "ram_bandwidth_gb_s": 80.0, "prefer": "speed", "use": "batch", "split": "tensor",
    },
    {  # two bits of a small model fit
        "gpu": "Jetson Orin Nano 4 GB", "model": "starcoder2-7b", "precision": "Q3_K_M",
        "context": 32768, "batch": 16, "kv_cache": "q8_0", "backend": "Vulkan", "ram_gib": 128.0,
        "ram_bandwidth_gb_s": 80.0, "prefer": "cost", "use": "batch", "split": "layer",
    },
)  # fmt: skip


@pytest.mark.parametrize("given", BARRED, ids=lambda given: given["gpu"])
def test_where_rules_bar_all_that_fits_the_last_resort_is_looked_for(
    given: dict[str, object],
) -> None:
    """It keeps what was asked for, on the fewest of the largest cards that hold it."""
    advice = advised(**given)
    (only,) = advice.recommendations
    assert broken(advisor(), advice) == []
    after = only.option.scenario
    assert (after.precision.name, after.batch) == (given["precision"], given["batch"])
    assert after.backend == ("Metal" if given.get("framework") else "Vulkan")


def test_where_there_is_none_the_proof_takes_its_place() -> None:
    far = Request(gpu="RTX 4090", model="llama-3-8b", context=2**27, depth=2**27 - 1)
    ready = prepare(far, advisor().knowledge)
    unproved = {**ready.facts, "options.none_exists": False}
    assert with_last_resort(replace(ready, facts=unproved)).facts == ready.facts


LAPTOPS = (  # both for work in batches: four tokens/s each are too few to read along
    {"gpu": "Radeon RX 7900M", "model": "DeepSeek-V3", "precision": "Q3_K_M", "batch": 16,
     "ram_gib": 32.0, "use": "batch"},
    {"gpu": "RTX A1000 Mobile 6 GB", "model": "Llama-3.1-405B", "precision": "Q4_K_M",
     "context": 32_768, "batch": 16, "kv_cache": "q8_0", "ram_bandwidth_gb_s": 80.0,
     "use": "batch"},
)  # fmt: skip


@pytest.mark.parametrize("given", LAPTOPS, ids=lambda g: f"{g['model']} on {g['gpu']}")
def test_a_laptop_rents_what_it_cannot_be_fitted_with(given: dict[str, object]) -> None:
    advice = advised(**given)
    assert "combine" in [item.option.action for item in advice.recommendations[:2]]
    assert broken(advisor(), advice) == []


def test_its_price_is_in_the_text() -> None:
    (only,) = document(advised(**HARSH[0])).recommendations
    assert "last resort" in only.text
    assert "of the 131,072 tokens asked for, 8,192 are left" in only.text
    assert "4 of 63 layers" in only.title


def test_nothing_of_the_sort_beside_a_better_remedy_or_where_it_fits() -> None:
    for given in (
        {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "FP16"},
        {"gpu": "RTX 4090", "model": "llama-3-8b", "precision": "Q8_0"},
    ):
        doc = document(advised(**given))
        assert doc.recommendations
        for item in doc.recommendations:
            assert item.score > 0
            assert "last resort" not in item.text
