"""``advisor batch``: written reports for a whole plan: folder, manifest, signals, what is said."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from msgspec import Struct

from advisor.advice import Advisor
from advisor.bulk.batch import Cost, Stop, Totals, measure, run, store, unwritable
from advisor.bulk.batch.formats import Namer, is_format, kind_of, kinds, known_formats
from advisor.bulk.batch.manifest import (
    Manifest,
    as_bytes,
    differences,
    input_files,
    made_by,
    manifest,
    read_manifest,
)
from advisor.bulk.batch.plan import Plan, shard_count
from advisor.bulk.batch.product import load_plan
from advisor.bulk.batch.shard import Making
from advisor.bulk.batch.store import MANIFEST
from advisor.bulk.batch.worker import Cluster, Job, Local, Place, connected
from advisor.cli.options import Length, cores
from advisor.cli.report_output import BatchProgress, takes_user_files
from advisor.errors import EngineError, RequestError, did_you_mean, raise_problems
from advisor.knowledge.layers import UserFiles
from advisor.report import prose
from advisor.report.templates import template_problems
from advisor.units import counted

_STOPPING = b"stopping after the shards in flight; once more ends at once\n"
_GO_ON = "Run the same command with --resume to go on."
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPED = 128
"""Exit code of a run that a signal stopped: this and the signal's number."""


Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if left out.")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
]


def refuse_both(workers: int | None, scheduler: str | None) -> None:
    """Refuse a number of processes where a cluster does the work."""
    if workers and scheduler:
        raise typer.BadParameter(
            "is for a pool; the cluster has its own.", param_hint="'--workers'"
        )


def cluster_of(workers: int | None, scheduler: str | None) -> Cluster | None:
    """Connect to a cluster where one is named.

    Raises:
        RequestError: No scheduler answers.
    """
    refuse_both(workers, scheduler)
    return connected(scheduler) if scheduler else None


class Asked(Struct, frozen=True):
    """A plan and how it is to be reported."""

    plan: Plan
    advisor: Advisor
    formats: tuple[str, ...]
    length: prose.Length
    user: UserFiles

    def making(self) -> Making:
        """Give what a shard is made with."""
        namer = Namer.of(self.advisor.knowledge)
        return Making(self.advisor, namer, self.formats, self.length, self.user.templates)

    def manifest(self) -> Manifest:
        """Describe what will be made."""
        inputs = inputs_of(self.user)
        return manifest(self.plan, self.advisor, inputs, formats=self.formats, length=self.length)

    def job(self, out: Path, made: Manifest) -> Job:
        """Tell workers what to do; paths are whole, since they may start elsewhere."""
        return Job(
            out=os.path.realpath(out),
            token=hashlib.sha256(as_bytes(made)).hexdigest(),
            formats=self.formats,
            length=self.length,
            made_by=tuple(sorted(made_by(self.advisor, self.formats).items())),
            user=self.user.whole(),
        )


class _Ended(Struct, frozen=True):
    """A run that is over: what came of it, the signal that stopped it or 0, its seconds."""

    totals: Totals
    signal: int
    seconds: float


def inputs_of(user: UserFiles) -> Mapping[str, str]:
    """Give the marks of the files that reports are made from, by name."""
    return input_files(
        {"rules": user.rules, "templates": user.templates, "knowledge": user.knowledge}
    )


class Going(Struct, frozen=True):
    """How a batch is made."""

    workers: int
    scheduler: str | None = None
    resume: bool = False
    verify: bool = False


