"""No speed above what the card's bandwidth allows, over cards, models, formats and depths."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.kv_cache import kv_read_bytes
from advisor.estimator.speed import estimate_speed
from advisor.estimator.speed_step import CacheReads, reads_of
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Gpu
from advisor.models import model_from_record
from advisor.scenario import Scenario
from advisor.scenario.figures import Speed
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.builders import scenario

KNOWLEDGE = load_knowledge()
MODELS = ("Llama-3.2-1B", "Llama-3.1-8B", "Qwen3-30B-A3B", "Llama-3.1-70B")
FORMATS = ("Q4_K_M", "Q8_0")
DEPTHS = (0, 2048, 16384)
CARDS = [gpu for gpu in KNOWLEDGE.gpus.values() if gpu.bandwidth_bytes_s and gpu.vram_bytes]


def cases(gpu: Gpu) -> Iterator[tuple[Scenario, Speed]]:
    backends = {"NVIDIA": "CUDA", "AMD": "ROCm", "Apple": "Metal", "Intel": "SYCL"}
    for name in MODELS:
        for precision in FORMATS:
            for depth in DEPTHS:
                asked = replace(
                    scenario("llama-3-8b"),
                    gpu=gpu,
                    backend=backends.get(gpu.vendor, "Vulkan"),
                    framework=KNOWLEDGE.frameworks["llama.cpp"],
                    model=model_from_record(KNOWLEDGE.models[name], KNOWLEDGE),
                    precision=KNOWLEDGE.formats[precision],
                    context_tokens=DEPTHS[-1] + 512,
                    depth_tokens=depth,
                )
                speed = estimate_speed(asked, estimate_memory(asked, KNOWLEDGE), KNOWLEDGE)
                if speed:
                    yield asked, speed


def test_where_a_speed_is_told_so_is_the_first_token() -> None:
    """Of every card of the knowledge base, with its own back end."""
    seen = 0
    for gpu in CARDS:
        if speed := next((speed for _, speed in cases(gpu)), None):
            seen += 1
            assert speed.first_token_s, gpu.name
    assert seen > 600


def roofline(asked: Scenario) -> float:
    """Tokens/s where every byte of a step is read once at the full bandwidth."""
    weights = weights_of(asked.model, asked.precision, asked.framework, KNOWLEDGE.ggml_types)
    cache = kv_read_bytes(asked, asked.depth_tokens)
    reads = reads_of(asked, estimate_memory(asked, KNOWLEDGE), weights, CacheReads(cache))
    assert asked.gpu
    assert asked.gpu.bandwidth_bytes_s
    return asked.gpu.bandwidth_bytes_s / (reads.step_bytes(1) + reads.gpu_cache_bytes)


@pytest.mark.parametrize("start", range(4))
def test_no_modelled_figure_and_no_upper_end_lies_above_the_roofline(start: int) -> None:
    seen = 0
    for gpu in CARDS[start::16]:
        for asked, speed in cases(gpu):
            figure = speed.decode_tok_s
            if figure.evidence == "measured":
                continue
            seen += 1
            assert figure.low <= figure.estimate <= figure.high, gpu.name
            assert figure.high <= roofline(asked) * 1.0001, (gpu.name, asked.model.name)
    assert seen > 100


def test_a_longer_cache_and_a_larger_format_are_never_faster() -> None:
    for gpu in CARDS[::12]:
        found = {
            (asked.model.name, asked.precision.name, asked.depth_tokens): speed.decode_tok_s
            for asked, speed in cases(gpu)
        }
        plain = {key: one.modelled or one.estimate for key, one in found.items()}
        for (model, precision, depth), speed in plain.items():
            where = (gpu.name, model, precision, depth)
            longer = [plain[k] for k in plain if k[:2] == where[1:3] and k[2] > depth]
            assert all(speed >= other for other in longer), where
            if precision == "Q4_K_M" and (model, "Q8_0", depth) in plain:
                assert speed >= plain[model, "Q8_0", depth], where


ENGINES = (
    ("vLLM", ("FP16", "FP8", "AWQ 4-bit"), ("RTX 4090", "H100 SXM", "MI300X")),
    ("SGLang", ("FP16", "FP8", "AWQ 4-bit"), ("RTX 4090", "H200 SXM")),
    ("ExLlamaV2", ("EXL2 4.0bpw", "EXL2 6.0bpw"), ("RTX 3090", "RTX 4090")),
    ("transformers", ("FP16", "NF4"), ("RTX 3090", "A100 80GB")),
    ("MLX-LM", ("MLX 4-bit", "MLX 8-bit"), ("M2 Ultra", "M4 Max")),
    ("Ollama", ("Q4_K_M", "Q8_0"), ("RTX 3060 12GB", "RX 7900 XTX", "M1 Pro")),
)


def of_engine(framework: str, precision: str, card: str, **given: object) -> tuple[Scenario, Speed]:
    whole = {"gpu": card, "model": "llama-3.2-3b", "precision": precision, **given}
    asked = resolve(Request(framework=framework, **whole), KNOWLEDGE)  # type: ignore[arg-type]
    speed = estimate_speed(asked, estimate_memory(asked, KNOWLEDGE), KNOWLEDGE)
    assert speed, whole
    return asked, speed


@pytest.mark.parametrize(("framework", "formats", "cards"), ENGINES)
def test_other_engines_and_formats_keep_below_the_roofline_from_an_empty_cache_to_a_full_one(
    framework: str, formats: tuple[str, ...], cards: tuple[str, ...]
) -> None:
    for card in cards:
        for precision in formats:
            ends = []
            for depth in (0, 8191):
                asked, speed = of_engine(framework, precision, card, context=8192, depth=depth)
                figure = speed.decode_tok_s
                assert figure.low <= figure.estimate <= figure.high
                if figure.evidence != "measured":
                    assert figure.high <= roofline(asked) * 1.0001, (card, precision, depth)
                ends.append(figure.modelled or figure.estimate)
            assert 0.3 * ends[0] < ends[1] <= ends[0], (card, precision)


@pytest.mark.parametrize(("framework", "formats", "cards"), ENGINES)
def test_room_for_more_tokens_alone_changes_no_speed(
    framework: str, formats: tuple[str, ...], cards: tuple[str, ...]
) -> None:
    (_, short), (_, long) = (
        of_engine(framework, formats[0], cards[0], context=context, depth=1000)
        for context in (2048, 16384)
    )
    assert short.decode_tok_s.estimate == pytest.approx(long.decode_tok_s.estimate)


def test_neighbours_of_a_generation_differ_by_little_more_than_their_bandwidth() -> None:
    """Cards of one chip family reach like shares of it: within a factor 1.6 of the middle one."""
    shares: dict[str, dict[str, float]] = {}
    for gpu in CARDS:
        if gpu.segment == "mobile" or "MIG" in gpu.name:  # a slice keeps its pace of launches
            continue
        for asked, speed in cases(gpu):
            if asked.model.name == "Llama-3.1-8B" and gpu.bandwidth_bytes_s:
                family = f"{gpu.architecture} {(gpu.vram_type or '')[:3]}"
                figure = speed.decode_tok_s
                plain = figure.modelled or figure.estimate
                shares.setdefault(family, {})[gpu.name] = plain / gpu.bandwidth_bytes_s
                break
    assert len(shares) > 15
    for family, found in shares.items():
        middle = median(found.values())
        far = {name: share / middle for name, share in found.items()}
        assert all(1 / 1.6 < one < 1.6 for one in far.values()), (family, far)


@pytest.mark.parametrize("framework", ["llama.cpp", "SGLang"])
def test_no_prompt_is_read_before_the_experts_that_it_touches(framework: str) -> None:
    """512 tokens pick all 256 experts of a layer between them: all weights are read once."""
    given = Request(
        gpu="RTX 6000 Ada", model="Qwen3.6-35B-A3B", precision="INT8", framework=framework
    )
    asked = resolve(given, KNOWLEDGE)
    memory = estimate_memory(asked, KNOWLEDGE)
    speed = estimate_speed(asked, memory, KNOWLEDGE)
    assert asked.gpu
    assert asked.gpu.bandwidth_bytes_s
    assert speed
    assert speed.first_token_s
    assert speed.prefill_tok_s
    lookups = asked.model.parameters - asked.model.vision_parameters - 2**29
    least = lookups / asked.gpu.bandwidth_bytes_s
    assert speed.first_token_s.low > least
    assert speed.prefill_tok_s.high < 512 / least


def test_a_prompt_without_a_layer_on_the_card_has_a_time() -> None:
    given = Request(gpu="RTX 4090", model="qwen3-8b", precision="Q4_K_M", gpu_layers=0, ram_gib=64)
    asked = resolve(given, KNOWLEDGE)
    speed = estimate_speed(asked, estimate_memory(asked, KNOWLEDGE), KNOWLEDGE)
    assert speed
    assert speed.first_token_s
