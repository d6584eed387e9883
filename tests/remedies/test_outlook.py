"""What is kept of a scenario over its contexts is what working it out anew gives."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.placement import host_fits
from advisor.estimator.speed import estimate_speed
from advisor.remedies.assessment import exam_loss, outlook_of, quality_loss
from advisor.scenario import Scenario
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import request_from
from tests.remedies.asking import advisor

CONTEXTS = (1_024, 8_192, 32_768, 131_072)


def scenario(**given: object) -> Scenario:
    return resolve(request_from(given), advisor().knowledge)


ASKED: list[dict[str, object]] = [
    {"gpu": "RTX 4090", "model": "qwen3-8b", "precision": "Q4_K_M"},
    {"gpu": "RTX 4090", "model": "qwen3-8b", "precision": "Q4_K_M", "depth": 900},
    {"gpu": "RTX 4090", "model": "gemma-3-12b-it", "precision": "Q6_K", "kv_cache": "q8_0"},
    {"gpu": "RTX 3060 12GB", "model": "qwen3-30b-a3b", "precision": "Q4_K_M"},
    {
        "gpu": "RTX 3060 12GB", "model": "qwen3-30b-a3b", "precision": "Q4_K_M",
        "cpu_experts": 30, "ram_gib": 64.0, "ram_bandwidth_gb_s": 80.0,
    },
    {
        "gpu": "RTX 3060 12GB", "model": "gemma-3-27b-it", "precision": "Q4_K_M", "depth": 900,
        "gpu_layers": 7, "ram_gib": 64.0, "ram_bandwidth_gb_s": 80.0,
    },
    {"gpu": "RTX 4090 + RTX 3060 12GB", "model": "qwen3-32b", "precision": "Q4_K_M"},
    {"gpu": "H100 SXM5 80 GB", "model": "llama-3.1-8b", "framework": "vLLM", "batch": 16},
    {"gpu": "A100 SXM4 80 GB", "gpus": 2, "model": "llama-3.1-70b", "precision": "AWQ 4-bit"},
    {"gpu": "RTX 4090", "model": "qwen3-8b", "precision": "Q8_0", "draft_model": "qwen3-0.6b"},
]  # fmt: skip


@pytest.mark.parametrize("given", ASKED, ids=lambda given: " ".join(map(str, given.values())))
def test_every_context_gets_its_own_figures(given: dict[str, object]) -> None:
    knowledge, first = advisor().knowledge, scenario(**given, context=CONTEXTS[0])
    for context, twice in product(CONTEXTS, range(2)):
        asked = replace(first, context_tokens=context, use="batch" if twice else "interactive")
        kept, memory = outlook_of(asked, knowledge), estimate_memory(asked, knowledge)
        fits = memory.deficit_bytes == 0 and host_fits(asked, memory)
        assert kept.memory == memory
        assert kept.fits is fits
        assert kept.speed == (estimate_speed(asked, memory, knowledge) if fits else None)
        assert kept.quality_loss_percent == quality_loss(asked)
        assert kept.facts["option.context"] == context
        assert kept.facts.get("option.exam_loss") == exam_loss(asked)
        assert kept.facts["option.required"] == memory.required_bytes


def test_some_of_them_fit_and_some_do_not() -> None:
    knowledge = advisor().knowledge
    found = {
        outlook_of(scenario(**given, context=context), knowledge).fits
        for given, context in product(ASKED[:4], CONTEXTS)
    }
    assert found == {True, False}
