"""Every kind of bad input: one clear message, exit 1, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Outcome, advise, run

Capture = pytest.CaptureFixture[str]

AS_STATED = "--fail-unless-fits"


def refused(outcome: Outcome, *words: str) -> None:
    assert outcome.code == 1, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err, outcome.err


def test_unknown_gpu_names_the_nearest(capsys: Capture) -> None:
    refused(advise(capsys, gpu="RTX 4091"), "RTX 4091", "RTX 4090")


@pytest.mark.parametrize("gpu", ["3060", "A100"])
def test_an_ambiguous_gpu_is_taken_as_the_usual_one_and_said(capsys: Capture, gpu: str) -> None:
    told = advise(capsys, gpu=gpu)
    assert told.code == 0
    assert f"'{gpu}'" in told.out


def test_unknown_model_names_the_nearest(capsys: Capture) -> None:
    refused(advise(capsys, model="phi-3-medumm"), "phi-3-medumm", "phi-3-medium")


def test_unknown_precision_names_the_nearest(capsys: Capture) -> None:
    refused(advise(capsys, precision="Q4_K_X"), "Q4_K_X", "Q4_K_")
    refused(advise(capsys, precision="q9"), "'q9'", "Did you mean 'Q")


def test_unknown_framework_names_the_nearest(capsys: Capture) -> None:
    refused(advise(capsys, "--framework", "vlm"), "vlm", "vLLM")


def test_all_unknown_names_are_reported_at_once(capsys: Capture) -> None:
    outcome = advise(capsys, gpu="RTX 4091", model="phi-3-medumm", precision="Q4_K_X")
    refused(outcome, "RTX 4091", "phi-3-medumm", "Q4_K_X")
    assert len(outcome.err.splitlines()) == 3


def test_precision_the_framework_cannot_run(capsys: Capture) -> None:
    refused(
        advise(capsys, "--framework", "SGLang", AS_STATED, precision="Q4_K_M"),
        "SGLang",
        "Q4_K_M",
        "give --precision",
    )


def test_architecture_nothing_runs_in_this_format(capsys: Capture) -> None:
    refused(advise(capsys, AS_STATED, model="phi-3-small", precision="Q4_K_M"), "phi3small")


def test_format_the_card_cannot_run(capsys: Capture) -> None:
    refused(advise(capsys, AS_STATED, gpu="GTX 1080", precision="FP8"), "FP8", "compute capability")


@pytest.mark.parametrize("flag", ["--context", "--batch", "--gpus", "--ubatch", "--cpu-cores"])
@pytest.mark.parametrize("value", ["0", "-1", "999999999999"])
def test_zero_negative_and_huge_numbers(capsys: Capture, flag: str, value: str) -> None:
    refused(advise(capsys, flag, value), flag.removeprefix("--").replace("-", "_"), "Give at")


@pytest.mark.parametrize("flag", ["--context", "--batch", "--gpus"])
@pytest.mark.parametrize("value", ["many", "4.5", ""])
def test_values_that_are_no_whole_number(capsys: Capture, flag: str, value: str) -> None:
    refused(advise(capsys, flag, value), flag, "not a whole number")


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("--gpu-layers", "-1", "gpu_layers"),
        ("--gpu-layers", "some", "whole number or all"),
        ("--cpu-experts", "2", "no experts"),
        ("--flash-attention", "maybe", "on or off"),
        ("--ram", "lots", "memory size"),
        ("--ram", "0GB", "memory size"),
        ("--ram-bandwidth", "80 W", "80GB/s"),
        ("--kv-cache", "q3_0", "q3_0"),
        ("--kv-cache", "fp8_e5m2", "llama.cpp"),
        ("--backend", "CUDNN", "CUDA"),
        ("--depth", "9000", "depth"),
        ("--draft-model", "llama-3-b", "llama-3-b"),
        ("--prefer", "qualty", "Did you mean 'quality'?"),
        ("--use", "chatting", "Write interactive, batch, none."),
        ("--split", "diagonal", "Write layer, row, tensor, data, dp-attention."),
    ],
)
def test_values_that_make_no_sense(capsys: Capture, flag: str, value: str, says: str) -> None:
    refused(advise(capsys, flag, value, AS_STATED), says)


def test_quantised_v_cache_needs_flash_attention(capsys: Capture) -> None:
    refused(advise(capsys, "--kv-cache", "q8_0", "--flash-attention", "off"), "flash attention")


def test_missing_required_flag_is_wrong_usage(capsys: Capture) -> None:
    outcome = run(capsys, "advise", "--gpu", "RTX 4090")
    assert outcome.code == 2
    assert "--model" in outcome.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "config.json"),
        (b"", "empty"),
        (b'{"model_type": "llama", "hidden', "JSON"),
        (b"not json", "JSON"),
        (b"[1, 2]", "object"),
        (b'{"model_type": "no_such_thing", "hidden_size": 64}', "num_hidden_layers is missing"),
        (b"\xff\xfe\x00", "config.json"),
    ],
    ids=["missing", "empty", "truncated", "not JSON", "a list", "unknown architecture", "bytes"],
)
def test_broken_config_json(
    capsys: Capture, tmp_path: Path, content: bytes | None, says: str
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    outcome = advise(capsys, model=str(tmp_path), precision="FP16")
    refused(outcome, says)
    assert len(outcome.err.splitlines()) == 1


GOOD = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": -1},
        {"num_hidden_layers": 10**9},
        {"hidden_size": 0},
        {"hidden_size": "big"},
        {"vocab_size": 1e300},
        {"num_key_value_heads": 5},
    ],
    ids=str,
)
def test_absurd_sizes(capsys: Capture, tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**GOOD, **change}))
    refused(advise(capsys, model=str(tmp_path), precision="FP16"), "config.json")


def test_a_good_config_json_is_advised_on(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GOOD))
    outcome = advise(capsys, "--format", "json", model=str(tmp_path), precision="FP16")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["memory"]["weights_bytes"] > 13 * 2**30


@pytest.mark.parametrize("kind", ["rules", "templates", "knowledge"])
def test_a_folder_of_ones_own_must_exist(capsys: Capture, tmp_path: Path, kind: str) -> None:
    missing = tmp_path / "nowhere"
    refused(advise(capsys, f"--{kind}", str(missing)), "nowhere")


def test_a_broken_rule_is_refused_with_its_place(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("- rule: mine\n  why: no reason\n  whne: {}\n")
    refused(advise(capsys, "--rules", str(tmp_path)), "mine.yaml:3", "whne")


def test_a_broken_template_is_refused_with_its_place(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "actions").mkdir()
    (tmp_path / "actions" / "grow-batch.md.j2").write_text("One line.\n{{ nothing_of_the_kind }}\n")
    refused(advise(capsys, "--templates", str(tmp_path)), "grow-batch.md.j2", "nothing_of_the_kind")


def test_broken_knowledge_is_refused_with_its_place(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("- gpu: Mine\n  vram: 24 apples\n")
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "mine.yaml").write_text("- gpu: Mine\n  vram: 24 apples\n")
    refused(advise(capsys, "--knowledge", str(tmp_path)), "mine.yaml:2")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_rule_file_is_named(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("- rule: mine\n")
    file.chmod(0)
    refused(advise(capsys, "--rules", str(tmp_path)), "mine.yaml")


def test_output_that_cannot_be_written(capsys: Capture, tmp_path: Path) -> None:
    target = tmp_path / "no" / "report.txt"
    refused(advise(capsys, "--output", str(target)), str(target))
    assert not list(tmp_path.iterdir())


def test_words_are_read_in_any_case(capsys: Capture) -> None:
    assert advise(capsys, "--prefer", "Speed", "--use", "BATCH").out == (
        advise(capsys, "--prefer", "speed", "--use", "batch").out
    )


def test_wrong_words_and_other_wrong_flags_are_told_together(capsys: Capture) -> None:
    outcome = advise(capsys, "--prefer", "fast", "--use", "chat", "--ram", "lots")
    assert outcome.code == 1
    flags = {line.split()[1].strip(":") for line in outcome.err.splitlines()}
    assert flags == {"--ram", "--prefer", "--use"}


def test_wrong_flags_and_unknown_names_are_told_together(capsys: Capture) -> None:
    flags = ("--prefer", "fast", "--gpu-layers", "ten", "--context", "0")
    outcome = advise(capsys, *flags, gpu="RTX 4091", model="phi-3-medumm")
    refused(outcome, "--prefer", "--gpu-layers", "context is 0", "RTX 4091", "phi-3-medumm")
    assert len(outcome.err.splitlines()) == 5


@pytest.mark.parametrize("command", [("rules", "explain"), ("templates", "preview")])
def test_every_command_that_takes_a_request_tells_all(
    capsys: Capture, command: tuple[str, ...]
) -> None:
    asked = ("--gpu", "RTX 4091", "--model", "phi-3-medium", "--use", "chat")
    refused(run(capsys, *command, "quantize-to-fit", *asked), "RTX 4091", "--use")


def test_an_empty_name_for_the_output_is_refused(capsys: Capture) -> None:
    refused(advise(capsys, "--output", ""), "it is a folder", "Name a file")


def test_a_link_given_as_output_keeps_pointing_to_its_file(capsys: Capture, tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    assert advise(capsys, "--output", str(link)).code == 0
    assert link.is_symlink()
    assert "GeForce RTX 4090" in target.read_text()


def test_a_pipe_given_as_output_is_written_to(capsys: Capture, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert advise(capsys, "--output", str(pipe)).code == 0
        assert b"GeForce RTX 4090" in os.read(reader, 65_536)
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("asked", [["--version"], ["rules", "check", "--quick"]])
def test_a_full_standard_output_is_told_in_one_line(asked: list[str], unbuffered: str) -> None:
    given = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "advisor", *asked]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=given, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device, when reading or writing.\n"


def test_a_closed_standard_output_is_no_bug() -> None:
    command = f"exec {shlex.quote(sys.executable)} -m advisor --version >&-"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_format_that_there_is_not_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    seen = advise(capsys, "--format", "pdf")
    assert seen.code == 2
    assert "'pdf' is not one of 'text'" in seen.err


def test_a_flag_without_its_value_says_so(capsys: Capture) -> None:
    outcome = advise(capsys, "--eager", "--length", "short")
    assert outcome.code == 2
    assert "--eager lacks its value before --length" in outcome.err
    assert "Write --images" in advise(capsys, "--limit-mm-per-prompt", "image=2").err
