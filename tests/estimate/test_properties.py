"""What must hold for any scenario."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.weights import weights_of
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from tests.estimate.builders import FP16, GGML_TYPES, KNOWLEDGE, framework, gguf, gpu, scenario

MODELS = (
    "llama-3-8b", "llama-3.2-1b", "gemma-2-9b", "gemma-3-12b", "mixtral-8x7b", "gpt-oss-20b",
    "deepseek-v2-lite", "qwen2.5-0.5b", "phi-3-mini-4k", "starcoder2-7b", "mamba-codestral-7b",
)  # fmt: skip
LADDER = ("Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K",
          "Q8_0", "F16", "F32")  # fmt: skip
WHOLE_BLOCKS = ("llama-3-8b", "llama-3.2-1b", "gemma-2-9b", "mixtral-8x7b", "starcoder2-7b")
"""Other widths make the quantiser fall back to wider types, and it gives fused attention
matrices more bits than separate ones: there Q2_K can pass Q3_K_S, and Q3_K_L Q4_K_S."""


def memory(found: Scenario) -> Memory:
    return estimate_memory(found, KNOWLEDGE)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    runtime = draw(st.sampled_from(("llama.cpp", "transformers", "vllm", "sglang", "mlx")))
    ftype = draw(st.sampled_from(LADDER))
    return scenario(
        draw(st.sampled_from(MODELS)),
        framework=framework(runtime),
        precision=gguf(ftype) if runtime == "llama.cpp" else FP16,
        context_tokens=draw(st.integers(512, 65536)),
        batch=draw(st.integers(1, 16)),
        flash_attention=draw(st.booleans()),
        kv_unified=draw(st.booleans()),
        gpu=gpu(24),
        backend="CUDA",
        gpus=draw(st.integers(1, 4)),
    )


@given(scenarios(), st.integers(1, 32768))
@settings(deadline=None)
def test_more_context_never_needs_less(found: Scenario, more: int) -> None:
    longer = replace(found, context_tokens=found.context_tokens + more)
    then, now = memory(longer), memory(found)
    fewer = (then.held_sequences or 0) < (now.held_sequences or 0)  # the others wait
    assert fewer or then.required_bytes >= now.required_bytes


@given(scenarios(), st.integers(2, 4))
@settings(deadline=None)
def test_a_larger_batch_never_needs_less(found: Scenario, times: int) -> None:
    larger = replace(found, batch=found.batch * times)
    assert memory(larger).required_bytes >= memory(found).required_bytes


@given(st.sampled_from(WHOLE_BLOCKS), st.integers(0, len(LADDER) - 2))
@settings(deadline=None)
def test_fewer_bits_never_need_more(model: str, rung: int) -> None:
    small, large = (scenario(model, precision=gguf(LADDER[rung + step])) for step in (0, 1))
    assert memory(small).weights_bytes <= memory(large).weights_bytes


@given(scenarios())
@settings(deadline=None)
def test_two_cards_never_need_less_in_total_than_one(found: Scenario) -> None:
    one, two = (memory(replace(found, gpus=cards)) for cards in (1, 2))
    assert two.required_bytes >= one.required_bytes
    assert two.weights_bytes >= one.weights_bytes
    assert two.kv_cache_bytes >= one.kv_cache_bytes


@given(st.sampled_from(MODELS), st.integers(0, 60), st.integers(1, 3), st.integers(0, 60))
@settings(deadline=None)
def test_partial_offload_moves_bytes_and_loses_none(
    model: str, layers: int, cards: int, experts: int
) -> None:
    found = scenario(model, gpu_layers=layers, gpus=cards, cpu_experts=experts)
    part = memory(found)
    whole = memory(scenario(model))
    weights = weights_of(found.model, found.precision, found.framework, GGML_TYPES)
    copied = weights.output - weights.norm if weights.profile.tied and layers == 0 else 0
    once = part.weights_bytes + part.host_weights_bytes
    assert 0 <= once - (whole.weights_bytes + whole.host_weights_bytes - copied) <= 512
    assert (
        part.kv_cache_bytes + part.host_kv_cache_bytes
        == whole.kv_cache_bytes + whole.host_kv_cache_bytes
    )


@given(scenarios())
@settings(deadline=None)
def test_the_range_holds_the_figure(found: Scenario) -> None:
    sized = memory(found)
    assert 0 < sized.low_bytes <= sized.required_bytes <= sized.high_bytes
    assert len(sized.per_gpu) == found.gpus
