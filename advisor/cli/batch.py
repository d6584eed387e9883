"""``advisor batch``: written reports for a whole plan."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.advise import LENGTHS, Length
from advisor.errors import EngineError, RequestError, raise_problems

if TYPE_CHECKING:
    from advisor.batch.executors import Place
    from advisor.batch.manifest import Manifest
    from advisor.batch.plan import Plan
    from advisor.batch.run import Stop, Totals
    from advisor.batch.worker import Job
    from advisor.pipeline import Advisor

_DEFAULT = "markdown,jsonl"
_STOPPED = 128
"""Exit code of a run that a signal stopped: this and the signal's number."""


def batch(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="A plan (.yaml), or requests (.csv, .jsonl).")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the reports; new or empty.")
    ] = None,
    formats: Annotated[str, typer.Option(help="Any of markdown, html, jsonl, parquet.")] = _DEFAULT,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. [default: one for each core]")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Use the workers of this Dask scheduler."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run stopped.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much it is and what it will take.")
    ] = False,
    length: Annotated[Length, typer.Option(help="How much the reports say.")] = Length.standard,
    rules: Annotated[
        Path | None, typer.Option(help="Folder of rules, over the built-in ones.")
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="Folder of templates, over the built-in ones.")
    ] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="Folder of knowledge, over the built-in one.")
    ] = None,
) -> None:
    """Write reports for every scenario of a plan; stop and go on at any time.

    A plan lists cards, models, formats and contexts, and every combination that can run is
    reported; or it is a file of requests, one report for each.

    The same plan gives the same bytes, however many workers there are and however often it was
    stopped. A JSON summary is printed at the end.
    """
    from advisor.batch.load import load_plan  # noqa: PLC0415  start-up: --help must not pay
    from advisor.batch.manifest import manifest  # noqa: PLC0415
    from advisor.pipeline import Advisor  # noqa: PLC0415
    from advisor.render import template_problems  # noqa: PLC0415

    chosen = _formats(formats)
    if out is None and not dry_run:
        raise typer.BadParameter("needed unless --dry-run is given.", param_hint="'--out'")
    if workers and scheduler:
        raise typer.BadParameter(
            "is for a pool; the cluster has its own.", param_hint="'--workers'"
        )
    if templates and templates.is_dir():
        raise_problems(template_problems(templates))
    advisor = Advisor.load(rules=rules, templates=templates, knowledge=knowledge)
    read = load_plan(plan, advisor.knowledge, knowledge)
    made = manifest(read, advisor, formats=chosen, length=length.value)
    folders = (rules, templates, knowledge)
    number = workers or _cores()
    if dry_run:
        _foretell(read, advisor, chosen, length, templates, number)
        return
    assert out
    job = _job(out, made, chosen, length, advisor, folders)
    _execute(read, job, made, resume=resume, workers=number, scheduler=scheduler)


