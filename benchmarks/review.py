"""Reports for a reader with fresh eyes: 100 commands drawn with a fixed seed over a fixed spread.

    python benchmarks/review.py FOLDER                    100 reports, numbered
    python benchmarks/review.py FOLDER --seed 3 --count 20

Each file holds the command and what it printed. The protocol and the counts are in
docs/cases/review.md.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_SMALL = """
    qwen3-8b llama-3.1-8b-instruct gemma-3-12b-it gemma-3-4b-it mistral-7b-instruct-v0.3 phi-4
    qwen3-4b gpt-oss-20b qwen3-14b gemma-4-e4b-it qwen2.5-coder-7b-instruct deepseek-r1:8b
"""
_MIDDLE = """
    qwen3-32b gemma-3-27b-it qwen3-30b-a3b-instruct-2507 qwen3-coder-30b-a3b-instruct gpt-oss-20b
    mistral-small-3.2-24b-instruct-2506 qwen3.6-27b gemma-4-31b-it gemma-4-26b-a4b-it qwq-32b
    qwen3.6-35b-a3b deepseek-r1-distill-qwen-32b devstral-small-2507
"""
_LARGE = """
    llama-3.3-70b-instruct gpt-oss-120b glm-4.5-air qwen3-next-80b-a3b-instruct
    qwen2.5-72b-instruct qwen3-235b-a22b-instruct-2507 llama-4-scout-17b-16e-instruct
    mistral-large-instruct-2411 command-a-03-2025
"""
_HUGE = """
    deepseek-v3.2 kimi-k2-instruct qwen3-coder-480b-a35b-instruct glm-4.6 deepseek-r1 glm-5
    minimax-m2 llama-3.1-405b-instruct qwen3.5-397b-a17b
"""
_HOME = """RTX 3060 12GB|RTX 4060 Ti 16GB|RX 7800 XT|RTX 3080|RTX 5070 Ti|Arc B580|RTX 2080 Ti
    |RTX 4070 Laptop|RX 9070 XT|GTX 1080 Ti|RTX 5060 Ti 16GB|RTX 3050 8GB|P40"""
_WIDE = """RTX 3090|RTX 4090|RTX 5090|RX 7900 XTX|RTX 4080|RTX A6000|W7900|RTX 6000 Ada"""
_SHARED = """M4:16GB|M3 Pro:36GB|M4 Max:64GB|M2 Ultra:192GB|DGX Spark|Ryzen AI Max+ 395|M1 Max:32GB
    |M3 Ultra:512GB"""
_SEVERAL = """2x RTX 3090|4x RTX 3090|2x RTX 4090|2x RTX 5060 Ti 16GB|RTX 3090 + RTX 3060:12GB
    |2x RTX 5090|3x P40|2x RX 7900 XTX|4x RTX 4060 Ti 16GB|6x RTX 3090"""
_SERVERS = """4x L40S|8x H100 SXM|4x A100 SXM4 80GB|2x H100 PCIe|8x MI300X|2x A6000|8x B200|4x H200
    |4x RTX PRO 6000 Blackwell|8x A100 SXM4 40GB|8x L4|8x V100 SXM2 32GB"""
_SPREAD: tuple[tuple[int, str, str, dict[str, str]], ...] = (
    (26, _HOME, _SMALL + _MIDDLE, {
        "precision": "|||Q4_K_M|INT4|Q8_0|FP16", "context": "||8192|32768",
        "ram": "|16GB|32GB|64GB", "framework": "||||Ollama|vLLM"}),
    (18, _WIDE, _MIDDLE + _LARGE, {
        "precision": "|||Q4_K_M|INT4|FP8|AWQ", "context": "|16384|32768|131072",
        "ram": "|32GB|64GB|128GB", "framework": "||vLLM|SGLang|ExLlamaV3"}),
    (16, _SHARED, _MIDDLE + _LARGE, {
        "precision": "|||Q4_K_M|INT4|Q8_0", "context": "||32768|131072",
        "framework": "|||MLX|LM Studio"}),
    (20, _SEVERAL, _MIDDLE + _LARGE, {
        "precision": "|||INT4|AWQ|Q6_K", "context": "||32768|65536",
        "ram": "|64GB|128GB|256GB", "framework": "|||vLLM|SGLang", "batch": "|||8"}),
    (20, _SERVERS, _MIDDLE + _LARGE + _HUGE, {
        "precision": "|||FP8|INT4|BF16", "context": "|16384|32768|131072",
        "framework": "|vLLM|vLLM|SGLang|TensorRT-LLM", "batch": "|16|32|64|128"}),
)  # fmt: skip
"""(reports, cards, models, what else is said: one of these, or nothing)."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    drawn = commands(asked.seed)[: asked.count]
    with ThreadPoolExecutor(2) as pool:
        for number, text in enumerate(pool.map(report, drawn), start=1):
            (asked.folder / f"{number:03}.txt").write_text(text, encoding="utf-8")
    return 0


def commands(seed: int) -> list[list[str]]:
    """Give the 100 commands of a seed, strata mixed; each card and model as often as another."""
    rng = random.Random(seed)
    drawn = []
    for number, cards, models, others in _SPREAD:
        gpus = _shuffled(rng, [one.strip() for one in cards.split("|")])
        names = _shuffled(rng, models.split())
        for k in range(number):
            said = {"gpu": gpus[k % len(gpus)], "model": names[k % len(names)]}
            said |= {name: rng.choice(values.split("|")) for name, values in others.items()}
            drawn.append([text for name, one in said.items() if one for text in (f"--{name}", one)])
    return _shuffled(rng, drawn)


def report(options: list[str]) -> str:
    """Give a command and what it prints, errors included."""
    run = [sys.executable, "-m", "advisor", "advise", *options]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return f"$ {shlex.join(['advisor', 'advise', *options])}\n\n{done.stdout}{done.stderr}"


def _shuffled(rng: random.Random, given: list[T]) -> list[T]:
    return rng.sample(given, len(given))


if __name__ == "__main__":
    raise SystemExit(main())
