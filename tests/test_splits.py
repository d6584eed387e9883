"""How several cards share a model: memory, speed, refusals, commands and remedies of each way."""

from __future__ import annotations

import json
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.bulk import read_rows
from advisor.bulk.estimates import estimate_row
from advisor.errors import UserError
from advisor.estimator import estimate_memory
from advisor.estimator.speed import estimate_speed, missing_inputs
from advisor.knowledge import load_knowledge
from advisor.knowledge.types import Knowledge
from advisor.remedies.sharing import names_cards
from advisor.runtimes.commands import command_for
from advisor.scenario import Scenario, split_of
from advisor.scenario.figures import Memory
from advisor.scenario.resolve import apply_change, resolve
from advisor.scenario.settings import Request
from tests.models.test_quantised_releases import releases

GGUF = {"gpu": "RTX 3090", "model": "llama-3.1-70b", "precision": "Q4_K_M"}
VLLM = {"framework": "vLLM"}
SERVED = {"gpu": "H100 SXM5 80 GB", "model": "llama-3.1-70b", "precision": "FP16"}


@lru_cache(maxsize=1)
def known() -> Knowledge:
    return load_knowledge()


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def asked(**keys: object) -> Scenario:
    return resolve(Request(**keys), known())  # type: ignore[arg-type]  # keys are Request fields


def sized(scenario: Scenario) -> Memory:
    return estimate_memory(scenario, known())


def refusal(**keys: object) -> str:
    with pytest.raises(UserError) as found:
        asked(**keys)
    return str(found.value)


# ---- memory


