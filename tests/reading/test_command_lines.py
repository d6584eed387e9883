"""Pasted commands: programs, flags, quotes, variables, containers, files; and what is unknown."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.errors import RequestError, UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.programs import NAMED, flags_of, starts
from advisor.knowledge.types import Knowledge
from advisor.reading import is_read, read_model
from advisor.reading.command_lines import read_command
from advisor.reading.meanings import layers_in_ram, layers_of_share, not_sized, whole
from advisor.reading.pasted_request import Asked, asked_by, read_pasted
from advisor.scenario.settings import KEYS


@lru_cache(maxsize=1)
def known() -> Knowledge:
    return load_knowledge()


def asked(text: str) -> Asked:
    return asked_by(read_command(text), known())


@pytest.mark.parametrize(
    ("text", "settings", "cards"),
    [
        (
            "vllm serve Qwen/Qwen3-32B --tensor-parallel-size=2 --max_model_len 32k -q awq_marlin",
            {"context": 32_000, "split": "tensor", "precision": "AWQ 4-bit"},
            2,
        ),
        (
            ("python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B -pp 2 "
            "--max-model-len 8K --dtype half --max-num-seqs 4"),
            {"context": 8192, "split": "layer", "precision": "FP16", "batch": 4},
            2,
        ),
        (
            ("python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 "
            "--context-length 4096 --speculative-algorithm NEXTN --speculative-num-steps 2"),
            {"context": 4096, "split": "tensor", "mtp": 2},
            2,
        ),
        (
            "trtllm-serve Qwen/Qwen3-32B --max_seq_len 4096 --max-batch-size 8",
            {"context": 4096, "batch": 8},
            1,
        ),
        (
            ("text-generation-launcher --model-id Qwen/Qwen3-32B --quantize bitsandbytes-nf4 "
            "--max-total-tokens 4096 --max-batch-total-tokens 16384 --num-shard 2"),
            {"context": 4096, "batch": 4, "precision": "NF4", "split": "tensor"},
            2,
        ),
        (
            ("./build/bin/llama-server -m models/Qwen3-32B-Q4_K_M.gguf -c 8192 -np 2 -ngl 40 -fa "
            "-ctk q8_0 -ctv q8_0 -ub 1024 --no-kv-unified --swa-full -sm row -ts 3,1 --threads 8"),
            {
                "model": "Qwen3-32B", "precision": "Q4_K_M", "context": 4096, "batch": 2,
                "gpu_layers": 40, "flash_attention": True, "kv_cache_k": "q8_0",
                "kv_cache_v": "q8_0", "ubatch": 1024, "kv_unified": False, "swa_full": True,
                "split": "row",
            },
            2,
        ),
        (
            "llama-cli -hf unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M -c 4096 -ot '.ffn_.*_exps.=CPU'",
            {"model": "Qwen3-30B-A3B", "precision": "Q4_K_M", "cpu_experts": 48},
            None,
        ),
        (
            "llama-server -m Qwen3-30B-A3B-Q8_0.gguf -cmoe -ngl -1",
            {"cpu_experts": "all", "gpu_layers": "all"},
            None,
        ),
        ("llama-server -m Qwen3-32B-Q8_0.gguf -dev Vulkan0,Vulkan1", {"backend": "Vulkan"}, 2),
        ("llama-server -m Qwen3-32B-Q8_0.gguf -sm none", {}, 1),
        ("ollama run qwen3:32b --verbose", {"model": "qwen3:32b", "framework": "Ollama"}, None),
        (
            "mlx_lm.generate --model ./Qwen3-32B-MLX-4-bit --max-kv-size 4096 --prompt Hi",
            {"precision": "MLX 4-bit", "context": 4096},
            None,
        ),
        (
            ("python main.py --backend exllamav2 --model-name Qwen3-32B-EXL2-4.0-bpw "
            "--max-seq-len 4096 --cache-mode Q4 --tensor-parallel true"),
            {"framework": "ExLlamaV2", "kv_cache": "exl-q4", "split": "tensor"},
            None,
        ),
        ("lms load Qwen3-32B-Q4_K_M.gguf --gpu 0.5 -c 4096 -y", {"gpu_layers": 33}, None),
    ],
)  # fmt: skip
def test_flags_become_settings(text: str, settings: dict[str, object], cards: int | None) -> None:
    found = asked(text)
    assert {key: found.settings.get(key) for key in settings} == settings
    assert found.cards == cards
    assert set(found.settings) <= set(KEYS)


def test_every_spelling_that_turns_a_flag_of_vllm_off_is_read() -> None:
    for off in ("--disable-expert-parallel", "--no-enable-expert-parallel"):
        line = read_command(f"vllm serve Qwen/Qwen3-30B-A3B -tp 2 --enable-prefix-caching {off}")
        assert [item.value for item in line.items if item.words == (off,)] == ["off"]
        assert (
            asked_by(line, known()).settings
            == asked("vllm serve Qwen/Qwen3-30B-A3B -tp 2").settings
        )


def test_every_pattern_of_tensors_counts_and_cards_in_them_are_told() -> None:
    found = asked(
        "llama-server -m Qwen3-235B-A22B-Q4_K_M.gguf -ngl 99 -ot 'blk.[0-9].ffn=CUDA0' "
        "-ot 'blk.[1-4][0-9].ffn.*=CPU' -ot 'blk.[5-9][0-9].ffn.*=CPU'"
    )
    assert found.settings["cpu_experts"] == 94 - 10
    assert any("Which card holds which layers" in line for line in found.not_sized)


@pytest.mark.parametrize("flag", ["--n-cpu-moe 10", "--cpu-moe", "-ot exps=CPU"])
def test_a_dense_model_has_no_experts_to_move(flag: str) -> None:
    dense = asked(f"llama-server -m Qwen3-8B-Q4_K_M.gguf -ngl 99 {flag}")
    assert "cpu_experts" not in dense.settings
    assert any("has no experts" in line for line in dense.not_sized)
    mixture = asked(f"llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 99 {flag}")
    assert mixture.settings["cpu_experts"]


def test_flags_that_only_a_fork_has_tell_the_fork() -> None:
    plain, fork = (
        read_command(f"llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -c 4096 {more}").tool
        for more in ("--no-mmap", "-fmoe -rtr --no-mmap")
    )
    assert (plain, fork) == ("llama-server", "ik_llama.cpp")
    assert not read_command("llama-server -m Qwen3-8B-Q4_0.gguf -fmoe -mla 3 -amb 512").unknown


def test_a_llamafile_names_its_model_and_a_packers_folder_its_formats() -> None:
    own = asked("./TinyLlama-1.1B-Chat-v1.0.F32.llamafile -ngl 9999")
    assert is_read(known(), str(own.settings["model"]))
    packed = asked("mlx_lm.server --model /Users/a/.lmstudio/models/mlx-community/Kimi-K2.5-3bit")
    assert packed.settings["model"] == "mlx-community/Kimi-K2.5-3bit"


def test_a_config_file_that_a_line_wrote_says_flags() -> None:
    written = r"printf '%s\n' 'model: Qwen/Qwen3-8B' 'max-model-len: 16384' > c.yaml"
    text = f"{written}\nvllm serve --config c.yaml"
    found = asked(text)
    assert (found.settings["model"], found.settings["context"]) == ("Qwen/Qwen3-8B", 16384)


def test_a_program_takes_its_own_context_where_none_is_said() -> None:
    told = {
        "python -m llama_cpp.server --model Qwen3-8B-Q4_K_M.gguf": 2048,
        "koboldcpp --model Qwen3-8B-Q4_K_M.gguf": 4096,
        "lmdeploy serve api_server Qwen/Qwen3-8B": 40_960,
    }
    assert {text: asked(text).settings["context"] for text in told} == told


SAME = "vllm serve Qwen/Qwen3-32B --max-model-len 4096 --port 8000"


@pytest.mark.parametrize(
    "text",
    [
        SAME,
        "$ vllm serve Qwen/Qwen3-32B \\\n    --max-model-len 4096 \\\n    --port 8000\n",
        "vllm serve Qwen/Qwen3-32B `\r\n  --max-model-len 4096 `\r\n  --port 8000",
        "vllm serve Qwen/Qwen3-32B ^\r\n --max-model-len 4096 ^\r\n --port 8000",
        "# this\n```bash\nvllm serve 'Qwen/Qwen3-32B' --max-model-len=4096 --port \"8000\"\n```",
        "sudo nohup vllm serve Qwen/Qwen3-32B --max-model-len 4096 --port 8000 > log.txt 2>&1 &",
        "cd /srv && source venv/bin/activate && " + SAME,
        "HF_TOKEN=abc uv run " + SAME + " | tee log",
        (
            "docker run --gpus all -v ~/.cache:/root --env HF_TOKEN=a -p 8000:8000 --ipc=host "
            "vllm/vllm-openai:latest --model Qwen/Qwen3-32B --max-model-len 4096 --port 8000"
        ),
        "C:\\venv\\vllm.exe serve Qwen/Qwen3-32B --max-model-len 4096 --port 8000",
    ],
)
def test_the_same_command_in_any_dress(text: str) -> None:
    pasted = read_command(text)
    plain = read_command(SAME)
    assert pasted.said() == plain.said()
    assert not pasted.unknown
    assert pasted.without_effect == ["--port"]
    assert asked(text) == asked(SAME)


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 llama-server -m Qwen3-8B-Q8_0.gguf", 2),
        ("export CUDA_VISIBLE_DEVICES=3\nllama-server -m Qwen3-8B-Q8_0.gguf", 1),
        ('$env:CUDA_VISIBLE_DEVICES="0,1"\nllama-server -m Qwen3-8B-Q8_0.gguf', 2),
        ("set HIP_VISIBLE_DEVICES=0\r\nllama-server -m Qwen3-8B-Q8_0.gguf", 1),
        ("docker run --gpus '\"device=0,2\"' llama.cpp:server -m Qwen3-8B-Q8_0.gguf", 2),
        ("docker run --gpus 1 ghcr.io/ggml-org/llama.cpp:server-cuda -m Qwen3-8B-Q8_0.gguf", 1),
        ("text-generation-launcher --model-id Qwen/Qwen3-8B", None),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve Qwen/Qwen3-8B -tp 2", 2),
        ("CUDA_VISIBLE_DEVICES=0,1 vllm serve Qwen/Qwen3-8B", 1),
    ],
)
def test_cards_that_are_left_visible(text: str, cards: int | None) -> None:
    assert asked(text).cards == cards


def test_variables_of_programs_are_flags_too() -> None:
    llama = asked(
        "LLAMA_ARG_CTX_SIZE=8192 LLAMA_ARG_N_GPU_LAYERS=20 llama-server -m Qwen3-8B-Q8_0.gguf"
    )
    assert (llama.settings["context"], llama.settings["gpu_layers"]) == (8192, 20)
    tgi = asked("docker run -e MAX_TOTAL_TOKENS=4096 ghcr.io/huggingface/text-generation-inference "
                "--model-id Qwen/Qwen3-8B")  # fmt: skip
    assert tgi.settings["context"] == 4096


@pytest.mark.parametrize("runs", [" run qwen3:8b", "\ndocker exec -it ollama ollama run qwen3:8b"])
def test_a_folder_and_a_container_may_be_called_as_ollama(runs: str) -> None:
    line = (
        "docker run -d --gpus=all -v ollama:/root/.ollama -p 11434:11434 --name ollama"
        f" ollama/ollama{runs}"
    )
    assert not read_command(line).unknown
    assert asked(line).settings["model"] == "qwen3:8b"
    assert (asked(line).cards, asked(line.replace("all", "1")).cards) == (None, 1)


def test_ollama_with_its_variables_and_its_modelfile() -> None:
    served = asked(
        "OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1 OLLAMA_NUM_PARALLEL=2 ollama serve &\n"
        "ollama run Qwen3-8B"
    )
    assert served.settings["kv_cache"] == "q8_0"
    assert (served.settings["batch"], served.settings["flash_attention"]) == (2, True)
    vulkan = asked("OLLAMA_LLM_LIBRARY=vulkan ollama serve &\nollama run Qwen3-8B")
    assert vulkan.settings["backend"] == "Vulkan"
    own = (
        "FROM ./Qwen3-8B-Q4_K_M.gguf\nPARAMETER num_ctx 8192\nPARAMETER num_gpu 20\nSYSTEM Be kind"
    )
    file = asked(own)
    assert file.settings["precision"] == "Q4_K_M"
    assert (file.settings["context"], file.settings["gpu_layers"]) == (8192, 20)


@pytest.mark.parametrize(
    ("text", "flag", "near"),
    [
        ("vllm serve Qwen/Qwen3-8B --max-model-lenn 4", "--max-model-lenn", "--max-model-len"),
        ("vllm serve Qwen/Qwen3-8B --frobnicate 4 --port 1", "--frobnicate", None),
        ("llama-server -m Qwen3-8B-Q8_0.gguf --ctx-len 4096", "--ctx-len", "--ctx-size"),
        ("OLLAMA_KV_CACHE=f16 ollama run Qwen3-8B", "OLLAMA_KV_CACHE", "OLLAMA_KV_CACHE_TYPE"),
        ("sglang serve --model-path Qwen/Qwen3-8B --max-model-len 4096", "--max-model-len", None),
    ],
)  # fmt: skip
def test_an_unknown_flag_is_named_with_the_nearest(text: str, flag: str, near: str | None) -> None:
    unknown = read_command(text).unknown
    assert [one.name for one in unknown] == [flag]
    assert near is None or near in unknown[0].nearest


def test_a_value_that_the_program_does_not_take_is_named() -> None:
    wrong = read_command("llama-server -m Qwen3-8B-Q8_0.gguf -ctk fp8").wrong
    assert len(wrong) == 1
    assert wrong[0].startswith("-ctk takes f32, f16")


def test_what_changes_memory_without_a_figure_here_is_named() -> None:
    pasted = read_command("vllm serve Qwen/Qwen3-8B --enable-lora --cpu-offload-gb 4 --uds x")
    assert not_sized(pasted) == ["--enable-lora", "--cpu-offload-gb"]
    assert pasted.without_effect == ["--uds"]
    shares = asked("llama-server -m Qwen3-8B-Q8_0.gguf -ts 3,1")
    assert any("3,1" in note for note in shares.not_sized)
    kept = asked("llama-server -m Qwen3-30B-A3B-Q8_0.gguf -ot 'blk.1.attn_q=CPU'")
    assert any("-ot" in note for note in kept.not_sized)


def test_a_context_that_is_not_stated_is_the_programs_own() -> None:
    served = asked("vllm serve Qwen/Qwen3-8B")
    assert served.settings["context"] == known().models["Qwen3-8B"].trained_context_tokens
    assert served.own_context
    assert not served.fits_context
    assert asked("llama-server -m Qwen3-8B-Q8_0.gguf").fits_context
    assert not asked("llama-server -m Qwen3-8B-Q8_0.gguf -fit off").fits_context
    assert "context" not in asked("ollama run Qwen3-8B").settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo hello", "no program"),
        ("", "no program"),
        ("vllm serve --port 8000", "names no model"),
        ("vllm serve 'Qwen/Qwen3-8B", "quotation mark"),
        ("vllm serve Qwen/Qwen3-8B --max-model-len many", "not a whole number"),
        ("vllm serve Qwen/Qwen3-8B --speculative-config {broken", "not JSON"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        asked(text)


def test_patterns_of_tensors_and_shares_of_layers() -> None:
    assert layers_in_ram(r"blk\.(1[0-9])\.ffn_.*_exps\.=CPU", 48) == 10
    assert layers_in_ram(r"\.ffn_(up|down)_exps\.=CPU", 48) is None
    assert layers_in_ram(r"exps=CUDA1", 48) == 0
    assert layers_in_ram(r"exps=elsewhere", 48) is None
    assert layers_in_ram(r"blk\.[0-7]\.ffn=CUDA0,ffn.*=CPU", 48) == 40
    assert layers_in_ram(r"attn=CPU", 48) is None
    assert layers_in_ram(r"[broken=CPU", 48) is None
    assert all(layers_of_share(int(1000 * n / 33) / 1000, 32) == n for n in range(33))
    assert layers_of_share(1.0, 32) is None
    assert [whole(text) for text in ("4096", "4k", "4K", "1.5k", "32,768")] == [
        4096, 4000, 4096, 1500, 32768,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tool", "said"),
    [
        (
            "docker run ghcr.io/ggml-org/llama.cpp:full-cuda --server -m q.gguf -c 8192",
            "llama-server", ("q.gguf", "8192"),
        ),
        (
            "docker run ghcr.io/ggml-org/llama.cpp:full --run -m q.gguf -c 4096",
            "llama-cli", ("q.gguf", "4096"),
        ),
        (
            """curl http://localhost:11434/api/chat -d '{"model": "llama3.1:8b",
            "options": {"num_ctx": 32768}}'""",
            "ollama", ("llama3.1:8b", "32768"),
        ),
    ],
)  # fmt: skip
def test_images_of_several_programs_and_requests_are_read(
    text: str, tool: str, said: tuple[str, ...]
) -> None:
    found = read_command(text)
    assert found.tool == tool
    assert set(said) <= {*found.said().values()}


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("mistralrs-server -i plain -m mistralai/Mistral-7B-Instruct-v0.3", "mistral.rs"),
        (
            "python -m ktransformers.local_chat --model_path deepseek-ai/DeepSeek-V3",
            "KTransformers",
        ),
        ("python ktransformers/local_chat.py --gguf_path ./gguf", "KTransformers"),
    ],
)
def test_a_program_whose_flags_are_not_read_is_named(text: str, program: str) -> None:
    with pytest.raises(RequestError, match=f"starts {program}, whose flags are not read"):
        read_command(text)


