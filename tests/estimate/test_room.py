"""What is left for the cache of a server at its default share of memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.estimator import estimate_memory, free_bytes
from advisor.estimator.limits import find_limits
from advisor.estimator.speed import estimate_speed
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Framework
from advisor.scenario import Scenario, with_batch
from advisor.scenario.figures import (
    CacheRoom,
    Limits,
    Memory,
    certainty_of,
    margin_of,
    sequences_at_once,
)
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.estimate.builders import (
    FP16,
    GIB,
    KNOWLEDGE,
    framework,
    gpu,
    on_card,
    scenario,
    text_model,
)

SERVERS = {"vllm": 0.92, "sglang": None, "tgi": 1.0, "tensorrt-llm": 0.9}


def server(kind: str) -> Framework:
    return framework(kind, fraction=SERVERS[kind])


def sized(found: Scenario) -> Memory:
    return estimate_memory(found, KNOWLEDGE)


def room_of(found: Scenario) -> CacheRoom:
    room = sized(found).cache_room
    assert room is not None
    return room


@pytest.mark.parametrize("kind", ["llama.cpp", "transformers", "exllama", "mlx"])
def test_runtimes_that_take_what_they_need_have_no_such_room(kind: str) -> None:
    assert sized(on_card(24, framework=framework(kind))).cache_room is None


def test_without_a_card_there_is_no_room() -> None:
    assert sized(scenario(framework=server("vllm"), precision=FP16)).cache_room is None


@pytest.mark.parametrize("kind", SERVERS)
def test_the_room_is_all_that_is_left_of_the_share(kind: str) -> None:
    found = on_card(80, framework=server(kind), precision=FP16)
    memory, room = sized(found), room_of(found)
    others = memory.required_bytes - memory.kv_cache_bytes
    assert memory.usable_bytes is not None
    assert room.room_bytes == pytest.approx(memory.usable_bytes - others, abs=2)
    assert room.tokens is not None
    assert room.tokens == pytest.approx(room.room_bytes / 131_072, abs=16)
    assert room.sequences == room.tokens // found.context_tokens


def test_vllm_counts_whole_blocks() -> None:
    room = room_of(on_card(24, framework=server("vllm"), precision=FP16, context_tokens=1000))
    assert room.tokens is not None
    assert room.tokens % 16 == 0
    assert room.sequences == room.tokens // 1008


def test_the_share_of_tensorrt_llm_is_of_what_is_free() -> None:
    found = on_card(24, framework=server("tensorrt-llm"), precision=FP16)
    whole = sized(replace(found, framework=framework("tensorrt-llm")))
    free = 24 * GIB - 768 * 2**20 - (whole.required_bytes - whole.kv_cache_bytes)
    assert room_of(found).room_bytes == pytest.approx(0.9 * free, abs=2)


def test_a_published_start_of_vllm() -> None:
    """vLLM pull request 10511: Llama-3-8B, 79.22 GiB, 90 %: 53.29 GiB are left for the cache.

    The log counts 1.79 GiB outside PyTorch; the range of the estimate holds it.
    """
    card = gpu(80, segment="datacenter")
    vllm = framework("vllm", fraction=0.9 * 79.22 / 80)
    memory = sized(on_card(80, framework=vllm, precision=FP16, gpu=card))
    assert memory.cache_room is not None
    room = memory.cache_room.room_bytes
    least = room - (memory.high_bytes - memory.required_bytes)
    most = room + (memory.required_bytes - memory.low_bytes)
    assert least <= 53.29 * GIB <= most
    assert room / GIB == pytest.approx(53.29, rel=0.04)


def test_the_smallest_card_of_a_tensor_split_limits_the_cache() -> None:
    cards = (replace(gpu(24), name="large"), replace(gpu(16), name="small"))
    base = {"framework": server("vllm"), "precision": FP16}
    mixed = on_card(16, gpu=cards[1], gpus=2, cards=cards, **base)
    equal = on_card(16, gpu=cards[1], gpus=2, **base)
    assert room_of(mixed) == room_of(equal)


def test_a_state_is_counted_in_sequences_and_not_in_tokens() -> None:
    found = on_card(80, "mamba-codestral-7b", framework=server("vllm"), precision=FP16)
    room = room_of(found)
    assert room.tokens is None
    assert room.sequences > 1


def test_a_model_without_a_cache_has_no_room() -> None:
    model = text_model("llama-3.2-1b")
    encoder = replace(model, shape=replace(model.shape, role="encoder"))
    found = sized(on_card(24, encoder, framework=server("vllm"), precision=FP16))
    assert found.cache_room is None


def test_a_card_that_is_too_small_holds_nothing() -> None:
    room = room_of(on_card(8, framework=server("vllm"), precision=FP16))
    assert room == CacheRoom(0, 0, 0)


def test_sequences_at_once_leave_room_for_their_own_buffers() -> None:
    found = on_card(80, framework=server("tgi"), precision=FP16)
    memory = sized(found)
    limits = find_limits(found, KNOWLEDGE, memory)
    assert limits.max_batch is not None
    assert sequences_at_once(memory, limits) == limits.max_batch < room_of(found).sequences
    assert sequences_at_once(memory, Limits(None, None)) == 0
    assert sequences_at_once(sized(on_card(24)), limits) is None


@st.composite
def servers(draw: st.DrawFn) -> Scenario:
    model = draw(st.sampled_from(("llama-3-8b", "gemma-3-12b", "deepseek-v2-lite", "llama-3.2-1b")))
    return on_card(
        draw(st.sampled_from((16, 24, 40, 80, 192))),
        model,
        framework=server(draw(st.sampled_from(tuple(SERVERS)))),
        precision=FP16,
        context_tokens=draw(st.integers(64, 40_000)),
        batch=draw(st.integers(1, 40)),
        gpus=draw(st.sampled_from((1, 1, 2, 4))),
    )


@given(servers())
@settings(deadline=None)
def test_the_room_holds_the_batch_exactly_when_it_fits(found: Scenario) -> None:
    room = room_of(found)
    free = free_bytes(found, KNOWLEDGE, in_full=True)
    assert free is not None
    if free > 64:
        assert room.sequences >= found.batch
    elif free < -64:
        assert room.sequences < found.batch
    assert room.room_bytes >= 0
    assert room.tokens is None or room.tokens >= 0


@given(servers())
@settings(deadline=None)
def test_a_longer_context_never_serves_more_at_once(found: Scenario) -> None:
    longer = replace(found, context_tokens=found.context_tokens * 2)
    assert room_of(longer).sequences <= room_of(found).sequences


# ---- a batch is a ceiling: what does not fit at once waits


@given(servers())
@settings(deadline=None)
def test_what_is_held_is_the_most_that_fits_and_one_at_least(found: Scenario) -> None:
    def fits(batch: int) -> bool:
        free = free_bytes(with_batch(found, batch), KNOWLEDGE, in_full=True)
        return free is not None and free >= 0

    memory = sized(found)
    held = memory.held_sequences
    assert held is not None
    assert held == 1 or fits(held)
    assert held == found.batch or not fits(held + 1)
    assert (memory.deficit_bytes == 0) == fits(1)


@given(servers())
@settings(deadline=None)
def test_the_cache_counted_is_that_of_the_sequences_held(found: Scenario) -> None:
    memory = sized(found)
    assert memory.held_sequences
    fewer = sized(replace(found, batch=memory.held_sequences))
    assert memory.kv_cache_bytes == fewer.kv_cache_bytes
    assert memory.weights_bytes == fewer.weights_bytes
    assert memory.required_bytes >= memory.low_bytes > 0


def test_the_speed_is_that_of_the_sequences_held() -> None:
    known = load_knowledge()
    asked = Request(gpu="RTX 4090", model="llama-3.1-8b", precision="FP16", framework="vLLM",
                    context=32_768, batch=8)  # fmt: skip
    eight = resolve(asked, known)
    memory = estimate_memory(eight, known)
    assert memory.held_sequences == 1
    one = replace(eight, batch=1)
    found = estimate_speed(eight, memory, known)
    alone = estimate_speed(one, estimate_memory(one, known), known)
    assert found
    assert alone
    assert found.decode_tok_s == alone.decode_tok_s


def test_a_server_is_tight_by_what_one_request_leaves() -> None:
    """Four requests may fill the cache to the brim; only the first decides whether it starts."""
    vllm = server("vllm")
    found = on_card(24, framework=vllm, precision=FP16, batch=400, context_tokens=1024)
    memory = sized(found)
    assert memory.held_sequences is not None
    assert 1 < memory.held_sequences < 400
    assert margin_of(memory, load_knowledge().policy) == "ample"
    assert certainty_of(memory) in {"sure", "unverified"}
    whole = on_card(24, batch=2, logits_rows=2)
    assert sized(whole).held_sequences is None


def test_ollama_is_not_sure_of_a_family_that_it_mixes_itself() -> None:
    """By its library the file of the second has 24 GB, 6 % more than llama.cpp's mix."""
    known = load_knowledge()
    for model in ("Qwen3-Next-80B-A3B-Instruct", "Qwen3.6-35B-A3B"):
        high = {}
        for program in ("llama.cpp", "Ollama"):
            given = Request(
                gpu="H100 PCIe 80 GB", model=model, precision="Q4_K_M", framework=program
            )
            memory = estimate_memory(resolve(given, known), known)
            high[program] = (memory.high_bytes or 0) - memory.required_bytes
        assert high["Ollama"] > high["llama.cpp"] + 0.08 * memory.weights_bytes
        given = replace(given, precision="Q5_K_M")
        other = estimate_memory(resolve(given, known), known)
        assert (other.high_bytes or 0) - other.required_bytes < 0.08 * other.weights_bytes
