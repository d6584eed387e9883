"""RAM of which nothing is said: a range, and slow options rank by the speed that follows."""

from __future__ import annotations

import pytest

from advisor.scenario.figures import Figure
from advisor.scenario.host import ram_pace
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor, run_again

KNOWLEDGE = advisor().knowledge


def estimated(**given: object) -> Figure:
    speed = advisor().estimate(Request(**given)).speed  # type: ignore[arg-type]  # keys of a request
    assert speed
    return speed.decode_tok_s


def test_unstated_bandwidth_is_that_of_machines_with_such_a_card() -> None:
    def ends(card: str, gib: float | None = None) -> tuple[float, float] | None:
        pace = ram_pace(Request(ram_gib=gib), KNOWLEDGE.gpus[card], KNOWLEDGE)
        assert pace is None or (pace.assumed and not pace.said)
        return (pace.bandwidth.least / 1e9, pace.bandwidth.most / 1e9) if pace else None

    assert ends("GeForce RTX 4090") == pytest.approx((42.656, 102.4))
    assert ends("GeForce RTX 5070 Mobile") == pytest.approx((42.656, 120))
    assert ends("RTX A6000") == pytest.approx((42.656, 204.8))
    assert ends("H100 SXM5 80 GB") == pytest.approx((127.968, 614.4))
    assert ends("H100 SXM5 80 GB", 1024) == pytest.approx((127.968, 614.4))
    assert ends("H100 SXM5 80 GB", 64) == pytest.approx((127.968, 409.6)), "eight modules of 8 GiB"
    assert ends("Tesla P40", 32) == pytest.approx((42.656, 204.8)), "it may be a desktop"
    assert ends("Tesla P40", 16) == pytest.approx((42.656, 102.4))
    assert ends("GeForce RTX 4090", 8) == pytest.approx((42.656, 102.4))
    assert ends("GeForce RTX 4090", 192) == pytest.approx((42.656, 102.4)), "four of 48 GiB"
    assert ends("GeForce RTX 4090", 256) == pytest.approx((42.656, 614.4)), "a server's, maybe"
    assert ends("GeForce RTX 4090", 512) == pytest.approx((85.312, 614.4)), "no desktop takes it"
    assert ends("Apple M2 Max") is None, "one memory: nothing lies beside it"


def test_the_range_of_a_split_holds_what_every_stated_bandwidth_in_it_gives() -> None:
    split = {"gpu": "RTX 4090", "model": "llama-3.1-70b", "precision": "Q4_K_M", "gpu_layers": 40}
    assumed = estimated(**split)
    assert assumed.evidence == "extrapolated"
    for bandwidth in (45.0, 66.0, 100.0):
        stated = estimated(**split, ram_bandwidth_gb_s=bandwidth)
        assert assumed.low < stated.estimate < assumed.high
        assert assumed.high / assumed.low > stated.high / stated.low
    whole = {**split, "model": "llama-3-8b", "gpu_layers": None}
    assert estimated(**whole) == estimated(**whole, ram_bandwidth_gb_s=45.0), "nothing is in RAM"


@pytest.mark.parametrize(
    ("gpu", "ram_gib", "taken_gib"),
    [
        ("Apple M4 Max", 128, 128),
        ("Jetson Orin Nano", 8, 8),
        ("Apple M4 Max", 100, 36),
        ("Apple M4", 128, 32),
        ("Ryzen AI Max+ 395", 64, 64),
        ("DGX Spark", 64, 128),
        ("Radeon Instinct MI300A", 64, 128),
        ("M1 Pro 16GB", 32, 16),
    ],
)
def test_the_ram_of_a_machine_of_one_memory_is_that_memory(
    gpu: str, ram_gib: float, taken_gib: int
) -> None:
    """Where its own was only assumed, and such a machine is sold."""
    asked = Request(gpu=gpu, ram_gib=ram_gib, model="Qwen3-8B")
    found = resolve(asked, KNOWLEDGE).gpu
    assert found
    assert found.vram_bytes == taken_gib * 2**30


def test_slow_options_rank_by_their_speed_where_nothing_is_said_of_the_ram() -> None:
    advice = advised(gpu="RTX 4090", model="llama-3.1-70b", precision="Q4_K_M", ram_gib=64.0)
    offloads = [r for r in advice.recommendations if r.option.action == "offload-layers"]
    assert all(r.option.speed and r.rank > 1 for r in offloads)
    slowest = min(r.option.speed.decode_tok_s.estimate for r in offloads if r.option.speed)
    assert slowest < 5
    assert "offload-needs-ram-figures" in {note.rule for note in advice.notes}


def test_a_remedy_on_another_card_takes_the_ram_beside_that_one() -> None:
    split = {"gpu": "RTX 3060 12GB", "model": "llama-3.1-70b", "precision": "Q4_K_M"}
    advice = advised(**split, gpu_layers=20, ram_gib=64.0)
    for option in advice.options:
        again = run_again(advice, option)
        assert again.scenario.ram_bandwidth_ends == option.scenario.ram_bandwidth_ends, option.key


def test_stated_ram_takes_what_the_cards_do_not_hold() -> None:
    def taken(gpu: str, model: str, **more: object) -> tuple[str, str]:
        stated = {"ram_gib": 256.0, **more}
        found = resolve(Request(gpu=gpu, model=model, **stated), KNOWLEDGE)  # type: ignore[arg-type]
        return found.framework.name, found.precision.name

    assert taken("4x RTX 3090", "DeepSeek-R1") == ("llama.cpp", "Q4_K_M")
    assert taken("2x RTX 3090", "Qwen3-235B-A22B", precision="INT4") == ("llama.cpp", "Q4_K_M")
    assert taken("4x RTX 3090", "DeepSeek-R1", ram_gib=None) == ("vLLM", "FP8"), "none is stated"
    assert taken("4x RTX 3090", "DeepSeek-R1", precision="FP8") == ("vLLM", "FP8")
    assert taken("4x RTX 3090", "DeepSeek-R1", framework="vLLM") == ("vLLM", "FP8")
    assert taken("8x H100", "DeepSeek-R1") == ("vLLM", "FP8"), "a server has RAM anyway"
    assert taken("RTX 5090", "gpt-oss-120b") == ("llama.cpp", "MXFP4_MOE"), "as published"
    assert taken("2x RTX 4090", "Qwen3-4B-FP8") == ("vLLM", "FP8"), "the cards hold it"
