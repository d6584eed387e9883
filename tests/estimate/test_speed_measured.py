"""A configuration somebody measured shows that figure; its neighbours show the model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from advisor.estimate.result import Figure
from advisor.estimate.speed import estimate_speed
from advisor.knowledge.load import load_knowledge
from advisor.knowledge.types import KvType
from advisor.models import model_from_record
from advisor.scenario import Scenario
from tests.estimate.test_speed import SMALL, framework, gguf, memory, scenario

BUILT_IN = load_knowledge()
LLAMA_3_8B = model_from_record(BUILT_IN.models["Meta-Llama-3-8B"], BUILT_IN)
KNOWN = scenario(BUILT_IN.gpus["GeForce RTX 4090"], LLAMA_3_8B)


def decode(what: Scenario) -> Figure:
    found = estimate_speed(what, memory(), BUILT_IN)
    assert found is not None
    return found.decode_tok_s


def test_a_measured_configuration_shows_the_measurement_and_its_source() -> None:
    figure = decode(KNOWN)
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: 130.58
    assert figure.estimate == pytest.approx(130.6)
    assert figure.evidence == "measured"
    assert figure.source == "XiongjieDai/GPU-Benchmarks-on-LLM-Inference, 2024-05"
    assert figure.low < figure.estimate < figure.high < 1.18 * figure.estimate


def test_the_models_own_figure_stands_beside_it() -> None:
    own = decode(replace(KNOWN, model=replace(LLAMA_3_8B, name="other"))).estimate
    assert decode(KNOWN).modelled == pytest.approx(own)


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu": BUILT_IN.gpus["GeForce RTX 4090 D"]},
        {"precision": gguf("Q5_K_M")},
        {"framework": framework("Ollama")},
        {"backend": "Vulkan"},
        {"gpus": 2},
        {"batch": 2},
        {"depth_tokens": 513},
        {"kv_cache_k": KvType("q8_0", 8.5)},
        {"gpu_layers": 20, "ram_bandwidth_bytes_s": 8e10},
        {"draft_model": SMALL},
        {"model": replace(LLAMA_3_8B, origin="config")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_neighbours_are_not_measured(changes: Mapping[str, object]) -> None:
    figure = decode(replace(KNOWN, **changes))  # type: ignore[arg-type]  # fields of Scenario
    assert figure.evidence != "measured"
    assert figure.source == ""
    assert figure.modelled is None


def test_a_short_conversation_is_still_measured() -> None:
    assert decode(replace(KNOWN, depth_tokens=512)).evidence == "measured"


def test_every_measurement_is_near_the_model() -> None:
    """Wrong cards, units or models would be off by far more."""
    tables = BUILT_IN.calibration["measured"]
    assert isinstance(tables, Mapping)
    for line in tables["decode"]:
        card = BUILT_IN.gpus[line["gpu"]]
        what = model_from_record(BUILT_IN.models[line["model"]], BUILT_IN)
        figure = decode(
            scenario(
                card, what, precision=BUILT_IN.formats[line["format"]], backend=line["backend"]
            )
        )
        assert figure.evidence == "measured"
        assert figure.modelled is not None
        assert 0.55 < figure.modelled / figure.estimate < 1.8, line
