"""Damage files of every kind that the program reads, and count what ends as no mistake may.

    python benchmarks/fuzz.py                          1,000 damaged files
    python benchmarks/fuzz.py --count 20000 --seed 3   more, others
    python benchmarks/fuzz.py --kind gguf --kind plan  of these kinds alone
    python benchmarks/fuzz.py --minutes 30             as many as half an hour allows

A right file is damaged once to four times, bytes and words, and the command that reads it is run,
in one process that keeps what is built in (``kept.py``). Exit 0, 1 and 3 are answers. Any other,
an exception and more than 60 s of processor time are crashes: each is printed with its kind and
number, and ``--only NUMBER`` with the same seed and kinds writes the file again and runs it alone.
Exits 1 when there was one. POSIX only: an alarm ends what hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from unittest.mock import patch

from advisor.cli.main import OUR_BUG
from advisor.cli.main import main as advisor_main
from advisor.files import data_dir

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from kept import STARTER, keep_built_in

from tests.models import gguf_files, safetensors_files

ROOT = Path(__file__).resolve().parents[1]
LONGEST_S = 60
"""Of processor time: other work on the machine does not count."""
LONGEST_ASLEEP_S = 900
MOST_DAMAGES = 4
_ANSWERS = (None, 0, 1, 3)
_PROGRESS = 1_000
MEASURED = ROOT / "tests" / "data" / "measurements"
_WORDS = [
    b"9" * 400, b"-1", b"0", b"1e308", b"1e999", b"nan", b".inf", b"null", b"true", b"''", b"[]",
    b"{}", b"[" * 200, b"{" * 60, b"\xff\xfe", b"\x00", b"\x1b[31m", b"\xe2\x80\xae", b"\r", b"\t",
    b" " * 3_000, b"&a", b"*a", b"!!python/object:os.system", b"{{ 7 * 7 }}", b"{% for %}",
    b"{size:>99999999}", b"a/" * 2_000, b"../../..", b"(S)9999999999", b"99999999999 GiB", b"50 %",
    b"above", b"between 1 and", b": ", b"- ", b"'", b'"', b",", b"\xf0\x9f\x99\x82",
]  # fmt: skip
_ADVISE = ["advise", "--gpu", "RTX 4090"]
_KNOWN = ["--model", "phi-3-medium", "--precision", "fp16"]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice([1, 4, 40, 10**9]) :]


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) or 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _put(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_WORDS) + data[at:]


def _again(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at : at + rng.choice([8, 80, 800])] * rng.choice([2, 50]) + data[at:]


def _swap_word(data: bytes, rng: random.Random) -> bytes:
    words = data.split(b" ")
    words[rng.randrange(len(words))] = rng.choice([*_WORDS, *words[:200]])
    return b" ".join(words)


def _drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    rng.shuffle(lines) if rng.random() < 0.1 else None
    return b"\n".join(lines)


_DAMAGES = (_cut, _flip, _put, _again, _swap_word, _drop_line)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Damage a file's content once to four times."""
    for _ in range(rng.randint(1, MOST_DAMAGES)):
        data = rng.choice(_DAMAGES)(data, rng)[:200_000]
    return data


Runs = list[list[str]]
"""Command lines, each as its words."""
Kind = Callable[[Path, random.Random], Runs]


def _file(name: str, good: bytes, *command: str) -> Kind:
    """One file that a command is given; ``@`` stands for it."""

    def made(folder: Path, rng: random.Random) -> Runs:
        path = folder / name
        path.write_bytes(damaged(good, rng))
        return [[str(path) if word == "@" else word for word in command]]

    return made


def _own(kind: str, place: str, good: bytes) -> Kind:
    """A file in the user's own folder of rules, texts or knowledge."""

    def made(folder: Path, rng: random.Random) -> Runs:
        own = folder / kind
        shutil.copytree(STARTER / kind, own, dirs_exist_ok=True)
        (own / place).parent.mkdir(parents=True, exist_ok=True)
        (own / place).write_bytes(damaged(good, rng))
        return [[*_ADVISE, *_KNOWN, f"--{kind}", str(own)], [kind, "check", str(own)]]

    return made


def _stored(name: str, good: bytes) -> Kind:
    """A model file whose header is damaged and whose weights are a hole."""

    def made(folder: Path, rng: random.Random) -> Runs:
        path = folder / name
        safetensors_files.configure(folder)
        path.write_bytes(damaged(good, rng))
        with path.open("r+b") as file:
            file.truncate(max(2_000_000, len(good)))
        return [[*_ADVISE, "--model", str(path)]]

    return made


def _laid_over(folder: Path, rng: random.Random) -> Runs:
    """A copy of a built-in file of knowledge that lies in its place."""
    path = rng.choice(SINGLE_FILES)
    own = folder / "knowledge"
    own.mkdir()
    (own / path.name).write_bytes(damaged(path.read_bytes(), rng))
    return [[*_ADVISE, *_KNOWN, "--knowledge", str(own)], ["knowledge", "check", str(own)]]


def _config(folder: Path, rng: random.Random) -> Runs:
    good = json.dumps(rng.choice(CONFIGS), indent=1).encode()
    (folder / "config.json").write_bytes(damaged(good, rng))
    return [[*_ADVISE, "--precision", "q4_k_m", "--model", str(folder)]]