@pytest.mark.parametrize(
    ("framework", "cards", "layers"),
    [
        ("vLLM", 3, [27, 27, 26]),
        ("vLLM", 6, [13, 13, 13, 14, 14, 13]),
        ("vLLM", 7, [11, 11, 11, 12, 12, 12, 11]),
        ("SGLang", 3, [26, 27, 27]),
        ("TensorRT-LLM", 3, [27, 27, 26]),
        ("TensorRT-LLM", 6, [14, 14, 13, 13, 13, 13]),
        ("vLLM", 5, [16] * 5),
    ],
)
def test_a_pipeline_gives_every_rank_the_layers_its_server_gives(
    framework: str, cards: int, layers: list[int]
) -> None:
    scenario = asked(**SERVED, framework=framework, gpus=cards, split="layer")
    held = [card.kv_cache_bytes for card in sized(scenario).per_gpu]
    whole = sized(replace(scenario, gpus=1)).kv_cache_bytes
    assert held == [whole * count // 80 for count in layers]


def test_the_ends_of_a_pipeline_hold_the_embedding_and_the_output() -> None:
    scenario = asked(**SERVED, framework="vLLM", gpus=4, split="layer")
    weights = [card.weights_bytes for card in sized(scenario).per_gpu]
    shape = scenario.model.shape
    matrix, norm = 2 * shape.vocab * shape.hidden, 2 * shape.hidden
    assert weights == [weights[1] + matrix, weights[1], weights[1], weights[1] + matrix + norm]
    assert sum(weights) == sized(replace(scenario, gpus=1)).weights_bytes


def test_a_tied_matrix_lies_on_both_ends_of_a_pipeline() -> None:
    scenario = asked(
        gpu="RTX 4090", model="llama-3.2-1b", framework="vLLM", gpus=2, split="layer",
    )  # fmt: skip
    shape = scenario.model.shape
    first, last = (card.weights_bytes for card in sized(scenario).per_gpu)
    assert shape.tied
    assert last - first == 2 * shape.hidden
    whole = sized(replace(scenario, gpus=1)).weights_bytes
    assert first + last == whole + 2 * shape.vocab * shape.hidden


def test_shards_copy_a_latent_cache_and_a_pipeline_does_not() -> None:
    scenario = asked(
        gpu="H200 SXM 141 GB", model="deepseek-v3", precision="FP8", framework="vLLM", gpus=8,
        context=32_768,
    )  # fmt: skip
    one = sized(replace(scenario, gpus=1)).kv_cache_bytes
    assert split_of(scenario) == "tensor"
    assert sized(scenario).kv_cache_bytes == 8 * one
    assert sized(replace(scenario, split="layer")).kv_cache_bytes == one


def test_shards_copy_heads_where_there_are_more_cards_and_a_pipeline_does_not() -> None:
    scenario = asked(gpu="A10", model="qwen2.5-3b", framework="vLLM", gpus=4)
    assert scenario.model.shape.kv_heads == 2
    assert split_of(scenario) == "tensor"
    one = sized(replace(scenario, gpus=1)).kv_cache_bytes
    assert sized(scenario).kv_cache_bytes == 2 * one
    assert sized(replace(scenario, split="layer")).kv_cache_bytes == one


def test_rows_of_a_dense_model_lie_in_equal_parts_and_its_cache_with_its_layers() -> None:
    layered = asked(**GGUF, gpus=3)
    rows = replace(layered, split="row")
    by_layer, by_row = sized(layered), sized(rows)
    assert by_row.weights_bytes == by_layer.weights_bytes
    each = [card.weights_bytes for card in by_row.per_gpu]
    assert max(each) - min(each) <= 1
    cache = [card.kv_cache_bytes for card in by_row.per_gpu]
    assert cache == [card.kv_cache_bytes for card in by_layer.per_gpu]
    one = sized(replace(layered, gpus=1))
    assert {c.compute_buffer_bytes for c in by_row.per_gpu} == {one.compute_buffer_bytes}
    assert by_layer.compute_buffer_bytes > by_row.compute_buffer_bytes


def test_experts_are_not_divided_by_rows() -> None:
    layered = asked(gpu="RTX 3090", model="mixtral-8x7b", precision="Q4_K_M", gpus=2)
    rows = replace(layered, split="row")
    first, last = (card.weights_bytes for card in sized(rows).per_gpu)
    plain = [card.weights_bytes for card in sized(layered).per_gpu]
    assert first + last == sum(plain)
    assert first != last
    assert abs(first - last) < abs(plain[0] - plain[1]) + plain[0] // 20


def test_rows_follow_the_memory_of_unequal_cards() -> None:
    scenario = asked(
        gpu="RTX 3090 + RTX 3060:12GB", model="phi-3-medium", precision="Q4_K_M", split="row"
    )
    large, small = (card.weights_bytes for card in sized(scenario).per_gpu)
    assert large == pytest.approx(2 * small, rel=1e-6)


@pytest.mark.parametrize(
    ("keys", "way"),
    [
        ({**GGUF, "gpus": 2}, "layer"),
        ({**GGUF, "gpus": 2, "framework": "Ollama"}, "layer"),
        ({**SERVED, "gpus": 2, "framework": "transformers"}, "layer"),
        ({**SERVED, "gpus": 2, "framework": "vLLM"}, "tensor"),
        ({**SERVED, "gpus": 2, "framework": "SGLang"}, "tensor"),
        ({**SERVED, "gpus": 2, "framework": "TGI"}, "tensor"),
        ({**SERVED, "gpus": 2, "framework": "TensorRT-LLM"}, "tensor"),
    ],
)
def test_the_usual_way_is_taken_when_none_is_stated(keys: dict[str, object], way: str) -> None:
    plain, stated = asked(**keys), asked(**keys, split=way)
    assert split_of(plain) == split_of(stated) == way
    assert sized(plain) == sized(stated)
    assert estimate_speed(plain, sized(plain), known()) == estimate_speed(
        stated, sized(stated), known()
    )


def test_servers_take_layers_where_the_cards_do_not_divide_the_heads() -> None:
    scenario = asked(**SERVED, gpus=3, framework="vLLM")
    assert split_of(scenario) == "layer"
    assert "--pipeline-parallel-size 3" in command_for(scenario)


@pytest.mark.parametrize(
    ("framework", "model", "cards", "way"),
    [
        ("vLLM", "mixtral-8x22b", 2, "tensor"),  # 48 heads, 8 KV heads
        ("vLLM", "mixtral-8x22b", 3, "layer"),
        ("vLLM", "mixtral-8x22b", 16, "tensor"),
        ("vLLM", "qwen2.5-7b", 7, "layer"),  # 28 heads, 4 KV heads
        ("SGLang", "mixtral-8x22b", 3, "layer"),
        ("SGLang", "qwen2.5-3b", 8, "tensor"),  # 16 heads, 2 KV heads
        ("TensorRT-LLM", "mixtral-8x22b", 6, "layer"),
        ("TGI", "mixtral-8x22b", 4, "tensor"),
        ("vLLM", "deepseek-v3", 16, "tensor"),  # one latent for all heads
    ],
)
def test_shards_need_a_number_that_divides_the_kv_heads(
    framework: str, model: str, cards: int, way: str
) -> None:
    gpu = "H200 SXM 141 GB"
    assert split_of(asked(gpu=gpu, gpus=cards, model=model, framework=framework)) == way


def test_no_remedy_counts_cards_that_the_kv_heads_do_not_divide_by() -> None:
    request = Request(
        gpu="H100 SXM5 80 GB", model="mixtral-8x22b", precision="FP8", framework="vLLM",
        context=65_536,
    )  # fmt: skip
    advice = advisor().advise(request)
    found = [dict(o.change) for o in advice.options if o.action == "add-gpus"]
    assert found == [{"gpus": 3, "split": "layer"}, {"gpus": 4}]
    assert advice.break_even.fewest_gpus == 4


def test_one_card_has_nothing_to_share() -> None:
    plain, stated = asked(**GGUF), asked(**GGUF, split="tensor")
    assert split_of(stated) is None
    assert sized(plain) == sized(stated)


# ---- speed


def test_a_pipeline_never_speeds_one_stream_and_shards_may() -> None:
    keys = {"gpu": "H100 SXM5 80 GB", "model": "llama-3.1-8b", "framework": "vLLM"}
    speeds = []
    for more in ({}, {"gpus": 2, "split": "layer"}, {"gpus": 4, "split": "layer"}):
        scenario = asked(**keys, **more)
        speed = estimate_speed(scenario, sized(scenario), known())
        assert speed
        speeds.append(speed.decode_tok_s.estimate)
    assert all(after < before for before, after in pairwise(speeds))
    shards = asked(**keys, gpus=2, split="tensor")
    speed = estimate_speed(shards, sized(shards), known())
    assert speed
    assert speed.decode_tok_s.estimate > speeds[0]


def test_no_speed_is_made_up_for_rows() -> None:
    scenario = asked(**GGUF, gpus=2, split="row")
    assert estimate_speed(scenario, sized(scenario), known()) is None
    assert missing_inputs(scenario, known()) == ("speed of a split by rows",)


def test_what_was_measured_in_the_usual_way_says_nothing_of_another() -> None:
    usual = asked(**GGUF, gpus=2)
    shown = estimate_speed(usual, sized(usual), known())
    exl = {"gpu": "RTX 3090", "gpus": 2, "model": "llama-3.1-8b", "framework": "ExLlamaV3",
           "precision": "EXL3 4.0bpw"}  # fmt: skip
    for scenario in (asked(**exl, split="tensor"), asked(**SERVED, gpus=2, split="layer")):
        speed = estimate_speed(scenario, sized(scenario), known())
        assert speed is None or speed.decode_tok_s.evidence != "measured"
    assert shown


# ---- refusals


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {**GGUF, "gpus": 2, "split": "row", "backend": "Vulkan"},
            (
                "llama.cpp splits rows with CUDA, ROCm, SYCL, not with Vulkan. It can by layer: "
                "--split layer."
            ),
        ),
        (
            {**GGUF, "gpus": 2, "split": "row", "framework": "Ollama"},
            "Ollama does not split a model by row. It can by layer: --split layer.",
        ),
        (
            {**SERVED, "gpus": 3, "split": "tensor", "framework": "vLLM"},
            (
                "vLLM cannot divide the 64 attention heads of Llama-3.1-70B by 3 cards. It can by "
                "layer or data: --split layer. 2 or 4 cards can."
            ),
        ),
        (
            {**SERVED, "gpus": 3, "framework": "TGI"},
            (
                "TGI cannot divide the 64 attention heads of Llama-3.1-70B by 3 cards. 2 or 4 "
                "cards can."
            ),
        ),
        (
            {**SERVED, "model": "mixtral-8x22b", "gpus": 6, "split": "tensor", "framework": "vLLM"},
            (
                "vLLM cannot divide the 8 KV heads of Mixtral-8x22B-Instruct-v0.1 by 6 cards. It "
                "can by layer or dp-attention: --split layer. 4 or 8 cards can."
            ),
        ),
        (
            {**SERVED, "model": "qwen2.5-3b", "gpus": 4, "framework": "TGI"},
            "TGI cannot divide the 2 KV heads of Qwen2.5-3B-Instruct by 4 cards. 2 cards can.",
        ),
        (
            {"gpu": "RTX 3090", "model": "gemma-3-27b-it", "gpus": 6, "framework": "SGLang"},
            (
                "SGLang cannot divide the 32 attention heads of gemma-3-27b-it by 6 cards. Where "
                "one card holds it, each can have a copy: --split data. 4 or 8 cards can."
            ),
        ),
        (
            {**SERVED, "precision": "EXL2 4.0bpw", "gpus": 2, "framework": "TGI"},
            (
                "TGI runs EXL2 4.0bpw on one card alone. Ask for one card, or for another format "
                "or framework."
            ),
        ),
        (
            {**SERVED, "gpus": 2, "split": "layer", "framework": "TGI"},
            "TGI does not split a model by layer. It can by tensor: --split tensor.",
        ),
    ],
)
def test_a_split_that_cannot_be_is_refused_with_what_can(
    keys: dict[str, object], message: str
) -> None:
    assert refusal(**keys) == message


