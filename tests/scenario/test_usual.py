"""What is taken where nobody states a precision or a context: what the user would get."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.runtimes.commands import command_for
from advisor.scenario.settings import Request
from tests.remedies.asking import advised, advisor, run_again

CARD = "RTX 4090"


@pytest.mark.parametrize(
    ("framework", "model", "precision"),
    [
        (None, "llama-3.1-8b", "Q4_K_M"),
        ("llama.cpp", "llama-3.1-8b", "Q4_K_M"),
        ("koboldcpp", "llama-3.1-8b", "Q4_K_M"),
        ("LM Studio", "llama-3.1-8b", "Q4_K_M"),
        ("Ollama", "llama-3.1-8b", "Q4_K_M"),
        ("Ollama", "gemma-2-2b", "Q4_0"),
        ("Ollama", "google/gemma-2-2b-it", "Q4_0"),
        ("Ollama", "gpt-oss-20b", "MXFP4_MOE"),
        ("vLLM", "llama-3.1-8b", "BF16"),
        ("vLLM", "Qwen3-32B", "BF16"),
        ("SGLang", "llama-3.1-8b", "BF16"),
        ("transformers", "llama-3.1-8b", "BF16"),
    ],
)
def test_every_runtime_has_its_own_default(
    framework: str | None, model: str, precision: str
) -> None:
    asked = Request(gpu=CARD, model=model, framework=framework)
    assert advisor().estimate(asked).scenario.precision.name == precision


@pytest.mark.parametrize("said", ["16-bit", "16bit", "16 bit", "16 Bits", "unquantized"])
@pytest.mark.parametrize("gpu", [None, CARD, "M3 Max 64GB"])
@pytest.mark.parametrize(
    ("model", "own"), [("qwen3-8b", "BF16"), ("llama-2-7b", "FP16"), ("gpt-oss-20b", "BF16")]
)
def test_sixteen_bits_are_the_checkpoints_own(
    said: str, gpu: str | None, model: str, own: str
) -> None:
    asked = Request(gpu=gpu, model=model, precision=said)
    assert advisor().estimate(asked).scenario.precision.name == own


def test_sixteen_bits_are_others_where_the_runtime_does_not_run_the_own() -> None:
    asked = Request(gpu=CARD, model="whisper-large-v3", precision="16-bit", framework="whisper.cpp")
    assert advisor().estimate(asked).scenario.precision.name == "FP16"


def test_sizes_alone_are_in_16_bits(tmp_path: Path) -> None:
    assert advisor().estimate(Request(model="llama-3.1-8b")).scenario.precision.name == "FP16"
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,'
        '"num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 512}'
    )
    asked = Request(gpu=CARD, config=str(config))
    assert advisor().estimate(asked).scenario.precision.name == "FP16"


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        (None, "llama.cpp takes Q4_K_M."),
        ("Ollama", "Ollama takes Q4_K_M."),
        ("vLLM", "vLLM takes the 16 bits published."),
    ],
)
def test_the_report_says_where_it_comes_from(framework: str | None, said: str) -> None:
    given = {"framework": framework} if framework else {}
    found = advised(gpu=CARD, model="llama-3.1-8b", **given).warnings
    assert f"No precision is stated: {said}" in found
    stated = advised(gpu=CARD, model="llama-3.1-8b", precision="Q4_K_M").warnings
    assert not any("precision is stated" in line for line in stated)


@pytest.mark.parametrize("framework", ["vLLM", "SGLang", "TGI", "transformers"])
@pytest.mark.parametrize("precision", [None, "16-bit", "16 bits"])
def test_own_16_bits_are_not_named_in_commands(framework: str, precision: str | None) -> None:
    asked = Request(gpu=CARD, model="llama-3.2-1b", framework=framework, precision=precision)
    own = command_for(advisor().estimate(asked).scenario)
    stated = command_for(
        advisor()
        .estimate(Request(gpu=CARD, model="llama-3.2-1b", framework=framework, precision="FP16"))
        .scenario
    )
    assert "float16" not in own
    assert "float16" in stated


def test_changes_are_complete_without_a_precision() -> None:
    advice = advised(gpu="RTX 3060:12GB", model="qwen3-32b", framework="vLLM")
    for option in advice.options:
        again = run_again(advice, option)
        assert again.scenario.precision is option.scenario.precision, option.change
        assert again.memory.required_bytes == option.memory.required_bytes, option.change


@pytest.mark.parametrize(
    ("gpu", "framework", "said"),
    [
        ("RTX 4090", "vLLM", "vLLM 0.33.0 itself takes 131,072 and should not start here"),
        ("H100 SXM5 80 GB", "SGLang", "itself takes 131,072, which fits here too."),
        ("RTX 3060:12GB", "llama.cpp", "itself takes 131,072 and lowers them until they fit."),
        ("RTX 4090", "Ollama", "itself takes 32,768, which fits here too."),
        ("2x RTX 4090", "Ollama", "itself takes 32,768, which fits here too."),
        ("A100 80GB", "Ollama", "itself takes 131,072, which fits here too."),
        ("RTX 3090", "TGI", "TGI 032fc4c4 itself takes 131,072 and lowers them until they fit."),
        ("RTX 3090", "TabbyAPI", "TabbyAPI server e632af4 itself takes 131,072, which fits here"),
        ("RTX 3090", "LM Studio", "4,096 tokens are sized, which LM Studio 0a5d5b7a itself takes."),
    ],
)
def test_what_a_server_takes_without_a_context(gpu: str, framework: str, said: str) -> None:
    warnings = advised(gpu=gpu, model="llama-3.1-8b", framework=framework).warnings
    assert any(said in line for line in warnings)


@pytest.mark.parametrize(
    "given", [{"context": 4096, "framework": "vLLM"}, {"framework": "transformers"}, {}]
)
def test_no_word_on_contexts_that_are_stated_or_nobody_s(given: dict[str, object]) -> None:
    warnings = advised(gpu=CARD, model="llama-3.1-8b", **given).warnings
    assert not any("No context is stated" in line for line in warnings)


def test_a_context_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "frameworks-own.yaml").write_text(
        "- framework: llama.cpp\n  usual_context: {many: 4096}\n  source: advisor-policy\n"
    )
    with pytest.raises(UserError, match=r"frameworks-own.yaml:2:.*holds tokens for each memory"):
        load_knowledge(tmp_path)


@pytest.mark.parametrize(
    ("depth", "context"),
    [(0, 4096), (4095, 4096), (4096, 8192), (8192, 12_288), (122_879, 122_880)],
)
def test_without_a_stated_context_the_depth_fits_into_it(depth: int, context: int) -> None:
    asked = Request(gpu=CARD, model="qwen3-4b-instruct-2507", depth=depth)
    assert advisor().estimate(asked).scenario.context_tokens == context


def test_a_depth_may_be_all_of_the_context_and_no_more() -> None:
    asked = Request(gpu=CARD, model="qwen3-4b-instruct-2507", context=8192, depth=8192)
    assert advisor().estimate(asked).scenario.depth_tokens == 8192
    with pytest.raises(UserError, match="Give a depth of at most the context"):
        advisor().estimate(replace(asked, depth=8193))


@pytest.mark.parametrize(("branch", "bits"), [("3_0", "3.0"), ("4_25", "4.25"), ("6_0", "6.0")])
def test_a_branch_of_exl2_files_is_its_bits(branch: str, bits: str) -> None:
    asked = Request(gpu=CARD, model="qwq-32b", precision=branch, framework="ExLlamaV2")
    assert advisor().estimate(asked).scenario.precision.name == f"EXL2 {bits}bpw"


@pytest.mark.parametrize(
    ("gpu", "model", "precision", "sized"),
    [
        ("M1 Max 64GB", "mlx-community/Qwen3-30B-A3B-4bit", None, "MLX-LM"),
        ("M1 Max 64GB", "qwen3-30b-a3b", "MLX 8-bit", "MLX-LM"),
        ("M1 Max 64GB", "qwen3-30b-a3b", None, "LM Studio"),
        ("RTX 4090", "qwen3-14b", None, "LM Studio"),
    ],
)
def test_lm_studio_runs_mlx_files_on_apple_chips(
    gpu: str, model: str, precision: str | None, sized: str
) -> None:
    advice = advised(gpu=gpu, model=model, precision=precision, framework="LM Studio")
    assert advice.scenario.framework.name == sized
    told = "LM Studio loads models with several programs; MLX-LM is the one that is sized."
    assert (told in advice.warnings) == (sized == "MLX-LM")


def test_lm_studio_runs_no_mlx_files_elsewhere() -> None:
    with pytest.raises(UserError, match="LM Studio does not run MLX 4-bit"):
        advised(gpu=CARD, model="mlx-community/Qwen3-14B-4bit", framework="LM Studio")


@pytest.mark.parametrize(
    ("model", "said", "precision"),
    [
        ("kimi-k2.5", "int4", "INT4 (experts)"),
        ("kimi-k2.5", "4-bit", "INT4 (experts)"),
        ("kimi-k2-thinking", "int4", "INT4 (experts)"),
        ("gpt-oss-120b", "4-bit", "MXFP4"),
        ("deepseek-v3.1", "8-bit", "FP8"),
        ("qwen3-32b", "int4", "AWQ 4-bit"),
    ],
)
def test_so_many_bits_are_those_that_its_publisher_gives_where_it_gives_them(
    model: str, said: str, precision: str
) -> None:
    request = Request(gpu="8x H200", model=model, precision=said, framework="vLLM")
    assert advisor().advise(request).scenario.precision.name == precision


def test_a_card_behind_a_format_is_no_size_of_groups() -> None:
    with pytest.raises(UserError, match="fp16 a10g"):
        advised(gpu="A10G", model="mistral-7b", precision="fp16 a10g")
