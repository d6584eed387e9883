"""SGLang keeps recurrent states in a pool of their own, several for every request."""

from __future__ import annotations

import pytest

from advisor.advice.command_check import check_command
from advisor.estimator import estimate_memory
from advisor.report.command_view import command_lines
from advisor.runtimes.commands import command_for
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.commands.test_shown import advisor

SLOTS = [("qwen3.5-9b", 5), ("falcon-h1-7b-instruct", 5), ("lfm2-1.2b", 3)]


def asked(model: str, **more: object) -> Request:
    named = {"gpu": "RTX 4090", "context": 4_096, "batch": 4, "framework": "SGLang"}
    return Request(model=model, **named | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("model", "slots"), SLOTS)
def test_each_request_takes_several_states_and_the_command_says_how_many(
    model: str, slots: int
) -> None:
    """``_calculate_mamba_ratio`` of 0.5.23: three, and two where it schedules ahead."""
    scenario = resolve(asked(model), advisor().knowledge)
    memory = estimate_memory(scenario, advisor().knowledge)
    held = memory.held_sequences or 0
    text = command_for(scenario, memory)
    told = int(text.split("--max-mamba-cache-size ")[1].split()[0])
    assert told % slots == 0
    assert held <= told // slots <= 4
    found = check_command(text, Request(gpu="RTX 4090"), advisor())
    assert found.advice.memory == memory


def test_where_some_wait_the_others_have_states_as_far_as_free_memory_goes() -> None:
    scenario = resolve(asked("qwen3.5-9b", batch=256), advisor().knowledge)
    memory = estimate_memory(scenario, advisor().knowledge)
    held = memory.held_sequences or 0
    assert 0 < held < 256
    assert f"--max-mamba-cache-size {5 * held}" in command_for(scenario, memory)


def test_shorter_requests_are_not_capped_by_the_states_of_the_long_ones() -> None:
    """``resolve_max_num_reqs`` of 0.5.23 runs a fifth of the states, whatever their length."""
    named = {"gpu": "8x L4", "context": 131_072, "batch": 16}
    scenario = resolve(asked("qwen3.6-35b-a3b", **named), advisor().knowledge)
    memory = estimate_memory(scenario, advisor().knowledge)
    assert (memory.held_sequences or 0) < 16
    assert "--max-mamba-cache-size 80" in command_for(scenario, memory)
    assert memory.cache_room is not None
    held = memory.held_sequences or 0
    assert memory.cache_room.sequences == held
    assert held * 131_072 <= (memory.cache_room.tokens or 0) < 459_709


def test_states_are_divided_among_cards_though_heads_are_copied() -> None:
    alone, shared = (
        estimate_memory(
            resolve(
                asked("qwen3.6-35b-a3b", precision="FP8", gpu=gpu, batch=4), advisor().knowledge
            ),
            advisor().knowledge,
        )
        for gpu in ("H100", "8x H100")
    )
    states = 30 * 2 * 2**20 * (5 * 4 + 1)
    tokens = 4 * 4_096 * 10 * 2 * 2 * 256 * 2
    assert alone.kv_cache_bytes == pytest.approx(states + tokens, rel=0.05)
    assert shared.kv_cache_bytes == pytest.approx(states + 4 * tokens, rel=0.05)


def test_a_pasted_command_without_the_size_hears_what_it_costs() -> None:
    text = "sglang serve --model-path {} --context-length 4096 --max-running-requests 4"
    for model, told in (("Qwen/Qwen3.5-9B", True), ("Qwen/Qwen3-8B", False)):
        found = check_command(text.format(model), Request(gpu="RTX 4090"), advisor())
        answer = "\n".join(command_lines(found))
        assert ("--max-mamba-cache-size" in answer) is told