# ---- commands


@pytest.mark.parametrize(
    ("keys", "flags", "not_there"),
    [
        ({**GGUF, "split": "row"}, "-sm row -ts 1,1", "layer"),
        ({**GGUF, "split": "layer"}, "-sm layer -ts 1,1", "row"),
        ({**SERVED, **VLLM, "split": "layer"}, "--pipeline-parallel-size 2", "tensor"),
        ({**SERVED, **VLLM, "split": "tensor"}, "--tensor-parallel-size 2", "pipeline"),
        ({**SERVED, "framework": "SGLang", "split": "layer"}, "--pp-size 2", "--tp-size"),
        ({**SERVED, "framework": "TensorRT-LLM", "split": "layer"}, "--pp_size 2", "--tp_size"),
        (
            {**SERVED, "precision": "EXL3 4.0bpw", "framework": "ExLlamaV3", "split": "tensor"},
            "--tensor-parallel true",
            "--gpu-split-auto",
        ),
    ],
)  # fmt: skip
def test_the_command_says_how_the_cards_share(
    keys: dict[str, object], flags: str, not_there: str
) -> None:
    text = command_for(asked(**keys, gpus=2))
    assert flags in text
    assert not_there not in text


# ---- lines of a file, and remedies


def test_a_line_of_a_file_takes_the_key() -> None:
    lines = [
        {"gpu": "H100 SXM5 80 GB", "gpus": 8, "model": "deepseek-v3", "precision": "FP8",
         "framework": "vLLM", "context": 32_768, **more}
        for more in ({}, {"split": "layer"}, {"split": "row"}, {"split": "diagonal"})
    ]  # fmt: skip
    stream = BytesIO("\n".join(json.dumps(line) for line in lines).encode())
    rows = read_rows(stream, "plan.jsonl")
    usual, layer, refused, wrong = (estimate_row(row, known())[0] for row in rows)
    assert usual.memory
    assert layer.memory
    assert usual.memory.kv_cache_bytes == 8 * layer.memory.kv_cache_bytes
    assert "vLLM does not split a model by row" in str(refused.error)
    assert wrong.error == "split: 'diagonal' is not one of layer, row, tensor, data, dp-attention."


