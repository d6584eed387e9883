"""Kill a batch again and again, go on each time, and compare with a run that nobody disturbed.

    python benchmarks/batch_drill.py                    10 kills of the parent, 10 of workers
    python benchmarks/batch_drill.py --kills 40         twice as many
    python benchmarks/batch_drill.py --interrupts 60    two Ctrl-C each to 60 runs besides

A killed parent leaves its folder as it is; the next run goes on with --resume and is killed too,
until one comes through. A killed worker must cost nothing: the run itself ends well. Ctrl-C goes
to all processes of a run, as from a terminal: none may be left behind, and nothing may be said
but that it stops.
Linux only: processes are found in /proc. Exits 1 when anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
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
formats: [FP16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q3_K_M]
contexts: [4096]
shard_size: 1
"""
FORMATS = "markdown,html,jsonl.gz,parquet/vendor"


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
    while done < kills:
        running = start(plan, out, *more)
        killed = wait_until(running, out, records(out) + rng.choice((0, 0, 1, 1, 2)), rng)
        done += killed
        workers = children(running.pid)
        running.kill()
        running.wait()
        problems += left_behind(workers)
        more = ("--resume",) if (out / "manifest.json").exists() else ()
        if not killed:
            break
    last = start(plan, out, *more)
    _, said = last.communicate()
    if last.returncode:
        problems.append(f"the last run ended with {last.returncode}: {said.decode()}")
    return done, problems


def left_behind(workers: list[int]) -> list[str]:
    """Say whether a worker outlives its parent by ten seconds."""
    gone_by = time.monotonic() + 10
    while any(b"spawn_main" in command_of(pid) for pid in workers):
        if time.monotonic() > gone_by:
            return ["a worker outlived its parent"]
        time.sleep(0.01)
    return []


def kill_workers(plan: Path, out: Path, kills: int, rng: random.Random) -> tuple[int, list[str]]:
    """Kill workers of one run, which must come through by itself."""
    done = 0
    running = start(plan, out)
    while done < kills and wait_until(running, out, records(out) + 1, rng):
        if workers := children(running.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                done += 1
    _, said = running.communicate()
    if running.returncode:
        return done, [f"the run ended with {running.returncode}: {said.decode()}"]
    return done, []


def interrupt(plan: Path, out: Path, times: int, rng: random.Random) -> tuple[int, list[str]]:
    """Press Ctrl-C twice in runs into one folder, each going on where the one before was."""
    more: tuple[str, ...] = ()
    problems = list[str]()
    for _ in range(times):
        shutil.rmtree(out / ".work", ignore_errors=True)
        running = start(plan, out, *more)
        while not (out / ".work").exists() and running.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.random() * 2)
        for pause in (rng.choice((0, 0.001, 0.05, 0.3, 1)), 0):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGINT)
            time.sleep(pause)
        _, said = running.communicate()
        problems += odd(running, said.decode(), whole=not (out / ".work").exists())
        more = ("--resume",) if (out / "manifest.json").exists() else ()
    last = start(plan, out, *more)
    _, said = last.communicate()
    if last.returncode:
        problems.append(f"the last run ended with {last.returncode}: {said.decode()}")
    return times, problems


def odd(ended: subprocess.Popen[bytes], said: str, *, whole: bool) -> Iterator[str]:
    """Say what is not as it should be after two Ctrl-C.

    When all is written Python has at its very end no handler left, and the signal itself ends it.
    """
    if ended.returncode not in {0, 128 + signal.SIGINT, *([-signal.SIGINT] if whole else [])}:
        yield f"it ended with {ended.returncode}"
    if others := [line for line in said.splitlines() if not line.startswith("stopp")]:
        yield f"it said {others[:3]}"
    gone_by = time.monotonic() + 2
    while left := members(ended.pid):
        if time.monotonic() > gone_by:
            yield f"left behind: {left}"
            return
        time.sleep(0.01)


def members(group: int) -> list[bytes]:
    """Name the processes of a group that still run."""
    found = list[bytes]()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, own = (path / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(own) == group and state != "Z":
                found.append(command_of(int(path.name)))
    return found


def compared(expected: dict[str, bytes], out: Path) -> Iterator[str]:
    found = contents(out)
    yield from (f"missing: {name}" for name in sorted(expected.keys() - found.keys()))
    yield from (f"left over: {name}" for name in sorted(found.keys() - expected.keys()))
    for name in sorted(expected.keys() & found.keys()):
        if expected[name] != found[name]:
            yield f"differs: {name}"


ATTACKS = {"parent": kill_parents, "worker": kill_workers, "Ctrl-C in a run": interrupt}


def drill(kills: int, interrupts: int, seed: int) -> list[str]:
    """Kill half of the times a parent, else a worker, in as many folders as that takes."""
    rng, problems, number = random.Random(seed), list[str](), 0
    left = dict(zip(ATTACKS, (kills - kills // 2, kills // 2, interrupts), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        plan, whole = Path(folder) / "plan.yaml", Path(folder) / "whole"
        plan.write_text(PLAN)
        if start(plan, whole).wait():
            return ["the undisturbed run failed"]
        expected = contents(whole)
        while any(left.values()) and number < kills + 2:
            number += 1
            for name, attack in ATTACKS.items():
                if not left[name]:
                    continue
                out = Path(folder) / f"{name}-{number}"
                done, found = attack(plan, out, left[name], rng)
                left[name] -= done
                found += compared(expected, out)
                said = "; ".join(found) or "the same bytes"
                print(f"{name}, {done} times: {said}", flush=True)
                problems += found
    print(f"{kills + interrupts - sum(left.values())} times, {len(problems)} problems")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--interrupts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sys.exit(bool(drill(asked.kills, asked.interrupts, asked.seed)))


if __name__ == "__main__":
    main()
