"""What a worker does: load rules and knowledge once, then make and write shard after shard."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from msgspec import Struct

from advisor.advice import Advisor
from advisor.bulk.batch.formats import Namer
from advisor.bulk.batch.manifest import differences, made_by
from advisor.bulk.batch.plan import Shard
from advisor.bulk.batch.shard import Making, make_shard
from advisor.bulk.batch.store import File, asked_to_stop, sees, write_files
from advisor.errors import RequestError, UserError
from advisor.files import with_extra
from advisor.knowledge.layers import UserFiles
from advisor.report.prose import Length

if TYPE_CHECKING:
    from distributed import Client


_COLLECT_RARELY = (400_000, 20, 50)
"""Thresholds of the garbage collector: reports make few cycles, and looking for them took 8 %."""
_one_at_a_time = threading.Lock()
"""A Dask worker may have several threads; what is kept between scenarios is not made for that."""


class Job(Struct, frozen=True):
    """What every worker of a run is told; small, hashable and the same for all shards."""

    out: str
    token: str
    formats: tuple[str, ...]
    length: Length
    made_by: tuple[tuple[str, str | None], ...]
    """Versions and hashes that a worker must have too."""
    user: UserFiles = UserFiles()


class Done(Struct, frozen=True):
    """A finished shard."""

    number: int
    written_bytes: int
    files: tuple[File, ...] = ()
    """To be written by whoever asked, where the worker does not see the output folder."""


def run_shard(job: Job, shard: Shard) -> Done | None:
    """Make one shard and write it where the worker sees the output folder.

    Gives None where the run was stopped before the shard was begun.

    Raises:
        UserError: This worker has other rules, knowledge or code, or cannot load them.
        OSError: The shard cannot be written.
    """
    with _one_at_a_time:
        if asked_to_stop(Path(job.out)):
            return None
        return _done(job, shard)


def _done(job: Job, shard: Shard) -> Done:
    files = make_shard(shard, _making(job))
    if sees(Path(job.out), job.token):
        return Done(shard.number, write_files(Path(job.out), shard.number, files))
    return Done(shard.number, 0, tuple(files))


@lru_cache(maxsize=2)
def _making(job: Job) -> Making:
    try:
        advisor = Advisor.with_files(job.user)
        found = made_by(advisor, job.formats)
    except UserError as error:
        raise RequestError(f"a worker cannot start: {error}") from None
    if different := differences(dict(job.made_by), found, ("here", "there")):
        hint = "Install the same version and copy the same folders to every worker."
        raise RequestError(f"a worker is not the same as here: {'; '.join(different)}", hint=hint)
    gc.freeze()
    return Making(advisor, Namer.of(advisor.knowledge), job.formats, job.length, job.user.templates)


def start_worker() -> None:
    """Prepare a process of the pool: Ctrl-C is the parent's to answer; without it, end."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def collect_rarely() -> None:
    """Set the garbage collector for many reports in a row."""
    gc.set_threshold(*_COLLECT_RARELY)


def _end_with_parent() -> None:
    import multiprocessing  # noqa: PLC0415  only in a worker
    from multiprocessing.connection import wait  # noqa: PLC0415

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


P = ParamSpec("P")
R = TypeVar("R")
_AHEAD = 2
"""Shards in flight for each worker: one being made, one waiting."""
_CONNECT_S = 10
_RETRIES = 5
"""How often Dask tries a shard again whose worker died."""
_ALONE_S = 30
"""So long may a cluster be without workers before it is told."""
_LOOK_S = 0.1


class Here(Executor):
    """Runs at once in this process."""

    def __init__(self) -> None:
        """Set the garbage collector for many reports in a row, until the end."""
        self._thresholds = gc.get_threshold()
        collect_rarely()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call and keep what comes of it."""
        future: Future[R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  kept for whoever asks for the result
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  as in Executor
        """Set the garbage collector as it was before."""
        gc.set_threshold(*self._thresholds)


class Pool(ProcessPoolExecutor):
    """Processes that Ctrl-C does not reach, from their first moment on: it is the parent's."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit; the processes that this may start begin with the signal held back."""
        with _interrupts_held():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back for a moment; it comes afterwards, and new processes never see it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Place(Protocol):
    """A way to run shards."""

    @property
    def died(self) -> tuple[type[BaseException], ...]:
        """What a future raises whose worker is gone."""

    def open(self) -> Executor:
        """Give an executor; asked again after a process of the pool has died."""

    def most_in_flight(self) -> int:
        """How many shards may be in flight now."""

    def held_up(self) -> str:
        """Say in a sentence why nothing is being made; empty: it is."""

    @property
    def elsewhere(self) -> bool:
        """Whether shards are made in other processes, which have to be ended in order."""

    def close(self, executor: Executor, *, drop: bool) -> None:
        """End an executor when its work is done, or at once."""

    def explained(self, error: Exception) -> Exception:
        """Give the error to raise for one that came out of a worker."""


