"""What a worker does: load rules and knowledge once, then make and write shard after shard."""

from __future__ import annotations

import gc
import os
import signal
import threading
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from advisor.advice.pipeline import Advisor
from advisor.bulk.batch import huge_pages
from advisor.bulk.batch.file_names import Namer
from advisor.bulk.batch.manifest import differences, made_by
from advisor.bulk.batch.plan import Shard
from advisor.bulk.batch.shard import File, Making, make_shard
from advisor.bulk.batch.store import asked_to_stop, sees, write_files
from advisor.errors import RequestError, UserError
from advisor.report.prose import Length

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
    rules: str | None = None
    templates: str | None = None
    knowledge: str | None = None
    measurements: str | None = None


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
        done = _done(job, shard)
        huge_pages.after_shard()
        return done


def _done(job: Job, shard: Shard) -> Done:
    files = make_shard(shard, _making(job))
    if sees(Path(job.out), job.token):
        return Done(shard.number, write_files(Path(job.out), shard.number, files))
    return Done(shard.number, 0, tuple(files))


@lru_cache(maxsize=2)
def _making(job: Job) -> Making:
    named = (job.rules, job.templates, job.knowledge, job.measurements)
    rules, templates, knowledge, own = (Path(name) if name else None for name in named)
    try:
        advisor = Advisor.load(
            rules=rules, templates=templates, knowledge=knowledge, measurements=own
        )
        found = made_by(advisor, job.formats)
    except UserError as error:
        raise RequestError(f"a worker cannot start: {error}") from None
    if different := differences(dict(job.made_by), found, ("here", "there")):
        hint = "Install the same version and copy the same folders to every worker."
        raise RequestError(f"a worker is not the same as here: {'; '.join(different)}", hint=hint)
    gc.freeze()
    return Making(advisor, Namer.of(advisor.knowledge), job.formats, job.length, templates)


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
