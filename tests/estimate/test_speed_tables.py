"""The calibration files: complete, sourced, within physical bounds."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import cast

import pytest

from advisor.errors import KnowledgeError
from advisor.estimator.speed_rates import Rate, speeds_of
from advisor.estimator.speed_step import layers_of
from advisor.estimator.speed_tables import read_tables
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Gpu
from advisor.models import model_from_record

BUILT_IN = load_knowledge()
RAW = BUILT_IN.calibration
TABLES = read_tables(RAW)


def group(name: str, part: Mapping[str, object] = RAW) -> dict[str, object]:
    return cast("dict[str, object]", part[name])


def card(name: str, architecture: str, memory: str | None = None, cores: int | None = None) -> Gpu:
    return Gpu(name, (), "NVIDIA", "consumer", architecture, vram_type=memory, cores=cores)


def test_every_group_of_figures_names_its_source() -> None:
    names = {"architecture_of", "format_groups", "engines", "fitted", "measured"}
    assert [name for name in RAW if name not in names and not group(name).get("source")] == []
    fitted = group("fitted")
    assert [
        name for name in fitted if name != "engines" and not group(name, fitted).get("source")
    ] == []
    assert all("source" in cast("dict[str, object]", e) for e in group("engines", fitted).values())


def test_no_efficiency_exceeds_the_bandwidth() -> None:
    family = TABLES.family
    assert 0 < family.efficiency <= family.most_efficiency < 1
    for engine in TABLES.engines.values():
        if engine is not None:
            assert all(0 < share < 1 for share in engine.efficiency.values())
    offload = TABLES.offload
    assert 0 < offload.ram_efficiency < 1
    assert 0 < offload.ram_efficiency_experts < 1


def test_every_range_contains_the_figure() -> None:
    assert all(0 < low < 1 < high for low, high in TABLES.ranges.values())


def test_strangers_have_wider_ranges_than_measured_cards() -> None:
    width = {name: high / low for name, (low, high) in TABLES.ranges.items()}
    assert width["near"] < width["near_small"]
    assert width["near"] < width["modelled"]
    assert width["near"] <= width["alone"] < width["unmeasured_card"]
    assert width["moe_near"] < width["moe_unseen"]
    assert width["prefill_card"] < width["prefill"] < width["prefill_unmeasured"]


def test_every_fitted_architecture_has_a_line_that_leads_to_it() -> None:
    assert set(TABLES.family.architectures) <= {match.to for match in TABLES.matches}


def test_card_factors_are_moderate_and_name_known_cards() -> None:
    assert all(0.74 <= factor <= 1.35 for factor in TABLES.family.offsets.values())
    assert {name for name, _ in TABLES.family.offsets} <= set(BUILT_IN.gpus)
    assert {name for name, _ in TABLES.prefill.cards} <= set(BUILT_IN.gpus)


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (card("DGX Spark (GB10)", "Blackwell", "LPDDR5X"), "GB10"),
        (card("GeForce RTX 5090", "Blackwell", "GDDR7"), "Blackwell GDDR"),
        (card("B200 SXM", "Blackwell", "HBM3e"), None),
        (card("GeForce RTX 3090", "Ampere", "GDDR6X"), "Ampere GDDR"),
        (card("A100 SXM4 80 GB", "Ampere", "HBM2e"), "Ampere HBM"),
        (card("Jetson AGX Orin 64 GB", "Ampere", "LPDDR5"), None),
        (card("Tesla P100 PCIe 16 GB", "Pascal", "HBM2"), None),
        (card("Tesla P40", "Pascal", "GDDR5", 3840), "Pascal GDDR"),
        (card("GeForce GTX 1080", "Pascal", "GDDR5X", 2560), "Pascal small"),
        (card("Radeon 8060S", "RDNA 3.5"), "RDNA 3.5"),
        (card("Radeon RX 7900 XTX", "RDNA 3.0", "GDDR6"), "RDNA 3"),
        (card("Radeon RX 9070 XT", "RDNA 4.0", "GDDR6"), "RDNA 4"),
        (card("Apple M4 Pro", "Apple GPU"), "Apple M4"),
        (card("H100 SXM5 80 GB", "Hopper", "HBM3"), "Hopper"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_cards_find_their_architecture(gpu: Gpu, expected: str | None) -> None:
    assert next((m.to for m in TABLES.matches if m.fits(gpu)), None) == expected


@pytest.mark.parametrize(
    ("file", "place", "value", "message"),
    [
        (
            "",
            ("limits", "small_gib"),
            None,
            r"calibration\.yaml: 'limits\.small_gib' must be a num",
        ),
        ("", ("limits", "small_gib"), True, r"'limits\.small_gib' must be a number"),
        ("", ("multi_gpu", "layer_split_factor"), {"2": 1.9}, r"' must be .* starts at 1"),
        ("", ("multi_gpu", "layer_split_factor"), {"two": 1}, r"must be a mapping of counts"),
        ("", ("ranges", "near"), [1.2, 1.5], r"'ranges\.near' must be a range around 1"),
        ("fitted", ("prefill", "units"), 3, r"-fitted\.yaml: 'prefill\.units' must be a mapping"),
        (
            "",
            ("engines", "SGLang"),
            {"like": "vLLM"},
            r"'engines\.SGLang\.like' must be 'llama\.cpp'",
        ),
        ("fitted", ("decode", "cards"), "many", r"'decode\.cards' must be a list"),
        ("fitted", ("decode", "cards"), [{"gpu": 7}], r"'decode\.cards\[0\]\.gpu' must be a text"),
    ],
)
def test_mistakes_are_named(file: str, place: tuple[str, str], value: object, message: str) -> None:
    changed = deepcopy({name: part for name, part in RAW.items() if name != "measured"})
    part = cast("dict[str, object]", changed[file]) if file else changed
    cast("dict[str, object]", part[place[0]])[place[1]] = value
    with pytest.raises(KnowledgeError, match=message):
        read_tables(changed)


def test_drafts_have_a_span_around_the_plain_speed() -> None:
    assert set(TABLES.speculation) == {"draft_model", "mtp", "mtp_small"}
    for name in ("draft_model", "mtp"):
        low, high = TABLES.speculation[name]
        assert 0 < low < 1 < high


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama-3.1-8B", (32, 0, 0)),
        ("gpt-oss-20b", (24, 24, 0)),
        ("DeepSeek-R1", (90, 58, 0)),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B", (37.5, 23, 23)),
        ("LFM2-8B-A1B", (24, 22, 0)),
    ],
)
def test_layers_are_counted_by_what_they_launch(
    name: str, expected: tuple[float, int, int]
) -> None:
    """A mixer, a feed-forward block and a shared expert are half a layer each."""
    layers = layers_of(model_from_record(BUILT_IN.models[name], BUILT_IN))
    assert (layers.all, layers.experts, layers.recurrent) == expected


def rate(backend: str, framework: str, precision: str) -> Rate:
    speeds = speeds_of(BUILT_IN)
    assert speeds
    gpu = BUILT_IN.gpus["Radeon 8060S (Ryzen AI Max+ 395, Strix Halo)"]
    found = speeds.rate(gpu, backend, BUILT_IN.frameworks[framework], BUILT_IN.formats[precision])
    assert found
    return found


@pytest.mark.parametrize("program", ["Ollama", "LM Studio"])
def test_programs_that_start_llama_server_are_told_its_pace(program: str) -> None:
    """Ollama does since 0.30; what its own engines took before is fitted and told of nothing."""
    assert rate("ROCm", program, "Q4_K_M") == rate("ROCm", "llama.cpp", "Q4_K_M")


def test_what_every_head_reads_of_a_latent_cache_and_the_steps_of_a_state_take_time() -> None:
    """Each head computes over all of a latent vector; a state takes its tokens in turn."""
    assert all(0.1 < one.latent_cache < 0.8 for one in TABLES.family.backends.values())
    prefill = TABLES.prefill
    assert set(prefill.recurrent_s) == set(prefill.attention_latent) == set(prefill.experts)
    assert all(0.1e-6 < seconds < 100e-6 for seconds in prefill.recurrent_s.values())


def test_experts_in_16_bits_are_slow_on_vulkan() -> None:
    """Runs of GLM-4.7-Flash and Qwen3.6-35B-A3B in BF16 took 2.5 times what their bytes do."""
    assert rate("Vulkan", "llama.cpp", "BF16").expert_efficiency < 0.5
    assert rate("ROCm", "llama.cpp", "BF16").expert_efficiency > 0.7
    assert rate("Vulkan", "llama.cpp", "Q8_0").expert_efficiency == 1


def test_an_engine_says_less_of_mixtures_on_a_generation_it_was_not_measured_on() -> None:
    speeds = speeds_of(BUILT_IN)
    assert speeds

    def ranges(card: str, *, moe: bool) -> tuple[str, ...]:
        gpu, framework = BUILT_IN.gpus[card], BUILT_IN.frameworks["MLX-LM"]
        rate = speeds.rate(gpu, "Metal", framework, BUILT_IN.formats["MLX 4-bit"], moe=moe)
        assert rate
        return rate.ranges

    assert "unmeasured_card" in ranges("Apple M1 Max", moe=True)
    assert "unmeasured_card" not in ranges("Apple M1 Max", moe=False)
    assert "unmeasured_card" not in ranges("Apple M4 Pro", moe=True)