def test_every_start_has_flags_and_every_flag_a_source() -> None:
    for start in (one for one in starts() if one.kind != NAMED):
        flags = flags_of(start.tool)
        assert flags, start
        assert all(flag.source for flag in flags.values())
        assert any(flag.sets in {"context", "tokens_all"} for flag in flags.values()) or (
            start.tool in {"mlx_lm.server", "whisper-server"}
        )


PASTED: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "pasted.yaml").read_text("utf-8")
)


@pytest.mark.parametrize("case", PASTED, ids=lambda case: str(case["pasted"]))
def test_what_threads_paste_is_read(case: dict[str, Any]) -> None:
    found = asked_by(read_pasted(case["text"]), known())
    assert read_model(known(), str(found.settings["model"])).model.name == case["model"]
    wanted = case.get("settings", {})
    assert {key: found.settings.get(key) for key in wanted} == wanted
    assert found.cards == case.get("cards", found.cards)


def test_a_path_is_no_other_model() -> None:
    """The words of a path count as those of any name: one over, and it is nothing known."""
    for folder in ("snowflake-arctic-nothing", "K9", "Qwen-1_9B", "phi-2-orange"):
        model = asked(f"vllm serve /models/{folder}").settings["model"]
        assert not is_read(known(), str(model)), folder


