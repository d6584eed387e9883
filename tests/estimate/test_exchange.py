"""What cards exchange when every layer is split over them."""

from __future__ import annotations

import pytest

from advisor.estimator.speed_tables import read_tables
from advisor.knowledge import load_knowledge
from advisor.models import model_from_record
from advisor.units import MIB

KNOWLEDGE = load_knowledge()
EXCHANGE = read_tables(KNOWLEDGE.calibration).exchange
SHAPE = model_from_record(KNOWLEDGE.models["Llama-3.3-70B-Instruct"], KNOWLEDGE).shape


def sum_us(card: str, cards: int, mib: float) -> float:
    """Time one sum of so many MiB over the cards, microseconds."""
    gpu = KNOWLEDGE.gpus[card]
    sums = 2 * SHAPE.layers
    tokens = mib * MIB / (2 * SHAPE.hidden)
    start = EXCHANGE.start_s(gpu, SHAPE, cards)
    return 1e6 * (start + tokens * EXCHANGE.token_s(gpu, SHAPE, cards)) / sums


@pytest.mark.parametrize(
    ("card", "cards", "mib", "measured_us"),
    [
        ("H100 SXM5 80 GB", 2, 4, 45.0),
        ("H100 SXM5 80 GB", 8, 4, 50.7),
        ("RTX PRO 6000 Blackwell Server", 2, 1, 55.7),
        ("RTX PRO 6000 Blackwell Server", 4, 4, 462.0),
        ("RTX PRO 6000 Blackwell Server", 8, 4, 674.6),
        ("L40S", 2, 4, 449.9),
        ("L40S", 2, 0.25, 32.1),
    ],
)
def test_sums_take_what_was_measured(card: str, cards: int, mib: float, measured_us: float) -> None:
    """Source: custom_allreduce_perf of ai-dynamo/aiconfigurator@095f58a51, vLLM in CUDA graphs."""
    assert sum_us(card, cards, mib) == pytest.approx(measured_us, rel=0.2)


def test_a_fabric_is_quicker_than_slots_and_slots_of_a_newer_generation_than_older() -> None:
    order = ["H100 SXM5 80 GB", "RTX PRO 6000 Blackwell Server", "L40S", "GeForce RTX 3090"]
    times = [sum_us(card, 4, 1) for card in order]
    assert times == sorted(times)


def test_half_the_lanes_take_twice_as_long() -> None:
    whole, half = KNOWLEDGE.gpus["GeForce RTX 5080"], KNOWLEDGE.gpus["GeForce RTX 5060 Ti 16 GB"]
    assert (whole.pcie_lanes, half.pcie_lanes) == (16, 8)
    times = [EXCHANGE.token_s(card, SHAPE, 2) for card in (whole, half)]
    assert times[1] == pytest.approx(2 * times[0])


def test_amd_modules_of_a_server_have_a_fabric_too() -> None:
    assert sum_us("Radeon Instinct MI300X", 8, 8) == pytest.approx(91, rel=0.25)
