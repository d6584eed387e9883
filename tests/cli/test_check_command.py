"""``advisor check-command``: does it start, what is unknown, and the command that starts."""

from __future__ import annotations

import io
import json
import sys

import pytest

from advisor.advice.command_check import Checked, check_command
from advisor.scenario.settings import Request
from tests.cli.running import run
from tests.commands.test_shown import advisor

Capture = pytest.CaptureFixture[str]
SERVE = "vllm serve Qwen/Qwen3-32B-AWQ --max-model-len 32768 --max-num-seqs 1 --port 8000"


def checked(text: str, gpu: str) -> Checked:
    return check_command(text, Request(gpu=gpu), advisor())


def test_a_command_that_starts_says_what_it_leaves(capsys: Capture) -> None:
    out = run(capsys, "check-command", "--gpu", "RTX 3090", "--", *SERVE.split(), "-tp", "2").out
    lines = out.splitlines()
    assert lines[0].startswith("Read as: vLLM (vllm serve, 0.33.0), Qwen3-32B")
    assert "in AWQ 4-bit, 2x" in lines[0]
    assert "It starts." in lines
    assert "Neither memory nor speed: --port." in lines
    assert "GiB" in out
    assert "free on the fullest" in out
    assert "A command that starts" not in out


def test_one_that_does_not_start_comes_with_one_that_does() -> None:
    found = checked(SERVE, "RTX 3090")
    assert found.starts == "no"
    assert found.corrected.startswith("vllm serve Qwen/Qwen3-32B-AWQ --max-model-len ")
    assert "--port 8000" in found.corrected
    assert checked(found.corrected, "RTX 3090").starts == "yes"


def test_the_home_folder_and_variables_of_the_line_stay_the_shell_s() -> None:
    container = (
        "docker run --gpus all -v ~/.cache/hf:/root/.cache/hf -v $(pwd):/w -e 'A=$(b) c' "
        "vllm/vllm-openai:latest --model Qwen/Qwen3-14B --max-model-len 16384"
    )
    corrected = checked(container, "RTX 4090").corrected
    assert """-v ~/.cache/hf:/root/.cache/hf -v "$(pwd):/w" -e 'A=$(b) c'""" in corrected
    file = "llama-server -m '~/my models/Qwen3-32B-Q8_0.gguf' -ngl 99 -c 8192 --api-key 'a$b'"
    corrected = checked(file, "RTX 4090 + RTX 3060:12GB").corrected
    assert "-m ~/'my models/Qwen3-32B-Q8_0.gguf'" in corrected
    assert "--api-key 'a$b'" in corrected


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        (SERVE, "RTX 4090"),
        ("llama-server -m Qwen3-32B-Q8_0.gguf -ngl 99 -c 32768 -t 8 --host 0.0.0.0", "RTX 4090"),
        ("llama-server -m Qwen3-30B-A3B-Q8_0.gguf -ngl 99 -c 8192", "RTX 3060 12GB"),
        (
            "sglang serve --model-path Qwen/Qwen3-32B --context-length 8192 --port 1",
            "A100 SXM4:80GB",
        ),
        ("CUDA_VISIBLE_DEVICES=0 docker run vllm/vllm-openai --model Qwen/Qwen3-14B", "RTX 3090"),
        ("FROM ./Qwen3-32B-Q8_0.gguf\nPARAMETER num_gpu 99\nPARAMETER num_ctx 8192", "RTX 3090"),
    ],
)
def test_the_corrected_command_starts_when_it_is_checked_again(text: str, gpu: str) -> None:
    found = checked(text, gpu)
    if found.starts == "yes":
        assert not found.corrected
        return
    assert found.corrected
    assert checked(found.corrected, gpu).starts in {"yes", "in part"}


def test_what_the_change_does_not_touch_stays_as_it_was_typed() -> None:
    text = "llama-server -m Qwen3-30B-A3B-Q8_0.gguf -ngl 99 -c 8192 -fa on --host 0.0.0.0"
    corrected = checked(text, "RTX 3060 12GB").corrected
    assert "-fa on" in corrected
    assert "--host 0.0.0.0" in corrected


def test_an_unknown_flag_is_refused_with_the_nearest_and_left_out(capsys: Capture) -> None:
    words = "vllm serve Qwen/Qwen3-8B --max-model-len 4096 --max-num-seq 2 --frobnicate --uds x"
    result = run(capsys, "check-command", "--gpu", "RTX 4090", "--", *words.split())
    said = " ".join(result.out.split())
    assert result.code == 0
    assert "It does not start: vllm serve refuses the line." in said
    assert "Not known to vLLM 0.33.0: --frobnicate." in said
    assert "The same as the program takes it: $ vllm serve Qwen/Qwen3-8B" in said


