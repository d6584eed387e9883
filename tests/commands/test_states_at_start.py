"""vLLM refuses to start with more sequences than its cache has blocks of recurrent state."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.advice.command_check import check_command
from advisor.estimator import estimate_memory
from advisor.report import render_text
from advisor.report.assembly import document
from advisor.runtimes.commands import command_for
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.commands.test_shown import advisor

WHY = "Told no number, vLLM may not start"
FEW = [
    ("RTX 3060 12GB", "qwen3.5-9b", "AWQ", 8_192),
    ("RTX 4080", "qwen3.5-9b", "GPTQ", 32_768),
    ("RTX 4090", "falcon-h1-7b-instruct", "FP16", 4_096),
    ("RTX 4090", "granite-4.0-h-small", "AWQ", 8_192),
]
MANY = [
    ("2x H100", "qwen3-next-80b-a3b-instruct", "FP8", 32_768),
    ("RTX 4090", "lfm2-1.2b", "BF16", 8_192),
    ("RTX 4090", "qwen3-8b", "FP8", 8_192),
]


def asked(gpu: str, model: str, precision: str, context: int, **more: object) -> Request:
    named = {"gpu": gpu, "model": model, "precision": precision, "context": context}
    return Request(**named, framework="vLLM", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_small_pool_is_told_the_sequences_whose_states_it_holds(
    case: tuple[str, str, str, int],
) -> None:
    scenario = resolve(asked(*case), advisor().knowledge)
    memory = estimate_memory(scenario, advisor().knowledge)
    assert memory.cache_room
    most = memory.cache_room.most_at_start or 0
    text = command_for(scenario, memory)
    assert f" --max-num-seqs {most} " in text
    assert max(memory.cache_room.sequences, 1) <= most < 256
    found = check_command(text, Request(gpu=case[0]), advisor())
    assert found.starts == "yes"
    assert found.advice.scenario.slots == 0
    for part in ("required_bytes", "high_bytes", "usable_bytes", "cache_room", "held_sequences"):
        assert getattr(found.advice.memory, part) == getattr(memory, part)


@pytest.mark.parametrize("case", MANY, ids=str)
def test_a_large_pool_and_a_model_without_states_are_told_nothing(
    case: tuple[str, str, str, int],
) -> None:
    scenario = resolve(asked(*case), advisor().knowledge)
    memory = estimate_memory(scenario, advisor().knowledge)
    assert "--max-num-seqs" not in command_for(scenario, memory)
    assert WHY not in " ".join(render_text(document(advisor().advise(asked(*case)))).split())


def test_without_graphs_and_with_a_stated_number_it_is_as_asked() -> None:
    knowledge = advisor().knowledge
    for more, told in (({"eager": True}, None), ({"batch": 4}, "4")):
        scenario = resolve(asked(*FEW[0], **more), knowledge)
        text = command_for(scenario, estimate_memory(scenario, knowledge))
        assert text.partition("--max-num-seqs ")[2].split(" ")[0] == (told or "")


def test_the_report_says_why() -> None:
    page = " ".join(render_text(document(advisor().advise(asked(*FEW[0])))).split())
    assert page.count(WHY) == 1


def test_where_a_stated_number_may_be_refused_the_command_says_what_starts() -> None:
    """Read back it holds no fewer full-length requests: with fewer slots its graphs are smaller."""
    many = asked("RTX 4090", "qwen3.5-27b", "AWQ", 16_384, batch=64)
    advice = advisor().advise(many)
    page = " ".join(render_text(document(advice)).split())
    assert "vLLM may refuse more sequences here" in page
    text = command_for(advice.scenario, advice.memory)
    found = check_command(text, Request(gpu="RTX 4090"), advisor())
    assert found.starts == "yes"
    assert (found.advice.memory.held_sequences or 0) >= (advice.memory.held_sequences or 99)
    assert found.advice.memory.required_bytes <= (advice.memory.usable_bytes or 0)
    assert found.advice.scenario.batch < 64
    few = " ".join(render_text(document(advisor().advise(replace(many, batch=4)))).split())
    assert "vLLM may refuse" not in few
    assert "--max-num-seqs 4 " in few


def test_a_number_stated_where_even_one_request_lacks_memory_is_read_as_stated() -> None:
    """Taken for none stated, it would be sized with the graphs of 256 sequences."""
    one = asked("RTX 4090", "qwen3.6-35b-a3b", "AWQ", 16_384, batch=1)
    memory = estimate_memory(resolve(one, advisor().knowledge), advisor().knowledge)
    assert memory.deficit_bytes
    text = "vllm serve QuantTrio/Qwen3.6-35B-A3B-AWQ --max-model-len 16384 --max-num-seqs 1"
    found = check_command(text, Request(gpu="RTX 4090"), advisor())
    assert found.advice.scenario.slots == 1
    assert found.advice.memory.required_bytes == memory.required_bytes
