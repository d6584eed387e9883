"""FP8 that is published in blocks is shared among cards only in whole blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.bulk.reverse.answers import NO_LIMIT, Answer, Wish
from advisor.bulk.reverse.search import Search
from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.catalogue import Cards
from advisor.reading import find_gpu
from advisor.scenario import divides, split_of
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

KNOWN = load_knowledge()


def way(model: str, cards: int, framework: str, precision: str = "FP8") -> str | None:
    request = Request(gpu="H200 SXM", gpus=cards, model=model, framework=framework)
    return split_of(resolve(replace(request, precision=precision), KNOWN))


@pytest.mark.parametrize(
    ("model", "cards", "framework", "expected"),
    [
        ("Qwen3-4B", 8, "vLLM", "layer"),  # 9,728 wide: nine and a half blocks a card
        ("Qwen3-4B", 8, "SGLang", "layer"),
        ("Qwen3-4B", 4, "vLLM", "tensor"),
        ("Qwen/Qwen3-4B-FP8", 8, "vLLM", "layer"),
        ("Qwen3.6-35B-A3B", 8, "vLLM", "layer"),  # a shared expert of 512
        ("Qwen3.6-35B-A3B", 4, "vLLM", "tensor"),
        ("Qwen3-235B-A22B", 8, "vLLM", "tensor"),  # routed experts are refined to smaller blocks
        ("DeepSeek-V3", 8, "SGLang", "tensor"),
        ("Qwen3-Coder-30B-A3B-Instruct", 4, "TensorRT-LLM", "tensor"),  # experts go whole
    ],
)
def test_every_card_holds_whole_blocks(
    model: str, cards: int, framework: str, expected: str
) -> None:
    assert way(model, cards, framework) == expected


@pytest.mark.parametrize("model", ["Qwen2.5-72B", "EXAONE-4.0-32B", "GLM-4.5-Air"])
def test_what_is_not_known_to_be_in_blocks_is_never_refused(model: str) -> None:
    """Made on load, or published by others: scales of whole tensors, or of channels."""
    assert way(model, 8, "vLLM") == "tensor"


def test_other_formats_have_no_blocks() -> None:
    assert way("Qwen3-4B", 8, "vLLM", "BF16") == "tensor"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"weight_block_size": [128, 128]}, "layer"),
        ({"weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}, "layer"),
        (
            {"weight_block_size": [128, 128], "modules_to_not_convert": ["a.mlp.down_proj"]},
            "tensor",
        ),
        ({}, "tensor"),
    ],
)
def test_a_config_says_whether_it_is_in_blocks(
    tmp_path: Path, stated: dict[str, object], expected: str
) -> None:
    config = {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 2560,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 9728, "head_dim": 128, "vocab_size": 151936,
        "tie_word_embeddings": True, "max_position_embeddings": 40960,
        "quantization_config": {"quant_method": "fp8", **stated},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert way(str(tmp_path), 8, "vLLM") == expected


EIGHT = Request(gpu="H200 SXM", gpus=8, model="Qwen3-4B", precision="FP8", framework="vLLM")


def test_a_split_that_cuts_blocks_is_refused_with_what_can() -> None:
    with pytest.raises(UserError, match="width 9,728 of Qwen3-4B in whole blocks") as found:
        resolve(replace(EIGHT, split="tensor"), KNOWN)
    assert "--split layer" in str(found.value.hint)
    assert "4 cards can" in str(found.value.hint)


@pytest.mark.parametrize(
    ("model", "precision", "can"),
    [
        ("Qwen3-14B", "Q4_K_M", [2, 4]),
        ("Qwen2.5-32B-Instruct", "Q4_K_M", [2, 4]),
        ("Llama-3.3-70B-Instruct", "Q4_K_M", [2, 4, 8]),
    ],
)
def test_shares_of_gguf_in_vllm_are_whole_blocks(
    model: str, precision: str, can: list[int]
) -> None:
    """Its plugin divides the bytes of a row: 17408 / 8 cuts blocks of 256 weights."""
    asked = Request(gpu="RTX 4090", model=model, precision=precision, framework="vLLM")
    one = resolve(asked, KNOWN)
    ways = (2, 4, 8)
    assert [n for n in ways if divides("tensor", one.framework, one.precision, one.model, n)] == can


def test_fewer_cards_are_offered() -> None:
    options = Advisor.load().advise(EIGHT).options
    assert any(split_of(o.scenario) == "tensor" and o.scenario.gpus == 4 for o in options)


def test_models_of_as_many_heads_do_not_answer_for_each_other() -> None:
    """Qwen3-4B and Qwen3-8B have 32 heads; only the widths of the second divide."""
    wish = Wish(
        Request(gpus=8), KNOWN.kv_types["f16"], KNOWN.frameworks["vLLM"], [KNOWN.formats["FP8"]],
        min_speed_tok_s=None, max_loss_percent=NO_LIMIT, unmeasured=True, prefer="balanced",
    )  # fmt: skip
    search, cards = Search(KNOWN, wish), Cards(find_gpu(KNOWN, "H200 SXM"), 8, (), counted=False)
    found = [search.best(cards, find_model_named(name, KNOWN)) for name in ("Qwen3-8B", "Qwen3-4B")]
    assert isinstance(found[0], Answer)
    assert found[1] == "cannot_run"