@pytest.mark.parametrize("flag", ["-fa", "--flash-attn"])
def test_the_switch_of_older_versions_gets_the_word_that_it_takes_now(flag: str) -> None:
    found = checked(f"llama-server -m Qwen3-8B-Q8_0.gguf -c 4096 {flag} --port 1", "RTX 3090")
    assert found.starts == "yes"
    assert found.pasted.earlier == [flag]
    assert f"{flag} on --port 1" in found.corrected
    assert checked(found.corrected, "RTX 3090").starts == "yes"


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("llama-server -m Qwen3-8B-Q8_0.gguf -c 4096 --no-mmap --mlock", ["--no-mmap", "--mlock"]),
        ("llama-cli -m Qwen3-8B-Q8_0.gguf -c 4096 -cnv -i --mlock", ["-cnv", "-i", "--mlock"]),
        (
            (
                "vllm serve Qwen/Qwen3-8B-AWQ --swap-space 4 --task generate --device cuda "
                "--max-model-len 4096"
            ),
            ["--swap-space", "--task", "--device"],
        ),
        (
            (
                "sglang serve --model-path Qwen/Qwen3-8B-FP8 --cuda-graph-max-bs 8 "
                "--context-length 4096"
            ),
            ["--cuda-graph-max-bs"],
        ),
    ],
)
def test_flags_of_earlier_versions_start_and_are_told(text: str, earlier: list[str]) -> None:
    """What a version before took is no reason to say that the command never started."""
    found = checked(text, "RTX 4090")
    assert found.starts == "yes"
    assert found.pasted.earlier == earlier
    assert not set(earlier) & {*found.corrected.split()}
    assert not checked(found.corrected, "RTX 4090").pasted.earlier


def test_a_flag_of_earlier_versions_is_said_with_the_line_that_the_newest_takes(
    capsys: Capture,
) -> None:
    words = "llama-server -m Qwen3-8B-Q8_0.gguf -c 4096 --mlock"
    said = " ".join(
        run(capsys, "check-command", "--gpu", "RTX 3090", "--", *words.split()).out.split()
    )
    assert "It starts. Earlier versions alone take it so: --mlock. llama.cpp" in said
    assert "The same as the program takes it: $ llama-server -m Qwen3-8B-Q8_0.gguf -c 4096 " in said


@pytest.mark.parametrize(("word", "used"), [("1", True), ("enabled", True), ("0", False)])
def test_flash_attention_takes_every_word_that_llama_cpp_takes_for_yes_and_no(
    word: str, *, used: bool
) -> None:
    found = checked(f"llama-server -m Qwen3-8B-Q8_0.gguf -c 4096 -fa {word}", "RTX 3090")
    assert not found.refused
    assert found.asked.settings["flash_attention"] is used


@pytest.mark.parametrize(
    ("text", "gpu", "how"),
    [
        ("llama-server -m Qwen3-8B-Q8_0.gguf", "RTX 3060 12GB", "lowered until it fits."),
        ("python -m llama_cpp.server --model Qwen3-8B-Q8_0.gguf", "RTX 3090", "its own default."),
        (
            "pipe = pipeline('text-generation', 'Qwen/Qwen3-8B')",
            "RTX 3090",
            "as advise takes them.",
        ),
    ],
)
def test_where_a_context_that_is_not_stated_comes_from(
    capsys: Capture, text: str, gpu: str, how: str
) -> None:
    said = " ".join(run(capsys, "check-command", "--gpu", gpu, "--", text).out.split())
    assert f"tokens are taken, {how}" in said


def test_a_server_that_cannot_hold_all_sequences_starts_and_says_how_many() -> None:
    text = SERVE.replace("--max-num-seqs 1", "--max-num-seqs 256")
    found = checked(f"{text} -tp 2", "2x RTX 3090")
    assert found.starts == "yes"
    assert 1 <= (found.sequences or 0) < 256


def test_programs_that_place_layers_or_shrink_the_context_themselves() -> None:
    placed = checked("ollama run Qwen3-32B", "RTX 3060 12GB")
    assert placed.starts == "in part"
    lowered = checked("llama-server -m Qwen3-8B-Q8_0.gguf", "RTX 3060 12GB")
    assert lowered.starts == "yes"
    assert 4096 <= lowered.advice.scenario.context_tokens < 40_960
    fixed = checked("llama-server -m Qwen3-8B-Q8_0.gguf -fit off", "RTX 3060 12GB")
    assert fixed.advice.scenario.context_tokens == 40_960
    assert fixed.starts == "no"