def _measurements(folder: Path, rng: random.Random) -> Runs:
    good = rng.choice([one for one in sorted(MEASURED.iterdir()) if one.suffix != ".md"])
    path = folder / good.name
    path.write_bytes(damaged(good.read_bytes(), rng))
    about = ["--gpu", "RTX 4090", "--model", "llama-3-8b", "--precision", "q4_k_m"]
    return [["measure", "add", str(path), "--dry-run", *about]]


CONFIGS: Sequence[object] = [
    safetensors_files.CONFIG,
    *json.loads(gzip.decompress((ROOT / "tests/data/configs.json.gz").read_bytes())).values(),
]
SINGLE_FILES = sorted(
    path for path in data_dir("knowledge").iterdir() if path.suffix in {".csv", ".yaml"}
)
_LINE = {"gpu": "RTX 4090", "model": "phi-3-medium", "precision": "fp16", "context": 4096}
_PLAN = b"""gpus: [RTX 4090, RTX 3060 12GB]
models: {include: [llama-3-8b, gemma-2-27b], exclude: [{family: Falcon}]}
formats: [FP16, Q4_K_M]
contexts: [4096, 32768]
with: {ram: 64 GB}
shard_size: 100
"""
_RULES = (STARTER / "rules/house.yaml").read_bytes()
_TEXT = "notes/example-card.md.j2"
_CSV = b"id,gpu,model,precision\n1,RTX 4090,phi-3-medium,fp16\n2,RTX 3090,llama-3-8b,q8_0\n"
_CARD = (STARTER / "knowledge/gpus/house.yaml").read_bytes()
_GGUF = (gguf_files.tiny_metadata(), gguf_files.tiny_tensors())
_SAFETENSORS = safetensors_files.raw(safetensors_files.described(safetensors_files.llama())[0])


def _built_in(kind: Literal["rules", "templates"], name: str) -> bytes:
    return (data_dir(kind) / name).read_bytes()


KINDS: dict[str, Kind] = {
    "rules": _own("rules", "house.yaml", _RULES),
    "built-in rules": _own("rules", "fit.yaml", _built_in("rules", "fit.yaml")),
    "templates": _own("templates", _TEXT, (STARTER / "templates" / _TEXT).read_bytes()),
    "report": _own("templates", "report/first.md.j2", _built_in("templates", "report/first.md.j2")),
    "words": _own("templates", "words.txt", _built_in("templates", "words.txt")),
    "knowledge": _own("knowledge", "gpus/house.yaml", _CARD),
    "built-in knowledge": _laid_over,
    "config": _config,
    "gguf": _stored("model.gguf", gguf_files.header(*_GGUF)[0]),
    "safetensors": _stored("model.safetensors", _SAFETENSORS),
    "plan": _file("plan.yaml", _PLAN, "batch", "@", "--out", "unused", "--dry-run"),
    "lines": _file("in.jsonl", b"\n".join([json.dumps(_LINE).encode()] * 3), "estimate", "@"),
    "table": _file("in.csv", _CSV, "estimate", "@"),
    "measurements": _measurements,
}


class TooLongError(BaseException):
    """The alarm of a run that hangs; no handler of the program takes it."""


def _alarm(*_: object) -> None:
    raise TooLongError


def run(words: Sequence[str]) -> str:
    """Run a command in this process; give why it is a crash, or nothing."""
    out, said = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    signal.alarm(LONGEST_ASLEEP_S)
    try:
        with (
            patch.object(sys, "argv", ["advisor", *words]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(said),
        ):
            advisor_main()
    except SystemExit as ended:
        told = said.getvalue() + out.getvalue()
        if ended.code == OUR_BUG or "bug in advisor" in told or "Traceback" in told:
            return next((line for line in told.splitlines() if "bug" in line), "Traceback")[:300]
        return "" if ended.code in _ANSWERS else f"exit {ended.code}: {told[:200]}"
    except TooLongError:
        return f"ran for more than {LONGEST_S} s"
    except BaseException as escaped:  # noqa: BLE001  it is what is looked for
        return f"escaped: {type(escaped).__name__}: {escaped}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return ""


def one(kind: str, name: str, folder: Path) -> list[str]:
    """Damage one file by its name and run what reads it; give the crashes."""
    runs = KINDS[kind](folder, random.Random(name))
    return [f"{words[0]} {words[1]}: {why}" for words in runs if (why := run(words))]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--only", type=int, metavar="NUMBER")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    asked = parser.parse_args()
    for kind_of_alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(kind_of_alarm, _alarm)
    keep_built_in()
    numbers = range(asked.count) if asked.only is None else [asked.only]
    return drill(asked.kind or list(KINDS), asked.seed, numbers, asked.minutes * 60)


def drill(kinds: Sequence[str], seed: int, numbers: Sequence[int], seconds: float) -> int:
    """Damage files of these kinds in turn until the time is over; 1 where one was a crash."""
    done, found, begun = Counter[str](), Counter[str](), time.monotonic()
    for number in numbers:
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory() as folder:
            crashes = one(kind, f"{seed} {number}", Path(folder))
        for crash in crashes:
            print(f"{kind} {number}: {crash}", flush=True)
        done[kind] += 1
        found[kind] += bool(crashes)
        took = time.monotonic() - begun
        if done.total() % _PROGRESS == 0:
            print(f"{done.total():,} files, {found.total()} crashes, {took:.0f} s", file=sys.stderr)
        if took > seconds:
            break
    print(
        f"{done.total():,} damaged files of {len(done)} kinds, {found.total()} crashes, "
        f"seed {seed}, {time.monotonic() - begun:.0f} s"
    )
    print(", ".join(f"{kind} {count:,}" for kind, count in done.items()))
    return int(found.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
