"""Load on ``advisor serve``: answers a second, how long they take, and memory over a long run.

python -m benchmarks.serve                         each question for the first time and again
python -m benchmarks.serve --long 1000000          memory while so many are asked
python -m benchmarks.serve --contract 10000        requests drawn from the OpenAPI document
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

from advisor.api.service.openapi import document
from advisor.knowledge import load_knowledge
from tests.service.contract import draw, problems_of

_PRECISIONS = ("Q4_K_M", "Q8_0", "FP16", "AWQ")


@contextmanager
def server(workers: int, log: Path) -> Iterator[tuple[int, int]]:
    """Start it on a free port; give the port and the process."""
    command = [sys.executable, "-m", "advisor", "serve", "--port", "0", "--workers", str(workers)]
    with log.open("w") as told, subprocess.Popen(command, stdout=told, stderr=told) as process:
        while not (lines := [x for x in log.read_text().splitlines() if '"started"' in x]):
            time.sleep(0.1)
        try:
            yield int(json.loads(lines[0])["url"].rpartition(":")[2]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def known_names(question: str, seed: int) -> list[bytes]:
    """Requests of 20 known cards with 20 known models in four formats, in any order."""
    drawn = random.Random(seed)
    known = load_knowledge()
    cards = drawn.sample([one.name for one in known.gpus.values() if one.vram_bytes], 20)
    models = drawn.sample(list(known.models), 20)
    asked = [
        urlencode({"gpu": gpu, "model": model, "precision": precision})
        for gpu, model, precision in product(cards, models, _PRECISIONS)
    ]
    drawn.shuffle(asked)
    return [f"GET /{question}?{one} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode() for one in asked]


async def answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, str, bytes]:
    """Send a request over an open connection; give status, media type and body."""
    writer.write(request)
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.casefold(): value.strip() for name, _, value in pairs}
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:size]
        await reader.readline()
    return int(first.split()[1]), headers.get("content-type", ""), body


async def load(
    port: int, requests: Iterable[bytes], connections: int
) -> tuple[list[float], Counter[int]]:
    """Ask over several connections at once; give times, in seconds, and statuses."""
    times, statuses, left = list[float](), Counter[int](), iter(requests)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        for request in left:
            began = time.perf_counter()
            status, _media, _body = await answered(reader, writer, request)
            times.append(time.perf_counter() - began)
            statuses[status] += 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return times, statuses


def resident_mb(pid: int) -> float:
    """Memory of a process, what it shares with others counted in part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("Pss:")) / 1024


def children(pid: int) -> list[int]:
    """Processes that a process started, from any of its threads."""
    texts = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(number) for text in texts for number in text.split()]


def seconds_used(pid: int) -> float:
    """Processor time of a process and its children so far."""
    ticks = 0
    for one in [pid, *children(pid)]:
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def told(name: str, times: Sequence[float], statuses: Counter[int], wall: float) -> str:
    """Write a row of figures."""
    ordered = sorted(times)
    at = {share: ordered[int(share * (len(ordered) - 1))] * 1e3 for share in (0.5, 0.99)}
    return (
        f"{name:16} {len(times):8,} {len(times) / wall:8.0f}/s   p50 {at[0.5]:6.1f} ms   "
        f"p99 {at[0.99]:6.1f} ms   worst {ordered[-1] * 1e3:6.0f} ms   {dict(statuses)}"
    )


def run_load(port: int, pid: int, count: int, connections: int) -> None:
    """Print what each kind of question takes when it comes for the first time, and again."""
    asyncio.run(
        load(port, known_names("estimate", 2) + known_names("advise", 2)[:200], connections)
    )
    for name in ("estimate", "advise"):
        every = known_names(name, 1)
        for row, requests in (
            (f"{name}, first", every),
            (f"{name}, again", random.Random(3).choices(every, k=count)),
        ):
            used, began = seconds_used(pid), time.perf_counter()
            times, statuses = asyncio.run(load(port, requests, connections))
            wall = time.perf_counter() - began
            cpu = (seconds_used(pid) - used) / len(times) * 1e3
            print(told(row, times, statuses, wall), f"  {cpu:.2f} ms of processor each", flush=True)
    shares = [f"{resident_mb(one):.1f}" for one in (pid, *children(pid))]
    print(f"{' + '.join(shares)} MB", flush=True)


def run_long(port: int, pid: int, count: int, connections: int) -> None:
    """Print memory after each tenth: estimates, of ever new contexts."""
    drawn = random.Random(2)
    every = known_names("estimate", 2)
    for part in range(1, 11):
        began = time.perf_counter()
        asked = (
            drawn.choice(every).replace(b" HTTP", b"&context=%d HTTP" % drawn.randrange(999, 9_999))
            for _ in range(count // 10)
        )
        times, statuses = asyncio.run(load(port, asked, connections))
        row = told("", times, statuses, time.perf_counter() - began)
        memory = sum(map(resident_mb, (pid, *children(pid))))
        print(f"{part * count // 10:10,} {memory:7.1f} MB   {row}", flush=True)


async def run_contract(port: int, count: int, seed: int) -> int:
    """Ask what the OpenAPI document allows, and what it does not; count broken promises."""
    spec, random_ = document(), random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    statuses, broken = Counter[int](), 0
    for number in range(count):
        drawn = draw(spec, random_)
        status, media, body = await answered(reader, writer, drawn.wire())
        statuses[status] += 1
        for problem in problems_of(spec, drawn, status, media, body):
            broken += 1
            print(f"{drawn.method} {drawn.path} -> {status}: {problem}", flush=True)
        if (number + 1) % 1_000 == 0:
            print(f"{number + 1:,}: {dict(sorted(statuses.items()))}, {broken} broken", flush=True)
    return broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--long", type=int, metavar="N")
    parser.add_argument("--contract", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    stated = parser.parse_args()
    log = Path("/tmp") / f"advisor-serve-{os.getpid()}.log"  # noqa: S108
    with server(stated.workers, log) as (port, pid):
        if stated.contract:
            sys.exit(min(asyncio.run(run_contract(port, stated.contract, stated.seed)), 1))
        if stated.long:
            run_long(port, pid, stated.long, stated.connections)
        else:
            run_load(port, pid, stated.requests, stated.connections)


if __name__ == "__main__":
    main()
