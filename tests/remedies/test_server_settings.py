"""Settings that leave a server more of a small card: proved, and only where memory is short."""

from __future__ import annotations

import pytest

from advisor.remedies.option import Option
from advisor.report.assembly import document
from advisor.scenario.resolve import apply_change
from tests.remedies.asking import advised, advisor, run_again

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


TOGETHER: list[tuple[dict[str, object], dict[str, object]]] = [
    (
        {
            "gpu": "RTX 4090",
            "model": "deepseek-r1-distill-qwen-32b",
            "precision": "AWQ",
            "context": 16_384,
        },
        {"batch": 1, "kv_cache": "fp8"},
    ),
    (
        {
            "gpu": "RTX 5090",
            "model": "gemma-4-26b-a4b-it",
            "precision": "FP8",
            "context": 131_072,
        },
        {"batch": 1, "gpu_memory_utilization": 0.95},
    ),
]


@pytest.mark.parametrize(("given", "change"), TOGETHER)
def test_settings_together_keep_the_checkpoint_where_no_single_one_does(
    given: dict[str, object], change: dict[str, object]
) -> None:
    advice = advised(**given, framework="vLLM")
    first = advice.recommendations[0]
    assert dict(first.option.change) == change
    assert first.option.effort == "setting"
    assert first.option.margin != "thin"
    assert run_again(advice, first.option).memory == first.option.memory
    assert "--max-num-seqs 1" in first.command
    for name, value in change.items():
        alone = apply_change(advice.request, {name: value})
        assert not advisor().estimate(alone).fits


def test_settings_together_are_named_with_what_a_server_does_untold() -> None:
    first = document(advised(**TOGETHER[0][0], framework="vLLM")).recommendations[0]
    assert first.title == "Combine a server told to hold 1 request and an fp8 KV cache"
    assert "Untold, vLLM keeps memory for as many requests as it takes by default." in first.text


def test_one_setting_is_enough_where_a_server_only_has_to_be_told_of_the_one_request() -> None:
    short = {"gpu": "RTX 3090", "model": "qwen3-32b", "precision": "AWQ", "context": 8192}
    first = document(advised(**short, framework="vLLM")).recommendations[0]
    assert dict(first.change) == {"batch": 1}
    assert first.title == "Move to a server told to hold 1 request"
    assert "changes add up" not in first.text
    stated = advised(**short, framework="vLLM", batch=1)
    assert stated.memory.required_bytes == first.after.required_bytes


def test_a_latent_cache_is_kept_once_and_in_eight_bits() -> None:
    """Attention data parallel with an FP8 cache is how such models are deployed."""
    eight = {"gpu": "8x H100 SXM5 80 GB", "model": "deepseek-v3.2", "precision": "INT4"}
    advice = advised(**eight, context=131_072, batch=128, framework="vLLM")
    both = next(o for o in advice.options if o.action == "combine")
    assert dict(both.change) == {"split": "dp-attention", "kv_cache": "fp8"}
    held = {o.key: o.memory.held_sequences or 0 for o in advice.options if o.fits}
    assert held[both.key] > held["split-requests split=dp-attention"]
    assert both.key in {r.option.key for r in advice.recommendations}
    assert run_again(advice, both).memory == both.memory
