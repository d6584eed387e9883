"""Written reports in bulk: plans, shards, executors, files, and going on after a stop.

A plan is cut into shards of a fixed size. One shard is made by one function from plan to bytes,
in this process, in a pool or on a cluster, and lies in the output folder whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from advisor.bulk.batch.manifest import input_files
from advisor.bulk.batch.plan import Plan, Shard, shard_count
from advisor.bulk.batch.shard import Making, make_shard
from advisor.bulk.batch.store import (
    MANIFEST,
    Head,
    ask_to_stop,
    finish,
    read_head,
    sha256_of,
    write_files,
)
from advisor.bulk.batch.worker import Done, Job, Place, run_shard
from advisor.errors import RequestError
from advisor.files import Kind, code_sha256
from advisor.knowledge.layers import Stack, UserFiles

_LOOK_S = 0.5
"""How often signals and the size of the cluster are looked at."""
_MOST_DEATHS = 3
"""So often may processes die without one shard being done in between."""


class Stop(Struct):
    """Says whether to go on; a signal handler sets it."""

    signal: int = 0
    """The first signal; the shards in flight are finished."""
    at_once: bool = False
    """Whether a second one came while processes were at work: nothing is waited for."""
    waits: bool = False
    """Whether processes are at work, which are ended in order and not in the midst of a call."""


class Totals(Struct):
    """What came of a run."""

    shards: int
    scenarios: int
    kept: int = 0
    """Shards found complete from an earlier run."""
    done: int = 0
    """Shards made in this run."""
    made: int = 0
    """Scenarios of those."""
    reports: int = 0
    failed: int = 0
    bugs: int = 0
    written_bytes: int = 0
    deaths: int = 0
    """Times that processes died and were replaced."""
    held_up: str = ""
    """Why nothing is being made."""

    @property
    def complete(self) -> bool:
        """Whether every shard is there."""
        return self.kept + self.done == self.shards

    def add(self, head: Head) -> None:
        """Count what a record says."""
        self.reports += head.reports
        self.failed += head.failed
        self.bugs += head.bugs


class _Run(Struct):
    plan: Plan
    job: Job
    place: Place
    stop: Stop
    totals: Totals
    tell: Callable[[Totals], None]
    waiting: Iterator[Shard]
    again: list[Shard] = field(default_factory=list)
    pending: dict[Future[Done | None], Shard] = field(default_factory=dict)
    deaths: int = 0

    def drive(self) -> None:
        """Run until nothing is left, or stopped."""
        while True:
            self.stop.waits = self.place.elsewhere
            executor, drop = self.place.open(), True
            try:
                broken = self._feed(executor)
                drop = broken
            finally:
                self.place.close(executor, drop=drop)
                self.stop.waits = False
            self._go_on()
            if not broken:
                return
            self._revive()

    def _go_on(self) -> None:
        if self.stop.at_once:
            raise KeyboardInterrupt

    def _revive(self) -> None:
        self.again = [*self.pending.values(), *self.again]
        self.pending.clear()
        self.deaths += 1
        self.totals.deaths += 1
        if self.deaths > _MOST_DEATHS:
            raise RequestError(
                f"worker processes died {self.deaths} times without finishing a shard",
                hint="They may lack memory: try fewer --workers, and --resume.",
            )

    def _feed(self, executor: Executor) -> bool:
        """Submit and collect; gives whether the pool broke."""
        while True:
            self._go_on()
            if not self.stop.signal and not self._filled(executor):
                return True
            if self.stop.signal:
                ask_to_stop(Path(self.job.out))
                self._cancel()
            if not self.pending:
                return False
            ready, _ = wait(self.pending, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            gone = [future for future in ready if not self._collect(future)]
            if gone:
                return not self.stop.signal
            self.totals.held_up = self.place.held_up()
            self.tell(self.totals)

    def _filled(self, executor: Executor) -> bool:
        """Submit as much as there is room for; gives False where the pool is broken."""
        while len(self.pending) < self.place.most_in_flight():
            shard = self.again.pop() if self.again else next(self.waiting, None)
            if shard is None:
                break
            try:
                self.pending[executor.submit(run_shard, self.job, shard)] = shard
            except BrokenExecutor:
                self.again.append(shard)
                return False
            except Exception as error:
                raise self.place.explained(error) from error
        return True

    def _cancel(self) -> None:
        for future in list(self.pending):
            if future.cancel():
                self.pending.pop(future)

    def _collect(self, future: Future[Done | None]) -> bool:
        """Take a finished shard; gives False where its process died."""
        try:
            done = future.result()
        except self.place.died:
            return False
        except Exception as error:
            raise self.place.explained(error) from error
        shard = self.pending.pop(future)
        if done is None:
            return True
        root = Path(self.job.out)
        written = done.written_bytes or write_files(root, shard.number, done.files)
        head = read_head(root, shard.number)
        if head is None:
            raise FileNotFoundError(2, "a finished shard is gone", str(root))
        self.deaths = 0
        self.totals.add(head)
        self.totals.done += 1
        self.totals.made += head.scenarios
        self.totals.written_bytes += written
        return True


def run(
    plan: Plan,
    job: Job,
    place: Place,
    *,
    stop: Stop,
    tell: Callable[[Totals], None],
    verify: bool = False,
) -> Totals:
    """Make every shard that is not there yet, then the index.

    The job's folder must be prepared; ``stop`` is looked at between shards. ``verify`` reads what
    an earlier run wrote, and makes again what is not as it was.

    Raises:
        RequestError: The folder cannot be written any more, or workers keep dying.
    """
    root = Path(job.out)
    totals = Totals(shard_count(plan), plan.scenarios)
    missing = []
    for number in range(totals.shards):
        head = read_head(root, number, files=True, verify=verify)
        if head is None:
            missing.append(number)
        else:
            totals.kept += 1
            totals.add(head)
    tell(totals)
    try:
        if missing:
            _Run(plan, job, place, stop, totals, tell, plan.shards(missing)).drive()
        if totals.complete:
            finish(root, totals.shards)
    except OSError as bad:
        raise unwritable(root, bad) from None
    return totals


def unwritable(root: Path, bad: OSError) -> RequestError:
    """Say that the output folder cannot be written, and how to go on."""
    if not root.exists():
        return RequestError(
            f"the output folder '{root}' has vanished", hint="Run again; it is made anew."
        )
    return RequestError(
        f"cannot write into '{root}': {bad.strerror or bad}",
        hint="What is complete stays; once this is mended, run the same command with --resume.",
    )


_RUNS, _LENGTH = 4, 32
_BLOCK = 4096
"""Bytes a file takes on the disk come in steps of this."""


class Cost(Struct, frozen=True):
    """What was measured."""

    scenarios: int
    cpu_s: float
    written_bytes: int
    disk_bytes: int
    """In whole blocks of the file system."""
    files: int

    def of(self, scenarios: int) -> tuple[float, float, float]:
        """Give processor seconds, bytes and bytes on the disk for so many scenarios."""
        share = scenarios / max(self.scenarios, 1)
        return self.cpu_s * share, self.written_bytes * share, self.disk_bytes * share


def measure(plan: Plan, making: Making) -> Cost:
    """Make a small part of a plan, spread over it, and keep nothing.

    Neighbours are made together, as a shard does; a whole shard shares more, so the time is an
    upper estimate.
    """
    shards = shard_count(plan)
    numbers = sorted({place * shards // _RUNS for place in range(_RUNS)})
    samples = [_part(shard) for shard in plan.shards(numbers)]
    for first in samples[:1]:
        list(make_shard(Shard(0, first.items[:1]), making))
    begin = time.process_time()
    sizes = [len(file.content) for one in samples for file in make_shard(one, making)]
    return Cost(
        scenarios=sum(len(one.items) for one in samples),
        cpu_s=time.process_time() - begin,
        written_bytes=sum(sizes),
        disk_bytes=sum(-(-size // _BLOCK) * _BLOCK for size in sizes),
        files=len(sizes),
    )


def _part(shard: Shard) -> Shard:
    start = (len(shard.items) - _LENGTH) // 2 if len(shard.items) > _LENGTH else 0
    return Shard(shard.number, shard.items[start : start + _LENGTH])


T = TypeVar("T")
R = TypeVar("R")
_LOOK_FIRST_S = 1


def each(place: Place, make: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Make every task, a bounded number in flight; results come in the order of tasks.

    Raises:
        RequestError: The cluster is gone, or has been without workers for a while.
        Exception: Whatever a task raises.
    """
    executor, waiting = place.open(), iter(tasks)
    flying: deque[Future[R]] = deque()
    drop = True
    try:
        while True:
            for task in islice(waiting, max(place.most_in_flight() - len(flying), 0)):
                flying.append(executor.submit(make, task))
            if not flying:
                break
            if wait([flying[0]], timeout=_LOOK_FIRST_S).done:
                yield flying.popleft().result()
            else:
                _refuse_to_wait(place)
        drop = False
    except Exception as error:
        raise place.explained(error) from error
    finally:
        place.close(executor, drop=drop)


def _refuse_to_wait(place: Place) -> None:
    if why := place.held_up():
        raise RequestError(why, hint="Run the same command again once there is one.")


@lru_cache(maxsize=2)
def mark_of(root: Path, user: UserFiles) -> str:
    """Tell a batch, with the program and the files that read it, from any other."""
    folders: Mapping[Kind, Stack] = {
        "rules": user.rules,
        "templates": user.templates,
        "knowledge": user.knowledge,
    }
    told = [sha256_of(root / MANIFEST), code_sha256(), dict(input_files(folders))]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def check_same(root: Path, user: UserFiles, mark: str) -> None:
    """See that a worker reads the batch that everyone reads, with the same program and files.

    Raises:
        RequestError: It does not.
    """
    if mark_of(root, user) != mark:
        hint = "Every worker needs that folder under the same path, and the same advisor."
        raise RequestError(f"a worker does not see '{root}' as it is here", hint=hint)
