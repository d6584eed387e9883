"""What measurements do to estimates: their own setup, their card, and nothing else."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.calibration.user import Stored
from advisor.estimator.calibration.user.effect import laid_over
from advisor.estimator.calibration.user.physics import FAR
from advisor.estimator.measured_speed import Measurement
from advisor.estimator.speed import estimate_speed
from advisor.estimator.speed_rates import speeds_of
from advisor.knowledge.types import Knowledge
from advisor.scenario.figures import Figure, Speed
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.measurements.examples import KNOWLEDGE

CARD = "RTX A5500"
"""One that nobody measured: what is measured moves it from nothing."""

MEASURED = Measurement(
    gpu=CARD, gpus=1, model="Llama-3.1-8B", precision="Q4_K_M", framework="llama.cpp",
    framework_version="", backend="CUDA", prompt_tokens=0, gen_tokens=128, depth_tokens=0,
    batch=1, metric="decode_tok_s", tok_s=130.0, stdev=None, date="2026-03-01",
    source="bench.json", note="",
)  # fmt: skip
SETUP = Request(gpu=CARD, model="Llama-3.1-8B", precision="Q4_K_M", framework="llama.cpp")
OTHER = replace(SETUP, model="Qwen2.5-7B-Instruct")
MOE = "gpt-oss-20b"


def over(*figures: Measurement) -> Knowledge:
    stored = [Stored(line, m) for line, m in enumerate(figures, start=2)]
    content = "\n".join(map(repr, figures)).encode()
    return laid_over(KNOWLEDGE, stored, content, "measurements.csv")


def speed(request: Request, knowledge: Knowledge = KNOWLEDGE) -> Speed:
    scenario = resolve(request, knowledge)
    found = estimate_speed(scenario, estimate_memory(scenario, knowledge), knowledge)
    assert found
    return found


def decode(request: Request, knowledge: Knowledge = KNOWLEDGE) -> Figure:
    return speed(request, knowledge).decode_tok_s


def faster(times: float, request: Request = SETUP) -> Measurement:
    """A measurement so many times faster than the model without a card factor."""
    scenario = resolve(request, KNOWLEDGE)
    return replace(
        MEASURED,
        gpu=scenario.gpu.name if scenario.gpu else "",
        model=scenario.model.name,
        precision=scenario.precision.name,
        framework=scenario.framework.name,
        backend=scenario.backend or "",
        tok_s=decode(request).estimate * times,
    )


def test_the_measured_setup_shows_the_measurement_and_the_model_beside_it() -> None:
    figure = decode(SETUP, over(MEASURED))
    assert (figure.estimate, figure.evidence) == (130.0, "measured")
    assert figure.source == "your measurement, 2026-03-01, bench.json"
    assert figure.low < 130 < figure.high
    assert figure.modelled
    assert figure.modelled != 130


def test_other_models_on_the_card_follow_and_become_near() -> None:
    """One setup counts for half of what it says: n / (n + 1)."""
    before, after = decode(OTHER), decode(OTHER, over(faster(1.21)))
    assert (before.evidence, after.evidence) == ("modelled", "near")
    assert after.estimate / before.estimate == pytest.approx(1.1)
    assert after.high / after.estimate < before.high / before.estimate


def test_more_setups_count_for_more() -> None:
    second = faster(1.21, replace(SETUP, precision="Q8_0"))
    third = faster(1.21, replace(SETUP, model="Qwen3-8B"))
    gain = decode(OTHER, over(faster(1.21), second, third)).estimate / decode(OTHER).estimate
    assert math.log(gain) == pytest.approx(0.75 * math.log(1.21))


def test_a_setup_measured_twice_counts_once() -> None:
    twice = over(faster(1.20), replace(faster(1.22), source="again.json"))
    gain = decode(OTHER, twice).estimate / decode(OTHER).estimate
    assert gain == pytest.approx(math.sqrt(math.sqrt(1.20 * 1.22)), rel=1e-3)
    figure = decode(SETUP, twice)
    assert figure.estimate == pytest.approx(decode(SETUP).estimate * 1.21)
    assert figure.source == "your measurement, 2026-03-01, again.json and 1 more"


def test_the_newest_day_of_a_setup_counts() -> None:
    new = replace(faster(1.44), date="2026-05-01", source="new.json")
    own = over(new, faster(1.21), replace(faster(1.0), date=""))
    assert decode(SETUP, own).estimate == pytest.approx(decode(SETUP).estimate * 1.44)
    assert decode(SETUP, own).source == "your measurement, 2026-05-01, new.json"
    assert decode(OTHER, own).estimate / decode(OTHER).estimate == pytest.approx(1.2)


def test_own_figures_take_the_place_of_the_published_card_factor() -> None:
    """Measured as fast as the model has it without any factor, the card loses its published one."""
    speeds = speeds_of(KNOWLEDGE)
    assert speeds
    factor = speeds.tables.family.offsets["GeForce RTX 4090", "CUDA"]
    assert factor != 1
    card = replace(SETUP, gpu="RTX 4090")
    published = decode(replace(card, model="Qwen2.5-7B-Instruct"))
    as_modelled = faster(1 / factor, card)
    after = decode(replace(card, model="Qwen2.5-7B-Instruct"), over(as_modelled))
    assert published.evidence == after.evidence == "near"
    assert after.estimate / published.estimate == pytest.approx(1 / factor, rel=1e-3)


def test_own_figures_go_before_published_ones() -> None:
    card = Request(gpu="Apple M2 Ultra", model="Meta-Llama-3-8B", precision="Q4_K_M")
    published = decode(card)
    assert published.evidence == "measured"
    figure = decode(card, over(faster(1.05, card)))
    assert figure.estimate == pytest.approx(published.estimate * 1.05)
    assert figure.source.startswith("your measurement")
    assert figure.modelled == pytest.approx(
        decode(replace(card, framework="LM Studio"), over(faster(1.05, card))).estimate
    )


@pytest.mark.parametrize(
    "change",
    [
        {"gpu": "RTX 4070"},
        {"gpu": "RTX 4080 SUPER"},
        {"framework": "transformers", "precision": "FP16", "model": "Llama-3.2-3B"},
        {"backend": "Vulkan"},
    ],
)
def test_other_cards_backends_and_engines_stay_as_they_are(change: dict[str, str]) -> None:
    request = replace(SETUP, **change)
    assert speed(request, over(MEASURED)) == speed(request)


@pytest.mark.parametrize(
    "change",
    [
        {"kv_cache": "q8_0"},
        {"batch": 2},
        {"gpus": 2},
        {"depth": 2000},
        {"precision": "Q5_K_M"},
        {"framework": "Ollama"},
        {"gpu_layers": 20, "ram_bandwidth_gb_s": 80.0},
    ],
)
def test_another_setup_is_not_the_measured_one(change: dict[str, object]) -> None:
    figure = decode(replace(SETUP, **change), over(MEASURED))
    assert figure.evidence != "measured"


def test_a_near_depth_is_the_same_setup_and_the_nearest_counts() -> None:
    deep = replace(MEASURED, depth_tokens=1024, tok_s=120.0)
    own = over(MEASURED, deep)
    assert decode(replace(SETUP, depth=300), own).estimate == 130
    assert decode(replace(SETUP, depth=900), own).estimate == 120
    assert decode(replace(SETUP, depth=1600), own).evidence == "near"


def test_the_ollama_figure_moves_the_whole_family() -> None:
    ollama = faster(1.21, replace(SETUP, framework="Ollama"))
    gain = decode(OTHER, over(ollama)).estimate / decode(OTHER).estimate
    assert gain == pytest.approx(1.1)


def test_an_engine_outside_the_family_has_a_factor_of_its_own_and_keeps_its_range() -> None:
    vllm = Request(gpu="RTX A5000", model="Qwen2.5-7B-Instruct", precision="AWQ", framework="vLLM")
    other = replace(vllm, model="Llama-3.1-8B")
    before, after = decode(other), decode(other, over(faster(1.21, vllm)))
    assert after.estimate / before.estimate == pytest.approx(1.1)
    assert (before.evidence, after.evidence) == ("extrapolated", "near")
    assert after.low / after.estimate == pytest.approx(before.low / before.estimate)


def test_a_mixture_of_experts_says_nothing_of_dense_models() -> None:
    moe = Request(gpu=CARD, model=MOE, precision="MXFP4", framework="llama.cpp")
    own = over(faster(1.21, moe))
    assert decode(OTHER, own) == decode(OTHER)
    other = replace(moe, model="ERNIE-4.5-21B-A3B-PT")
    assert decode(other, own).estimate / decode(other).estimate == pytest.approx(1.1)


def test_a_dense_model_stands_in_for_mixtures_until_one_is_measured() -> None:
    moe = Request(gpu=CARD, model=MOE, precision="MXFP4", framework="llama.cpp")
    other = replace(moe, model="ERNIE-4.5-21B-A3B-PT")
    gain = decode(other, over(faster(1.21))).estimate / decode(other).estimate
    assert gain == pytest.approx(1.1)
    both = over(faster(1.21), faster(1.3, moe))
    expected = 1.1 * (1.3 / 1.1) ** 0.5
    assert decode(other, both).estimate / decode(other).estimate == pytest.approx(expected)


@pytest.mark.parametrize("times", [1 / FAR / 1.01, FAR * 1.01])
def test_a_figure_far_off_stays_with_its_own_setup(times: float) -> None:
    own = over(faster(times))
    assert decode(OTHER, own) == decode(OTHER)
    assert decode(SETUP, own).evidence == "measured"


@pytest.mark.parametrize(
    "change", [{"batch": 8}, {"gpus": 2}, {"depth_tokens": 4096}, {"tok_s": 1.0}]
)
def test_only_one_stream_on_one_card_near_the_start_moves_the_card(
    change: dict[str, object],
) -> None:
    own = over(replace(MEASURED, **change))
    assert decode(OTHER, own) == decode(OTHER)


def test_streams_are_measured_each_and_together() -> None:
    found = speed(replace(SETUP, batch=8), over(replace(MEASURED, batch=8, tok_s=60.0)))
    assert found.decode_tok_s.estimate == 60
    assert found.aggregate_tok_s
    assert found.aggregate_tok_s.estimate == 480
    assert found.aggregate_tok_s.evidence == "measured"


def test_prefill_of_the_usual_prompt_is_shown_and_moves_the_card() -> None:
    before = speed(SETUP).prefill_tok_s
    assert before
    own = over(
        replace(MEASURED, metric="prefill_tok_s", prompt_tokens=512, tok_s=before.estimate * 1.44)
    )
    found = speed(SETUP, own).prefill_tok_s
    assert found
    assert found.evidence == "measured"
    assert found.estimate == pytest.approx(before.estimate * 1.44)
    other, usual = speed(OTHER, own).prefill_tok_s, speed(OTHER).prefill_tok_s
    assert other
    assert usual
    assert other.estimate / usual.estimate == pytest.approx(1.2, rel=0.05)
    assert other.high / other.low < usual.high / usual.low
    assert decode(OTHER, own) == decode(OTHER)


@pytest.mark.parametrize(
    "change",
    [{"prompt_tokens": 2048}, {"prompt_tokens": 512, "depth_tokens": 4096}],
)
def test_prefill_of_another_prompt_is_not_shown_as_measured(change: dict[str, int]) -> None:
    own = over(replace(MEASURED, metric="prefill_tok_s", tok_s=5000.0, **change))
    found = speed(SETUP, own).prefill_tok_s
    assert found
    assert found.evidence != "measured"


Metric = Literal["decode_tok_s", "prefill_tok_s", "total_throughput_tok_s"]


def test_total_throughput_is_kept_and_changes_nothing() -> None:
    own = over(replace(MEASURED, metric="total_throughput_tok_s", batch=8, tok_s=400.0))
    for request in (SETUP, OTHER, replace(SETUP, batch=8)):
        assert speed(request, own) == speed(request)


def test_the_order_of_lines_does_not_matter() -> None:
    figures = [faster(1.1), faster(1.3, replace(SETUP, precision="Q8_0")), faster(1.2, OTHER)]
    probe = replace(SETUP, model="Qwen3-8B")
    found = {decode(probe, over(*figures[n:], *figures[:n])).estimate for n in range(3)}
    assert len(found) == 1


def test_the_same_figures_give_the_same_answer_every_time() -> None:
    assert [decode(OTHER, over(faster(1.21))) for _ in range(2)].count(
        decode(OTHER, over(faster(1.21)))
    ) == 2


def test_the_built_in_knowledge_stays_untouched() -> None:
    before = decode(OTHER)
    over(faster(1.5))
    decode(OTHER, over(faster(1.5)))
    assert decode(OTHER) == before
    assert KNOWLEDGE.user_speeds is None


def test_names_that_the_knowledge_does_not_have_are_all_told() -> None:
    with pytest.raises(UserError) as caught:
        over(MEASURED, replace(MEASURED, gpu="RTX 9999", model="nothing"))
    message = str(caught.value)
    assert message.startswith("measurements.csv:3: unknown GPU 'RTX 9999', model 'nothing'")
    assert "--no-measurements" in message
