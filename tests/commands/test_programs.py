"""Every command is accepted by the program it starts, over frameworks, models and changes."""

from __future__ import annotations

import csv
import itertools
import shlex
from collections.abc import Iterator
from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice import Advisor
from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.catalogue import default_backend
from advisor.knowledge.types import Knowledge
from advisor.runtimes.commands import Command, commands_for, needed_settings
from advisor.scenario import Scenario
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request
from tests.commands.parsers import TABLE, check

CARDS = (
    "RTX 3060 12GB", "RTX 4090", "RTX 5090", "H100 SXM5 80 GB", "RX 7900 XTX",
    "Apple M4 Max (40-core GPU):128GB",
)  # fmt: skip
MODELS = (
    "llama-3.1-8b", "phi-3-small", "gpt-oss-20b", "qwen3-30b-a3b", "llava-1.6-13b", "bge-m3",
    "deepseek-r1", "gemma-2-27b", "whisper-large-v3",
)  # fmt: skip
CHANGES: tuple[dict[str, object], ...] = (
    {},
    {"context": 777, "batch": 5},
    {"gpus": 2, "batch": 2},
    {"flash_attention": False},
    {"ubatch": 4096},
    {"kv_unified": False, "batch": 3},
    {"swa_full": True},
    {"gpu_layers": 7},
    {"gpu_layers": 0},
    {"cpu_experts": 3},
    {"draft_model": "llama-3.2-1b"},
    {"mtp": 2},
    {"backend": "Vulkan", "gpus": 2},
    {"gpu_memory_utilization": 0.85, "max_num_batched_tokens": 4096, "text_only": True},
    {"eager": True},
)


@lru_cache(maxsize=1)
def known() -> Knowledge:
    return load_knowledge()


def requests() -> Iterator[Request]:
    """Every framework with each of its formats and cache types, on cards that run it."""
    frameworks = [f for f in known().frameworks.values() if f.commands]
    for framework, card, model in itertools.product(frameworks, CARDS, MODELS):
        asked: dict[str, object] = {"gpu": card, "model": model, "framework": framework.name}
        formats = [f for f in framework.formats if known().formats[f].offered][:20]
        for number, name in enumerate(formats):
            change = CHANGES[number % len(CHANGES)]
            yield Request(**asked, precision=name, **change)  # type: ignore[arg-type]  # Request keys
        for change in CHANGES:
            yield Request(**asked, precision=formats[0], **change)  # type: ignore[arg-type]  # Request keys
        for kind in framework.kv_types:
            yield Request(**asked, precision=formats[0], kv_cache=kind)  # type: ignore[arg-type]  # keys


@lru_cache(maxsize=1)
def scenarios() -> tuple[Scenario, ...]:
    """The requests that make sense."""
    found = []
    for request in requests():
        try:
            found.append(resolve(request, known()))
        except UserError:
            continue
    return tuple(found)


def test_the_sample_reaches_every_program_and_setting() -> None:
    programs = {c.program for s in scenarios() for c in commands_for(s)}
    assert programs == {c.name for f in known().frameworks.values() for c in f.commands}
    assert len(scenarios()) > 1500
    assert {key for s in scenarios() for key in needed_settings(s)} >= {
        "batch", "gpus", "kv_cache_k", "ubatch", "gpu_layers", "cpu_experts", "flash_attention",
        "kv_unified", "swa_full", "draft_model", "mtp", "backend",
    }  # fmt: skip


def test_every_program_accepts_its_command() -> None:
    for scenario in scenarios():
        for command in commands_for(scenario):
            check(command.text)


def test_what_a_command_does_not_say_has_a_sourced_reason() -> None:
    for scenario in scenarios():
        for command in commands_for(scenario):
            for gap in command.gaps:
                assert gap.reason != "No option for it is known.", (command.program, gap.setting)


SPELLED: dict[str, tuple[str, ...]] = {
    "gpus": ("-ts 1,1", "--tensor-parallel-size 2", "--tp-size 2", "--tp_size 2", "--num-shard 2",
             "_VISIBLE_DEVICES=0,1", "_VISIBLE_DEVICES=0,1"),
    "ubatch": ("-ub ",), "gpu_layers": ("-ngl ", "num_gpu ", "--gpu "),
    "cpu_experts": ("-ncmoe ",), "swa_full": ("--swa-full",),
    "draft_model": ("-md ", "-hfd ", "speculative-", "--draft-model", "assistant_model"),
    "mtp": ("draft-mtp", "num_speculative_tokens", "NEXTN"),
    "flash_attention": ("-fa off", "OLLAMA_FLASH_ATTENTION=0", "'eager'"),
    "text_only": ("--language-model-only", "--no-mmproj", "--vision false"),
    "backend": ("-dev Vulkan0", "OLLAMA_LLM_LIBRARY=vulkan"), "kv_unified": ("--no-kv-unified",),
    "kv_cache": ("-ctk ", "--kv-cache-dtype ", "KV_CACHE_TYPE=", "--cache-mode ", "--kv-bits ",
                 "dtype: "),
    "batch": ("-np ", "NUM_PARALLEL=", "--max-num-seqs ", "--max-running-requests ",
              "--max_batch_size ", "--max-batch-total-tokens ", "* ", "--max-batch-size ",
              "--decode-concurrency ", "--parallel "),
    "context": ("-c ", "num_ctx ", "OLLAMA_CONTEXT_LENGTH=", "--max-model-len ",
                "--context-length ", "--max_seq_len ",
                "--max-total-tokens ", "'max_length': ", "--max-seq-len ", "--max-kv-size "),
}  # fmt: skip


