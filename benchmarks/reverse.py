"""How long the reverse questions take over the whole catalogue, in processor time.

    python benchmarks/reverse.py

Every question is a process of its own, loading included. Prints Markdown for docs/performance.md.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys

RUNS = 5
QUESTIONS = (
    ("models-for", "--gpu", "RTX 4090"),
    ("models-for", "--gpu", "RTX 3060 12GB", "--prefer", "balanced", "--limit", "all"),
    ("models-for", "--gpu", "RTX 4090", "--limit", "all", "--format", "json"),
    ("models-for", "--gpu", "RTX 3060 12GB", "--ram", "64GB", "--ram-bandwidth", "80GB/s"),
    ("models-for", "--gpu", "B200", "--gpus", "8", "--min-speed", "5000"),
    ("models-for", "--gpu", "RTX 4090", "--all-formats"),
    ("gpus-for", "--model", "llama-3-70b", "--gpus", "8", "--limit", "all"),
    ("gpus-for", "--model", "deepseek-v3", "--gpus", "8", "--prefer", "quality"),
    ("gpus-for", "--model", "qwen3-8b", "--min-speed", "100", "--limit", "all", "--format", "json"),
)


def seconds(question: tuple[str, ...]) -> float:
    """Processor seconds of one whole process."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "advisor", *question],
        check=True, stdout=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n")
    print("| question | processor time, median | worst |\n|---|---:|---:|")
    seconds(QUESTIONS[0])
    for question in QUESTIONS:
        measured = [seconds(question) for _ in range(RUNS)]
        text = " ".join(f'"{word}"' if " " in word else word for word in question)
        median, worst = statistics.median(measured), max(measured)
        print(f"| `{text}` | {median:.2f} s | {worst:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
