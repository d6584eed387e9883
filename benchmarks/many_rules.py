"""How long checking and advising take with thousands of rules.

    python benchmarks/many_rules.py                  5,000 rules
    python benchmarks/many_rules.py --rules 20000

Writes a folder of rules, each with a case that fires and one that is silent, and runs ``rules
check`` and ``check`` on it, then ``advise`` with it twice: the second finds the rules compiled.
Prints seconds by the clock and of processors, and the largest process. Remarks, recommendations and
vetoes take turns; thresholds and cards differ, so that no two rules ask the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CARDS = (
    "RTX 4090",
    "RTX 3060:12GB",
    "RTX 4070",
    "A100 PCIe 80 GB",
    "RX 7900 XTX",
    "L4",
    "RTX 4060",
)
MODELS = ("phi-3-medium", "llama-3-8b", "qwen2.5-32b", "mistral-7b", "gemma-2-27b")
SHAPES = (
    "  note: Remark {0} of the house.\n",
    "  recommend: {{action: quantize, score: {{base: {1}}}, text: quantize.md.j2}}\n",
    "  veto: House rule {0} says no.\n",
)
RULE = """\
- rule: house-{0}
  why: It is one of many.
  source: made up
  when:
    model.parameters: at least {1} B
    gpu.bandwidth: below {2} GB/s
{3}{4}  cases:
    - {{name: held, given: {{gpu: "{5}", model: {6}, precision: FP16}}, expect: fires}}
    - {{name: apart, given: {{gpu: "{7}", model: all-minilm-l6-v2}}, expect: silent}}
"""
OPTION = "    option.family: is quantize\n    option.quality_loss: at most {0} %\n"


def rules(count: int) -> Iterator[str]:
    """Give the rules one by one."""
    for number in range(count):
        shape = number % len(SHAPES)
        yield RULE.format(
            number,
            round(0.1 + number / count, 6),
            5000 + number,
            OPTION.format(50 + number / 1000) if shape else "",
            SHAPES[shape].format(number, 1 + number % 90),
            CARDS[number % len(CARDS)],
            MODELS[number % len(MODELS)],
            CARDS[(number + 1) % len(CARDS)],
        )


def measured(what: str, *command: str) -> None:
    began = time.perf_counter()
    running = subprocess.Popen(
        [sys.executable, "-m", "advisor", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert running.stdout
    said = running.stdout.read().decode()
    _, status, used = os.wait4(running.pid, 0)
    took = time.perf_counter() - began
    print(
        f"{what}: {took:.2f} s by the clock, {used.ru_utime + used.ru_stime:.2f} s of processors, "
        f"{used.ru_maxrss / 1024:.0f} MB, exit {os.waitstatus_to_exitcode(status)}, "
        f"last line: {said.strip().splitlines()[-1][:120]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rules", type=int, default=5000)
    parser.add_argument("--keep", type=Path, help="Write the rules here and run nothing.")
    asked = parser.parse_args()
    text = "".join(rules(asked.rules))
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
        (asked.keep / "many.yaml").write_text(text, encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as folder:
        held = Path(folder) / "rules"
        held.mkdir()
        (held / "many.yaml").write_text(text, encoding="utf-8")
        question = ("--gpu", "RTX 4090", "--model", "phi-3-medium", "--rules", str(held))
        measured("rules check --quick", "rules", "check", str(held), "--quick")
        measured("rules check", "rules", "check", str(held))
        measured("check", "check", folder)
        measured("advise, rules read", "advise", *question)
        measured("advise", "advise", *question)


if __name__ == "__main__":
    main()