def test_a_pipeline_is_a_remedy_where_shards_need_more_cards() -> None:
    request = Request(gpu="H100 SXM5 80 GB", model="llama-3.1-405b", precision="FP8")
    advice = advisor().advise(request)
    found = [dict(o.change) for o in advice.options if o.action == "add-gpus"]
    assert found == [{"gpus": 6, "split": "layer"}, {"gpus": 8}]
    best = next(r for r in advice.recommendations if r.option.action == "add-gpus")
    assert dict(best.option.change) == {"gpus": 8}


@pytest.mark.parametrize(
    "request_",
    [
        Request(**GGUF, gpus=2, split="row", context=32_768),  # type: ignore[arg-type]  # Request keys
        Request(**SERVED, gpus=2, split="layer", framework=None),  # type: ignore[arg-type]  # the same
        Request(gpu="RTX 4090", model="llama-3.1-70b", precision="AWQ", split="layer"),
        Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16", split="tensor"),
        Request(gpu="A100 PCIe 40 GB", gpus=3, model="qwen2.5-72b", framework="vLLM"),
        Request(gpu="A40", gpus=4, model="qwen2.5-72b", framework="vLLM", split="layer"),
    ],
)  # fmt: skip
def test_every_remedy_of_a_stated_split_gives_its_figures_when_run_again(request_: Request) -> None:
    advice = advisor().advise(request_)
    assert advice.options
    for option in advice.options:
        again = advisor().estimate(
            apply_change(request_, dict(option.change)), all_cards=names_cards(option.change)
        )
        assert again.memory == option.memory, option.key
        if option.fits:
            assert again.speed == option.speed, option.key
        assert split_of(again.scenario) == split_of(option.scenario), option.key