def execute(asked: Asked, out: Path, going: Going) -> None:
    """Make a batch, or what is missing of it.

    Raises:
        UserError: The folder cannot be used, or a scenario has no report.
        EngineError: A scenario has no report through a fault of ours.
    """
    made = asked.manifest()
    job = asked.job(out, made)
    root = Path(job.out)
    place = connected(going.scheduler) if going.scheduler else Local(going.workers)
    try:
        store.check_folder(root, kinds(), resume=going.resume)
        with store.locked(root):
            _same(root, made)
            store.prepare(root, job.token)
            store.write_one(root, store.MANIFEST, [as_bytes(made)])
            ended = _run(asked.plan, job, place, verify=going.verify)
    except OSError as bad:
        raise unwritable(root, bad) from None
    except KeyboardInterrupt:
        sys.stderr.write(f"stopped at once. {_GO_ON}\n")
        raise typer.Exit(_STOPPED + signal.SIGINT) from None
    sys.stdout.write(f"{json.dumps(_summary(asked.plan, job, ended), ensure_ascii=False)}\n")
    _conclude(root, ended)


def _same(root: Path, made: Manifest) -> None:
    """Refuse to go on with a batch that would come out differently now."""
    if not (root / MANIFEST).exists():
        return
    old = read_manifest(root / MANIFEST)
    found = differences(old, json.loads(as_bytes(made)))
    if found:
        hint = "Put that back, or start anew in another folder."
        raise RequestError(f"'{root}' was made differently: {'; '.join(found)}", hint=hint)


