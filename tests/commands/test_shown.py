"""Commands as reports show them: they paste back, and what they cannot say stands beside them."""

from __future__ import annotations

import ast
import json
import shlex
from functools import lru_cache
from pathlib import Path

import pytest

from advisor.advice import Advisor
from advisor.advice.document import Advice
from advisor.knowledge.programs import PLACEHOLDERS, SWITCHES
from advisor.report import render_json, render_text
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.scenario.asked_model import find_model_named
from advisor.scenario.capability import seen_gguf
from advisor.scenario.settings import Request
from tests.commands.parsers import check

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


@lru_cache(maxsize=16)
def doc(**keys: object) -> Advice:
    return document(advisor().advise(Request(**keys)))  # type: ignore[arg-type]  # Request keys


def fed() -> Advice:
    return doc(gpu="RTX 4090", model="llama-3-8b", precision="NF4", framework="transformers")


def pasted(text: str, heading: str) -> str:
    """What a reader copies from below a heading of the text report."""
    lines = text.partition(f"\n{heading}\n")[2].split("\n\n")[0].split("\n")
    return "\n".join(lines).strip().removeprefix("$ ").replace(" \\\n", " ")


def test_a_request_that_fits_says_how_to_run_it() -> None:
    found = doc(gpu="RTX 4090", model="qwen3-8b", precision="Q8_0")
    command = found.commands[0].text
    assert command == "llama-server -hf unsloth/Qwen3-8B-GGUF:Q8_0 -c 4096 -np 1 -ngl all"
    assert pasted(render_text(found), "Run it") == command
    assert command in render_markdown(found)
    assert command in render_html(found)


@pytest.mark.parametrize(
    ("asked", "served", "format_"),
    [
        ("bartowski/Llama-3.2-3B-Instruct-GGUF", None, "Q4_K_M"),
        ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q6_K", None, "Q6_K"),
        ("ggml-org/gpt-oss-20b-GGUF", "ggml-org/gpt-oss-20b-GGUF", "MXFP4_MOE"),
    ],
)
def test_a_gguf_repository_is_served_as_it_was_asked_for(
    asked: str, served: str | None, format_: str
) -> None:
    said = doc(gpu="RTX 4090", model=asked)
    assert said.scenario.precision == format_
    served = served or f"bartowski/Llama-3.2-3B-Instruct-GGUF:{format_}"
    assert f"llama-server -hf {served} -c" in pasted(render_text(said), "Run it")


def test_an_image_tower_that_a_publisher_added_to_a_text_model_is_left_out() -> None:
    """It is not counted, and ``-hf`` would load it (0.8 GiB of a 24B model's)."""
    asked = {"gpu": "RTX 4090", "framework": "llama.cpp", "precision": "Q4_K_M"}
    for program in doc(**asked, model="devstral-small-2507").commands[:1]:
        assert program.text.startswith("llama-server -hf unsloth/Devstral-Small-2507-GGUF")
        assert program.text.endswith(" --no-mmproj")
    others = (doc(**asked, model=name).commands[0] for name in ("qwen3-8b", "gemma-3-12b-it"))
    assert not any("--no-mmproj" in command.text for command in others)


def test_vllm_is_told_where_the_config_of_a_gguf_file_lies() -> None:
    asked = {"gpu": "RTX 4090", "model": "qwen2.5-14b", "framework": "vLLM"}
    text = doc(**asked, precision="Q4_K_M").commands[0].text
    assert "-GGUF:Q4_K_M --tokenizer Qwen/Qwen2.5-14B-Instruct --max-model-len" in text
    assert "--tokenizer" not in doc(**asked, precision="AWQ").commands[0].text


def test_a_request_that_does_not_fit_has_no_command_of_its_own() -> None:
    found = doc(gpu="RTX 4090", model="phi-3-medium", precision="FP16")
    assert found.commands == []
    assert "Run it\n" not in render_text(found)
    assert "To run it as it is" not in render_markdown(found)
    assert all(item.commands[0].text == item.command for item in found.recommendations)


