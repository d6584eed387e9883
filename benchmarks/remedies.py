"""What a sample of the catalogue gets as remedies, and whether each promise holds.

    python benchmarks/remedies.py --count 50000 --workers 2 --state remedies-state
    python benchmarks/remedies.py --count 1500
    python benchmarks/remedies.py --count 20000 --stated

Draws scenarios from every card, model, format and context, and counts what breaks a promise: a
scenario that does not fit and gets neither a fitting remedy nor a proof, a recommendation that
run again gives other figures or does not fit or does not turn the verdict, a barred option that is
recommended, a number of layers that trying them all would beat, an answer on which the two
engines differ. With ``--stated`` requests state what is seldom stated (split, layers, buffers, back
end), and every change is applied to them. Prints Markdown; exits 1 where a promise is broken.

The sample is cut into blocks of 250. With ``--state`` every finished block is kept as a file, so a
run that was stopped goes on where it was, with the same rules and knowledge; after a change of code
take another folder. The result does not depend on the number of workers.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TypedDict

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1]))

from advisor.advice import Advisor
from advisor.advice.conclusions import Conclusions
from advisor.advice.preparation import prepare
from advisor.errors import UserError
from tests.remedies.promises import broken, changes_that_differ, drawn, most_layers_differ, stated

BLOCK = 250
SHOWN = 20
LAYERS_EVERY, ENGINES_EVERY = 10, 20
"""Of every so many scenarios one is held against brute force, and one against the other engine."""


class Block(TypedDict):
    """What came of one block."""

    counts: dict[str, int]
    bad: list[str]
    seconds: float


def main() -> int:
    """Run what is not done yet, then print the sum of all blocks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    parser.add_argument("--state", type=Path, help="folder of finished blocks, to go on later")
    parser.add_argument("--stated", action="store_true", help="state what is seldom stated")
    asked = parser.parse_args()
    blocks = range(-(-asked.count // BLOCK))
    work = partial(_kept, asked.state, asked.seed, asked.count, asked.stated)
    if asked.workers > 1:
        with ProcessPoolExecutor(asked.workers) as pool:
            done = list(pool.map(work, blocks))
    else:
        done = [work(block) for block in blocks]
    return report(asked.count, asked.seed, done)


def _kept(state: Path | None, seed: int, count: int, seldom: bool, block: int) -> Block:  # noqa: FBT001
    """Give a finished block, or work it out and keep it."""
    size = min(BLOCK, count - block * BLOCK)
    made = _advisor().provenance()
    version = f"{made.rules_sha256[:8]}-{made.knowledge_sha256[:8]}"
    path = state / f"{seed}-{block:05}-{size}-{seldom:d}-{version}.json" if state else None
    if path and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    found = run_block(seed, block, size, seldom)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.rename(path)
    return found


def run_block(seed: int, block: int, size: int, seldom: bool) -> Block:  # noqa: FBT001
    """Draw, advise and check one block; the same every time."""
    advisor, rng = _advisor(), random.Random(f"{seed} {block}")
    counts: Counter[str] = Counter()
    bad: list[str] = []
    start = time.process_time()
    for number in range(size):
        request = (stated if seldom else drawn)(advisor, rng)
        try:
            ready = prepare(request, advisor.knowledge)
        except UserError:
            counts["refused"] += 1
            continue
        advice = advisor.advise_on(ready)
        counts.update(_counted(advice))
        problems = broken(advisor, advice)
        if seldom:
            counts["changes applied"] += len(ready.options)
            problems += changes_that_differ(request, advisor.knowledge)
        if number % LAYERS_EVERY == 0:
            counts["held against brute force over layers"] += 1
            problems += most_layers_differ(advisor, advice)
        if number % ENGINES_EVERY == 0:
            counts["held against the other engine"] += 1
            other = _oracle().advise_on(ready)
            problems += [] if other == _named_alike(advice, other) else ["the engines differ"]
        bad += [f"{problem}: {request.stated()}" for problem in problems]
    return {"counts": counts, "bad": bad, "seconds": time.process_time() - start}


@cache
def _advisor() -> Advisor:
    return Advisor.load()


@cache
def _oracle() -> Advisor:
    other = "reference" if _advisor().engine.name != "reference" else "durable"
    return Advisor.load(engine=other)


def _named_alike(advice: Conclusions, other: Conclusions) -> Conclusions:
    made = replace(advice.provenance, engine=other.provenance.engine)
    return replace(advice, provenance=made)


def _counted(advice: Conclusions) -> Iterator[str]:
    said = advice.recommendations
    yield advice.state
    if not said:
        yield f"without a recommendation: {advice.state}"
    if advice.state not in {"fits", "tight"}:
        yield "first remedy: " + (said[0].option.action if said else "none, proven")
    for item in said:
        yield "recommendations"
        if item.option.margin == "thin":
            yield "recommendations with a thin margin"


def report(count: int, seed: int, blocks: list[Block]) -> int:
    """Print the sum of all blocks; 1 where a promise is broken."""
    counts: Counter[str] = Counter()
    bad: list[str] = []
    seconds = 0.0
    for block in blocks:
        counts.update(block["counts"])
        bad += block["bad"]
        seconds += block["seconds"]
    print(f"{count:,} scenarios, seed {seed}, {seconds:.0f} s of processor time\n")
    print("| what | number |\n|---|---:|")
    for name, number in sorted(counts.items()):
        print(f"| {name} | {number:,} |")
    print(f"| broken promises | {len(bad):,} |")
    for problem in bad[:SHOWN]:
        print(f"\n{problem}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
