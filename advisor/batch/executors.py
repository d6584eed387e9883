"""Where shards are made: here, in a pool of processes, or on a Dask cluster.

All three are ``concurrent.futures`` executors, so that one loop drives them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from advisor.batch.worker import start_worker
from advisor.errors import RequestError

P = ParamSpec("P")
R = TypeVar("R")
_AHEAD = 2
"""Shards in flight for each worker: one being made, one waiting."""
_CONNECT_S = 20
_RETRIES = 5
"""How often Dask tries a shard again whose worker died."""


class Here(Executor):
    """Runs at once in this process."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call and keep what comes of it."""
        future: Future[R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  kept for whoever asks for the result
            future.set_exception(error)
        return future


@dataclass(frozen=True, slots=True)
class Place:
    """A way to run shards."""

    make: Callable[[], Executor]
    """Gives a new executor; called again after a process of the pool has died."""
    room: Callable[[], int]
    """How many shards may be in flight now."""
    drop: Callable[[], None]
    """Ends work in flight at once."""
    died: tuple[type[BaseException], ...] = (BrokenExecutor,)
    """What a future raises whose worker is gone."""


def local(workers: int) -> Place:
    """One worker runs in this process, several in a pool of new ones."""
    if workers == 1:
        return Place(Here, lambda: 1, lambda: None)
    context = multiprocessing.get_context("spawn")
    return Place(
        lambda: ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker),
        lambda: _AHEAD * workers,
        _end_children,
    )


def _end_children() -> None:
    for child in multiprocessing.active_children():
        child.terminate()


def cluster(address: str) -> Place:
    """Use the workers of a Dask scheduler.

    Raises:
        RequestError: ``distributed`` is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client, KilledWorker  # noqa: PLC0415  an extra
    except ImportError:
        hint = "Install it: pip install 'advisor[dask]'."
        raise RequestError("a cluster needs Dask distributed", hint=hint) from None
    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as bad:
        hint = "Give the address that the scheduler prints, for example tcp://host:8786."
        raise RequestError(f"no Dask scheduler answers at '{address}': {bad}", hint=hint) from None
    return Place(
        lambda: client.get_executor(pure=False, retries=_RETRIES),
        lambda: max(_AHEAD * sum(client.nthreads().values()), _AHEAD),
        client.close,
        (BrokenExecutor, CancelledError, KilledWorker),
    )