def test_a_script_stands_at_the_margin_and_pastes_back() -> None:
    text = pasted(render_text(fed()), "Run it")
    assert text == fed().commands[0].text
    check(text)
    ast.parse(text.split("\n", 1)[1].removesuffix("EOF"))


def test_only_the_first_of_several_scripts_is_shown_unless_all_is_wanted() -> None:
    later = [i for i in fed().recommendations[1:] if "<<" in i.command]
    assert later
    assert render_text(fed()).count("<<'EOF'") < render_text(fed(), length="full").count("<<'EOF'")


def test_several_lines_stay_several_lines() -> None:
    found = doc(
        gpu="RTX 4090", model="llama-3-8b", precision="Q4_K_M", framework="Ollama", gpu_layers=30
    )
    text = pasted(render_text(found, width=100), "Run it")
    said = [line.strip() for line in f"$ {text}".split("\n")]
    assert [shlex.split(line)[1] for line in said if line.startswith("$ ")] == [
        "printf", "OLLAMA_NUM_PARALLEL=1", "ollama", "ollama",
    ]  # fmt: skip


def test_what_a_command_cannot_say_is_told() -> None:
    found = doc(
        gpu="M4 Pro:48GB", model="qwen3-8b", precision="MLX 4-bit", framework="MLX-LM", batch=4
    )
    said = " ".join(render_text(found, length="full").split())
    assert "Not in this command: context. The server has no limit to set" in said
    assert "Not in this command: context" in render_markdown(found)
    gaps = [command["gaps"] for command in json.loads(render_json(found))["commands"]]
    assert [[gap["setting"] for gap in found] for found in gaps] == [
        ["context"],
        ["batch"],
        ["batch"],
    ]


def test_the_page_lists_every_program_placeholder_and_switch() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*PLACEHOLDERS, *SWITCHES):
        assert f"`{name}`" in page, name
    for framework in advisor().knowledge.frameworks.values():
        for command in framework.commands:
            assert str(command.name).split(" with ")[0].casefold() in page.casefold()
            assert str(command.version).split(" ", maxsplit=1)[0] in page


def test_a_context_past_the_trained_length_is_stretched_where_the_publisher_says_how() -> None:
    asked = {"gpu": "RTX 4090", "model": "qwen3-8b", "precision": "4-bit"}
    short, half, full, beyond = (
        shlex.split(doc(**asked, context=tokens).commands[0].text)
        for tokens in (40_960, 65_536, 70_000, 131_073)
    )
    assert "--rope-scale" not in short
    assert half[half.index("--rope-scale") + 1] == "2"
    assert full[full.index("--rope-scale") + 1] == "3"
    assert "--rope-scale" not in beyond


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen2.5-7b-instruct", "qwen2.5-coder-7b"])
def test_servers_are_told_the_same_as_json(model: str) -> None:
    for name, flag in (("vLLM", "--hf-overrides"), ("SGLang", "--json-model-override-args")):
        found = doc(gpu="RTX 4090", model=model, precision="4-bit", context=65_536, framework=name)
        words = shlex.split(found.commands[0].text)
        assert json.loads(words[words.index(flag) + 1])["rope_parameters"] == {
            "rope_type": "yarn",
            "factor": 2,
            "original_max_position_embeddings": 32_768,
            "rope_theta": 1_000_000,
        }


@pytest.mark.parametrize(
    ("framework", "model", "gpu"),
    [
        ("ExLlamaV3", "qwq-32b", "RTX 6000 Ada"),
        ("MLX-LM", "qwen3-14b", "M3 Max:64GB"),
        ("TensorRT-LLM", "qwen3-14b", "H100 SXM"),
    ],
)
def test_yarn_that_no_flag_says_is_written_into_config_json(
    framework: str, model: str, gpu: str
) -> None:
    found = doc(gpu=gpu, model=model, context=70_000, framework=framework)
    said = json.loads("{" + found.commands[0].config + "}")
    assert said == {
        "max_position_embeddings": 3 * 32_768,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 3.0,
            "original_max_position_embeddings": 32_768,
        },
    }
    text = " ".join(render_text(found, length="full").split())
    assert f"write {found.commands[0].config} into the `config.json`" in text
    assert "without rope scaling" not in text


