"""What a sample of the catalogue gets as remedies, and whether each promise holds.

    python benchmarks/remedies.py --count 50000 --seed 1

Draws scenarios from every card, model, format and context, and counts what breaks a promise: a
scenario that does not fit and gets neither a fitting remedy nor a proof, a recommendation that
run again gives other figures or does not fit, a barred option that is recommended. Prints
Markdown; exits 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from advisor.advice import Advice
from advisor.errors import UserError
from advisor.pipeline import Advisor
from tests.options.promises import broken, drawn

SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    advisor, rng = Advisor.load(), random.Random(asked.seed)
    counts: Counter[str] = Counter()
    bad: list[str] = []
    start = time.process_time()
    for _ in range(asked.count):
        request = drawn(advisor, rng)
        try:
            advice = advisor.advise(request)
        except UserError:
            counts["refused"] += 1
            continue
        counts[advice.state] += 1
        if advice.state not in {"fits", "tight"}:
            counts["first remedy: " + first(advice)] += 1
        bad += [f"{problem}: {request.stated()}" for problem in broken(advisor, advice)]
    seconds = time.process_time() - start
    print(f"{asked.count:,} scenarios, seed {asked.seed}, {seconds:.0f} s of processor time\n")
    print("| what | scenarios |\n|---|---:|")
    for name, number in sorted(counts.items()):
        print(f"| {name} | {number:,} |")
    print(f"| broken promises | {len(bad):,} |")
    for problem in bad[:SHOWN]:
        print(f"\n{problem}")
    return 1 if bad else 0


def first(advice: Advice) -> str:
    """Name the action that is recommended first."""
    said = advice.recommendations
    return said[0].option.action if said else "none, proven"


if __name__ == "__main__":
    sys.exit(main())
