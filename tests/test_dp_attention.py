"""Attention data parallel: requests over cards, with their cache; experts divided."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.speed import estimate_speed
from advisor.estimator.weights import weights_of
from advisor.knowledge import load_knowledge
from advisor.reading.pasted_request import asked_by, read_pasted
from advisor.runtimes.commands import command_for
from advisor.scenario import with_batch
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

SERVERS = ("vLLM", "SGLang", "TensorRT-LLM")
ASKED = Request(
    gpu="8x H200 SXM", model="DeepSeek-R1", precision="FP8", batch=64, context=8192,
    split="dp-attention",
)  # fmt: skip


@pytest.mark.parametrize("framework", SERVERS)
@pytest.mark.parametrize("model", ["DeepSeek-R1", "DeepSeek-V2-Lite", "Qwen3-235B-A22B"])
def test_each_card_holds_its_requests_and_its_share_of_the_experts(
    framework: str, model: str
) -> None:
    known = load_knowledge()
    asked = replace(ASKED, framework=framework, model=model, precision=None)
    try:
        apart = resolve(asked, known)
    except UserError:
        pytest.skip(f"{framework} does not run {model}")
    memory = estimate_memory(apart, known)
    one = with_batch(replace(apart, gpus=1, split=None), 1)
    alone = estimate_memory(one, known)
    weights = weights_of(one.model, one.precision, one.framework, known.ggml_types)
    card = memory.per_gpu[0]
    assert card.kv_cache_bytes == 8 * alone.kv_cache_bytes
    routed = weights.expert_sums[-1]
    assert card.weights_bytes == alone.weights_bytes - routed + -(-routed // 8)
    assert memory.cache_room
    assert estimate_memory(replace(apart, split="tensor"), known).per_gpu[0].kv_cache_bytes >= (
        card.kv_cache_bytes
    )


@pytest.mark.parametrize("framework", SERVERS)
@pytest.mark.parametrize("kv_cache", [None, "fp8"])
def test_the_command_is_read_back(framework: str, kv_cache: str | None) -> None:
    known = load_knowledge()
    kv_cache = "fp8_e4m3" if kv_cache and framework == "SGLang" else kv_cache
    scenario = resolve(replace(ASKED, framework=framework, kv_cache=kv_cache), known)
    asked = asked_by(read_pasted(command_for(scenario)), known)
    assert asked.cards == 8
    assert asked.not_sized == ()
    assert asked.settings["split"] == "dp-attention"
    assert asked.settings["batch"] == 64
    assert asked.settings["context"] == 8192


@pytest.mark.parametrize(
    ("command", "cards", "split", "batch"),
    [
        ("vllm serve deepseek-ai/DeepSeek-R1 -dp 8 -ep --max-num-seqs 4", 8, "dp-attention", 32),
        ("vllm serve Qwen/Qwen3-32B -dp 2 --max-num-seqs 4", 2, "data", 8),
        ("sglang serve --model-path Qwen/Qwen3-30B-A3B --dp-size 2", 2, "data", None),
        ("sglang serve --model-path Qwen/Qwen3-32B --tp 2 --dp-size 2", 2, "tensor", None),
        ("vllm serve deepseek-ai/DeepSeek-R1 -tp 8 -ep --max-num-seqs 4", 8, "tensor", 4),
        (
            ("sglang serve --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp-size 8 "
            "--enable-dp-attention --max-running-requests 64"),
            8, "dp-attention", 64,
        ),
        (
            "sglang serve --model-path Qwen/Qwen3-32B --dp-size 2 --max-running-requests 4",
            2, "data", 8,
        ),
    ],
)  # fmt: skip
def test_what_people_type_is_read(
    command: str, cards: int, split: str | None, batch: int | None
) -> None:
    asked = asked_by(read_pasted(command), load_knowledge())
    found = (asked.cards, asked.settings.get("split"), asked.settings.get("batch"))
    assert found == (cards, split, batch)
    assert bool(asked.not_sized) == (split in {None, "tensor"} and "dp-size" in command)


def test_dense_models_and_unequal_cards_are_refused_with_what_can_be() -> None:
    dense = replace(ASKED, model="llama-3.1-70b", framework="vLLM")
    for asked in (dense, replace(ASKED, gpu="H200 SXM + H100 SXM", framework="vLLM")):
        with pytest.raises(UserError) as told:
            resolve(asked, load_knowledge())
        assert "tensor" in str(told.value.hint)


COPIES = Request(
    gpu="4x L40S", model="llama-3.1-8b", precision="FP16", batch=64, context=8192, split="data"
)


@pytest.mark.parametrize("framework", ["vLLM", "SGLang"])
def test_each_copy_is_one_card_with_its_share_of_the_requests(framework: str) -> None:
    known = load_knowledge()
    copies = resolve(replace(COPIES, framework=framework), known)
    alone = resolve(replace(COPIES, framework=framework, gpu="L40S", batch=16, split=None), known)
    memory, one = estimate_memory(copies, known), estimate_memory(alone, known)
    assert {card.required_bytes for card in memory.per_gpu} == {one.per_gpu[0].required_bytes}
    speed, single = estimate_speed(copies, memory, known), estimate_speed(alone, one, known)
    assert speed
    assert single
    assert speed.decode_tok_s == single.decode_tok_s
    assert speed.aggregate_tok_s
    assert single.aggregate_tok_s
    total = 4 * single.aggregate_tok_s.estimate
    assert speed.aggregate_tok_s.estimate == pytest.approx(total)
    asked = asked_by(read_pasted(command_for(copies)), known)
    assert (asked.cards, asked.settings["split"], asked.settings["batch"]) == (4, "data", 64)


def test_experts_are_not_copied() -> None:
    with pytest.raises(UserError, match="has experts") as told:
        resolve(replace(COPIES, model="Qwen3-30B-A3B", framework="vLLM"), load_knowledge())
    assert "dp-attention" in str(told.value.hint)