@pytest.mark.parametrize(
    ("framework", "model", "gpu", "context"),
    [
        ("ExLlamaV3", "qwq-32b", "RTX 6000 Ada", 40_960),
        ("MLX-LM", "qwen3-30b-a3b", "M3 Max:64GB", 70_000),
        ("vLLM", "qwen3-14b", "H100 SXM", 70_000),
    ],
)
def test_config_json_is_left_alone_where_it_need_not_or_cannot_say_yarn(
    framework: str, model: str, gpu: str, context: int
) -> None:
    found = doc(gpu=gpu, model=model, context=context, framework=framework, precision="4-bit")
    assert not found.commands[0].config


@pytest.mark.parametrize(
    ("model", "precision", "said"),
    [
        ("qwen3.5-9b", "Q8_0", True),
        ("qwen3.5-9b", "Q4_K_M", False),
        ("gemma-3-12b-it", "Q6_K", False),
        ("qwen3-8b", "Q6_K", False),
    ],
)
def test_a_file_for_images_from_the_hub_says_which_ollama_loads_it(
    model: str, precision: str, *, said: bool
) -> None:
    """Its own library holds both in one file, which older versions load too (ollama 14575)."""
    found = doc(gpu="RTX 3090", model=model, precision=precision, framework="Ollama")
    assert (found.commands[0].unpublished == "images") is said
    setup = render_text(found, length="full").partition("What you could do")[0]
    assert ("needs Ollama 0.30" in setup) is said


def test_a_repository_may_hold_other_files_than_its_publisher_usually_has() -> None:
    knowledge = advisor().knowledge

    def had(model: str, precision: str) -> str | None:
        found = find_model_named(model, knowledge)
        return seen_gguf(found, knowledge.formats[precision])

    assert had("Qwen3.8-Flash-Next", "IQ4_XS") == "unsloth/Qwen3.8-Flash-Next-GGUF:UD-IQ4_XS"
    assert had("Qwen3.8-Flash-Next", "Q8_0") == "unsloth/Qwen3.8-Flash-Next-GGUF:Q8_0"
    assert not (had("Qwen3.8-Flash-Next", "Q4_K_M") or "").startswith("unsloth/")
    assert not (had("gpt-oss-120b", "IQ4_XS") or "").startswith("unsloth/")
    assert had("gpt-oss-120b", "Q4_K_M") == "unsloth/gpt-oss-120b-GGUF:Q4_K_M"


def test_sglang_is_asked_for_images_where_it_leaves_them_out_by_itself() -> None:
    card = {"gpu": "8x H100 SXM5 80 GB", "framework": "SGLang"}
    asked = "--enable-multimodal"
    assert asked in render_text(doc(model="gemma-3-12b-it", **card))
    llama_4 = {"model": "llama-4-scout-17b-16e-instruct", **card}
    assert asked in render_text(doc(**llama_4))
    assert asked not in doc(text_only=True, **llama_4).commands[0].text
    assert asked not in render_text(doc(model="gemma-4-31b-it", **card))


@pytest.mark.parametrize(("model", "said"), [("gemma-4-31b-it", True), ("qwen3-32b", False)])
def test_a_repository_named_after_another_way_of_packing_is_explained(
    model: str, *, said: bool
) -> None:
    """What is sized as GPTQ 8-bit may be called AWQ where it lies."""
    card = {"gpu": "2x W7900", "framework": "vLLM", "precision": "GPTQ 8-bit"}
    text = render_text(doc(model=model, **card))
    assert ("Its name says how its scales were found" in text) is said


def test_the_reason_for_whole_experts_is_told() -> None:
    card = {"gpu": "8x H100 SXM5 80 GB", "framework": "vLLM", "precision": "FP8"}
    text = render_text(doc(model="qwen3-235b-a22b", **card))
    assert "--enable-expert-parallel" in text
    assert "Each card holds whole experts" in text
