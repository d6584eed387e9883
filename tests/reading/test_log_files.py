"""Logs as they come: encodings, colours, endless pipes, binary files, several runs in one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from advisor.errors import RequestError
from advisor.knowledge.log_patterns import load_log_patterns
from advisor.reading import log_file
from advisor.reading.log_file import read_log
from advisor.reading.logs import Log, read_lines
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
LINE = "INFO [gpu_worker.py:460] Available KV cache memory: 3.81 GiB"
REFUSED = (
    "Loading model weights took 14.9888 GB\n"
    "ValueError: The model's max seq len (29000) is larger than the maximum number of tokens that"
    " can be stored in KV cache (23648).\n"
)
FLAGS = ("--gpu", "RTX 3090", "--model", "meta-llama/Llama-3.1-8B-Instruct")


def read(content: bytes | str) -> Log:
    given = content.encode() if isinstance(content, str) else content
    return read_lines(read_log(None, io.BytesIO(given)), load_log_patterns())


def clean(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize(
    "content",
    [
        LINE.encode("utf-16"),
        b"\xef\xbb\xbf" + LINE.encode(),
        f"\x1b[32m{LINE}\x1b[0m\r\n".encode(),
        f"loading 10%\rloading 99%\r{LINE}".encode(),
        f"{LINE[:30]}\x1b[1;31m{LINE[30:]}\x1b]0;title\x07".encode(),
        b"caf\xe9\n" + LINE.encode(),
    ],
    ids=["powershell", "mark", "colours", "progress", "inside", "latin"],
)
def test_a_log_is_read_however_it_was_saved(content: bytes) -> None:
    assert read(content).figure("cache_room") == pytest.approx(3.81 * 2**30)


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "is empty"), (b" \n\r\n", "is empty"), (bytes(range(256)) * 40, "not a text file")],
)
def test_what_is_no_log_is_told(content: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(content)
    with pytest.raises(RequestError, match=told):
        read_log(file, io.BytesIO())


@pytest.mark.parametrize("name", ["", "missing.log", "a\0b"])
def test_a_file_that_cannot_be_read_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot read"):
        read_log(tmp_path / name, io.BytesIO())


def test_of_a_very_long_file_begin_and_end_are_read(tmp_path: Path) -> None:
    file = tmp_path / "long.log"
    with file.open("wb") as out:
        out.write(b"Loading model weights took 14.9888 GB\n")
        out.seek(3 * 2**30)
        out.write(f"\n{LINE}\n".encode())
    with pytest.raises(RequestError, match="not a text file"):  # what lies between is zeros
        read_log(file, io.BytesIO())


def test_the_middle_that_is_left_out_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(log_file, "_BEGIN", 200)
    monkeypatch.setattr(log_file, "_END", 200)
    between = "nothing here\n" * 100
    text = f"Loading model weights took 14.9888 GB\n{between}{LINE}\n"
    file = tmp_path / "long.log"
    file.write_text(text)
    for found in (read_log(file, io.BytesIO()), read_log(None, io.BytesIO(text.encode()))):
        log = read_lines(found, load_log_patterns())
        assert log.figure("weights")
        assert log.figure("cache_room")
    assert read_log(file, io.BytesIO()).left_out_bytes == len(text) - 400


def test_a_pipe_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_MOST_PIPED", 4 * 2**20)
    endless = SimpleNamespace(read=lambda size: b"y\n" * (size // 2))
    with pytest.raises(RequestError, match="tail -n"):
        read_log(None, endless)  # type: ignore[arg-type]  # as far as it is read


def test_of_two_runs_the_last_one_counts() -> None:
    run_ = "ggml_cuda_init: found 1 CUDA devices:\nload_tensors: CUDA0 model buffer size = {} MiB\n"
    log = read(run_.format(100) + "llama_kv_cache_init() failed\n" + run_.format(200))
    assert log.figure("weights") == 200 * 2**20
    assert log.cause() is None


def test_buffers_of_one_device_are_added_up() -> None:
    lines = "load_tensors: CUDA0 model buffer size = 100 MiB\n" * 2
    assert read(lines).figure("weights") == 200 * 2**20


def test_a_name_that_means_another_size_is_not_taken() -> None:
    from advisor.knowledge import load_knowledge  # noqa: PLC0415
    from advisor.reading.log_request import settings_of  # noqa: PLC0415

    named = "print_info: general.name = Qwen3 32B\nprint_info: model params = {} B\n"
    knowledge = load_knowledge()
    assert settings_of(read(named.format("32.76")), knowledge).settings["model"] == "Qwen3-32B"
    assert settings_of(read(named.format("7.62")), knowledge).unknown["model"] == "Qwen3 32B"


# ---- the command


def diagnose(capsys: Capture, folder: Path, text: str, *flags: str) -> tuple[int, str, str]:
    file = folder / "a.log"
    file.write_text(text)
    found = run(capsys, "diagnose", str(file), *flags)
    return found.code, found.out, found.err


def test_what_is_missing_is_asked_for_after_what_was_read(capsys: Capture, tmp_path: Path) -> None:
    code, out, err = diagnose(capsys, tmp_path, REFUSED)
    assert code == 1
    assert "--gpu NAME" in err
    assert "--model NAME" in err
    assert "weights on the cards, each card  15.0 GiB" in out
    assert "line 2: ValueError" in out


def test_the_answer_has_the_cause_the_figures_the_command_and_the_remedies(
    capsys: Capture, tmp_path: Path
) -> None:
    code, out, err = diagnose(capsys, tmp_path, REFUSED, *FLAGS)
    assert (code, err) == (0, "")
    assert "does not hold one sequence of this context" in " ".join(out.split())
    assert "--max-model-len 23648" in out
    assert "What you could do" in out


def test_json_holds_the_reading_and_the_advice(capsys: Capture, tmp_path: Path) -> None:
    code, out, _ = diagnose(capsys, tmp_path, REFUSED, *FLAGS, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["schema_version"] == 1
    assert found["cause"]["cause"] == "cache-too-small"
    assert found["settings"]["context"] == 29000
    assert {row["figure"] for row in found["comparison"]} >= {"weights", "max_context"}
    assert found["advice"]["verdict"]["state"]


def test_markdown_keeps_what_strangers_wrote_from_being_markup(
    capsys: Capture, tmp_path: Path
) -> None:
    text = REFUSED.replace("ValueError", "<b>|`Value")
    _, out, _ = diagnose(capsys, tmp_path, text, *FLAGS, "--format", "markdown")
    assert out.startswith("# What the log says")
    assert "<b>" not in out.replace("\\<b", "")
    assert "| figure | log | computed | difference | line |" in out


def test_exit_codes_are_those_of_advise(capsys: Capture, tmp_path: Path) -> None:
    too_big = ("--gpu", "RTX 3060:12GB", *FLAGS[2:], "--fail-unless-fits")
    assert diagnose(capsys, tmp_path, REFUSED, *too_big)[0] == 3
    assert diagnose(capsys, tmp_path, "nothing\n", *FLAGS)[0] == 1
    assert diagnose(capsys, tmp_path, REFUSED, "--context", "many")[0] == 1


def test_a_log_without_a_known_line_is_told_in_one_line(capsys: Capture, tmp_path: Path) -> None:
    code, out, err = diagnose(capsys, tmp_path, "hello\nworld\n")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "2 lines read" in err
    assert "vLLM" in err


def test_a_flag_counts_before_the_log(capsys: Capture, tmp_path: Path) -> None:
    _, out, _ = diagnose(capsys, tmp_path, REFUSED, *FLAGS, "--context", "8192", "--format", "json")
    assert json.loads(out)["settings"]["context"] == 8192


def test_standard_input_is_read(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = SimpleNamespace(buffer=io.BytesIO(REFUSED.encode()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", pipe)
    assert "line 2: ValueError" in run(capsys, "diagnose").out


def test_nothing_of_a_stranger_reaches_the_terminal(capsys: Capture, tmp_path: Path) -> None:
    bad = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\x08"
    text = f"print_info: general.name = Qwen{bad}3\n{bad}CUDA error: out of memory{bad}\n"
    code, out, err = diagnose(capsys, tmp_path, text)
    assert code == 1
    assert clean(out)
    assert clean(err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  Device 0: NVIDIA GeForce RTX 9999, compute capability 8.6", "unknown GPU"),
        ("print_info: file type = IQ9_K - 9.5 bpw", "unknown weight format"),
    ],
)
def test_a_question_says_why_what_the_log_says_is_not_enough(
    line: str, told: str, capsys: Capture, tmp_path: Path
) -> None:
    assert (
        told
        in diagnose(capsys, tmp_path, f"{line}\nload_tensors: offloaded 9/9 layers to GPU\n")[2]
    )


@pytest.mark.parametrize(
    "line",
    [
        "ggml_metal_init: GPU name:   Apple M1 Pro",
        "ggml_metal_device_init: GPU name:   Apple M1 Pro",
        "ggml_metal_device_init: GPU name:   MTL0 (Apple M1 Pro)",
        "ggml_metal_init: found device: Apple M1 Pro",
    ],
)
def test_the_processor_of_a_mac_is_its_card(line: str) -> None:
    assert list(read(line).cards.values()) == ["Apple M1 Pro"]


def test_what_was_read_is_shown_where_the_request_is_refused(
    capsys: Capture, tmp_path: Path
) -> None:
    code, out, err = diagnose(capsys, tmp_path, REFUSED, *FLAGS, "--precision", "EXL3 4.0bpw")
    assert code == 1
    assert "weights on the cards, each card  15.0 GiB" in out
    assert "vLLM" in err


def test_remedies_hold_for_the_cache_that_the_log_measured(capsys: Capture, tmp_path: Path) -> None:
    text = REFUSED + "kv cache: Available KV cache memory: 2.89 GiB\n"
    found = json.loads(diagnose(capsys, tmp_path, text, *FLAGS, "--format", "json")[1])
    advice = found["advice"]
    longest = advice["memory"]["max_context_tokens"]
    assert found["settings"]["reserve_gib"] > 0
    assert longest == pytest.approx(23648, rel=0.02)
    assert advice["verdict"]["state"] != "fits"
    assert all(item["after"]["fits"] for item in advice["recommendations"])


def test_a_number_beyond_all_bounds_is_no_figure() -> None:
    assert read(f"Available KV cache memory: {'9' * 400} GiB\n{LINE}").figure("cache_room")
    assert read(f"Available KV cache memory: {'9' * 400} GiB").figure("cache_room") is None


def test_half_a_unit_is_none() -> None:
    text = 'msg="total memory" size="3 iB"\nmemory.available="[22 iB 3 GiB]"\n'
    assert read(text).figure("required") is None


def test_a_command_with_a_number_beyond_all_bounds_is_no_bug(
    capsys: Capture, tmp_path: Path
) -> None:
    text = f"vllm serve Qwen/Qwen3-32B --max-model-len {'9' * 400}\n{LINE}\n"
    assert diagnose(capsys, tmp_path, text)[0] == 1