def test_every_setting_is_said_or_named_as_unsaid() -> None:
    for scenario in scenarios():
        for command in commands_for(scenario):
            unsaid = {gap.setting for gap in command.gaps}
            for key in needed_settings(scenario):
                name = "kv_cache" if key.startswith("kv_cache") else key
                said = any(words in command.text for words in SPELLED[name])
                assert said or name in unsaid, (command.program, name, command.text)


def test_llama_cpp_holds_the_context_once_per_sequence() -> None:
    first = made(gpu="RTX 4090", model="llama-3.1-8b", precision="Q4_K_M", context=2048, batch=8)[0]
    assert "-c 16384 -np 8 --kv-unified" in first.text


def test_the_program_that_says_the_most_comes_first_of_several_sequences_one_that_serves() -> None:
    mac = "Apple M4 Max (40-core GPU):128GB"
    one = made(gpu=mac, model="qwen3-8b", precision="MLX 4-bit", framework="MLX-LM")
    several = made(gpu=mac, model="qwen3-8b", precision="MLX 4-bit", framework="MLX-LM", batch=4)
    assert one[0].program == "mlx_lm.chat"
    assert "--max-tokens 4096" in one[0].text  # else a reply ends after 256
    assert not one[0].gaps
    assert several[0].program == "mlx_lm.server"
    assert [gap.setting for gap in several[0].gaps] == ["context"]
    eight = made(
        gpu=mac, model="qwen3-8b", precision="MLX 4-bit", framework="MLX-LM", kv_cache="mlx-8bit"
    )
    assert eight[0].program == "mlx_lm.generate"  # the one that quantises a cache


@pytest.mark.parametrize(
    ("precision", "framework", "model", "words"),
    [
        ("FP8", "vLLM", "Yi-34B", "vllm serve 01-ai/Yi-34B-Chat "),
        ("FP8", "vLLM", "Yi-34B", "--quantization fp8_per_tensor"),
        ("FP8", "SGLang", "Yi-34B", "--quantization fp8"),
        ("FP8", "vLLM", "llama-3.1-8b", "vllm serve RedHatAI/Meta-Llama-3.1-8B-FP8 "),
        ("AWQ 4-bit", "vLLM", "qwen3-32b", "vllm serve Qwen/Qwen3-32B-AWQ "),
        ("AWQ 4-bit", "vLLM", "llama-3.1-8b", "vllm serve ./Llama-3.1-8B-AWQ-4-bit "),
        ("MXFP4", "vLLM", "gpt-oss-20b", "vllm serve openai/gpt-oss-20b "),
        ("BF16", "vLLM", "gpt-oss-20b", "vllm serve unsloth/gpt-oss-20b-BF16 "),
        ("FP8", "vLLM", "gpt-oss-20b", "vllm serve ./gpt-oss-20b-FP8 "),
        ("FP8", "vLLM", "deepseek-r1", "vllm serve deepseek-ai/DeepSeek-R1 "),
        ("NF4", "TGI", "llama-3.1-8b", "--quantize bitsandbytes-nf4"),
        ("NF4", "transformers", "llama-3.1-8b", "load_in_4bit=True"),
        ("NF4", "transformers", "llama-3.1-8b", "'meta-llama/Llama-3.1-8B'"),
    ],
)
def test_a_repository_is_named_only_where_it_holds_or_makes_the_format(
    precision: str, framework: str, model: str, words: str
) -> None:
    first = made(gpu="H100 SXM5 80 GB", model=model, precision=precision, framework=framework)[0]
    assert words in first.text