@pytest.mark.parametrize(
    ("gpu", "tokens"), [("RTX 3060 12GB", 4096), ("RTX 4090", 32768), ("2x RTX 3090", 32768)]
)
def test_ollama_takes_the_context_of_the_memory_and_says_it_once(gpu: str, tokens: int) -> None:
    found = checked("ollama run qwen2.5:32b", gpu)
    assert found.advice.scenario.context_tokens == tokens
    assert not [line for line in found.advice.warnings if "itself takes" in line]


def test_cards_of_the_command_and_of_the_flag_agree(capsys: Capture) -> None:
    assert checked(SERVE, "2x RTX 3090").advice.scenario.gpus == 1
    two = checked(f"{SERVE} -tp 2", "RTX 3090:24GB")
    assert two.advice.scenario.gpus == 2
    few = run(capsys, "check-command", "--gpu", "2x RTX 3090", "--", *SERVE.split(), "-tp", "4")
    assert few.code == 1
    assert "takes 4 cards" in few.err
    none = run(capsys, "check-command", "--gpu", "RTX 3090", f"CUDA_VISIBLE_DEVICES=-1 {SERVE}")
    assert none.code == 1
    assert "no card visible" in none.err


def test_standard_input_and_json(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SERVE.replace(" --max", " \\\n  --max")))
    args = ("check-command", "--gpu", "RTX 3090", "--format", "json", "--fail-unless-fits")
    result = run(capsys, *args)
    found = json.loads(result.out)
    assert result.code == 3
    assert found["command"]["starts"] == "no"
    assert found["command"]["settings"]["context"] == 32_768
    assert found["command"]["without_effect"] == ["--port"]
    assert found["command"]["corrected"].startswith("vllm serve")
    assert found["advice"]["memory"]["deficit_bytes"] > 0


def test_what_cannot_be_read_is_one_message(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("  \n"))
    for words, said in (
        (["--", "echo", "hi"], "no program that is known"),
        (["--", "vllm", "serve", "no/such-model-anywhere"], "unknown"),
        ([], "standard input is empty"),
    ):
        result = run(capsys, "check-command", "--gpu", "RTX 3090", *words)
        assert result.code == 1
        assert result.out == ""
        assert result.err.startswith("error: ")
        assert said in result.err


def test_the_machine_is_told_as_for_advise(capsys: Capture) -> None:
    line = ["--", "vllm", "serve", "Qwen/Qwen3-32B-AWQ", "--tensor-parallel-size", "2"]
    apart = run(capsys, "check-command", "--gpu", "RTX 3090", "--gpus", "2", "--ram", "64GB", *line)
    at_once = run(capsys, "check-command", "--gpu", "2x RTX 3090", "--ram", "64GB", *line)
    assert apart.code == at_once.code == 0
    assert apart.out == at_once.out
    wrong = run(capsys, "check-command", "--gpu", "RTX 3090", "--ram", "much", *line)
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)


def test_a_number_beyond_all_bounds_is_a_mistake(capsys: Capture) -> None:
    line = ["--", "llama-server", "-m", "llama-3-8b.gguf", "-c", "9" * 400]
    told = run(capsys, "check-command", "--gpu", "RTX 3090", *line)
    assert told.code == 1
    assert "is not a whole number" in told.err


@pytest.mark.parametrize(
    ("shares", "told"),
    [("", "filled alike, by the -ts"), ("-ts 1,1", "filled alike, by the -ts"),
     ("-ts 3,2", "The shares 3,2 are not sized")],
)  # fmt: skip
def test_how_cards_share_what_the_experts_leave_is_said(
    shares: str, told: str, capsys: Capture
) -> None:
    text = f"llama-server -m GLM-4.5-Air-Q4_K_M.gguf -c 4096 -ncmoe 30 {shares}"
    out = run(capsys, "check-command", "--gpu", "2x RTX 3090", "--ram", "128GB", "--", text).out
    assert told in " ".join(out.split())


def test_tensors_and_a_pipeline_together_are_sized_and_read_back(capsys: Capture) -> None:
    line = "vllm serve Qwen/Qwen3-32B -tp 2 -pp 3 --max-model-len 8192"
    out = run(capsys, "check-command", "--gpu", "6x RTX 3090", "--", line).out
    assert "It starts." in out
    assert "--tensor-parallel-size 2 \\\n    --pipeline-parallel-size 3" in out
    other = run(capsys, "check-command", "--gpu", "6x RTX 3090", "--", line.replace("2 -pp 3", "6"))
    assert "cannot divide the 64 attention heads" in other.out + other.err
