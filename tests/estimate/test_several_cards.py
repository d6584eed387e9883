"""Several cards that do not hold all of a model, and contexts below a micro-batch."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.limits import find_limits
from advisor.knowledge import load_knowledge
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

LLAVA = Request(gpu="2x RTX 3090", model="llava-v1.6-vicuna-13b-hf", precision="IQ3_XXS")
MOE = Request(gpu="2x RTX 3090", model="Qwen3-30B-A3B", precision="Q4_K_M", context=8192)


def found(request: Request) -> tuple[Scenario, Memory]:
    scenario = resolve(request, load_knowledge())
    return scenario, estimate_memory(scenario, load_knowledge())


@pytest.mark.parametrize("split", ["row", "layer"])
@pytest.mark.parametrize("layers", [0, 1, 20, 40])
def test_no_card_holds_less_than_nothing(split: str, layers: int) -> None:
    _, memory = found(replace(LLAVA, gpu_layers=layers, split=split))
    assert all(card.weights_bytes >= 0 for card in memory.per_gpu)
    assert sum(card.weights_bytes for card in memory.per_gpu) == memory.weights_bytes


@pytest.mark.parametrize("part", [{"gpu_layers": 20}, {"cpu_experts": 8}, {"split": "row"}])
def test_only_layers_that_all_lie_on_the_cards_are_computed_as_a_pipeline(
    part: dict[str, object],
) -> None:
    copies = 3 * MOE.context * 512 * 2 if MOE.context else 0
    _, whole = found(MOE)
    _, partly = found(replace(MOE, **part))
    buffers = (memory.per_gpu[1].compute_buffer_bytes for memory in (whole, partly))
    assert next(buffers) - next(buffers) >= copies


@pytest.mark.parametrize("ubatch", [512, 1024, 2048])
def test_the_longest_context_below_a_micro_batch_is_found_to_the_token(ubatch: int) -> None:
    request = Request(gpu="Tesla P4", model="CodeLlama-34b-hf", precision="Q8_0", batch=8,
                      framework="llama.cpp", gpu_layers=10, ubatch=ubatch)  # fmt: skip
    scenario, memory = found(request)
    longest = find_limits(scenario, load_knowledge(), memory).max_context_tokens
    assert longest
    left = [
        free_bytes(replace(scenario, context_tokens=longest + more), load_knowledge())
        for more in (0, 1)
    ]
    assert left[0] is not None
    assert left[1] is not None
    assert left[0] >= 0 > left[1]