def _run(plan: Plan, job: Job, place: Place, *, verify: bool) -> _Ended:
    stop, started = Stop(), time.monotonic()
    progress = BatchProgress(plan.scenarios)
    with _signals(stop), progress.shown():
        totals = run(plan, job, place, stop=stop, tell=progress.tell, verify=verify)
    return _Ended(totals, stop.signal, time.monotonic() - started)


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends after the shards in flight, the second at once.

    After that they are ignored: what is left is to end, and that must not be cut short.
    """

    def asked(number: int, _frame: FrameType | None) -> None:
        if not stop.signal:
            stop.signal = number
            os.write(2, _STOPPING)
        elif stop.waits and not stop.at_once:
            stop.at_once = True
        else:
            _ignore()
            raise KeyboardInterrupt

    before = [(kind, signal.signal(kind, asked)) for kind in _SIGNALS]
    try:
        yield
    finally:
        for kind, handler in before:
            signal.signal(kind, signal.SIG_IGN if stop.signal else handler)


def _ignore() -> None:
    for kind in _SIGNALS:
        signal.signal(kind, signal.SIG_IGN)


def _summary(plan: Plan, job: Job, ended: _Ended) -> Mapping[str, object]:
    totals, seconds = ended.totals, ended.seconds
    return {
        "out": job.out,
        "complete": totals.complete,
        "scenarios": totals.scenarios,
        "reports": totals.reports,
        "failed": totals.failed,
        "skipped": dict(plan.skipped),
        "shards": {"total": totals.shards, "kept": totals.kept, "made": totals.done},
        "written_bytes": totals.written_bytes,
        "seconds": round(seconds, 3),
        "per_second": round(totals.made / seconds, 1) if seconds else None,
        "worker_deaths": totals.deaths,
    }


def _conclude(root: Path, ended: _Ended) -> None:
    totals = ended.totals
    if not totals.complete:
        done = totals.kept + totals.done
        sys.stderr.write(f"stopped: {done:,} of {totals.shards:,} shards are complete. {_GO_ON}\n")
        raise typer.Exit(_STOPPED + ended.signal)
    if totals.failed:
        message = (
            f"{totals.failed:,} of {totals.scenarios:,} scenarios have no report; "
            f"they are listed in '{root / 'errors.jsonl'}'"
        )
        if totals.bugs:
            raise EngineError(message)
        raise RequestError(message)


_MINUTE, _HOUR = 60, 3600
_MOST_REASONS = 12


def foretold(plan: Plan, cost: Cost, workers: int) -> Iterator[str]:
    """Say how much a plan is and what it will take, line by line."""
    shards = shard_count(plan)
    yield f"{counted(plan.scenarios, 'scenario')} in {counted(shards, 'shard')}"
    skipped = sum(plan.skipped.values())
    if skipped:
        yield f"{counted(skipped, 'combination')} skipped:"
        reasons = list(plan.skipped.items())
        yield from (f"  {count:,}  {why}" for why, count in reasons[:_MOST_REASONS])
        rest = reasons[_MOST_REASONS:]
        if rest:
            yield f"  {sum(count for _, count in rest):,}  for {len(rest)} other reasons"
    cpu_s, written, disk = cost.of(plan.scenarios)
    each = 1000 * cost.cpu_s / cost.scenarios
    measured = counted(cost.scenarios, "scenario")
    yield f"measured on {measured}: {each:.1f} ms of processor time each"
    plural = "" if workers == 1 else "s"
    yield f"expected time: {_time(cpu_s / workers)} with {workers} worker{plural}"
    yield f"expected size: {_size(written)}, about {_size(disk)} on the disk"


def _time(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 1 else "under a second"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"


def _size(count_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count_bytes >= size:
            return f"{count_bytes / size:.1f} {unit}"
    return f"{count_bytes / 1e3:.0f} kB"


_DEFAULT = "markdown,jsonl"
_ANY = "Any of markdown, html, jsonl or jsonl.gz, parquet or parquet/vendor (by column)."
_KNOWN = "Known: markdown, html, jsonl, jsonl.gz, parquet, parquet/vendor/model (by columns)."
_PLAN = "A plan (.yaml), or requests (.csv, .jsonl)."
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for the reports, new or empty.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run stopped.")]
Verify = Annotated[
    bool, typer.Option("--verify", help="With --resume: make again what was changed since.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say how much it is and what it will take.")
]


@takes_user_files()
def batch(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help=_PLAN)],
    out: Out = None,
    formats: Annotated[str, typer.Option(help=_ANY)] = _DEFAULT,
    workers: Workers = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
    verify: Verify = False,
    dry_run: DryRun = False,
    length: Annotated[Length, typer.Option(help="How much the reports say.")] = "standard",
    *,
    user: UserFiles,
) -> None:
    """Write reports for every scenario of a plan; stop and go on at any time.

    A plan lists cards, models, formats and contexts: every combination that
    can run is reported. A file of requests gives one report for each.

    The same plan gives the same bytes, however many workers there are and
    however often it was stopped. A JSON summary is printed at the end.

    Example: advisor batch plan.yaml --out reports
    """
    if out is None and not dry_run:
        raise typer.BadParameter("needed unless --dry-run is given.", param_hint="'--out'")
    refuse_both(workers, scheduler)
    if verify and not resume:
        raise typer.BadParameter(
            "reads what an earlier run wrote: add --resume.", param_hint="'--verify'"
        )
    asked = _asked(plan, _formats(formats), length, user)
    number = workers or cores()
    if dry_run or out is None:
        _foretell(asked, number)
    else:
        execute(asked, out, Going(number, scheduler, resume, verify))


def _asked(plan: Path, formats: tuple[str, ...], length: Length, user: UserFiles) -> Asked:
    """Read the plan and everything that reports are made from; all that is wrong, at once."""
    raise_problems(template_problems(user.templates))
    advisor = Advisor.with_files(user)
    read = load_plan(plan, advisor.knowledge, user.knowledge)
    return Asked(read, advisor, formats, length, user)


def _formats(text: str) -> tuple[str, ...]:
    words = [word.strip().casefold() for word in text.split(",") if word.strip()]
    for word in words:
        if not is_format(word):
            hint = did_you_mean(word, known_formats()) or _KNOWN
            raise RequestError(f"--formats: unknown format '{word}'", hint=hint)
    if not words:
        raise RequestError("--formats is empty", hint=_KNOWN)
    by_kind = {kind_of(word): word for word in words}
    if twice := sorted(set(words) - set(by_kind.values())):
        other = by_kind[kind_of(twice[0])]
        raise RequestError(f"--formats: '{twice[0]}' and '{other}' are one format; keep one")
    return tuple(by_kind[kind] for kind in kinds() if kind in by_kind)


def _foretell(asked: Asked, workers: int) -> None:
    for line in foretold(asked.plan, measure(asked.plan, asked.making()), workers):
        typer.echo(line)
