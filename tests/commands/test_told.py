"""What a program cannot be told is no remedy, and a program that can be told it goes first."""

from __future__ import annotations

from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.runtimes.commands import command_for, commands_for
from advisor.scenario.settings import Request, Use

MLX = "MLX 4-bit"


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def exl2() -> Conclusions:
    return advisor().advise(
        Request(gpu="RTX 3090", gpus=2, model="Llama-3.3-70B", precision="EXL2 4.0", context=32_768)
    )


def mlx(
    model: str = "Qwen2.5-VL-32B", batch: int = 1, context: int = 4096, use: Use | None = None
) -> Conclusions:
    asked = Request(
        gpu="M2 Max:64GB", model=model, precision=MLX, batch=batch, context=context, use=use
    )
    return advisor().advise(asked)


@pytest.mark.parametrize(
    ("model", "named"), [("google/flan-t5-large", "Seq2SeqLM"), ("qwen3-8b", "CausalLM")]
)
def test_what_reads_a_whole_text_first_is_loaded_as_that(model: str, named: str) -> None:
    asked = Request(gpu="RTX 4090", model=model, framework="transformers")
    command = command_for(advisor().estimate(asked).scenario)
    assert f"import AutoModelFor{named} as Model" in command


def test_no_cache_type_is_proposed_that_the_server_has_no_word_for() -> None:
    advice = exl2()
    kinds = {o.scenario.kv_cache_k.name for o in advice.options if o.scenario.batch == 1}
    assert "exl-q8" in kinds
    assert "exl-8bit" not in kinds
    first = advice.recommendations[0]
    assert dict(first.option.change) == {"kv_cache": "exl-q8"}
    assert "--cache-mode Q8" in first.command


def test_a_cache_type_may_still_be_asked_for() -> None:
    scenario = exl2().scenario
    asked = Request(
        gpu="RTX 3090", gpus=2, model="Llama-3.3-70B", precision="EXL2 4.0", kv_cache="exl-8bit"
    )
    found = advisor().estimate(asked)
    assert found.scenario.kv_cache_k.name == "exl-8bit"
    assert found.scenario.framework is scenario.framework


def test_several_sequences_are_served_by_the_server_of_mlx() -> None:
    advice = mlx("Llama-3.1-8B", use="batch")
    grown = [r for r in advice.recommendations if r.option.action == "grow-batch"]
    assert grown
    for item in grown:
        batch = item.option.scenario.batch
        assert item.command.startswith("mlx_lm.server")
        assert f"--decode-concurrency {batch}" in item.command
    assert commands_for(advice.scenario)[0].program == "mlx_lm.chat"


def test_no_context_is_proposed_that_the_server_cannot_be_told() -> None:
    many = mlx(batch=40, context=8192).options
    assert many
    assert not [o for o in many if o.action == "shrink-context"]
    for model, limited in {"Qwen2.5-72B": True, "Llama-3.3-70B": False}.items():
        one = mlx(model, context=65_536)
        stays = (o for o in one.options if o.scenario.framework.name == "MLX-LM")
        assert any(o.change.get("context") for o in stays) is limited, model
    made = mlx("gemma-3-27b-it"), mlx("mistral-small-3.1-24b-instruct-2503"), mlx("qwen3-32b")
    said = ["--max-kv-size" in commands_for(one.scenario)[0].text for one in made]
    assert said == [False, True, True]


def test_lm_studio_loads_by_key_what_a_line_before_downloads_or_imports() -> None:
    """``lms load`` knows model keys alone (its load.ts at 07b7252d), no names of files."""
    asked = Request(
        gpu="RTX 4090", model="Llama-3.1-8B", precision="Q4_K_M", framework="LM Studio", batch=4,
        draft_model="llama-3.2-1b",
    )  # fmt: skip
    first, draft, last = command_for(advisor().estimate(asked).scenario).split("\n")
    assert first == "lms import Llama-3.1-8B-Q4_K_M.gguf --yes"
    assert draft.startswith("lms get https://huggingface.co/")
    assert draft.endswith("Llama-3.2-1B-GGUF@Q4_K_M --yes")
    assert last.startswith("lms load llama-3.1-8b --context-length 4096 --parallel 4 ")
    assert " --speculative-draft-simple --speculative-draft-model llama-3.2-1b " in last
    seen = replace(asked, model="qwen2.5-72b-instruct", draft_model=None)
    known = command_for(advisor().estimate(seen).scenario)
    where = "https://huggingface.co/bartowski/Qwen2.5-72B-Instruct-GGUF@Q4_K_M"
    assert known.startswith(f"lms get {where} --yes\nlms load qwen2.5-72b-instruct ")


@pytest.mark.parametrize("program", [0, 1, 2])
def test_mlx_says_that_it_reads_no_images(program: int) -> None:
    gaps = {gap.setting: gap.reason for gap in commands_for(mlx().scenario)[program].gaps}
    assert "mlx-vlm" in gaps["images"]
    plain = commands_for(mlx("Llama-3.1-8B").scenario)[program].gaps
    assert "images" not in {gap.setting for gap in plain}


def test_programs_that_read_images_say_nothing_of_them() -> None:
    found = advisor().estimate(Request(gpu="A100 SXM4 80 GB", model="Qwen2.5-VL-32B"))
    assert "images" not in {g.setting for c in commands_for(found.scenario) for g in c.gaps}
