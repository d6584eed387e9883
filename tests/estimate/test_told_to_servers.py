"""What servers are told: their share, their step, graphs, images; and what others keep."""

from __future__ import annotations

import pytest

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.limits import smallest_capacity_bytes
from advisor.runtimes import runtime_of
from advisor.runtimes.commands import command_for
from advisor.scenario import Scenario
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import request_from
from advisor.units import GIB
from tests.reading.test_command_lines import known

ASKED = {"gpu": "RTX 3090", "model": "llama-3.1-8b", "precision": "FP16", "context": 8192}
GIGABYTES = 24 * GIB


def scenario(**more: object) -> Scenario:
    return resolve(request_from({**ASKED, "framework": "vLLM", **more}), known())


def memory(**more: object) -> Memory:
    return estimate_memory(scenario(**more), known())


def test_a_server_claims_the_share_that_it_is_told() -> None:
    shown = GIGABYTES * (1 - known().policy["driver_consumer_share"] / 100)
    assert memory().usable_bytes == int(0.92 * shown)
    assert memory(gpu_memory_utilization=0.8).usable_bytes == int(0.8 * shown)
    assert memory(gpu_memory_utilization=0.8).required_bytes == memory().required_bytes
    whole = memory(gpu_memory_utilization=1.0).usable_bytes
    assert whole
    assert whole < GIGABYTES, "the system keeps its part"
    two = memory(gpus=2, gpu_memory_utilization=0.5)
    assert two.usable_bytes == 2 * int(0.5 * shown)


def test_a_share_of_what_is_free_is_told_in_the_same_way() -> None:
    usual = memory(framework="TensorRT-LLM")
    less = memory(framework="TensorRT-LLM", gpu_memory_utilization=0.5)
    assert (less.usable_bytes or 0) < (usual.usable_bytes or 0)


def test_a_static_share_says_what_stays_out_of_it() -> None:
    found = memory(framework="SGLang", gpu_memory_utilization=0.85)
    shown = GIGABYTES * (1 - known().policy["driver_consumer_share"] / 100)
    assert found.compute_buffer_bytes == round((1 - 0.85) * shown)


def test_programs_that_take_what_they_need_are_not_told() -> None:
    plain = memory(framework="llama.cpp", precision="Q8_0")
    told = memory(framework="llama.cpp", precision="Q8_0", gpu_memory_utilization=0.5, eager=True)
    assert told == plain


def test_an_eager_start_does_without_graphs() -> None:
    """51 sizes of 256 sequences, 32 layers; two sizes where one sequence is stated."""
    each = 32 * known().policy["vllm_graph_bytes_per_layer_and_size"]
    for more, sizes in (({}, 51), ({"batch": 1}, 2)):
        graphs = [memory(**more, eager=eager).compute_buffer_bytes for eager in (None, True)]
        assert graphs[0] - graphs[1] == pytest.approx(sizes * each, abs=1)


def test_a_server_samples_for_every_sequence_that_it_may_hold() -> None:
    """14 bytes a word and sequence: as stated, else 256, on large cards 1024; in short steps one a
    token at most. What waits is sampled for too once it is taken in."""
    each = 14 * 128_256

    def sampled(sequences: int, **more: object) -> None:
        found = memory(eager=True, **more).compute_buffer_bytes
        tokens = 8192 if "gpu" in more else 2048
        step = max(tokens * 59_392 * 2, 2 * tokens * 4096 * 2 + each * sequences)
        assert found == pytest.approx(step + known().policy["vllm_step_bytes"], abs=1)

    sampled(256)
    sampled(1, batch=1)
    sampled(200, batch=200)
    sampled(1024, gpu="H100 SXM5 80 GB")


