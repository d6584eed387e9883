"""A common second card, smaller models in their best format, one change said once."""

from __future__ import annotations

import pytest

from advisor.knowledge.merit import merit_of
from advisor.remedies.option import Option, relatives
from advisor.report.assembly import document
from tests.remedies.asking import advised, advisor, run_again

PAIR = "GeForce RTX 3090 + GeForce RTX 3060 12 GB"


def test_a_pair_is_proved_like_every_what_if() -> None:
    advice = advised(gpu="RTX 3090", model="qwen2.5-32b", precision="Q6_K")
    pairs = [o for o in advice.options if o.scenario.cards]
    assert PAIR in [option.change["gpu"] for option in pairs]
    for option in pairs:
        again = run_again(advice, option)
        assert (again.memory, again.speed) == (option.memory, option.speed)
        assert option.fits
    cheap = next(option for option in pairs if option.change["gpu"] == PAIR)
    assert cheap.cost_usd == advisor().knowledge.gpus["GeForce RTX 3060 12 GB"].launch_price_usd


def test_a_stated_number_of_cards_is_stated_again() -> None:
    advice = advised(gpu="RTX 3090", model="qwen2.5-32b", precision="Q6_K", gpus=1)
    option = next(o for o in advice.options if o.scenario.cards)
    assert option.change["gpus"] == 2
    assert run_again(advice, option).memory == option.memory


@pytest.mark.parametrize(
    "given",
    [
        {"gpu": "RTX 4090 Laptop", "model": "qwen2.5-32b", "precision": "Q6_K"},
        {"gpu": "RTX 3090", "model": "qwen2.5-32b", "precision": "AWQ", "framework": "vLLM",
         "context": 32768},
        {"gpu": "RTX 3090", "model": "llama-3-8b", "precision": "Q8_0"},
        {"gpu": "2x RTX 3090", "model": "llama-3.1-70b", "precision": "Q8_0"},
    ],
)  # fmt: skip
def test_no_pair_where_it_makes_no_sense(given: dict[str, object]) -> None:
    assert not [o for o in advised(**given).options if o.scenario.cards]


def test_no_pair_where_the_second_card_does_not_run_the_format() -> None:
    advice = advised(
        gpu="RTX 4070 Ti SUPER AD102", model="phi-3-small", precision="FP8", context=32768
    )
    pairs = [option for option in advice.options if option.scenario.cards]
    assert pairs
    for option in pairs:
        assert "3060" not in str(option.change["gpu"])
        assert run_again(advice, option).memory == option.memory


def test_no_pair_where_the_second_card_would_do_alone() -> None:
    advice = advised(gpu="RX 6600 XT", model="qwen2.5-7b", precision="FP16")
    named = [str(o.change["gpu"]) for o in advice.options if o.scenario.cards]
    assert not any("7900" in name for name in named)


def test_a_smaller_model_comes_in_the_most_faithful_format_that_fits() -> None:
    """Q8_0 of it would fit as well, and thinly."""
    advice = advised(gpu="GTX 1060 6GB", model="llama-3.1-8b", precision="FP16")
    options = {o.scenario.model.name: o for o in advice.options if o.action == "smaller-model"}
    best = options["Qwen3.5-4B"]
    assert best.scenario.precision.name == "Q6_K"
    assert best.margin != "thin"
    for option in options.values():
        assert run_again(advice, option).memory == option.memory


def test_a_smaller_model_of_a_quantised_request_may_take_more_bits() -> None:
    advice = advised(gpu="RTX 3060 12GB", model="qwen3.6-27b", precision="Q4_K_M")
    smaller = next(o for o in advice.options if o.scenario.model.name == "Qwen3.5-9B")
    assert smaller.scenario.precision.name == "Q8_0"
    known = relatives(advisor().knowledge, advice.scenario.model)
    assert smaller.scenario.model in known


def peers(**request: object) -> dict[str, Option]:
    advice = advised(**request)
    return {o.scenario.model.name: o for o in advice.options if o.action == "smaller-model"}


@pytest.mark.parametrize(
    ("gpu", "model"),
    [
        ("RTX 4070", "llama-3.1-70b"),
        ("RTX 4090", "llama-2-70b"),
        ("RTX 4070", "gemma-2-27b"),
        ("RTX 3060 12GB", "qwen2.5-72b"),
        ("RTX 3060 12GB", "llava-1.6-34b"),
    ],
)
def test_no_old_model_is_offered_where_a_better_and_newer_one_fits(gpu: str, model: str) -> None:
    """Of two that fit, one that is better and newer by a year leaves the other out."""
    knowledge = advisor().knowledge
    found = [option.scenario.model for option in peers(gpu=gpu, model=model).values()]
    use = "vision" if "llava" in model else "chat"
    rated = {m.name: merit_of(knowledge, m.name, m.hf_id, use) for m in found}
    assert found
    for old in found:
        for new in found:
            one, other = rated[new.name], rated[old.name]
            better = one is not None and one.counted > (other.counted if other else 0.0)
            years = int((new.released or "0")[:4]) - int((old.released or "9")[:4])
            assert not (better and years > 1), (old.name, new.name)
    assert max(m.released or "" for m in found) > "2026"


def test_a_coder_is_not_replaced_by_a_model_for_another_purpose() -> None:
    found = peers(gpu="RTX 4070", model="qwen3-coder-30b-a3b", precision="Q8_0")
    assert found
    assert not any("math" in name.casefold() for name in found)


def test_one_change_is_shown_once() -> None:
    advice = advised(gpu="RTX 4090", model="llama-3.1-70b", precision="FP16")
    said = [item.option.scenario for item in advice.recommendations]
    assert all(one != other for i, one in enumerate(said) for other in said[:i])
    options = document(advice, options=True).options
    assert options
    shown = [str(row.setup) for row in options.rows]
    assert len(shown) == len(set(shown))


def test_the_same_bits_by_two_packers_are_one_move() -> None:
    advice = advised(gpu="4x RTX 4060 Ti 16GB", model="llama-3.3-70b-instruct", ram_gib=64)
    moves = [item.option for item in advice.recommendations if item.option.effort == "rebuild"]
    assert [move.change["framework"] for move in moves] == ["vLLM"]
