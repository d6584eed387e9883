"""How far a long command has come: a bar on a terminal, plain lines elsewhere, all on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from advisor.bulk.batch import Totals


_LINE_S = 10.0
"""Seconds between two plain lines."""


class BatchProgress:
    """Shows scenarios done, the rate and the time that remains."""

    def __init__(self, scenarios: int) -> None:
        self._scenarios = scenarios
        self._started = self._said = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._held_up = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep the bar up while a batch runs."""
        if not sys.stderr.isatty():
            yield
            return
        self._bar = _batch_bar()
        self._task = self._bar.add_task("", total=self._scenarios, rate="")
        with self._bar:
            yield

    def tell(self, totals: Totals) -> None:
        """Take the state after a shard."""
        now = time.monotonic()
        rate = totals.made / (now - self._started) if totals.made else 0.0
        there = totals.reports + totals.failed
        self._tell_once(totals.held_up)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=there, rate=f"{rate:,.0f}/s" if rate else "")
        elif now - self._said >= _LINE_S:
            self._said = now
            sys.stderr.write(f"{self._line(totals, there, rate)}\n")
            sys.stderr.flush()

    def _tell_once(self, why: str) -> None:
        if why and why != self._held_up:
            sys.stderr.write(f"{why}; start one, or stop with Ctrl-C\n")
            sys.stderr.flush()
        self._held_up = why

    def _line(self, totals: Totals, there: int, rate: float) -> str:
        parts = [f"{there:,} of {self._scenarios:,} scenarios"]
        if rate:
            left = (self._scenarios - there) / rate
            parts += [f"{rate:,.0f}/s", f"{_clock(left)} left"]
        if totals.failed:
            parts.append(f"{totals.failed:,} failed")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _batch_bar() -> Progress:
    from rich import progress  # noqa: PLC0415  only on a terminal
    from rich.console import Console  # noqa: PLC0415

    return progress.Progress(
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


STOPPED = 130
"""Exit code of a command that Ctrl-C stopped."""


class Steps:
    """Shows one bar for each step, on stderr."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep the bars up while a command runs."""
        if not sys.stderr.isatty():
            yield
            return
        from rich import progress  # noqa: PLC0415  only on a terminal
        from rich.console import Console  # noqa: PLC0415

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with self._bar:
            yield

    def tell(self, step: str, done: int, of: int) -> None:
        """Take the state of a step."""
        if self._bar is not None:
            if step not in self._tasks:
                self._tasks[step] = self._bar.add_task(step, total=of)
            self._bar.update(self._tasks[step], completed=done, total=of)
        elif time.monotonic() - self._said >= _LINE_S:
            self._said = time.monotonic()
            sys.stderr.write(f"{step}: {done:,} of {of:,}\n")
            sys.stderr.flush()


def progress_line() -> Callable[[int, int], None]:
    """Say on standard error how far the facts are: on a terminal all the time, else once."""
    live = sys.stderr.isatty()
    told = False

    def tell(done: int, total: int) -> None:
        nonlocal told
        if live:
            end = "\n" if done >= total else ""
            typer.echo(f"\rworking out facts: {done:,} of {total:,}{end}", err=True, nl=False)
        elif not told:
            typer.echo(f"working out the facts of {total:,} scenarios; kept", err=True)
        told = True

    return tell
