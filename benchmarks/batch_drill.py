"""Kill a batch again and again, go on each time, and compare with a run that nobody disturbed.

    python benchmarks/batch_drill.py               20 kills of the parent, 20 of a worker
    python benchmarks/batch_drill.py --rounds 3    fewer

A killed parent leaves its folder as it is; the next run goes on with --resume and is killed too,
until one comes through. A killed worker must cost nothing: the run itself ends well.
Linux only: processes are found in /proc. Exits 1 when anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAN = """\
gpus: [RTX 4090, RTX 3060 12GB]
models: [llama-3-8b, gemma-2-27b]
formats: [FP16, Q8_0, Q4_K_M]
contexts: [4096]
shard_size: 1
"""
FORMATS = "markdown,html,jsonl"


def start(plan: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "advisor", "batch", str(plan), "--out", str(out)]
    command += ["--workers", "2", "--formats", FORMATS, *more]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def records(out: Path) -> int:
    return sum(1 for _ in out.glob("shards/*/*"))


def children(pid: int) -> list[int]:
    """Workers of a run; the helper that multiprocessing starts beside them is none."""
    with contextlib.suppress(OSError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in found if b"spawn_main" in command_of(int(child))]
    return []


def command_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def wait_until(
    running: subprocess.Popen[bytes], out: Path, shards: int, rng: random.Random
) -> bool:
    """Wait for so many shards and a moment more; False where the run ended before."""
    while records(out) < shards:
        if running.poll() is not None:
            return False
        time.sleep(0.005)
    time.sleep(rng.random() * 0.08)
    return running.poll() is None


def kill_parents(plan: Path, out: Path, kills: int, rng: random.Random) -> tuple[int, list[str]]:
    """Kill runs into one folder, each going on where the one before was killed."""
    more: tuple[str, ...] = ()
    done, problems = 0, list[str]()
    for _ in range(kills):
        running = start(plan, out, *more)
        shards = records(out) + rng.choice((0, 1, 1, 2))
        killed = wait_until(running, out, shards, rng)
        done += killed
        workers = children(running.pid)
        running.kill()
        running.wait()
        gone_by = time.monotonic() + 10
        while any(b"spawn_main" in command_of(pid) for pid in workers):
            if time.monotonic() > gone_by:
                problems.append("a worker outlived its parent")
                break
            time.sleep(0.01)
        more = ("--resume",) if (out / "manifest.json").exists() else ()
        if not killed:
            break
    last = start(plan, out, *more)
    _, said = last.communicate()
    if last.returncode:
        problems.append(f"the last run ended with {last.returncode}: {said.decode()}")
    return done, problems


def kill_worker(plan: Path, out: Path, kills: int, rng: random.Random) -> tuple[int, list[str]]:
    """Kill workers of one run, which must come through by itself."""
    done = 0
    running = start(plan, out)
    for _ in range(kills):
        if wait_until(running, out, records(out) + 1, rng) and (workers := children(running.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                done += 1
    _, said = running.communicate()
    if running.returncode:
        return done, [f"the run ended with {running.returncode}: {said.decode()}"]
    return done, []


def compared(expected: dict[str, bytes], out: Path) -> Iterator[str]:
    found = contents(out)
    yield from (f"missing: {name}" for name in sorted(expected.keys() - found.keys()))
    yield from (f"left over: {name}" for name in sorted(found.keys() - expected.keys()))
    for name in sorted(expected.keys() & found.keys()):
        if expected[name] != found[name]:
            yield f"differs: {name}"


def drill(rounds: int, seed: int) -> list[str]:
    rng, problems, killed = random.Random(seed), list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        plan, whole = Path(folder) / "plan.yaml", Path(folder) / "whole"
        plan.write_text(PLAN)
        if start(plan, whole).wait():
            return ["the undisturbed run failed"]
        expected = contents(whole)
        for number in range(rounds):
            for name, attack in (("parent", kill_parents), ("worker", kill_worker)):
                out = Path(folder) / f"{name}-{number}"
                kills = rng.choice((1, 2, 3)) if name == "parent" else 1
                done, found = attack(plan, out, kills, rng)
                found += compared(expected, out)
                said = "; ".join(found) or "the same bytes"
                print(f"{name} {number + 1}, killed {done} times: {said}", flush=True)
                killed += done
                problems += found
    print(f"{killed} kills, {len(problems)} problems")
    return problems if killed else ["nothing was killed"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sys.exit(bool(drill(asked.rounds, asked.seed)))


if __name__ == "__main__":
    main()
