"""Generated requests, every document held to what the validator promises.

    python benchmarks/validity.py                 2,000 requests
    python benchmarks/validity.py --count 100000 --seed 7

Requests are drawn from the whole catalogue: cards alone, several and unequal, every model, format
and runtime, contexts, batches, memory and shares on the cards. Prints what does not hold, the
longest report of each length, and exits 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from advisor.advice.pipeline import Advisor
from advisor.report.prose import MOST_WORDS

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.generated import requests, wrong_with


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    advisor, longest, bad = Advisor.load(), Counter[str](), 0
    for _, given in zip(range(asked.count), requests(advisor.knowledge, asked.seed), strict=False):
        try:
            wrong = wrong_with(advisor, given, longest)
        except Exception as failed:  # noqa: BLE001  a crash is what is looked for
            wrong = [f"crash: {type(failed).__name__}: {failed}"]
        bad += bool(wrong)
        for line in wrong:
            print(f"{given}: {line}")
    print(f"{asked.count:,} requests, {longest['refused']:,} refused, {bad} documents do not hold")
    print(f"most words: {', '.join(f'{name} {longest[name]}' for name in MOST_WORDS)}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
