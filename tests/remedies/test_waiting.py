"""A server that holds fewer requests than asked runs, says so, and hears what holds more."""

from __future__ import annotations

import pytest

from advisor.advice.conclusions import Conclusions
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from tests.remedies.asking import advised, run_again

SERVERS = ("vLLM", "SGLang", "TGI", "TensorRT-LLM")
LONG = {"gpu": "RTX 4090", "model": "llama-3.1-8b", "precision": "FP16", "context": 32_768}


def text(advice: Conclusions) -> str:
    return " ".join(render_markdown(document(advice)).split())


@pytest.mark.parametrize("framework", SERVERS)
def test_it_runs_and_the_rest_waits(framework: str) -> None:
    told = {"gpu_memory_utilization": 0.9} if framework == "SGLang" else {}  # 0.7 by default
    advice = advised(**LONG, framework=framework, batch=64, **told)
    assert advice.state in {"fits", "tight"}
    assert advice.memory.held_sequences is not None
    assert 1 <= advice.memory.held_sequences < 64
    assert "but not with all 64 requests at once" in text(advice)
    assert "lets the rest wait" in text(advice)
    assert "shrink-batch" not in {option.action for option in advice.options}


@pytest.mark.parametrize("framework", ["llama.cpp", "ExLlamaV3", "transformers"])
def test_others_set_the_whole_batch_aside(framework: str) -> None:
    precision = "EXL3 4.0bpw" if framework == "ExLlamaV3" else "FP16"
    advice = advised(**{**LONG, "precision": precision}, framework=framework, batch=64)
    assert advice.memory.held_sequences is None
    assert advice.state in {"needs_offload", "too_big"}


def test_what_holds_more_goes_first_and_says_how_many() -> None:
    advice = advised(**LONG, framework="vLLM", batch=8)
    first = advice.recommendations[0]
    assert first.option.change == {"precision": "FP8", "kv_cache": "fp8"}
    assert (first.option.memory.held_sequences or 0) > (advice.memory.held_sequences or 0)
    said = text(advice)
    assert f"{first.option.memory.held_sequences} of 8 requests at once" in said
    assert "All 8 requests fit at once with at most" in said


def test_not_one_request_fits() -> None:
    advice = advised(**{**LONG, "model": "llama-3.1-70b"}, framework="vLLM", batch=8)
    assert advice.state == "needs_offload"
    assert advice.memory.held_sequences == 1
    assert "lets the rest wait" not in text(advice)


def test_a_format_of_its_own_is_told_where_none_was_stated() -> None:
    advice = advised(
        gpu="H100 SXM5 80 GB", model="llama-3.1-70b", framework="vLLM", context=4096, batch=64
    )
    formats = [
        item
        for item in document(advice).recommendations
        if item.action == "quantize" and item.change == {"precision": "FP8"}
    ]
    every = [command.text for item in formats for command in item.commands]
    assert every
    assert all("--quantization fp8" in command for command in every)


def test_eight_bits_of_weights_and_cache_where_either_alone_lets_requests_wait() -> None:
    """In 16 bits none fits; FP8 weights hold 9 of 16, and all with an FP8 cache beside them."""
    advice = advised(gpu="8x L4", model="glm-4.5-air", context=32768, batch=16)
    best = advice.recommendations[0].option
    assert best.change == {"precision": "FP8", "kv_cache": "fp8"}
    assert best.memory.held_sequences == 16
    assert "They hold all 16 requests at once" in text(advice)


def test_a_server_that_runs_hears_of_both_too() -> None:
    advice = advised(**LONG, framework="vLLM", batch=16)
    both = {"precision": "FP8", "kv_cache": "fp8"}
    changes = [item.option.change for item in advice.recommendations]
    assert both in changes
    assert changes.index(both) < changes.index({"precision": "FP8"})
    held = {str(o.change): o.memory.held_sequences or 0 for o in advice.options}
    assert held[str(both)] > max(held[str({"precision": "FP8"})], held[str({"kv_cache": "fp8"})])


@pytest.mark.parametrize(
    ("gpu", "model", "precision", "context"),
    [
        ("2x RX 7900 XTX", "llama-4-scout-17b-16e-instruct", "INT4", 65536),
        ("2x RTX 5060 Ti 16GB", "qwen3-next-80b-a3b-instruct", "Q6_K", 32768),
    ],
)
def test_a_smaller_model_that_holds_all_goes_before_what_holds_fewer(
    gpu: str, model: str, precision: str, context: int
) -> None:
    asked = {"gpu": gpu, "model": model, "precision": precision, "context": context}
    first = advised(**asked, batch=8, ram_gib=128).recommendations[0].option
    assert first.action == "smaller-model"
    assert first.memory.held_sequences in {8, None}
    assert first.memory.host_weights_bytes == 0


def test_rented_cards_hold_a_latent_cache_once() -> None:
    asked = {"gpu": "4x H200", "precision": "FP8", "context": 131_072, "framework": "vLLM"}
    advice = advised(**asked, model="kimi-k2-instruct", batch=32)
    rented = next(r.option for r in advice.recommendations if r.option.action == "cloud")
    assert rented.change["split"] == "dp-attention"
    assert (rented.memory.held_sequences or 32) >= 32
    again = run_again(advice, rented)
    assert again.memory.required_bytes == rented.memory.required_bytes


def test_copies_of_a_model_go_before_copies_of_its_heads() -> None:
    asked = {"gpu": "8x MI300X", "context": 16_384, "framework": "SGLang", "batch": 32}
    advice = advised(**asked, model="qwen3-30b-a3b-instruct-2507")
    first = advice.recommendations[0].option
    assert first.change == {"split": "data"}
    assert first.memory.kv_cache_bytes < advice.memory.kv_cache_bytes
