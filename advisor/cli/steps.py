"""How far a command of several steps has come: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

STOPPED = 130
"""Exit code of a command that Ctrl-C stopped."""
_LINE_S = 10.0


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
