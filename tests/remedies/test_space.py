"""What is tried beside the obvious: peers, shared-memory machines, flash attention, use, size."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.remedies.assessment import exam_loss, of_size, quality_loss
from advisor.remedies.option import relatives
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor, run_again


def actions(**given: object) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for option in advised(**given).options:
        found.setdefault(option.action, []).append(dict(option.change))
    return found


def test_flash_attention_is_turned_on_where_it_was_off() -> None:
    given = {"gpu": "RTX 4090", "model": "llama-3.1-8b", "precision": "Q8_0", "context": 98304}
    advice = advised(**given, flash_attention=False)
    first = advice.recommendations[0]
    assert first.option.change == {"flash_attention": True}
    again = run_again(advice, first.option)
    assert again.memory == first.option.memory
    assert again.memory.required_bytes < advice.memory.required_bytes
    assert {"flash_attention": True} not in actions(**given).get("change-framework", [])


def test_machines_that_share_their_memory_are_upgrades() -> None:
    tried = advised(gpu="RTX 4090", model="llama-3.1-70b", precision="Q6_K").options
    shared = [o for o in tried if o.scenario.gpu and o.scenario.gpu.unified_memory]
    assert {o.action for o in shared} == {"upgrade-gpu"}
    assert len({o.scenario.gpu.vendor for o in shared if o.scenario.gpu}) > 1
    assert all(o.memory.deficit_bytes == 0 for o in shared)


def test_a_lonely_model_gets_peers_of_its_kind_and_size() -> None:
    advice = advised(gpu="RTX 4090", model="mixtral-8x22b", precision="Q8_0", ram_gib=16.0)
    smaller = [o for o in advice.options if o.action == "smaller-model"]
    own = advice.scenario.model
    assert smaller
    assert all(o.scenario.model.modality in {own.modality, "vision"} for o in smaller)
    assert all(o.scenario.model.parameters < own.parameters for o in smaller)


def test_a_peer_that_nobody_can_size_is_left_out() -> None:
    for precision in ("FP16", "Q8_0", "Q4_K_M"):
        advice = advised(gpu="Apple M3 Ultra", model="Kimi-K2-Instruct", precision=precision)
        smaller = [o.scenario.model for o in advice.options if o.action == "smaller-model"]
        assert smaller
        assert all(model.shape.described for model in smaller)


def test_distilled_siblings_are_relatives() -> None:
    """They are offered unless a newer model that is better fits too."""
    advice = advised(gpu="RTX 4090", model="DeepSeek-R1", precision="Q4_K_M")
    known = relatives(advisor().knowledge, advice.scenario.model)
    assert any("Distill" in model.name for model in known)


def test_the_use_in_mind_decides_between_quality_and_speed() -> None:
    given = {"gpu": "RTX 4090", "model": "llama-3.1-70b", "precision": "FP16"}
    ram = {"ram_gib": 64.0, "ram_bandwidth_gb_s": 200.0}
    reading, waiting = (
        next(
            said.option
            for said in advised(**given, **ram, use=use).recommendations
            if said.option.action == "combine"
        )
        for use in (None, "batch")
    )
    assert reading.speed
    assert waiting.speed
    assert reading.speed.decode_tok_s.estimate >= 5 > waiting.speed.decode_tok_s.estimate
    assert reading.quality_loss_percent
    assert waiting.quality_loss_percent
    assert waiting.quality_loss_percent < reading.quality_loss_percent


@pytest.mark.parametrize(
    ("use", "least"), [(None, 5.0), ("interactive", 5.0), ("batch", 1.0), ("none", 0.0)]
)
def test_the_least_speed_follows_from_the_use(use: str | None, least: float) -> None:
    advice = advised(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", use=use)
    assert advice.facts["speed.least"] == least
    assert advice.facts["speed.usable"] is True


def test_losses_are_those_of_the_nearest_size_measured() -> None:
    table = ((7e9, 3.0), (13e9, 2.0), (70e9, 2.5))
    assert of_size(table, 8e9) == 3.0
    assert of_size(table, 14e9) == 2.0
    assert of_size(table, 100e9) == 2.5
    assert of_size(table, 1e9) is None
    assert of_size((), 7e9) is None


def test_large_models_bear_two_bits_better() -> None:
    known = advisor().knowledge
    small, large = (
        advisor().estimate(Request(model=name, framework="llama.cpp", precision="IQ2_M")).scenario
        for name in ("llama-3-8b", "llama-3.1-70b")
    )
    losses = exam_loss(small), exam_loss(large)
    assert losses == (7.64, 3.81)
    assert quality_loss(small) == quality_loss(large) == 38.0
    gptq = replace(large, precision=known.formats["GPTQ 4-bit"])
    assert quality_loss(gptq) == 2.88