@pytest.mark.parametrize(
    "text", ["services:\n  a: [\n", "model: {model_name: }\n", "command:\n- 3\n", "[a]\nb = c\n"]
)
def test_files_that_start_nothing_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UserError):
        asked(text)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("llama-server -m gemma-3-27b-it-Q4_K_M.gguf", True),
        ("llama-server -m gemma-3-27b-it-Q4_K_M.gguf --mmproj mmproj-F16.gguf", False),
        ("llama-server -hf ggml-org/gemma-3-27b-it-GGUF:Q4_K_M", False),
        ("llama-server -hf ggml-org/gemma-3-27b-it-GGUF:Q4_K_M --no-mmproj", True),
        ("koboldcpp --model gemma-3-27b-it-Q4_K_M.gguf", True),
        ("koboldcpp --model gemma-3-27b-it-Q4_K_M.gguf --mmproj mmproj-F16.gguf", False),
        ("llama-server -m Qwen3-8B-Q8_0.gguf", False),
    ],
)
def test_the_part_that_reads_images_counts_where_it_is_loaded(text: str, *, alone: bool) -> None:
    found = asked(text)
    assert bool(found.settings.get("text_only")) is alone
    assert not any("--mmproj" in line for line in found.not_sized) or "-hf" not in text


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("Llama-3.3-70B-Instruct-exl2-4.5bpw", "ExLlamaV2"),
        ("Llama-3.3-70B-Instruct-exl3-4.0bpw", "ExLlamaV3"),
    ],
)
def test_tabbyapi_finds_its_back_end_by_the_files(name: str, framework: str) -> None:
    found = asked(f"python main.py --model-dir models --model-name {name}")
    assert found.framework == framework
    assert found.settings["context"] == 131_072
    assert ("c8b9a8f" in " ".join(found.not_sized)) == (framework == "ExLlamaV2")


