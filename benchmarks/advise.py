"""How fast `advisor advise` starts and how fast advice is in one process.

    python benchmarks/advise.py            cold start, advice per second
    python benchmarks/advise.py --long N   memory over N scenarios as well, drawn at random

Prints Markdown for docs/performance.md. Garbage is collected as in a worker of a batch.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from advisor.advice import Advisor
from advisor.bulk.batch.worker import collect_rarely
from advisor.errors import UserError
from advisor.report.assembly import document
from advisor.report.pages import render_markdown
from advisor.scenario.settings import Request

COMMAND = [
    sys.executable, "-m", "advisor", "advise",
    "--gpu", "RTX 4090", "--model", "phi-3-medium", "--precision", "fp16",
]  # fmt: skip
RUNS = 10
FORMATS = ("FP16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M")
REFERENCE = (
    Request(gpu="RTX 4090", model="phi-3-medium", precision="fp16"),
    Request(gpu="RTX 4090", model="phi-3-small", precision="int8"),
    Request(gpu="RTX 4090", model="llava-1.6-13b", precision="fp16"),
    Request(gpu="RTX 4000 Ada", model="llava-1.6-13b", precision="fp16"),
    Request(gpu="RTX 4090", model="gemma-2-27b", precision="q3_k_m", context=8192),
)


def cold_start() -> tuple[float, float, float]:
    """Median and best wall seconds of the whole process, and its peak memory in MB."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    seconds = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(COMMAND, check=True, stdout=subprocess.DEVNULL, env=environment)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return statistics.median(seconds[1:]), min(seconds[1:]), peak


def per_second(
    advisor: Advisor,
    requests: Sequence[Request],
    answer: Callable[[Advisor, Request], None],
    seconds: float = 1.0,
    windows: int = 10,
) -> tuple[float, float]:
    """Answers per processor second: median and best window.

    A tenth of the requests goes before, so that loading does not count.
    """
    endless = itertools.cycle(requests)
    for request in itertools.islice(endless, max(len(requests) // 10, 5)):
        answer(advisor, request)
    rates = []
    for _ in range(windows):
        done, start = 0, time.process_time()
        while time.process_time() - start < seconds:
            answer(advisor, next(endless))
            done += 1
        rates.append(done / (time.process_time() - start))
    return statistics.median(rates), max(rates)


def _advise(advisor: Advisor, request: Request) -> None:
    with contextlib.suppress(UserError):
        advisor.advise(request)


def _report(advisor: Advisor, request: Request) -> None:
    """Advice with its whole text, as a Markdown report."""
    with contextlib.suppress(UserError):
        render_markdown(document(advisor.advise(request)))


def catalogue(advisor: Advisor) -> Sequence[Request]:
    """Twelve cards with thirty models in six formats, in the order a batch goes through them."""
    rng = random.Random(4)
    cards = [card.name for card in advisor.knowledge.gpus.values() if card.vram_bytes]
    some, models = rng.sample(cards, 12), rng.sample(list(advisor.knowledge.models), 30)
    return [Request(gpu=g, model=m, precision=p) for m in models for g in some for p in FORMATS]


def steadiness() -> tuple[float, float]:
    """Seconds of the same plain loop, fastest and slowest of 20: how steady the machine is."""
    times = []
    for _ in range(20):
        start, total = time.perf_counter(), 0
        for number in range(1_000_000):
            total += number * number
        times.append(time.perf_counter() - start)
    return min(times), max(times)


def drawn(advisor: Advisor) -> Iterator[Request]:
    """Requests drawn at random from every card of known size and every model, without end."""
    rng = random.Random(1)
    cards = [card.name for card in advisor.knowledge.gpus.values() if card.vram_bytes]
    models = list(advisor.knowledge.models)
    while True:
        yield Request(
            gpu=rng.choice(cards),
            model=rng.choice(models),
            precision=rng.choice(("FP16", "INT8", "INT4", "Q4_K_M")),
            context=rng.choice((None, 8192, 32768)),
        )


def memory_over(advisor: Advisor, count: int) -> Iterator[tuple[int, float]]:
    """Resident memory in MB at ten points on the way through ``count`` scenarios."""
    for number, request in enumerate(itertools.islice(drawn(advisor), count), start=1):
        _advise(advisor, request)
        if number % max(count // 10, 1) == 0:
            yield number, resident_mb()


def resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", type=int, default=0, metavar="N")
    long = parser.parse_args().long
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}\n")
    print("| what | measured |\n|---|---:|")
    seconds, quickest, peak = cold_start()
    print(f"| cold start, median of {RUNS} (best) | {seconds:.2f} s ({quickest:.2f} s) |")
    print(f"| peak memory of the process | {peak:.0f} MB |")
    collect_rarely()
    for engine in ("durable", "reference"):
        try:
            advisor = Advisor.load(engine=engine)
        except UserError:
            continue
        mixes = {
            "five reference requests in turn": REFERENCE,
            "a catalogue in order": catalogue(advisor),
            "drawn at random": list(itertools.islice(drawn(advisor), 4_000)),
        }
        name = advisor.engine.name
        for what, requests in mixes.items():
            median, best = per_second(advisor, requests, _advise)
            print(f"| advice per processor second, {name}, {what} | {median:.0f} ({best:.0f}) |")
            median, best = per_second(advisor, requests, _report)
            print(f"| the same with its text | {median:.0f} ({best:.0f}) |", flush=True)
    fast, slow = steadiness()
    print(f"| the same plain loop, fastest to slowest | {fast:.3f} to {slow:.3f} s |", flush=True)
    if long:
        advisor = Advisor.load()
        for number, size in memory_over(advisor, long):
            print(f"| resident memory after {number:,} scenarios | {size:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