# ---- fewer cards


@pytest.mark.parametrize("cards", [3, 5, 6, 7])
@pytest.mark.parametrize(
    ("framework", "precision"), [("vLLM", "AWQ"), ("SGLang", "AWQ"), ("TensorRT-LLM", "FP8")]
)
def test_as_many_cards_as_divide_the_heads_are_taken_from_the_start(
    framework: str, precision: str, cards: int
) -> None:
    """Eight KV heads: cards that would take turns in a pipeline are set aside, down to 4 or 2."""
    request = Request(
        gpu=f"{cards}x RTX 4090", model="qwen2.5-14b", precision=precision, framework=framework
    )
    advice = advisor().advise(request)
    taken = advice.scenario
    assert (taken.gpus, split_of(taken)) == (2 if cards == 3 else 4, "tensor")
    assert len(taken.idle_cards) == cards - taken.gpus
    assert "`--split layer` takes them all." in " ".join(taken.read_as)
    in_turns = advisor().advise(request, all_cards=True)
    assert split_of(in_turns.scenario) == "layer"
    assert in_turns.recommendations[0].option.action == "fewer-gpus"
    if taken_speed := advice.speed:
        assert in_turns.speed
        assert taken_speed.decode_tok_s.estimate > in_turns.speed.decode_tok_s.estimate


@pytest.mark.parametrize("cards", [2, 4, 8])
def test_cards_that_divide_the_heads_all_work(cards: int) -> None:
    request = Request(gpu=f"{cards}x RTX 4090", model="qwen2.5-14b", precision="AWQ", **VLLM)  # type: ignore[arg-type]
    said = [item.option.action for item in advisor().advise(request).recommendations]
    assert said[0] != "fewer-gpus"
    assert said[-1] == "fewer-gpus" or "fewer-gpus" not in said


def test_wide_heads_of_full_layers_are_kept_twice_where_cards_outnumber_them() -> None:
    """Gemma 4 31B has 16 heads where it slides and 4 of twice the width where it does not."""
    knowledge = known()
    held = {}
    for gpus in (1, 4, 8):
        asked = Request(
            gpu="H200", gpus=gpus, model="gemma-4-31b-it", precision="FP8", framework="vLLM",
            context=32768, batch=4,
        )  # fmt: skip
        memory = estimate_memory(resolve(asked, knowledge), knowledge)
        held[gpus] = memory.kv_cache_bytes
    full = 10 * (2 * 4 * 512) * 2 * 32768 * 4
    assert held[1] > full
    assert held[4] == pytest.approx(held[1], rel=1e-6)
    assert held[8] == pytest.approx(held[1] + full, rel=1e-6)


def test_heads_that_are_more_where_they_slide_are_divided_by_their_own_number(
    tmp_path: Path,
) -> None:
    """MiMo-V2-Flash has 4 KV heads in 9 full layers and 8 in 39 that slide."""
    release = releases()["XiaomiMiMo/MiMo-V2-Flash"]["config"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(release), encoding="utf-8")
    knowledge, held = known(), {}
    for gpus in (1, 4, 8):
        asked = Request(
            gpu="H200", gpus=gpus, config=str(path), precision="FP8", framework="vLLM",
            context=32768,
        )  # fmt: skip
        scenario = resolve(asked, knowledge)
        held[gpus] = estimate_memory(scenario, knowledge).kv_cache_bytes
    shape = scenario.model.shape
    assert set(shape.head_groups or ()) == {4, 8}
    full = 9 * 4 * (192 + 128) * 2 * 32768
    assert held[4] == pytest.approx(held[1], rel=1e-6)
    assert held[8] == pytest.approx(held[1] + full, rel=1e-6)


# ---- tensors shared in stages: a pipeline whose ranks are groups of cards

STAGED = {"gpu": "RTX 3090", "gpus": 6, "model": "qwen3-32b", "context": 8192, **VLLM}


