"""The option tables of the programs, as parsers: what each takes, with type and choices.

``knowledge/flags/flags.csv`` was dumped from the programs' own parsers or read from their
source; the SOURCE.md beside it says which.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TABLE = Path(__file__).parents[2] / "knowledge" / "flags" / "flags.csv"
_START = {
    "llama-server": ("llama-server",),
    "llama-cli": ("llama-cli",),
    "vllm serve": ("vllm", "serve"),
    "sglang serve": ("sglang", "serve"),
    "trtllm-serve": ("trtllm-serve",),
    "text-generation-launcher": ("text-generation-launcher",),
    "TabbyAPI": ("python", "main.py"),
    "mlx_lm.generate": ("mlx_lm.generate",),
    "mlx_lm.chat": ("mlx_lm.chat",),
    "mlx_lm.server": ("mlx_lm.server",),
    "lms load": ("lms", "load"),
    "whisper-server": ("build/bin/whisper-server",),
}
_OWN_LINES = ("printf", "ollama")
_LMS_WORDS = 4
"""``lms get`` and ``lms import``: one name and the leave to go on."""
_FETCH = "sh models/download-ggml-model.sh "
_PACK = "build/bin/whisper-quantize "
_VARIABLE = re.compile(r"[A-Z_]+=.*", re.DOTALL)
_VISIBLE = frozenset({
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
})  # fmt: skip
_SHARES = re.compile(r"[\d.]+(,[\d.]+)*")


@dataclass(frozen=True, slots=True)
class Option:
    """One option of one program."""

    names: tuple[str, ...]
    kind: str
    """flag, value, many, optional, positional, parameter or variable."""
    type: str
    choices: tuple[str, ...]


@lru_cache(maxsize=1)
def tables() -> dict[str, dict[str, Option]]:
    """Program -> option name -> option."""
    found: dict[str, dict[str, Option]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            choices = tuple(filter(None, row["choices"].split(";")))
            option = Option(tuple(row["names"].split(";")), row["kind"], row["type"], choices)
            for name in option.names:
                found.setdefault(row["tool"], {})[name] = option
    return found


def check(text: str) -> None:
    """Parse a command as a shell and the programs would.

    Raises:
        AssertionError: A line would be refused.
    """
    if "<<'EOF'" in text:
        _check_python(text)
        return
    for line in text.split("\n"):
        _check_line(line)


def _check_python(text: str) -> None:
    first, *body, last = text.split("\n")
    assert last == "EOF"
    words = _without_variables(shlex.split(first))
    assert words == ["python", "-", "<<EOF"], first
    ast.parse("\n".join(body))
    assert "EOF" not in body


def _check_line(line: str) -> None:
    words = _without_variables(shlex.split(line))
    if words[0] in _OWN_LINES:
        _check_ollama(words)
        return
    if words[:2] in (["lms", "get"], ["lms", "import"]):
        assert len(words) == _LMS_WORDS
        assert words[-1] == "--yes"
        return
    if line.startswith((_FETCH, _PACK)):
        assert len(words) == (3 if line.startswith(_FETCH) else 4)
        return
    found = [p for p, start in _START.items() if tuple(words[: len(start)]) == start]
    assert found, f"no start of a program is known for '{' '.join(words[:2])}': add it to _START"
    (program,) = found
    _check_options(program, words[len(_START[program]) :])


def _without_variables(words: list[str]) -> list[str]:
    known = tables()["ollama serve"]
    while words and _VARIABLE.fullmatch(words[0]):
        name, value = words.pop(0).split("=", 1)
        if name not in _VISIBLE:
            _check_value(known[name], value)
        else:
            assert _SHARES.fullmatch(value)
    return words


def _check_ollama(words: list[str]) -> None:
    if words[0] == "printf":
        assert words[1] == "%s\\n"
        assert words[-2] == ">"
        for line in words[2:-2]:
            _check_own_file_line(line, modelfile=words[-1] == "Modelfile")
        return
    assert words[1:] == ["serve", "&"] or words[1] in {"create", "run"}
    if words[1] == "create":
        assert words[3:] == ["-f", "Modelfile"]
    assert all(not word.startswith("-") for word in words[1:3])


def _check_own_file_line(line: str, *, modelfile: bool) -> None:
    if not modelfile:
        assert re.fullmatch(
            r"kv_cache_config:|  (dtype: fp8|free_gpu_memory_fraction: [\d.]+)", line
        )
    elif line.startswith("PARAMETER "):
        _, name, value = line.split(" ")
        _check_value(tables()["Modelfile"][name], value)
    else:
        assert re.fullmatch(r"FROM (\./.+|[\w./-]+:[\w.-]+)", line), line


def _check_options(program: str, words: list[str]) -> None:
    known, seen = tables()[program], set[tuple[str, ...]]()
    positionals = [o for o in known.values() if o.kind in {"positional", "optional"}]
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            assert positionals, f"{program}: {word} stands alone"
            positionals.pop(0)
            continue
        assert word in known, f"{program} has no option {word}"
        option = known[word]
        assert option.names not in seen, f"{program}: {word} stands twice"
        seen.add(option.names)
        if option.kind != "flag":
            assert rest, f"{program}: {word} has no value"
            _check_value(option, rest.pop(0))


def _check_value(option: Option, value: str) -> None:
    assert value, option.names
    assert not value.startswith("-"), (option.names, value)
    if option.choices:
        assert value in option.choices, (option.names, value)
    kind = option.type
    if "int" in kind:
        assert int(value) >= 0, (option.names, value)
    elif kind in {"float", "share"}:
        assert value == "max" or 0 <= float(value) <= 1, (option.names, value)
    elif kind == "multiple of 256":
        assert int(value) % 256 == 0
    elif kind == "cache mode":
        assert re.fullmatch(r"FP16|Q8|Q6|Q4|[2-8],[2-8]", value)
    elif kind == "json":
        assert isinstance(json.loads(value), dict)
