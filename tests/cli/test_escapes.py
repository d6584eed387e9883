"""What strangers wrote reaches no terminal as it is: messages, findings, reports and tables."""

# ruff: noqa: E501 - payloads stand side by side

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.bulk.reverse.documents import _cell
from advisor.errors import RequestError, Source, visible
from tests.cli.running import advise, run

Capture = pytest.CaptureFixture[str]
BAD = {
    "clears": "\x1b[2J", "window": "\x1b]0;x\x07", "colour": "\x1b[31m", "C1": "\x9b31m",
    "bell": "\x07", "back": "\x08\x08", "delete": "\x7f", "carriage": "\rok", "right to left": "\u202e",
    "isolate": "\u2066", "zero width": "\u200b", "byte order": "\ufeff", "line": "\u2028", "tag": "\U000e0041",
}  # fmt: skip
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008,
    "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "float16",
}  # fmt: skip


def configured(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")
    return folder


def clean(*texts: str) -> bool:
    return all(line.isprintable() for text in texts for line in text.split("\n"))


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_message_is_safe_wherever_the_text_stands_in_it(text: str) -> None:
    error = RequestError(f"a{text}b", source=Source(f"a{text}b"), hint=f"a{text}b")
    assert clean(str(error), error.message, error.hint, str(error.source))


def test_what_can_be_read_stays() -> None:
    for text in ("", "a  b", "line\nline", "\u30e2\u30c7\u30eb \u00fc \U0001f600", "C:\\x"):
        assert visible(text) == text


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "la{}ma", "architectures": ["X{}Y"]}, {"torch_dtype": "fl{}oat"},
        {"hidden_size": "4{}"}, {"quantization_config": {"quant_method": "a{}b", "bits": 4}},
        {"rope_scaling": {"type": "x{}"}}, {"layer_types": ["full{}attention"] * 32},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_a_config_reaches_no_terminal(
    tmp_path: Path, capsys: Capture, text: str, changes: dict[str, object]
) -> None:
    filled = json.loads(json.dumps(changes).replace("{}", json.dumps(text)[1:-1]))
    told = advise(capsys, model=str(configured(tmp_path / "m", **filled)), precision="FP16")
    assert clean(told.out, told.err)
    assert told.code in {0, 1}


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
@pytest.mark.parametrize(
    "name", [f"my{text}model" for text in BAD.values()] + ["=1+1", "<script>x", "a`b|c", "[x](y)"]
)
def test_a_folder_of_any_name_is_safe_in_every_report(
    tmp_path: Path, capsys: Capture, name: str, form: str
) -> None:
    told = advise(
        capsys, "--format", form, model=str(configured(tmp_path / name)), precision="FP16"
    )
    assert told.code == 0, told.err
    assert clean(told.out, told.err)
    assert form != "html" or "<script>x" not in told.out


@pytest.mark.parametrize(
    "args",
    [
        ["templates", "check", "{}"], ["rules", "check", "{}"], ["knowledge", "find", "{}"],
        ["knowledge", "check", "{}"], ["audit", "{}"], ["batch", "{}", "--out", "x"],
        ["estimate", "{}"], ["rules", "test", "{}"],
    ],
    ids=lambda args: " ".join(args[:2]),
)  # fmt: skip
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_messages_of_every_command_are_safe(
    capsys: Capture, args: Sequence[str], text: str
) -> None:
    told = run(capsys, *(arg.replace("{}", f"no{text}where") for arg in args))
    assert clean(told.err)
    assert told.code != 70


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "=cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(name: str) -> None:
    assert str(_cell(name)) == f"'{name}"


def test_figures_and_names_of_cells_stay() -> None:
    assert [_cell(one) for one in (-1.5, None, "RTX 4090", "a-b=c")] == [
        -1.5,
        None,
        "RTX 4090",
        "a-b=c",
    ]


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_wrong_usage_and_tracebacks_reach_no_terminal(
    tmp_path: Path, capsys: Capture, text: str
) -> None:
    folder = configured(tmp_path / "m", num_hidden_layers=f"la{text}ma")
    traced = run(capsys, "--debug", "advise", "--gpu", "RTX 4090", "--model", str(folder))
    usage = run(capsys, "advise", f"--gp{text}u", "x", "--length", f"sh{text}ort")
    assert "Traceback" in traced.err
    assert usage.code == 2
    assert clean(traced.err)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", usage.err)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("into", ["terminal", "file"])
def test_every_character_comes_through_whatever_the_console_can_show(
    encoding: str, into: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a file goes UTF-8, as everywhere; a terminal shows escapes for what it has not."""

    class Console(io.TextIOWrapper):
        def isatty(self) -> bool:
            return into == "terminal"

    raw = io.BytesIO()
    out = Console(raw, encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", out)
        assert run(capsys, "advise", "--gpu", "RTX 4090", "--model", "\u6a21\xe9").code == 1
    out.flush()
    name, said = "\u6a21\xe9", raw.getvalue()
    if into == "terminal":
        assert name.encode(encoding, "backslashreplace") in said
    else:
        assert name in said.decode()