def test_a_variable_that_a_program_does_not_know_stops_nothing() -> None:
    (unknown,) = read_pasted("OLLAMA_NEW_ENGINE=1 ollama run qwen3:8b").unknown
    assert unknown.ignored
    (unknown,) = read_pasted("vllm serve Qwen/Qwen3-8B --no-such-flag").unknown
    assert not unknown.ignored


@pytest.mark.parametrize(
    ("file", "model", "precision"),
    [
        ("DeepSeek-V3-0324-IQ2_K_R4.gguf", "DeepSeek-V3-0324", "IQ2"),
        ("Qwen3-14B-IQ4_XS_R8.gguf", "Qwen3-14B", "IQ4_XS"),
    ],
)
def test_files_whose_rows_a_fork_interleaved(file: str, model: str, precision: str) -> None:
    line = f"llama-server -m {file} -fmoe -c 4096"
    settings = asked_by(read_pasted(line), known()).settings
    read = read_model(known(), str(settings["model"]))
    assert read.model.name == model
    assert str(settings.get("precision", read.precision)).upper().startswith(precision)


UNIT = """[Unit]
Description=llama.cpp server

[Service]
User=llama
Environment="CUDA_VISIBLE_DEVICES=0" "LLAMA_ARG_CTX_SIZE=8192"
ExecStart=/opt/llama.cpp/build/bin/llama-server \\
  --model /srv/models/Qwen3-8B-Q8_0.gguf \\
  --n-gpu-layers 99 --cache-type-k q8_0
Restart=always
"""