def test_layers_of_unequal_kinds_are_padded_to_whole_groups() -> None:
    """Gemma 3 27B: 52 sliding layers beside 10 whole ones are kept as 60."""
    found = scenario(model="gemma-3-27b", gpu="H100 SXM5 80 GB", context=131_072)
    cells = runtime_of(found.framework).cells(found, 1024, known().policy)
    assert cells.slide == -(-cells.stream_slide * 60 // 52)
    assert cells.full == cells.stream_full


@pytest.mark.parametrize(
    ("card", "share"), [("RTX 4060", 0.5056), ("RTX 4090", 0.7058), ("H100 SXM5 80 GB", 0.8365)]
)
def test_a_static_share_follows_from_the_card(card: str, share: float) -> None:
    """SGLang 0.5.23 by hand: 512 MiB, 1.5 a token of 2048, 4096 or 8192, 8 a captured length."""
    found = memory(framework="SGLang", gpu=card)
    capacity = found.capacity_bytes or 0
    assert 1 - found.compute_buffer_bytes / capacity == pytest.approx(share, abs=0.004)


def test_a_larger_step_takes_more() -> None:
    sizes = [memory(max_num_batched_tokens=tokens).compute_buffer_bytes for tokens in (2048, 8192)]
    assert sizes[0] < sizes[1]
    assert memory(framework="SGLang", max_num_batched_tokens=16_384).compute_buffer_bytes > (
        memory(framework="SGLang").compute_buffer_bytes
    )


def test_other_programs_keep_their_part() -> None:
    free = [
        free_bytes(scenario(framework="llama.cpp", precision="Q8_0", **more), known()) or 0
        for more in ({}, {"reserve": "2GB"})
    ]
    assert free[0] - free[1] == 2 * GIB


@pytest.mark.parametrize("more", [{"gpu_memory_utilization": 0.7}, {"reserve": "4GB"}])
def test_the_smallest_card_is_searched_with_what_was_told(more: dict[str, object]) -> None:
    usual, told = scenario(), scenario(**more)
    smallest = [
        smallest_capacity_bytes(one, known(), estimate_memory(one, known())) or 0
        for one in (usual, told)
    ]
    assert smallest[0] < smallest[1]


def test_text_alone_leaves_out_what_reads_images() -> None:
    seeing = resolve(request_from({**ASKED, "model": "llava-1.6-13b"}), known())
    text = resolve(request_from({**ASKED, "model": "llava-1.6-13b", "text_only": True}), known())
    beside = seeing.model.vision_parameters
    assert beside
    assert text.model.parameters == seeing.model.parameters - beside
    both = [estimate_memory(one, known()).weights_bytes for one in (seeing, text)]
    assert both[0] > both[1]


@pytest.mark.parametrize(
    ("framework", "words"),
    [
        ("vLLM", "--gpu-memory-utilization 0.8 --max-num-batched-tokens 4096 --enforce-eager"),
        ("SGLang", "--mem-fraction-static 0.8 --chunked-prefill-size 4096"),
        ("TGI", "--cuda-memory-fraction 0.8 --max-batch-prefill-tokens 4096"),
        ("TensorRT-LLM", "--free_gpu_memory_fraction 0.8 --max_num_tokens 4096"),
    ],
)
def test_commands_say_it(framework: str, words: str) -> None:
    told = scenario(
        framework=framework, gpu_memory_utilization=0.8, max_num_batched_tokens=4096, eager=True
    )
    assert words in command_for(told)


def test_linear_attention_stays_wide_in_nvfp4() -> None:
    """Its fused projections cannot be held in it; printed starts agree (server_logs.csv)."""
    packed, wide = ({"precision": name, "gpu": "RTX 5090"} for name in ("AWQ 4-bit", "NVFP4"))
    for model, kept in (("qwen3-32b", False), ("qwen3.6-27b", True)):
        sizes = [memory(model=model, **more) for more in (packed, wide)]
        assert (sizes[1].weights_bytes > 1.25 * sizes[0].weights_bytes) is kept
    assert sizes[1].low_bytes < sizes[1].required_bytes - 6e9, "some files hold it in 8 bits or 4"


@pytest.mark.parametrize(
    ("model", "states"), [("qwen3.6-27b", 2), ("granite-4.0-h-tiny", 3), ("falcon-mamba-7b", 1)]
)
def test_vllm_keeps_states_of_beginnings_beside_those_of_sequences(model: str, states: int) -> None:
    found = scenario(model=model, gpu="H100 SXM5 80 GB", batch=5)
    assert runtime_of(found.framework).cells(found, 0, known().policy).sequences == 5 * states


@pytest.mark.parametrize("model", ["qwen3.6-27b", "granite-4.0-h-tiny"])
def test_as_many_sequences_have_room_as_a_start_for_all_of_them_holds(model: str) -> None:
    """SGLang keeps one state beside those of all requests: the first takes more than the next."""
    more = {"model": model, "framework": "SGLang", "gpu": "RTX 5090", "precision": "AWQ 4-bit"}
    room = memory(**more, batch=1).cache_room
    assert room
    assert memory(**more, batch=room.sequences).headroom_bytes
    assert memory(**more, batch=room.sequences + 1).held_sequences == room.sequences
