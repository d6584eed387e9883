"""Where one change is not enough, the smallest set that is gets found, offered and proved."""

from __future__ import annotations

import pytest

from advisor.scenario.figures import margin_of
from advisor.scenario.resolve import apply_change
from tests.remedies.asking import advised, advisor, combinations, run_again

BIG = {"gpu": "RTX 4090", "model": "llama-3.1-70b", "precision": "FP16"}
HUGE = {"gpu": "RTX 4090", "model": "deepseek-v3", "precision": "FP16"}
CASES = (
    BIG,
    HUGE,
    {"gpu": "RTX 3090", "model": "qwen2.5-32b", "framework": "vLLM", "context": 32768},
    {**BIG, "ram_gib": 64.0, "ram_bandwidth_gb_s": 80.0},
    {"gpu": "RTX 4070 Laptop", "model": "deepseek-v3", "precision": "Q8_0", "ram_gib": 32.0},
    {"gpu": "RTX 4090", "model": "llama-3.1-405b", "precision": "FP16"},
    {"gpu": "GTX 1050 Ti", "model": "llama-3-8b", "precision": "FP16", "ram_gib": 8.0},
    {"gpu": "RTX 3060 12GB", "model": "qwen3-30b-a3b", "precision": "FP16", "ram_gib": 32.0},
)


@pytest.mark.parametrize("given", CASES, ids=lambda g: f"{g['model']} on {g['gpu']}")
def test_a_combination_is_offered_and_run_again_gives_its_figures(given: dict[str, object]) -> None:
    advice = advised(**given)
    found = combinations(advice)
    assert 1 <= len(found) <= 9
    assert "combine" in {item.option.action for item in advice.recommendations}
    for option in found:
        again = run_again(advice, option)
        assert (again.memory, again.speed) == (option.memory, option.speed), option.key
        assert again.memory.deficit_bytes == 0
        assert option.steps >= 2


def test_two_gentle_changes_go_before_three() -> None:
    assert {option.steps for option in combinations(advised(**BIG))} == {2}


def test_each_single_part_of_a_combination_is_not_enough() -> None:
    advice = advised(**BIG)
    for option in combinations(advice):
        for key in ("precision", "gpu_layers"):
            alone = apply_change(advice.request, {key: option.change[key]})
            assert advisor().estimate(alone).memory.deficit_bytes, (option.key, key)


def test_layers_on_the_card_are_exactly_as_many_as_fit_with_room() -> None:
    advice = advised(**BIG)
    for option in combinations(advice):
        more = {**option.change, "gpu_layers": int(str(option.change["gpu_layers"])) + 1}
        tried = advisor().estimate(apply_change(advice.request, more))
        assert option.margin != "thin"
        assert margin_of(tried.memory, advisor().knowledge.policy) in {"thin", None}


def test_a_gentle_single_change_makes_combinations_needless() -> None:
    assert not combinations(advised(gpu="RTX 4090", model="phi-3-medium", precision="FP16"))


def test_a_request_that_fits_gets_none() -> None:
    assert not combinations(advised(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0"))


def test_several_large_cards_are_found_for_what_no_card_holds() -> None:
    machines = [o for o in combinations(advised(**HUGE)) if o.effort == "purchase"]
    assert machines
    assert all(o.scenario.gpus > 1 for o in machines)
    assert any(o.scenario.precision.family == "fp8" for o in machines)


def test_a_laptop_is_only_offered_machines_to_rent() -> None:
    given = {"gpu": "RTX 4070 Laptop", "model": "deepseek-v3", "precision": "Q8_0", "ram_gib": 32.0}
    machines = [o for o in combinations(advised(**given)) if o.effort == "purchase"]
    assert machines
    assert {o.scenario.gpu.segment for o in machines if o.scenario.gpu} == {"datacenter"}


def test_a_split_that_was_stated_is_undone_on_a_machine_that_holds_all() -> None:
    given = {"gpu": "RTX A500 Mobile", "model": "Kimi-K2.5", "precision": "Q3_K_M"}
    advice = advised(**given, gpu_layers=20, ram_gib=32.0)
    machines = [o for o in combinations(advice) if o.effort == "purchase"]
    assert machines
    assert all(o.change["gpu_layers"] == "all" for o in machines)


def test_ram_that_was_stated_bounds_what_may_lie_there() -> None:
    for option in combinations(advised(**BIG, ram_gib=32.0)):
        held = option.memory.host_weights_bytes + option.memory.host_kv_cache_bytes
        assert held <= 32 * 2**30


def test_a_slow_remedy_is_no_remedy_unless_speed_is_no_matter() -> None:
    slow = {**BIG, "gpu": "GTX 1080", "ram_gib": 64.0, "ram_bandwidth_gb_s": 20.0}
    for option in combinations(advised(**slow)):
        assert option.speed is None or option.speed.decode_tok_s.estimate >= 1.0
    patient = combinations(advised(**slow, use="none"))
    assert any(o.speed and o.speed.decode_tok_s.estimate < 1.0 for o in patient)


@pytest.mark.parametrize(
    "given",
    [
        {"gpu": "Radeon RX 6700M", "model": "Phi-3.5-vision-instruct", "precision": "INT8"},
        {"gpu": "Radeon RX 6750 GRE 10 GB", "model": "gemma-3-12b-it", "precision": "NF4"},
    ],
)
def test_the_last_set_that_fits_leaves_room_where_a_smaller_batch_does(
    given: dict[str, object],
) -> None:
    advice = advised(**given, context=131_072, batch=16, ram_gib=32.0)
    first = advice.recommendations[0].option
    assert first.action == "combine"
    assert first.margin == "narrow"


def test_without_a_remedy_the_proof_is_given() -> None:
    far = {"gpu": "RTX 4090", "model": "llama-3-8b", "context": 2**27, "depth": 2**27 - 1}
    advice = advised(**far)
    facts = advice.facts
    assert facts["options.none_exists"] is True
    needed, most = facts["options.least_needed"], facts["options.most_memory"]
    assert isinstance(needed, float)
    assert isinstance(most, float)
    assert needed > most
    assert not advice.recommendations
    assert "no-remedy-exists" in {note.rule for note in advice.notes}


def test_where_a_remedy_exists_nothing_is_proved() -> None:
    for given in CASES:
        assert advised(**given).facts["options.none_exists"] is False
