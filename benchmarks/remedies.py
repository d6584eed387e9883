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

from advisor.advice import Advice
from advisor.errors import UserError
from advisor.pipeline import Advisor
from advisor.resolve import apply_change
from advisor.scenario import Request

PRECISIONS = ("FP16", "INT8", "INT4", "Q4_K_M", "Q3_K_M", "Q8_0", "AWQ", "FP8", "NF4")
SHOWN = 10


def drawn(advisor: Advisor, rng: random.Random) -> Request:
    """Draw one request."""
    known = advisor.knowledge
    cards = [card.name for card in known.gpus.values() if card.vram_bytes]
    return Request(
        gpu=rng.choice(cards),
        model=rng.choice(list(known.models)),
        precision=rng.choice(PRECISIONS),
        context=rng.choice((None, None, 2048, 8192, 32768, 131_072)),
        batch=rng.choice((None, None, 4, 16)),
        gpus=rng.choice((None, None, None, 2)),
        kv_cache=rng.choice((None, None, None, "q8_0")),
        framework=rng.choice((None, None, None, "llama.cpp", "vLLM")),
        prefer=rng.choice((None, "quality", "speed", "cost")),
        use=rng.choice((None, None, "batch", "none")),
        ram_gib=rng.choice((None, 32.0, 128.0)),
        ram_bandwidth_gb_s=rng.choice((None, 80.0)),
    )


def broken(advisor: Advisor, advice: Advice) -> list[str]:
    """Name the promises that this advice breaks."""
    found = []
    fits = advice.state in {"fits", "tight"}
    proven = advice.facts.get("options.none_exists") is True
    if not fits and not proven and not advice.recommendations:
        found.append("no remedy and no proof")
    barred = {item.option.key for item in advice.not_recommended}
    for item in advice.recommendations:
        option = item.option
        again = advisor.estimate(apply_change(advice.request, dict(option.change)))
        if (again.memory, again.speed) != (option.memory, option.speed):
            found.append(f"run again it differs: {option.key}")
        if not option.fits or again.memory.deficit_bytes:
            found.append(f"does not fit: {option.key}")
        if option.key in barred:
            found.append(f"barred: {option.key}")
    return found


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
