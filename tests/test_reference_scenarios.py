"""The five published scenarios: right figures, right verdicts, the advice an expert would give."""

from __future__ import annotations

from functools import lru_cache

import pytest

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.scenario.settings import Request

SCENARIOS = {
    "phi-3-medium": Request(gpu="RTX 4090", model="phi-3-medium", precision="fp16"),
    "phi-3-small": Request(gpu="RTX 4090", model="phi-3-small", precision="int8"),
    "llava-4090": Request(gpu="RTX 4090", model="llava-1.6-13b", precision="fp16"),
    "llava-4000": Request(gpu="RTX 4000 Ada", model="llava-1.6-13b", precision="fp16"),
    "gemma": Request(gpu="RTX 4090", model="gemma-2-27b", precision="q3_k_m", context=8192),
}


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@lru_cache
def advice(name: str) -> Conclusions:
    return advisor().advise(SCENARIOS[name])


@lru_cache
def text(name: str) -> str:
    whole = render_text(document(advice(name)), width=100, color=False, length="full")
    return " ".join(whole.split())


@pytest.mark.parametrize(
    ("name", "nominal", "states"),
    [
        ("phi-3-medium", 28, {"needs_offload"}),
        ("phi-3-small", 7, {"fits"}),
        ("llava-4090", 26, {"needs_offload"}),
        ("llava-4000", 26, {"needs_offload"}),
        ("gemma", 10.8, {"fits"}),
    ],
)
def test_verdict_and_rule_of_thumb(name: str, nominal: float, states: set[str]) -> None:
    assert advice(name).memory.nominal_weights_gb == pytest.approx(nominal)
    assert advice(name).state in states


@pytest.mark.parametrize("name", ["phi-3-medium", "llava-4090", "llava-4000"])
def test_quantization_comes_first_where_the_model_does_not_fit(name: str) -> None:
    actions = [r.option.action for r in advice(name).recommendations]
    assert actions[0] == "quantize"
    assert {"offload-layers", "upgrade-gpu", "smaller-model", "add-gpus", "cloud"} <= set(actions)
    assert advice(name).speed is None


def test_context_framework_and_speculative_decoding_where_it_fits() -> None:
    actions = {r.option.action for r in advice("phi-3-small").recommendations}
    assert "grow-context" in actions
    assert advice("phi-3-small").scenario.framework.name == "SGLang"
    assert "speculative decoding" in text("phi-3-small").lower()


def test_low_bandwidth_is_named_and_a_newer_model_that_sees_is_offered() -> None:
    assert advice("llava-4000").facts["gpu.bandwidth_class"] == "low"
    assert "360 GB/s" in text("llava-4000")
    smaller = next(
        r for r in advice("llava-4000").recommendations if r.option.action == "smaller-model"
    )
    names = {smaller.option.scenario.model.name} | {
        o.scenario.model.name for o in smaller.alternatives
    }
    assert "Qwen3.5-9B" in names
    assert "llava-1.5-7b-hf" not in names


def test_the_difference_from_the_rule_of_thumb_is_explained() -> None:
    memory = advice("gemma").memory
    whole_file = memory.weights_bytes
    assert 13.3e9 < whole_file < 13.5e9
    assert "10.8 GB" in text("gemma")
    assert "rule-of-thumb-falls-short" in {n.rule for n in advice("gemma").notes}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("phi-3-medium", ["24 GiB", "GDDR6X", "16,384", "512", "Ada Lovelace", "28"]),
        ("phi-3-small", ["450 W", "tok/s"]),
        ("llava-4090", ["image"]),
        ("llava-4000", ["20 GiB", "GDDR6"]),
        ("gemma", ["Q3_K_M", "8,192"]),
    ],
)
def test_reports_state_the_hardware_and_the_case(name: str, words: list[str]) -> None:
    for word in words:
        assert word in text(name), word


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_recommendation_was_proved(name: str) -> None:
    for item in advice(name).recommendations:
        assert item.option.fits
        assert item.option.memory.deficit_bytes == 0
        assert item.because
        assert sum(t.points for t in item.score_terms) == pytest.approx(item.score, abs=0.02)
