"""What a start and `estimate` cost beside another commit: processor time and peak memory.

    python benchmarks/paired.py 826c8cc0             this checkout in turn with that commit
    python benchmarks/paired.py 826c8cc0 --runs 25   more pairs

A start is `advise` of a plain, known name; `estimate` sizes 20,000 lines over six cards and models.
Each process runs once for either code, in turn, after two that do not count; both are compiled and
have a cache folder each. Processor time is that of user and system; beside other work the median
of what pairs differ by is the steadier figure. Nothing large is done in this process: a new one
counts the memory of that which it is forked from. Prints Markdown for docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from estimate import GPUS, MODELS

START = ("advise", "--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "fp16")
FORMATS = ("FP16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "IQ4_XS")
LINES = 20_000
ROOT = Path(__file__).resolve().parents[1]


class Cost(NamedTuple):
    """What one process took."""

    seconds: float
    megabytes: float


def cost(tree: Path, words: Sequence[str]) -> Cost:
    """Run a command of the code in a folder."""
    kept = tree.parent / f"cache-{tree.name}"
    environment = {**os.environ, "PYTHONPATH": str(tree), "ADVISOR_CACHE_DIR": str(kept)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "advisor", *words]
    run = subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SystemExit(f"{tree.name}: {' '.join(words)} ended with {run.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def lines() -> str:
    """Requests over six cards and models, the same each time."""
    draw = random.Random(5)
    drawn = (
        {
            "gpu": draw.choice(GPUS),
            "model": draw.choice(MODELS),
            "precision": draw.choice(FORMATS),
            "context": draw.choice((2048, 4096, 8192, 16384, 32768)),
        }
        for _ in range(LINES)
    )
    return "".join(f"{json.dumps(line)}\n" for line in drawn)


def rows(what: str, found: Mapping[str, Sequence[Cost]]) -> str:
    """Set both codes beside each other: medians, and the median of what each pair differs by."""
    before, now = found.values()
    paired = median(b.seconds / a.seconds for a, b in zip(before, now, strict=True))
    old, new = (median(one.seconds for one in costs) for costs in (before, now))
    held, holds = (median(one.megabytes for one in costs) for costs in (before, now))
    return (
        f"| {what}, processor time | {old:.3f} s | {new:.3f} s | {new / old - 1:+.1%} "
        f"({paired - 1:+.1%} in pairs) |\n"
        f"| {what}, peak memory | {held:.1f} MB | {holds:.1f} MB | {holds / held - 1:+.1%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--runs", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        trees = [Path(scratch, "before"), Path(scratch, "now")]
        _run("git", "clone", "-q", "--shared", "--no-checkout", str(ROOT), str(trees[0]))
        _run("git", "-C", str(trees[0]), "checkout", "-q", asked.commit)
        trees[1].symlink_to(ROOT)
        for tree in trees:
            _run(sys.executable, "-m", "compileall", "-q", str(tree / "advisor"))
        file = Path(scratch, "lines.jsonl")
        file.write_text(lines())
        print(f"{platform.machine()}, Python {platform.python_version()}, {asked.runs} pairs\n")
        print(f"| what | {asked.commit} | now | |\n|---|---:|---:|---:|")
        for what, words in (("a start", START), (f"{LINES:,} lines", ("estimate", str(file)))):
            found: dict[str, list[Cost]] = {tree.name: [] for tree in trees}
            for run in range(asked.runs + 2):
                for tree in trees:
                    one = cost(tree, words)
                    found[tree.name] += [one] if run > 1 else []
            print(rows(what, found), flush=True)


if __name__ == "__main__":
    main()
