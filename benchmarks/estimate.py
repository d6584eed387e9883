"""How many lines per second `advisor estimate` does on one core, and what memory it needs.

    python benchmarks/estimate.py              three files of 20,000 lines
    python benchmarks/estimate.py --lines N

Prints Markdown for docs/estimate.md. Processor seconds are those of the whole process, start-up
included; the best of three runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Line = Mapping[str, object]
FORMATS = ("FP16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "IQ4_XS", "AWQ", "FP8", "INT4")
RUNS = 3
CONTEXTS = (2048, 4096, 8192, 16384, 32768, 131072)
GPUS = ("RTX 4090", "RTX 3060 12GB", "RTX 4060 Ti:16GB", "H100 SXM", "RX 7900 XTX", "M3 Ultra:96GB")
MODELS = ("llama-3-8b", "phi-3-medium", "qwen2.5-32b", "mixtral-8x7b", "gemma-2-27b", "qwen3-8b")


def few_names(draw: random.Random) -> Line:
    """Six cards and six models: a plan for a fleet."""
    return _line(draw, GPUS, MODELS)


@cache
def _names() -> tuple[tuple[str, ...], tuple[str, ...]]:
    from advisor.knowledge import load_knowledge  # noqa: PLC0415  paired.py needs the names alone

    knowledge = load_knowledge()
    return tuple(knowledge.gpus), tuple(knowledge.models)


def many_names(draw: random.Random) -> Line:
    """Every card and every model of the knowledge base: nothing repeats for long."""
    return _line(draw, *_names())


def no_card(draw: random.Random) -> Line:
    """Sizes alone."""
    line = dict(_line(draw, GPUS, _names()[1]))
    del line["gpu"]
    return line


def _line(draw: random.Random, gpus: tuple[str, ...], models: tuple[str, ...]) -> Line:
    return {
        "id": draw.randrange(10**9),
        "gpu": draw.choice(gpus),
        "model": draw.choice(models),
        "precision": draw.choice(FORMATS),
        "context": draw.choice(CONTEXTS),
        "batch": draw.choice((1, 1, 1, 2, 4, 8)),
    }


def measure(make: Callable[[random.Random], Line], lines: int, folder: Path) -> str:
    """Run the command on a file and give one row of the table."""
    draw = random.Random(0)
    source, output = folder / f"{make.__name__}.jsonl", folder / "out.jsonl"
    source.write_text("".join(f"{json.dumps(make(draw))}\n" for _ in range(lines)))
    seconds = min(seconds_of(source, output) for _ in range(RUNS))
    with output.open() as text:
        refused = sum('"error":null' not in line for line in text)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    name = make.__name__.replace("_", " ")
    return f"| {name} | {lines:,} | {refused:,} | {lines / seconds:,.0f} | {peak:.0f} |"


def seconds_of(source: Path, output: Path) -> float:
    """Processor seconds of one run of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "advisor", "estimate", str(source), "-o", str(output)]
    subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000)
    lines: int = parser.parse_args().lines
    print(f"{platform.machine()}, Python {platform.python_version()}\n")
    print("| file | lines | refused | lines per processor second | peak MB so far |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for make in (few_names, many_names, no_card):
            print(measure(make, lines, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