def _formats(text: str) -> tuple[str, ...]:
    from advisor.batch.shard import FORMATS  # noqa: PLC0415  as above
    from advisor.suggest import did_you_mean  # noqa: PLC0415

    words = [word.strip().casefold() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in FORMATS:
            hint = did_you_mean(word, FORMATS) or f"Known: {', '.join(FORMATS)}."
            raise RequestError(f"--formats: unknown format '{word}'", hint=hint)
    if not words:
        raise RequestError("--formats is empty", hint=f"Known: {', '.join(FORMATS)}.")
    return tuple(name for name in FORMATS if name in words)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _job(
    out: Path,
    made: Manifest,
    formats: tuple[str, ...],
    length: Length,
    advisor: Advisor,
    folders: tuple[Path | None, ...],
) -> Job:
    import hashlib  # noqa: PLC0415

    from advisor.batch.manifest import as_bytes, made_by  # noqa: PLC0415  as above
    from advisor.batch.worker import Job  # noqa: PLC0415

    rules, templates, knowledge = (str(path.resolve()) if path else None for path in folders)
    return Job(
        out=str(out.resolve()),
        token=hashlib.sha256(as_bytes(made)).hexdigest(),
        formats=formats,
        length=LENGTHS[length],
        made_by=tuple(sorted(made_by(advisor, formats).items())),
        rules=rules,
        templates=templates,
        knowledge=knowledge,
    )


def _execute(
    plan: Plan, job: Job, made: Manifest, *, resume: bool, workers: int, scheduler: str | None
) -> None:
    from advisor.batch import store  # noqa: PLC0415  as above
    from advisor.batch.executors import Local, connected  # noqa: PLC0415
    from advisor.batch.manifest import as_bytes  # noqa: PLC0415
    from advisor.batch.run import unwritable  # noqa: PLC0415

    root = Path(job.out)
    place = connected(scheduler) if scheduler else Local(workers)
    try:
        store.check_folder(root, resume=resume)
        with store.locked(root):
            _same(root, made)
            store.prepare(root, job.token)
            store.write_one(root, store.MANIFEST, [as_bytes(made)])
            _run(plan, job, place)
    except OSError as bad:
        raise unwritable(root, bad) from None


def _same(root: Path, made: Manifest) -> None:
    """Refuse to go on with a batch that would come out differently now."""
    from advisor.batch.manifest import as_bytes, differences, read_manifest  # noqa: PLC0415
    from advisor.batch.store import MANIFEST  # noqa: PLC0415

    if not (root / MANIFEST).exists():
        return
    old = read_manifest(root / MANIFEST)
    found = differences(old, json.loads(as_bytes(made)))
    if found:
        hint = "Put that back, or start anew in another folder."
        raise RequestError(f"'{root}' was made differently: {'; '.join(found)}", hint=hint)


def _run(plan: Plan, job: Job, place: Place) -> None:
    from advisor.batch.run import Stop, run  # noqa: PLC0415  as above
    from advisor.cli.progress import Progress  # noqa: PLC0415

    stop, started = Stop(), time.monotonic()
    progress = Progress(plan.scenarios)
    with _signals(stop), progress.shown():
        totals = run(plan, job, place, stop=stop, tell=progress.tell)
    seconds = time.monotonic() - started
    summary = _summary(plan, job, totals, seconds)
    sys.stdout.write(f"{json.dumps(summary, ensure_ascii=False)}\n")
    _conclude(Path(job.out), totals, stop)


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends after the shards in flight, the second at once."""

    def asked(number: int, _frame: FrameType | None) -> None:
        if stop.signal:
            raise KeyboardInterrupt
        stop.signal = number

    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, asked) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _summary(plan: Plan, job: Job, totals: Totals, seconds: float) -> Mapping[str, object]:
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


def _conclude(root: Path, totals: Totals, stop: Stop) -> None:
    if not totals.complete:
        done = totals.kept + totals.done
        sys.stderr.write(
            f"stopped: {done:,} of {totals.shards:,} shards are complete. "
            "Run the same command with --resume to go on.\n"
        )
        raise typer.Exit(_STOPPED + stop.signal)
    if totals.failed:
        message = (
            f"{totals.failed:,} of {totals.scenarios:,} scenarios have no report; "
            f"they are listed in '{root / 'errors.jsonl'}'"
        )
        if totals.bugs:
            raise EngineError(message)
        raise RequestError(message)


def _foretell(
    plan: Plan,
    advisor: Advisor,
    formats: tuple[str, ...],
    length: Length,
    templates: Path | None,
    workers: int,
) -> None:
    from advisor.batch.names import Namer  # noqa: PLC0415  as above
    from advisor.batch.sample import measure  # noqa: PLC0415
    from advisor.batch.shard import Making  # noqa: PLC0415
    from advisor.cli.foretold import foretold  # noqa: PLC0415

    namer = Namer.of(advisor.knowledge)
    making = Making(advisor, namer, formats, LENGTHS[length], templates)
    for line in foretold(plan, measure(plan, making), workers):
        typer.echo(line)
