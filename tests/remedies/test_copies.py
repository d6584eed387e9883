"""Copies side by side are told of where each holds its share of the requests, and only there."""

from __future__ import annotations

import pytest

from advisor.knowledge.vocabulary import FactValue
from tests.remedies.asking import advised

_TOLD = {
    "heads kept twice": ("8x MI300X", "qwen3-30b-a3b-instruct-2507", "BF16", "vLLM", 131_072, 64),
    "three of four heads": ("8x H200 SXM", "qwen3-30b-a3b", "BF16", "vLLM", 40_960, 192),
    "layers in turns": ("4x RTX 3090", "qwen3-14b", "Q4_K_M", "llama.cpp", 8_192, 16),
    "six in turns": ("6x RTX 3090", "qwen3-8b", "Q8_0", "llama.cpp", 16_384, 12),
}
_SILENT = {
    "one chat": ("8x MI300X", "qwen3-30b-a3b-instruct-2507", "BF16", "vLLM", 131_072, 1),
    "fewer than cards": ("4x RTX 3090", "qwen3-14b", "Q4_K_M", "llama.cpp", 8_192, 3),
    "half holds nothing": ("4x RTX 3090", "llama-3.3-70b-instruct", "AWQ", "vLLM", 16_384, 16),
    "one card": ("H200 SXM", "qwen3-30b-a3b", "BF16", "vLLM", 40_960, 192),
    "unequal ones": ("RTX 3090 + RTX 3060:12GB", "qwen3-4b", "Q4_K_M", "llama.cpp", 8_192, 4),
    "more in total together": (
        "8x H100 SXM", "mistral-small-3.2-24b-instruct-2506", "BF16", "vLLM", 32_768, 64,
    ),
}  # fmt: skip


def _noted(
    asked: tuple[str, str, str, str, int, int],
) -> tuple[bool, dict[str, FactValue | None]]:
    gpu, model, precision, framework, context, batch = asked
    advice = advised(
        gpu=gpu, model=model, precision=precision, framework=framework, context=context, batch=batch
    )
    told = {name: advice.facts.get(f"options.{name}") for name in ("copies", "copy_gpus")}
    told["copy_batch"] = advice.facts.get("options.copy_batch")
    return "copies-side-by-side" in {note.rule for note in advice.notes}, told


@pytest.mark.parametrize("asked", _TOLD.values(), ids=_TOLD)
def test_copies_that_are_told_of_hold_every_request_at_once(
    asked: tuple[str, str, str, str, int, int],
) -> None:
    noted, told = _noted(asked)
    assert noted
    gpu, model, precision, framework, context, batch = asked
    copies, cards, each = (int(str(value).partition(".")[0]) for value in told.values())
    assert copies * each >= batch
    one = advised(
        gpu=gpu.partition(" ")[2], gpus=cards, model=model, precision=precision,
        framework=framework, context=context, batch=each,
    )  # fmt: skip
    assert one.memory.deficit_bytes == 0
    assert one.memory.held_sequences in {None, each}


@pytest.mark.parametrize("asked", _SILENT.values(), ids=_SILENT)
def test_nothing_is_said_of_copies_where_they_gain_nothing(
    asked: tuple[str, str, str, str, int, int],
) -> None:
    assert not _noted(asked)[0]
