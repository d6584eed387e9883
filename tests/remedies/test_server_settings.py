"""Settings that leave a server more of a small card: proved, and only where memory is short."""

from __future__ import annotations

import pytest

from advisor.remedies.option import Option
from tests.remedies.asking import advised, run_again

TIGHT = {"gpu": "RTX 4080", "model": "qwen2.5-14b", "precision": "AWQ", "context": 16_384}
SHORT = {"gpu": "RTX 3090", "model": "qwen3.6-27b", "precision": "AWQ", "context": 32_768}


def found(action: str, **given: object) -> Option | None:
    return next((o for o in advised(**given).options if o.action == action), None)


@pytest.mark.parametrize("given", [TIGHT, SHORT])
@pytest.mark.parametrize(
    ("action", "change"),
    [("larger-share", {"gpu_memory_utilization": 0.95}), ("without-graphs", {"eager": True})],
)
def test_it_is_what_the_changed_request_gives(
    given: dict[str, object], action: str, change: dict[str, object]
) -> None:
    advice = advised(**given, framework="vLLM")
    option = next(o for o in advice.options if o.action == action)
    assert dict(option.change) == change
    assert run_again(advice, option).memory == option.memory
    assert (option.memory.headroom_bytes or 0) > (advice.memory.headroom_bytes or 0)


def test_sglang_keeps_less_free_for_smaller_steps() -> None:
    four = {
        "gpu": "RTX 3090",
        "gpus": 4,
        "model": "Mistral-Large-Instruct-2411",
        "precision": "AWQ",
    }
    advice = advised(**four, framework="SGLang", context=32_768, batch=8)
    first = advice.recommendations[0]
    assert advice.memory.deficit_bytes
    assert first.option.action == "smaller-steps"
    assert "--chunked-prefill-size 2048" in first.command
    assert run_again(advice, first.option).memory == first.option.memory


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (
            {"gpu": "RTX 3090", "model": "devstral-small-2507", "context": 16_384, "ram_gib": 32},
            {"precision": "AWQ 4-bit", "max_num_batched_tokens": 2048},
        ),
        (
            {"gpu": "8x H20", "model": "deepseek-v3", "context": 163_840},
            {"kv_cache": "fp8_e4m3", "max_num_batched_tokens": 2048},
        ),
    ],
)
def test_smaller_steps_go_with_a_format_or_a_cache(
    given: dict[str, object], change: dict[str, object]
) -> None:
    advice = advised(**given, framework="SGLang")
    first = advice.recommendations[0].option
    assert dict(first.change) == change
    assert first.margin != "thin"
    assert run_again(advice, first).memory == first.memory


def test_commands_say_it() -> None:
    said = {r.option.action: r.command for r in advised(**SHORT, framework="vLLM").recommendations}
    assert "--gpu-memory-utilization 0.95" in said["larger-share"]
    assert "--enforce-eager" in said["without-graphs"]
    small = {"gpu": "RTX 3060 12GB", "model": "llama-3.1-8b", "precision": "AWQ", "context": 16_384}
    of_sglang = advised(**small, framework="SGLang").recommendations
    eager = next(r for r in of_sglang if r.option.action == "without-graphs")
    assert "--disable-cuda-graph" in eager.command


def test_graphs_are_left_out_at_a_price_that_nobody_knows() -> None:
    option = found("without-graphs", **SHORT, framework="vLLM")
    assert option
    assert option.fits
    assert option.speed is None
    assert found("larger-share", **TIGHT, framework="vLLM").speed is not None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("larger-share", {**SHORT, "framework": "vLLM", "gpu_memory_utilization": 0.9}),
        ("larger-share", {**SHORT, "framework": "SGLang"}),
        ("larger-share", {**TIGHT, "framework": "vLLM", "gpu": "RTX 4090"}),
        ("without-graphs", {**SHORT, "framework": "vLLM", "eager": True}),
        ("without-graphs", {**SHORT, "precision": "Q5_K_M", "framework": "llama.cpp"}),
        ("without-graphs", {**SHORT, "framework": "TGI", "model": "qwen2.5-32b"}),
        ("smaller-steps", {**SHORT, "framework": "SGLang", "max_num_batched_tokens": 4096}),
        ("smaller-steps", {**TIGHT, "framework": "SGLang", "gpu": "RTX 3060 12GB"}),
        ("smaller-steps", {**TIGHT, "framework": "llama.cpp", "precision": "Q8_0"}),
    ],
)
def test_none_where_it_is_stated_changes_nothing_or_is_not_needed(
    action: str, given: dict[str, object]
) -> None:
    assert found(action, **given) is None
