"""Speed: when there is a figure, how it moves with the scenario, and published anchors."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from advisor.errors import KnowledgeError
from advisor.estimator.speed import estimate_speed, missing_inputs
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import (
    Format,
    Framework,
    GgmlType,
    Gpu,
    Knowledge,
    KvType,
    Split,
    Vendor,
)
from advisor.models.architectures.tables import FAMILIES
from advisor.models.shape import Counts, Moe, Shape
from advisor.models.stored_tensors import Model
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory, Speed
from advisor.units import GIB

CALIBRATION: Mapping[str, object] = {
    key: value for key, value in load_knowledge().calibration.items() if key != "measured"
}
BLOCKS = (
    ("F32", 1, 4), ("F16", 1, 2), ("Q4_0", 32, 18), ("Q5_0", 32, 22), ("Q5_1", 32, 24),
    ("Q8_0", 32, 34), ("TQ1_0", 256, 54),
    ("Q2_K", 256, 84), ("Q3_K", 256, 110), ("Q4_K", 256, 144), ("Q5_K", 256, 176),
    ("Q6_K", 256, 210), ("IQ4_NL", 32, 18), ("IQ4_XS", 256, 136),
)  # fmt: skip


def knowledge(calibration: Mapping[str, object] = CALIBRATION, sha256: str = "test") -> Knowledge:
    types = {name: GgmlType(name, count, size) for name, count, size in BLOCKS}
    return Knowledge(
        gpus={}, models={}, ggml_types=types, formats={}, kv_types={}, frameworks={},
        policy={}, calibration=calibration, sha256=sha256,
    )  # fmt: skip


KNOWLEDGE = knowledge()


def gguf(name: str) -> Format:
    return Format(name, (), "gguf-k", "gguf", None, None, None, None)


def plain(name: str, family: str, bits: float) -> Format:
    return Format(name, (), family, "plain", bits, round(bits), None, None)


Q4_K_M = gguf("Q4_K_M")
FP16 = plain("FP16", "unquantized", 16)
BNB_8 = plain("INT8", "bnb", 8)
BNB_4 = plain("NF4", "bnb", 4.127)
F16_CACHE = KvType("f16", 16)


def framework(name: str = "llama.cpp", split: tuple[Split, ...] = ("layer",)) -> Framework:
    vendors: tuple[Vendor, ...] = ("NVIDIA", "AMD", "Intel", "Apple")
    return Framework(name, (), "1", vendors, (), ("*",), (), "llama.cpp", multi_gpu=split)


def gpu(
    name: str, architecture: str, bandwidth_gb_s: float | None, memory: str = "GDDR6X", *,
    tflops: float | None = None, vendor: Vendor = "NVIDIA", nvlink_gb_s: float | None = None,
) -> Gpu:  # fmt: skip
    return Gpu(
        name, (), vendor, "consumer", architecture, vram_bytes=24 * GIB, vram_type=memory,
        bandwidth_bytes_s=None if bandwidth_gb_s is None else bandwidth_gb_s * 1e9,
        fp16_tensor_tflops_fp32acc=tflops,
        nvlink_bytes_s=None if nvlink_gb_s is None else nvlink_gb_s * 1e9,
    )  # fmt: skip


RTX_4090 = gpu("GeForce RTX 4090", "Ada Lovelace", 1008, tflops=165.2)
RTX_4070_LAPTOP = gpu("GeForce RTX 4070 Mobile", "Ada Lovelace", 256, "GDDR6")
UNMEASURED_ADA = gpu("GeForce RTX 4999", "Ada Lovelace", 1008)
RTX_3090 = gpu("GeForce RTX 3090", "Ampere", 936.2, tflops=71.2)
A100 = gpu("A100 SXM4 80 GB", "Ampere", 2039, "HBM2e", tflops=312, nvlink_gb_s=600)
M2_ULTRA = gpu("Apple M2 Ultra", "Apple GPU", 800, "LPDDR5", vendor="Apple")


def model(
    layers: int, hidden: int, intermediate: int, kv_width: int, vocab: int, *,
    tied: bool = False, heads: int = 32, moe: Moe | None = None, kind: str = "llama",
) -> Model:  # fmt: skip
    """Count parameters as for a Llama, norms included."""
    head = 128
    attention = 2 * hidden * heads * head + 2 * hidden * kv_width + 2 * hidden
    experts = 3 * hidden * moe.width * moe.experts if moe else 0
    layer = attention + (experts + hidden * moe.experts if moe else 3 * hidden * intermediate)
    table = vocab * hidden
    total = layers * layer + table * (1 if tied else 2) + hidden
    active = total - (layers * experts * (moe.experts - moe.used) // moe.experts if moe else 0)
    counts = Counts(
        total, active, 0, table, 0 if tied else table, (layer,) * layers, (experts,) * layers
    )
    shape = Shape(
        kind, layers, hidden, vocab, heads, kv_width // head, head, intermediate, tied,
        "F" * layers, ("E" if moe else "D") * layers, moe=moe, counts=counts,
        blocks=FAMILIES[kind].stored().blocks,
    )  # fmt: skip
    return Model("m", "f", "text", shape, total, active, 0, None, 131072)


LLAMA_8B = model(32, 4096, 14336, 1024, 128256)
LLAMA_2_7B = model(32, 4096, 11008, 4096, 32000)
LLAMA_70B = model(80, 8192, 28672, 1024, 128256, heads=64)
GEMMA_2_27B = model(46, 4608, 36864, 2048, 256000, tied=True)
SMALL = model(16, 2048, 8192, 512, 128256, tied=True)
QWEN3_30B_A3B = model(48, 2048, 6144, 512, 151936, moe=Moe(128, 8, 768), kind="qwen3_moe")


def scenario(card: Gpu | None = RTX_4090, what: Model = LLAMA_8B, /, **changes: object) -> Scenario:
    base = Scenario(
        gpu=card, gpus=1, model=what, precision=Q4_K_M, context_tokens=4096, batch=1,
        kv_cache_k=F16_CACHE, kv_cache_v=F16_CACHE, framework=framework(),
        backend="Metal" if card and card.vendor == "Apple" else "CUDA", flash_attention=True,
        ubatch=512, kv_unified=True, swa_full=False, gpu_layers=None, cpu_experts=0,
        logits_rows=1, depth_tokens=0, ram_bytes=None, ram_bandwidth_bytes_s=None,
        cpu_cores=None, prefer="balanced",
    )  # fmt: skip
    return replace(base, **changes)


def memory(deficit: int | None = 0, host_cache: int = 0) -> Memory:
    return Memory(0, 0, 0, deficit, 0, 0, 2**20, 0, 0, 0, host_cache, 0, None, (), 0, 0, (), None)


def speed(what: Scenario, found: Memory | None = None) -> Speed:
    estimated = estimate_speed(what, found or memory(), KNOWLEDGE)
    assert estimated is not None
    return estimated


def decode(what: Scenario) -> float:
    return speed(what).decode_tok_s.estimate


# ---- when there is no figure


def test_nothing_is_said_without_a_card() -> None:
    assert estimate_speed(scenario(None), memory(None), KNOWLEDGE) is None
    assert missing_inputs(scenario(None)) == ()


def test_nothing_is_said_of_a_scenario_that_does_not_fit() -> None:
    assert estimate_speed(scenario(), memory(deficit=1), KNOWLEDGE) is None


def test_an_unknown_bandwidth_blocks_and_is_named() -> None:
    unknown = scenario(gpu("X", "Ada Lovelace", None))
    assert estimate_speed(unknown, memory(), KNOWLEDGE) is None
    assert missing_inputs(unknown) == ("gpu.bandwidth",)


@pytest.mark.parametrize("split", [{"gpu_layers": 20}, {"gpu_layers": 0}, {"cpu_experts": 10}])
def test_a_stated_split_needs_the_ram_bandwidth(split: Mapping[str, int]) -> None:
    without = scenario(model=QWEN3_30B_A3B, **split)
    assert estimate_speed(without, memory(), KNOWLEDGE) is None
    assert missing_inputs(without) == ("host.ram_bandwidth",)
    assert speed(replace(without, ram_bandwidth_bytes_s=80e9)).decode_tok_s.estimate > 0


def test_all_layers_on_the_card_is_no_split() -> None:
    assert decode(scenario(gpu_layers=33)) == decode(scenario())


@pytest.mark.parametrize("modality", ["embedding", "audio"])
def test_models_without_text_output_have_no_speed(modality: str) -> None:
    what = scenario(model=replace(LLAMA_8B, modality=modality))
    assert estimate_speed(what, memory(), KNOWLEDGE) is None
    assert missing_inputs(what) == ()


def test_an_engine_without_calibration_gives_no_figure_and_is_named() -> None:
    what = scenario(framework=framework("TensorRT-LLM"))
    assert estimate_speed(what, memory(), KNOWLEDGE) is None
    assert missing_inputs(what, KNOWLEDGE) == ("how fast TensorRT-LLM computes on CUDA",)


def test_a_knowledge_base_without_calibration_gives_no_figure() -> None:
    assert estimate_speed(scenario(), memory(), knowledge({}, "empty")) is None


def test_several_cards_need_a_framework_that_splits() -> None:
    what = scenario(gpus=2, framework=framework(split=()))
    assert estimate_speed(what, memory(), KNOWLEDGE) is None
    assert "framework.multi_gpu" in missing_inputs(what)


def test_a_wrong_calibration_file_is_named_with_the_place() -> None:
    fitted = CALIBRATION["fitted"]
    assert isinstance(fitted, Mapping)
    broken = {**CALIBRATION, "fitted": {**fitted, "offload": {"ram_efficiency": "fast"}}}
    place = r"calibration-fitted\.yaml: 'offload\.ram_efficiency'"
    with pytest.raises(KnowledgeError, match=place):
        estimate_speed(scenario(), memory(), knowledge(broken, "broken"))


# ---- evidence and ranges


def test_a_measured_card_is_near_and_its_range_narrow() -> None:
    figure = speed(scenario()).decode_tok_s
    assert figure.evidence == "near"
    assert figure.high / figure.estimate < 1.3


def test_an_unmeasured_card_of_a_measured_generation_is_modelled() -> None:
    assert speed(scenario(UNMEASURED_ADA)).decode_tok_s.evidence == "modelled"


@pytest.mark.parametrize("architecture", ["Kepler", "Xe-LPG+", "RDNA 2.0", "GCN 5.0"])
def test_generations_without_measurements_are_extrapolated(architecture: str) -> None:
    figure = speed(scenario(gpu("X", architecture, 900))).decode_tok_s
    assert figure.evidence == "extrapolated"
    assert round(figure.high / figure.estimate, 6) >= 1.6


@pytest.mark.parametrize(
    "changes",
    [
        {"depth_tokens": 16384},
        {"batch": 2},
        {"gpus": 2},
        {"gpu_layers": 20, "ram_bandwidth_bytes_s": 80e9},
        {"precision": gguf("TQ1_0")},
        {"framework": framework("vLLM"), "precision": FP16},
    ],
)
def test_what_few_machines_measured_is_extrapolated_and_no_narrower(
    changes: Mapping[str, object],
) -> None:
    figure, near = speed(scenario(**changes)).decode_tok_s, speed(scenario()).decode_tok_s
    assert figure.evidence == "extrapolated"
    assert figure.high / figure.low >= near.high / near.low * 0.9999


def test_every_range_contains_its_estimate() -> None:
    for changes in ({}, {"batch": 8}, {"depth_tokens": 9000}, {"gpus": 4}):
        found = speed(scenario(context_tokens=16384, **changes))
        for figure in (found.decode_tok_s, found.prefill_tok_s, found.aggregate_tok_s):
            assert figure is not None
            assert 0 < figure.low < figure.estimate < figure.high


def test_small_models_have_wider_ranges() -> None:
    wide, narrow = speed(scenario(model=SMALL)).decode_tok_s, speed(scenario()).decode_tok_s
    assert wide.high / wide.estimate > narrow.high / narrow.estimate


def test_a_mixture_of_experts_is_less_certain() -> None:
    near = speed(scenario(model=QWEN3_30B_A3B)).decode_tok_s
    assert near.evidence == "near"
    dense = speed(scenario()).decode_tok_s
    assert near.high / near.low > dense.high / dense.low
    unseen = speed(scenario(UNMEASURED_ADA, QWEN3_30B_A3B)).decode_tok_s
    assert unseen.evidence == "extrapolated"


# ---- how it moves


def test_a_deeper_cache_is_never_faster() -> None:
    figures = [decode(scenario(depth_tokens=n)) for n in (0, 1, 512, 4096, 8192, 8193, 65536)]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] < figures[0]


def test_more_bandwidth_is_never_slower() -> None:
    bandwidths = (100, 300, 301, 1000, 4000)
    figures = [decode(scenario(gpu("X", "Ada Lovelace", b))) for b in bandwidths]
    assert figures == sorted(figures)


def test_bigger_weights_of_one_format_are_never_faster() -> None:
    figures = [decode(scenario(model=m)) for m in (SMALL, LLAMA_2_7B, GEMMA_2_27B, LLAMA_70B)]
    assert figures == sorted(figures, reverse=True)


@pytest.mark.parametrize("what", [LLAMA_8B, QWEN3_30B_A3B])
@pytest.mark.parametrize("engine", ["llama.cpp", "vLLM", "transformers"])
def test_batches_gain_in_sum_and_lose_per_stream(what: Model, engine: str) -> None:
    base = scenario(model=what, framework=framework(engine), precision=FP16, depth_tokens=1000)
    one = decode(base)
    sums = []
    for batch in (1, 2, 3, 8, 32, 64, 128):
        found = speed(replace(base, batch=batch))
        assert found.aggregate_tok_s is not None
        assert found.decode_tok_s.estimate <= one * (1 + 1e-12)
        assert found.aggregate_tok_s.estimate >= one * (1 - 1e-12)
        assert found.aggregate_tok_s.estimate == pytest.approx(batch * found.decode_tok_s.estimate)
        sums.append(found.aggregate_tok_s.estimate)
    assert sums[-1] > sums[0]


@pytest.mark.parametrize("cards", [2, 3, 4, 8])
def test_a_layer_split_never_speeds_up_one_stream(cards: int) -> None:
    assert 0.9 < decode(scenario(gpus=cards)) / decode(scenario()) < 1


def test_tensor_parallel_gains_more_over_nvlink() -> None:
    base = scenario(A100, LLAMA_70B, framework=framework("vLLM", ("tensor",)), precision=FP16)
    linked = decode(replace(base, gpus=2)) / decode(base)
    pcie = replace(base, gpu=replace(A100, nvlink_bytes_s=None))
    assert 1 < decode(replace(pcie, gpus=2)) / decode(base) < linked < 2


def test_layers_and_experts_in_system_ram_cost_speed() -> None:
    ram = {"ram_bandwidth_bytes_s": 80e9}
    figures = [decode(scenario(gpu_layers=n, **ram)) for n in (33, 32, 20, 1, 0)]
    assert figures == sorted(figures, reverse=True)
    moe = [decode(scenario(model=QWEN3_30B_A3B, cpu_experts=n, **ram)) for n in (0, 10, 48)]
    assert moe == sorted(moe, reverse=True)


def test_a_processor_unpacks_what_ram_brings_and_tables_take_it_longer() -> None:
    """Twice the bandwidth does not halve the time, least of all of formats with tables."""

    def gained(name: str) -> float:
        slow, fast = (
            decode(scenario(gpu_layers=0, precision=gguf(name), ram_bandwidth_bytes_s=bandwidth))
            for bandwidth in (50e9, 100e9)
        )
        return fast / slow

    assert 1.2 < gained("IQ4_XS") < gained("Q4_K_M") < 1.9


def test_the_cache_in_system_ram_is_read_from_there() -> None:
    split = scenario(gpu_layers=10, ram_bandwidth_bytes_s=80e9, depth_tokens=4000)
    on_card, half = speed(split), speed(split, memory(host_cache=2**20))
    assert half.decode_tok_s.estimate < on_card.decode_tok_s.estimate


def test_the_longest_part_is_named() -> None:
    assert speed(scenario()).bound_by == "bandwidth"
    assert speed(scenario(gpu_layers=8, ram_bandwidth_bytes_s=50e9)).bound_by == "offload"
    eager = scenario(model=SMALL, framework=framework("transformers"), precision=FP16)
    assert speed(eager).bound_by == "overhead"
    assert speed(scenario(batch=128)).bound_by == "compute"


def test_a_draft_model_never_changes_the_figures_themselves() -> None:
    plain, drafted = speed(scenario()), speed(scenario(draft_model=SMALL))
    assert replace(drafted, speculative_tok_s=None) == plain
    span = drafted.speculative_tok_s
    assert span is not None
    assert span.low < plain.decode_tok_s.low < plain.decode_tok_s.high < span.high
    assert plain.speculative_tok_s is None


# ---- published anchors, as ranges


@pytest.mark.parametrize(
    ("what", "low", "high"),
    [
        # XiongjieDai and llmfit runs: 129 to 150 tok/s
        pytest.param(scenario(), 120, 150, id="RTX 4090, Llama-3.1-8B Q4_K_M"),
        pytest.param(
            scenario(model=GEMMA_2_27B, precision=gguf("Q3_K_M")), 40, 60,
            id="RTX 4090, Gemma-2-27B Q3_K_M",
        ),
        # XiongjieDai has 54.6
        pytest.param(scenario(precision=FP16), 46, 64, id="RTX 4090, Llama-3-8B F16"),
        # XiongjieDai has 113.6
        pytest.param(scenario(RTX_3090), 97, 133, id="RTX 3090, Llama-3-8B Q4_K_M"),
        # XiongjieDai has 76.3
        pytest.param(scenario(M2_ULTRA), 62, 92, id="M2 Ultra, Llama-3-8B Q4_K_M"),
        # premAI-io/benchmarks: 34.2 with PyTorch eager; QwenLM tables: 40
        pytest.param(
            scenario(A100, LLAMA_2_7B, framework=framework("transformers"), precision=FP16),
            30, 50, id="A100, transformers, 7B FP16",
        ),
        # premAI-io/benchmarks: 89.4
        pytest.param(
            scenario(A100, LLAMA_2_7B, framework=framework("vLLM"), precision=FP16),
            70, 115, id="A100, vLLM, 7B FP16",
        ),
        # premAI-io/benchmarks has 6.9 for 8 and 19.6 for 4 bits
        pytest.param(
            scenario(A100, LLAMA_2_7B, framework=framework("transformers"), precision=BNB_8),
            5, 9, id="A100, transformers, 7B bitsandbytes INT8",
        ),
        pytest.param(
            scenario(A100, LLAMA_2_7B, framework=framework("SGLang"), precision=BNB_8),
            4, 9, id="A100, SGLang, 7B bitsandbytes INT8",
        ),
        pytest.param(
            scenario(A100, LLAMA_2_7B, framework=framework("transformers"), precision=BNB_4),
            15, 26, id="A100, transformers, 7B bitsandbytes NF4",
        ),
    ],
)  # fmt: skip
def test_published_speeds_lie_in_reach(what: Scenario, low: float, high: float) -> None:
    assert low <= decode(what) <= high


@pytest.mark.parametrize(
    ("what", "layers", "weights", "published"),
    [
        # ghost91-/llama-bench, RTX 4070 laptop with DDR5-5600 assumed, depth 0; widths chosen
        # so that the files have the published sizes: 8.9, 7.7 and 17.1 GiB
        (model(32, 4096, 14336, 1024, 248320), 26, "Q8_0", 16.0),
        (model(40, 5120, 16384, 1024, 131072), 35, "Q4_K_M", 19.4),
        (model(60, 5376, 24576, 2048, 262144, tied=True), 20, "Q4_K_M", 4.1),
    ],
)
def test_published_splits_lie_within_a_factor(
    what: Model, layers: int, weights: str, published: float
) -> None:
    split = scenario(
        RTX_4070_LAPTOP, what, precision=gguf(weights), gpu_layers=layers,
        ram_bandwidth_bytes_s=89.6e9,
    )  # fmt: skip
    assert published / 1.3 <= decode(split) <= published * 1.3