@pytest.mark.parametrize(
    "text",
    [
        UNIT,
        (
            "ExecStart=/usr/bin/env CUDA_VISIBLE_DEVICES=0 llama-server -c 8192 -ngl 99 "
            "-ctk q8_0 -m Qwen3-8B-Q8_0.gguf"
        ),
    ],
)
def test_units_of_systemd_start_their_program_with_their_variables(text: str) -> None:
    found = asked(text)
    assert found.cards == 1
    assert found.settings["context"] == 8192
    assert found.settings["kv_cache_k"] == "q8_0"
    assert (found.settings["model"], found.settings["precision"]) == ("Qwen3-8B", "Q8_0")


def test_a_unit_that_only_sets_variables_of_ollama_is_ollamas() -> None:
    pasted = read_command('[Service]\nEnvironment="OLLAMA_KV_CACHE_TYPE=q8_0"\n')
    assert pasted.tool == "ollama"
    assert pasted.said()["kv"] == "q8_0"


def test_the_first_model_of_llama_swap_is_read_with_its_macros() -> None:
    text = """
macros:
  base-line: llama-server --port ${PORT} -ngl 99
models:
  coder:
    cmd: |
      ${base-line} -m /m/Qwen3-8B-Q8_0.gguf
      -c 8192 -ctk q8_0
    ttl: 300
"""
    found = asked(text)
    assert (found.settings["model"], found.settings["context"]) == ("Qwen3-8B", 8192)
    assert found.settings["kv_cache_k"] == "q8_0"


