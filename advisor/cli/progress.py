"""How far a batch has come: a bar on a terminal, plain lines elsewhere, both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from advisor.bulk.batch.run import Totals

_LINE_S = 10.0
"""Seconds between two plain lines."""


class Progress:
    """Shows scenarios done, the rate and the time that remains."""

    def __init__(self, scenarios: int) -> None:
        self._scenarios = scenarios
        self._started = self._said = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep the bar up while a batch runs."""
        if not sys.stderr.isatty():
            yield
            return
        self._bar = _bar()
        self._task = self._bar.add_task("", total=self._scenarios, rate="")
        with self._bar:
            yield

    def tell(self, totals: Totals) -> None:
        """Take the state after a shard."""
        now = time.monotonic()
        rate = totals.made / (now - self._started) if totals.made else 0.0
        there = totals.reports + totals.failed
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=there, rate=f"{rate:,.0f}/s" if rate else "")
        elif now - self._said >= _LINE_S:
            self._said = now
            sys.stderr.write(f"{self._line(totals, there, rate)}\n")
            sys.stderr.flush()

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


def _bar() -> Bar:
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