@pytest.mark.parametrize(
    ("model", "runs"),
    [
        ("hf.co/bartowski/gemma-2-9b-it-GGUF:Q6_K", "hf.co/bartowski/gemma-2-9b-it-GGUF:Q6_K"),
        ("unsloth/Qwen3-14B-GGUF", "hf.co/unsloth/Qwen3-14B-GGUF:Q4_K_M"),
        ("someone/Qwen3-14B-Aurora-GGUF", "hf.co/someone/Qwen3-14B-Aurora-GGUF:Q4_K_M"),
        ("Qwen/Qwen3-14B", "qwen3:14b"),
        ("gemma3:12b", "gemma3:12b"),
        ("openai/gpt-oss-120b", "gpt-oss:120b"),
    ],
)
def test_ollama_runs_what_it_fetches_by_the_name_that_was_asked_for(model: str, runs: str) -> None:
    asked = {"gpu": "RTX 4090", "model": model, "framework": "Ollama", "context": 8192}
    assert made(**asked)[0].text == (
        f"OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_NUM_PARALLEL=1 ollama serve &\nollama run {runs}"
    )
    placed = made(**asked, gpu_layers=20)[0].text
    assert f"'FROM {runs}' 'PARAMETER num_ctx 8192' 'PARAMETER num_gpu 20' > Modelfile" in placed
    assert "ollama create" in placed


@pytest.mark.parametrize("precision", ["FP8", "GPTQ 4-bit"])
def test_tgi_reads_how_a_file_was_packed_from_its_config(precision: str) -> None:
    """RedHatAI packs both as compressed-tensors, which ``--quantize gptq`` does not load."""
    first = made(gpu="A100", model="gemma-3-27b-it", precision=precision, framework="TGI")[0]
    assert "RedHatAI/" in first.text
    assert "--quantize" not in first.text


def test_code_of_the_model_s_own_is_allowed_where_it_is_needed() -> None:
    asked = {"gpu": "RTX 4090", "precision": "FP16"}
    for framework, words in (("TGI", "--trust-remote-code"), ("transformers", "trust_remote_code")):
        own = made(**asked, model="phi-3-small", framework=framework)[0]
        plain = made(**asked, model="llama-3.1-8b", framework=framework)[0]
        assert words in own.text
        assert words not in plain.text


def made(**keys: object) -> tuple[Command, ...]:
    return commands_for(resolve(Request(**keys), known()))  # type: ignore[arg-type]  # Request keys


def test_the_tables_are_those_of_the_stated_versions() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        sources = {row["tool"]: row["source"] for row in csv.DictReader(file)}
    for framework in known().frameworks.values():
        for program in framework.commands:
            name = str(program.name).split(" with ")[0]
            table = (
                sources["Modelfile" if name == "ollama" else name] if name != "transformers" else ""
            )
            version = str(program.version).split(" ")[0]
            assert not table or version in table or framework.name == "Ollama", name


@pytest.mark.parametrize("text", [
    "vllm serve m --max-model-length 4096",
    "llama-server -m m.gguf -c many",
    "llama-server -m m.gguf -ctk fp8",
    "sglang serve --model-path m --tp-size",
    "llama-cli -m m.gguf -np 2 -np 2",
    "lms load a b",
])  # fmt: skip
def test_the_check_refuses_what_a_program_would(text: str) -> None:
    with pytest.raises(AssertionError):
        check(text) if "many" not in text else _whole(text)


def _whole(text: str) -> None:
    try:
        check(text)
    except ValueError as error:
        raise AssertionError from error


def test_quotes_and_spaces_in_names_survive_a_shell() -> None:
    scenario = resolve(Request(gpu="RTX 4090", model="llama-3.1-8b", precision="Q4_K_M"), known())
    for name in ("a b", "it's", 'say "hi"', "$(rm x)", "-rf", "a;b", "ü ñ", "a`b`"):
        model = replace(scenario.model, name=name, hf_id=f"org/{name}")
        for framework in known().frameworks.values():
            if not framework.commands or "FP16" not in framework.formats:
                continue
            odd = replace(
                scenario, model=model, framework=framework, precision=known().formats["FP16"]
            )
            for command in commands_for(odd):
                check(command.text)
                words = shlex.split(command.text.split("<<")[0])
                assert any(name.lstrip("-") in word for word in words) or "<<" in command.text


ASKED = (
    Request(gpu="RTX 4090", model="phi-3-medium", precision="FP16"),
    Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", context=131_072),
    Request(gpu="RTX 3060 12GB", model="qwen3-30b-a3b", precision="Q4_K_M", ram_gib=64),
    Request(gpu="RTX 4090", model="llama-3-8b", precision="FP16", framework="vLLM"),
    Request(gpu="H100 SXM5 80 GB", model="llama-3.1-70b", precision="FP16", batch=32),
    Request(gpu="RTX 4090", model="llama-3-8b", precision="NF4", framework="transformers"),
    Request(gpu="M4 Pro:48GB", model="qwen2.5-32b", precision="MLX 8-bit"),
    Request(gpu="RX 7900 XTX", model="llama-3-8b", precision="Q4_K_M", backend="Vulkan"),
)
_BY_THE_MODEL = frozenset({"precision", "model", "config", "gpu", "framework"})
_DEFAULTS = {"gpu_layers": "all", "cpu_experts": 0, "kv_cache": "f16", "batch": 1}


