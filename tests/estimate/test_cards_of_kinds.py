"""A processor alone, cards of several makers, several machines: what is sized, what is not said."""

from __future__ import annotations

import pytest

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.speed import estimate_speed, missing_inputs
from advisor.knowledge import load_knowledge
from advisor.scenario import Scenario
from advisor.scenario.figures import Speed
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWN = load_knowledge()


def asked(gpu: str, model: str = "llama-3.1-8b", **more: object) -> Scenario:
    return resolve(Request(gpu=gpu, model=model, **{"precision": "Q4_K_M", **more}), KNOWN)  # type: ignore[arg-type]


def speed(scenario: Scenario) -> Speed | None:
    return estimate_speed(scenario, estimate_memory(scenario, KNOWN), KNOWN)


@pytest.mark.parametrize(
    ("model", "precision", "ram", "published"),
    [
        # cybernews.com, "I ran a datacenter-class 120B parameter model for just $800": over 14
        ("gpt-oss-120b", "MXFP4", "96GB DDR5-6000", 14.0),
        # llama.cpp issue 39: 7B on a Ryzen 7 5700G, 100 ms a token at best
        ("llama-7b", "Q4_0", "32GB DDR4-3200", 10.0),
    ],
)
def test_the_speed_of_a_processor_alone_is_in_range(
    model: str, precision: str, ram: str, published: float
) -> None:
    size, _, kind = ram.partition(" ")
    scenario = asked("cpu", model, precision=precision, ram_gib=float(size[:-2]), ram_type=kind)
    found = speed(scenario)
    assert found
    assert found.decode_tok_s.low <= published <= found.decode_tok_s.high
    assert found.prefill_tok_s is None


def test_ram_of_unknown_pace_makes_the_range_wider() -> None:
    known, unknown = (
        speed(asked("cpu", ram_gib=64, ram_type=kind)) for kind in ("DDR5-6000", None)
    )
    assert known
    assert unknown
    widths = [one.decode_tok_s.high / one.decode_tok_s.low for one in (known, unknown)]
    assert widths[0] < widths[1]


def test_what_a_system_keeps_of_small_ram_is_more() -> None:
    small, large = (
        estimate_memory(asked("cpu", ram_gib=size), KNOWN).usable_bytes or 0 for size in (16, 64)
    )
    assert (small / 2**30, round(large / 2**30, 1)) == (12, 57.6)


def test_cards_of_several_makers_are_sized_with_what_runs_on_both() -> None:
    scenario = asked("RTX 3090 + RX 7900 XTX", "qwen3-32b")
    assert scenario.backend == "Vulkan"
    assert "Cards of several makers" in scenario.read_as[0]
    one = speed(asked("RTX 3090", "qwen3-32b", backend="Vulkan"))
    found = speed(scenario)
    assert found
    assert one
    assert found.decode_tok_s.low < one.decode_tok_s.estimate < 2 * found.decode_tok_s.high
    for backend, framework in (("CUDA", None), (None, "vLLM"), (None, "Ollama")):
        with pytest.raises(UserError):
            asked("RTX 3090 + RX 7900 XTX", "qwen3-8b", backend=backend, framework=framework)


@pytest.mark.parametrize("gpu", ["2x DGX Spark", "2x M3 Ultra:512GB", "3x Strix Halo"])
def test_several_machines_are_sized_and_not_timed(gpu: str) -> None:
    scenario = asked(gpu, "qwen3-32b")
    assert speed(scenario) is None
    assert "speed of several machines" in missing_inputs(scenario, KNOWN)
    assert "machines that share the model over their network" in " ".join(scenario.read_as)
    single = estimate_memory(asked(gpu.partition(" ")[2], "qwen3-32b"), KNOWN)
    together = estimate_memory(scenario, KNOWN)
    assert max(card.required_bytes for card in together.per_gpu) < (single.required_bytes or 0)


def test_a_count_that_stands_apart_says_so_too() -> None:
    scenario = asked("DGX Spark", "qwen3-32b", gpus=2)
    assert "2 machines" in " ".join(scenario.read_as)