def test_what_is_typed_at_the_prompt_of_ollama_is_a_parameter() -> None:
    found = asked("ollama run qwen3:8b\n>>> /set parameter num_ctx 65536")
    assert found.settings["context"] == 65_536


def test_a_file_that_no_line_writes_is_said_not_to_be_sized() -> None:
    line = "trtllm-serve Qwen/Qwen3-8B --max_seq_len 4096 --extra_llm_api_options cfg.yml"
    assert not_sized(read_command(line)) == ["--extra_llm_api_options"]
    written = f"printf '%s\\n' 'dtype: fp8' > cfg.yml\n{line}"
    assert not_sized(read_command(written)) == []


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("python server.py --model Qwen3-14B-exl2-5.0bpw --loader exllamav2_hf", "ExLlamaV2"),
        ("python server.py --model Qwen3-14B-exl2-5.0bpw", "ExLlamaV2"),
        ("python server.py --model Qwen3-14B-exl3-4.0bpw", "ExLlamaV3"),
        ("python server.py --model Qwen3-8B-Q8_0.gguf --loader llamacpp", "llama.cpp"),
    ],
)
def test_the_loader_of_a_web_ui_in_every_spelling(text: str, framework: str) -> None:
    assert asked(text).framework == framework


def test_a_share_of_what_is_free_is_not_taken_for_one_of_the_card() -> None:
    pasted = read_command("lmdeploy serve api_server Qwen/Qwen3-8B --cache-max-entry-count 0.6")
    assert not_sized(pasted) == ["--cache-max-entry-count"]
    assert "gpu_memory_utilization" not in asked_by(pasted, known()).settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "llama-server -m Qwen3-8B-Q8_0.gguf -c 32k",
            ["-c takes a whole number: write 32000, not 32k."],
        ),
        ("llama-server -m Qwen3-8B-Q8_0.gguf -c 32768", []),
        ("vllm serve Qwen/Qwen3-8B --max-model-len 32k", []),
    ],
)
def test_a_number_that_only_some_parsers_read_is_told(text: str, told: list[str]) -> None:
    assert [note for note in asked(text).not_sized if "whole number" in note] == told