@pytest.mark.parametrize("request_", ASKED, ids=lambda r: f"{r.gpu}-{r.model}-{r.precision}")
def test_the_command_of_an_option_carries_every_key_of_its_change(request_: Request) -> None:
    for option in advisor().advise(request_).options:
        for command in commands_for(option.scenario):
            check(command.text)
            unsaid = {gap.setting for gap in command.gaps}
            needed = {
                n.removesuffix("_k").removesuffix("_v") for n in needed_settings(option.scenario)
            }
            for key in set(option.change) - _BY_THE_MODEL:
                name = key.removesuffix("_k").removesuffix("_v")
                if name not in needed:
                    gpu = option.scenario.gpu
                    usual = default_backend(gpu) if gpu and key == "backend" else _DEFAULTS[key]
                    assert option.change[key] == usual
                    continue
                said = any(words in command.text for words in SPELLED[name])
                assert said or name in unsaid, (option.key, command.text)


@lru_cache(maxsize=1)
def advisor() -> Advisor:
    return Advisor.load()


def test_llama_cpp_is_told_how_to_draft() -> None:
    for command in made(
        gpu="RTX 4090", model="llama-3.1-8b", precision="Q4_K_M", draft_model="llama-3.2-1b"
    ):
        assert "-hfd mradermacher/Llama-3.2-1B-GGUF:Q4_K_M --spec-type draft-simple" in command.text


@pytest.mark.parametrize(
    ("framework", "said"),
    [
        ("llama.cpp", "-np 1"),
        ("SGLang", "--max-running-requests 1"),
        ("TensorRT-LLM", "--max_batch_size 1"),
        ("TGI", "--max-batch-total-tokens 4096"),
        ("Ollama", "OLLAMA_NUM_PARALLEL=1"),
    ],
)
def test_a_server_is_told_one_sequence_too(framework: str, said: str) -> None:
    texts = [c.text for c in made(gpu="RTX 4090", model="llama-3.1-8b", framework=framework)]
    assert any(said in text for text in texts)


def test_vllm_is_told_its_sequences_where_they_are_stated() -> None:
    """It is sized with its own default where they are not."""
    base = {"gpu": "RTX 4090", "model": "llama-3.1-8b", "framework": "vLLM"}
    unsaid, one = ([c.text for c in made(**base, **more)] for more in ({}, {"batch": 1}))
    assert not any("--max-num-seqs" in text for text in unsaid)
    assert any("--max-num-seqs 1" in text for text in one)


@pytest.mark.parametrize(
    ("model", "precision", "cards", "whole"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8", "FP8", 8, True),
        ("Qwen/Qwen3-235B-A22B-FP8", "FP8", 4, False),
        ("qwen3-coder-480b-a35b-instruct", "FP8", 8, True),
        ("deepseek-ai/DeepSeek-V3", "FP8", 8, False),
        ("glm-4.5-air", "AWQ", 8, True),
        ("glm-4.5-air", "GPTQ", 4, True),
        ("glm-4.5-air", "AWQ", 1, False),
        ("qwen3-235b-a22b", "AWQ", 4, False),
        ("glm-4.5-air", "BF16", 8, False),
        ("glm-4.5-air", "FP8", 4, False),
        ("qwen3-coder-30b-a3b-instruct", "FP8", 4, True),
        ("qwen3-coder-30b-a3b-instruct", "FP8", 2, False),
    ],
)
def test_experts_stay_whole_where_a_shard_could_cut_a_block(
    model: str, precision: str, cards: int, *, whole: bool
) -> None:
    """SGLang 0.5.23 refuses a share that cuts one; vLLM 0.33 where the kernel takes no finer.

    TensorRT-LLM asserts that a share of FP8 experts is whole blocks.
    """
    base = {"gpu": "H100 SXM5 80 GB", "model": model, "gpus": cards, "precision": precision}
    sglang, vllm = (made(**base, framework=name)[0].text for name in ("SGLang", "vLLM"))
    assert (f"--ep-size {cards}" in sglang) is whole
    assert ("--enable-expert-parallel" in vllm) is whole
    assert made(**base, framework="vLLM")[0].whole_experts is whole
    if precision == "FP8" and "glm" not in model:
        trtllm = made(**base, framework="TensorRT-LLM")[0].text
        assert (f"--ep_size {cards}" in trtllm) is whole


def test_a_draft_is_named_in_the_format_that_it_is_sized_in() -> None:
    asked = {"gpu": "M3 Ultra:512GB", "framework": "MLX", "model": "qwen2.5-72b-instruct"}
    command = made(**asked, draft_model="qwen2.5-7b-instruct")[0]
    assert "--draft-model mlx-community/Qwen2.5-7B-Instruct-4bit" in command.text