class Local(Struct, frozen=True):
    """This process alone, or a pool of spawned ones."""

    workers: int
    died: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def open(self) -> Executor:
        """One worker runs here, several in new processes."""
        if self.workers == 1:
            return Here()
        context = multiprocessing.get_context("spawn")
        return Pool(self.workers, mp_context=context, initializer=start_worker)

    def most_in_flight(self) -> int:
        """One for each worker and one waiting behind it."""
        return 1 if self.workers == 1 else _AHEAD * self.workers

    def held_up(self) -> str:
        """Its processes are started when they are needed."""
        return ""

    @property
    def elsewhere(self) -> bool:
        """One worker runs here."""
        return self.workers > 1

    def close(self, executor: Executor, *, drop: bool) -> None:
        """Wait for the processes, or end them."""
        if drop:
            for child in multiprocessing.active_children():
                child.terminate()
        executor.shutdown(wait=True, cancel_futures=True)

    def explained(self, error: Exception) -> Exception:
        """As it is."""
        return error


class Cluster(Struct):
    """The workers of a Dask scheduler, through its ``concurrent.futures`` executor."""

    client: Client
    address: str
    died: tuple[type[BaseException], ...]
    elsewhere: bool = True
    alone_since: float | None = None
    """When it was first seen without workers."""

    def open(self) -> Executor:
        """Submitting the same shard twice must run it twice: not pure.

        Raises:
            RequestError: The scheduler is gone.
        """
        self._must_be_there()
        executor: Executor = self.client.get_executor(pure=False, retries=_RETRIES)
        return executor

    def most_in_flight(self) -> int:
        """Two for each thread there is now; workers may come and go.

        Raises:
            RequestError: The scheduler is gone.
        """
        threads = self._threads()
        if threads:
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = time.monotonic()
        return max(_AHEAD * threads, _AHEAD)

    def _threads(self) -> int:
        self._must_be_there()
        with suppress(OSError):  # the connection was lost just now
            return sum(self.client.nthreads().values())
        self._must_be_there()
        return 0

    def _must_be_there(self) -> None:
        """Wait while a lost connection is made again, which Dask gives up in time."""
        while self.client.status == "connecting":
            time.sleep(_LOOK_S)
        if self.client.status != "running":
            raise self._gone()

    def _gone(self) -> RequestError:
        hint = "Start a scheduler and workers again; a batch then goes on with --resume."
        return RequestError(f"the Dask scheduler at '{self.address}' is gone", hint=hint)

    def held_up(self) -> str:
        """Tell of a cluster that has been without workers for a while."""
        if self.alone_since is None or time.monotonic() - self.alone_since < _ALONE_S:
            return ""
        return f"the Dask scheduler at '{self.address}' has had no worker for {_ALONE_S} s"

    def close(self, executor: Executor, *, drop: bool) -> None:
        """Wait for the cluster, or cancel what it has not begun."""
        if self.client.status == "running":
            with suppress(OSError):  # the connection was lost just now
                executor.shutdown(wait=not drop)

    def explained(self, error: Exception) -> Exception:
        """Name the usual cause of what no shard raises itself."""
        if isinstance(error, UserError):
            return error
        try:
            self._must_be_there()
        except RequestError as gone:
            return gone
        if isinstance(error, OSError):
            return error
        first = str(error).strip().splitlines()
        return RequestError(
            f"the cluster failed: {type(error).__name__}: {first[0] if first else ''}",
            hint="The scheduler and every worker need the same version of advisor and of Dask.",
        )


def connected(address: str) -> Cluster:
    """Use the workers of a Dask scheduler.

    Raises:
        RequestError: ``distributed`` is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client, KilledWorker  # noqa: PLC0415  an extra
    except ImportError:
        hint = with_extra("dask")
        raise RequestError("a cluster needs Dask distributed", hint=hint) from None
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # told here, once and in words
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as bad:
        hint = "Give the address that the scheduler prints, for example tcp://host:8786."
        raise RequestError(f"no Dask scheduler answers at '{address}': {bad}", hint=hint) from None
    return Cluster(client, address, (BrokenExecutor, CancelledError, KilledWorker))
