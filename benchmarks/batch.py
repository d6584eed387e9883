"""How fast `advisor batch` writes full reports, what they weigh, and how it scales.

    python benchmarks/batch.py                     cost of a report; 1 and 2 processes
    python benchmarks/batch.py --dask              the same on a local Dask cluster of 2 workers
    python benchmarks/batch.py --scenarios 100000  a long run: memory of each process over time
    python benchmarks/batch.py --scenarios 20000 --workers 1 2  how a longer run scales

A full report is a verdict, every what-if re-estimated, all rules, prose, Markdown and JSON.
Processor seconds are counted beside the wall clock, because they do not depend on what else the
machine does. Prints Markdown for docs/batch.md. Linux only: memory is read from /proc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from advisor.advice import Advisor
from advisor.bulk.batch.formats import Namer
from advisor.bulk.batch.plan import shard_count
from advisor.bulk.batch.product import Product, load_plan
from advisor.bulk.batch.shard import Making, make_shard
from advisor.report import render_json
from advisor.report.assembly import document
from advisor.report.pages import render_html, render_markdown
from advisor.scenario.settings import request_from

ROOT = Path(__file__).resolve().parent.parent
PLAN = "gpus: popular\nmodels: {models}\nformats: popular\ncontexts: popular\n"
SHORT = "[llama-3-8b, gemma-2-27b, phi-4, qwen3-8b, mistral-7b, llama-3.1-70b]"
LONG = "popular"
LOOK_S = 1.0


@dataclass(slots=True)
class Run:
    """One run of the command line."""

    wall_s: float
    cpu_s: float
    summary: dict[str, object]
    peaks_mb: list[tuple[float, float]] = field(default_factory=list)
    """Share of the scenarios done, and the largest process then."""


def stages(advisor: Advisor, plan: Path, count: int) -> Iterator[tuple[str, float]]:
    """Milliseconds of processor time of each stage, over neighbouring scenarios."""
    read = load_plan(plan, advisor.knowledge)
    items = [item for shard in read.shards([0, 1, 2]) for item in shard.items][: 2 * count]
    spent = dict.fromkeys(("advice", "document", "Markdown", "HTML", "JSON"), 0.0)
    for number, item in enumerate(items):
        begin = time.process_time()
        advice = advisor.advise(request_from(item.request))
        marks = [begin, time.process_time()]
        doc = document(advice)
        marks.append(time.process_time())
        for render in (render_markdown, render_html):
            render(doc)
            marks.append(time.process_time())
        render_json(doc, indent=None)
        marks.append(time.process_time())
        if number >= len(items) // 2:
            for name, first, last in zip(spent, marks, marks[1:], strict=False):
                spent[name] += last - first
    done = len(items) - len(items) // 2
    yield from ((name, 1000 * seconds / done) for name, seconds in spent.items())


def shard_cost(advisor: Advisor, plan: Path) -> float:
    """Reports per processor second of the shard function, Markdown and JSON; best of 3 shards."""
    read = load_plan(plan, advisor.knowledge)
    making = Making(advisor, Namer.of(advisor.knowledge), ("markdown", "jsonl"), "standard")
    rates = []
    for shard in read.shards(range(min(4, shard_count(read)))):
        begin = time.process_time()
        list(make_shard(shard, making))
        rates.append(len(shard.items) / (time.process_time() - begin))
    return max(rates[1:])


def command(plan: Path, out: Path, *more: str) -> Run:
    """Run the batch and watch its processes."""
    given = [sys.executable, "-m", "advisor", "batch", str(plan), "--out", str(out), *more]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen(given, cwd=ROOT, stdout=said, stderr=subprocess.DEVNULL)
        peaks = []
        while running.poll() is None:
            done = sum(1 for _ in out.glob("shards/*/*"))
            peaks.append((float(done), largest_mb(running.pid)))
            time.sleep(LOOK_S)
        said.seek(0)
        summary = json.loads(said.read())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(time.perf_counter() - begin, cpu_s, summary, peaks)


def largest_mb(pid: int) -> float:
    """Resident memory of the largest process of a run."""
    pids = [pid]
    with contextlib.suppress(OSError):
        pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return max((resident_mb(each) for each in pids), default=0.0)


def resident_mb(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    return 0.0


def dask_run(plan: Path, out: Path, folder: Path) -> Run:
    """Run on a scheduler and two workers of this machine."""
    file = folder / "scheduler.json"
    quiet = subprocess.DEVNULL
    base = [sys.executable, "-m"]
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    with contextlib.ExitStack() as cluster:

        def start(*given: str) -> None:
            one = subprocess.Popen([*base, *given, *common], cwd=ROOT, stdout=quiet, stderr=quiet)
            cluster.callback(one.wait)
            cluster.callback(one.kill)

        start("distributed.cli.dask_scheduler", "--port", "0")
        while not file.exists():
            time.sleep(0.1)
        for _ in range(2):
            start("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny")
        address = json.loads(file.read_text())["address"]
        return command(plan, out, "--scheduler", address)


def row(name: str, run: Run) -> None:
    made = run.summary["reports"]
    assert isinstance(made, int)
    cpu = "" if "Dask" in name else f"{made / run.cpu_s:.0f}"
    peak = max((size for _, size in run.peaks_mb), default=0.0)
    print(
        f"| {name} | {made:,} | {run.wall_s:.0f} s | {made / run.wall_s:.0f} | {cpu} "
        f"| {peak:.0f} MB |",
        flush=True,
    )


def over_time(run: Run) -> None:
    shards = run.peaks_mb[-1][0] or 1
    print("\n| done | largest process |\n|---:|---:|")
    for tenth in range(1, 11):
        sizes = [size for done, size in run.peaks_mb if done <= shards * tenth / 10 and size]
        print(f"| {10 * tenth} % | {sizes[-1]:.0f} MB |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=0)
    parser.add_argument("--workers", nargs="+", default=["2"], help="of a long run")
    parser.add_argument("--dask", action="store_true")
    asked = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = folder / "plan.yaml"
        plan.write_text(PLAN.format(models=LONG if asked.scenarios else SHORT))
        advisor = Advisor.load()
        print("| stage | processor time of one report |\n|---|---:|")
        for stage, spent in stages(advisor, plan, 200):
            print(f"| {stage} | {spent:.2f} ms |", flush=True)
        print(f"\n{shard_cost(advisor, plan):.0f} reports per processor second, best shard\n")
        print("| run | reports | wall | reports/s | per processor second | largest process |")
        print("|---|---:|---:|---:|---:|---:|")
        if asked.scenarios:
            smaller = few(plan, advisor, asked.scenarios)
            for workers in asked.workers:
                run = command(smaller, folder / workers, "--workers", workers)
                row(f"{workers} processes", run)
                over_time(run)
            return
        for workers in ("1", "2"):
            row(
                "1 process" if workers == "1" else "2 processes",
                command(plan, folder / workers, "--workers", workers),
            )
        if asked.dask:
            row("Dask, 2 workers", dask_run(plan, folder / "dask", folder))


def few(plan: Path, advisor: Advisor, most: int) -> Path:
    """Keep as many models of a plan, from all over it, as give about so many scenarios."""
    read = load_plan(plan, advisor.knowledge)
    assert isinstance(read, Product)
    models = [choice.text for block in read.blocks for choice in block.models if choice.model]
    wanted = min(max(round(most * len(models) / read.scenarios), 1), len(models))
    some = [models[place * len(models) // wanted] for place in range(wanted)]
    smaller = plan.with_name("smaller.yaml")
    smaller.write_text(PLAN.format(models=json.dumps(some)))
    return smaller


if __name__ == "__main__":
    main()