def test_a_card_of_a_stage_holds_its_part_of_the_stage_s_layers() -> None:
    staged, rank = sized(asked(**STAGED, stages=3)), sized(asked(**{**STAGED, "gpus": 3}))
    pairs = [staged.per_gpu[n : n + 2] for n in range(0, 6, 2)]
    for pair, whole in zip(pairs, rank.per_gpu, strict=True):
        assert {card.weights_bytes for card in pair} == {-(-whole.weights_bytes // 2)}
        assert {card.kv_cache_bytes for card in pair} == {-(-whole.kv_cache_bytes // 2)}


def test_as_many_stages_as_one_are_a_tensor_split() -> None:
    four = {**STAGED, "gpus": 4}
    assert sized(asked(**four, stages=1)) == sized(asked(**four))


def test_stages_are_as_fast_as_the_cards_of_one_at_best() -> None:
    def speed(**keys: object) -> float:
        scenario = asked(**{**STAGED, "precision": "AWQ", **keys})
        found = estimate_speed(scenario, sized(scenario), known())
        assert found
        return found.decode_tok_s.estimate

    assert speed(gpus=6) < speed(stages=3) < speed(gpus=2) < speed(gpus=4)


def test_the_range_of_stages_is_that_of_both_splits() -> None:
    def spread(**keys: object) -> float:
        scenario = asked(**{**STAGED, "precision": "AWQ", **keys})
        found = estimate_speed(scenario, sized(scenario), known())
        assert found
        assert found.decode_tok_s.evidence == "extrapolated"
        return found.decode_tok_s.high / found.decode_tok_s.low

    both = max(spread(gpus=2), spread(gpus=6))
    assert spread(stages=3) >= both * (1 - 1e-9)


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("vLLM", ["--tensor-parallel-size 2", "--pipeline-parallel-size 3"]),
        ("SGLang", ["--tp-size 2", "--pp-size 3"]),
        ("TensorRT-LLM", ["--tp_size 2", "--pp_size 3"]),
    ],
)
def test_a_command_says_both(framework: str, said: list[str]) -> None:
    command = command_for(
        asked(**{**STAGED, "gpu": "H100 SXM5 80 GB", "framework": framework}, stages=3)
    )
    assert all(flag in command for flag in said)


def test_cards_that_do_not_divide_are_refused_with_what_a_stage_takes() -> None:
    assert refusal(**STAGED, stages=2).startswith(
        "vLLM cannot form 2 stages of cards that share the tensors of Qwen3-32B of 6 cards"
    )
    assert "--stages" in refusal(**{**GGUF, "gpus": 4}, stages=2)
    assert "cannot form 4 stages" in refusal(**STAGED, stages=4)


def test_six_cards_are_offered_stages_of_two() -> None:
    given: dict[str, object] = {**STAGED, "precision": "AWQ", "batch": 8}
    advice = advisor().advise(apply_change(Request(), given), all_cards=True)
    found = {option.action: option for option in advice.options}
    assert found["share-in-stages"].change == {"stages": 3}
    assert "fewer-gpus" in found


def test_what_is_stored_otherwise_takes_stages_at_once() -> None:
    given: dict[str, object] = {"gpu": "6x RTX 3090", "model": "glm-4.5-air", **VLLM}
    advice = advisor().advise(apply_change(Request(), given))
    first = advice.recommendations[0].option
    assert dict(first.change) == {"precision": "AWQ 4-bit", "stages": 3}
    assert first.memory == sized(asked(**{**given, **first.change}))
    kept = {o.scenario.stages for o in advice.options if o.scenario.precision.name == "BF16"}
    assert kept <= {None, 3}


def test_more_cards_than_heads_take_the_way_that_holds_most() -> None:
    given: dict[str, object] = {
        "gpu": "4x A100 SXM4 80GB", "model": "qwen3-235b-a22b", "precision": "AWQ",
        "context": 32768, "batch": 64, **VLLM,
    }  # fmt: skip
    advice = advisor().advise(apply_change(Request(), given))
    more = next(o for o in advice.options if o.action == "add-gpus")
    assert (more.scenario.gpus, more.change["stages"]) == (8, 2)
    assert more.memory.held_sequences == 64
    copied = sized(asked(**{**given, "gpu": "8x A100 SXM4 80GB"}))
    assert (copied.held_sequences or 0) < 64
