"""Answers on their way out, to the terminal, a pipe or a file; how far a long command has come.

Also the flags that name the user's own files. Progress is a bar on a terminal, plain lines
elsewhere, always on stderr.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.api import Report
from advisor.cli.options import (
    KNOWLEDGE,
    RULES,
    TEMPLATES,
    NoMeasurements,
    keyword,
    layers_option,
    spread,
)
from advisor.cli.user_settings import used_settings
from advisor.errors import EngineError, UserError
from advisor.estimator.calibration import file_of
from advisor.files import opened
from advisor.knowledge.layers import Stack, UserFiles
from advisor.report import FORMATS
from advisor.report.charts import picture_markdown, picture_text
from advisor.report.prose import Length

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from advisor.advice.document import Advice
    from advisor.bulk.batch import Totals
    from advisor.report.pages import OptionsTable


_PIPE_WIDTH = 88
_WIDEST = 100


def write_report(
    report: Report, *, form: str, length: Length, output: Path | None, why: bool, strict: bool
) -> None:
    """Write the report to ``output`` or standard output, with the pictures that it holds.

    Raises:
        UserError: A template is wrong, or the file cannot be written.
        EngineError: With ``strict``: the report does not hold.
    """
    report.noted(used_settings())
    if strict:
        _hold(report, length)
    terminal = output is None and sys.stdout.isatty()
    color = terminal and not os.environ.get("NO_COLOR")
    text = report.written(form, length, width=width_of(terminal=terminal), color=color)
    if FORMATS[form].continued:
        doc, templates = report.document, report.templates
        extra = [_picture(doc, form, templates, terminal=terminal)] if doc.memory_picture else []
        extra += [_options(doc, form, output, templates)] if doc.options else []
        extra += [report.trace] if why else []
        text = "\n\n".join([text.rstrip("\n"), *extra])
    write(text.rstrip("\n") + "\n", output)


def _hold(report: Report, length: Length) -> None:
    """Refuse a report that does not hold: a bug of ours, unless files of the user shaped it.

    Raises:
        UserError: It does not hold, and the user's own files are in it.
        EngineError: It does not hold.
    """
    wrong = report.flaws(length)
    if not wrong:
        return
    said = f"this report does not hold: {'; '.join(wrong)}."
    if report.templates or report.document.provenance.yours:
        raise UserError(said, hint="See whether it holds without your own files.")
    raise EngineError(said)


def _picture(doc: Advice, form: str, templates: Stack, *, terminal: bool) -> str:
    """How memory grows."""
    if form == "markdown":
        return picture_markdown(doc, templates=templates)
    return picture_text(doc, width=width_of(terminal=terminal), templates=templates)


def _options(doc: Advice, form: str, output: Path | None, templates: Stack) -> str:
    """The table of what fits; drawn by rich on a terminal, with its picture in a Markdown file."""
    from advisor.report import pages  # noqa: PLC0415

    if form == "markdown":
        text = pages.options_markdown(doc, templates=templates)
        picture = pages.scatter_svg(doc, templates=templates) if output else None
        return f"{text}\n\n{picture}" if picture else text
    if output is None and sys.stdout.isatty():
        return _drawn(pages.options_html(doc, templates=templates))
    return pages.options_text(doc, width=width_of(terminal=False), templates=templates)


def _drawn(table: OptionsTable | None) -> str:
    if table is None:
        return ""
    from rich.console import Console  # noqa: PLC0415  start-up
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(title=table.title, caption=table.foot)
    for name in table.head:
        drawn.add_column(name)
    for row in table.rows:
        drawn.add_row(*row)
    console = Console(width=width_of(terminal=True), no_color=bool(os.environ.get("NO_COLOR")))
    with console.capture() as held:
        console.print(table.lead, highlight=False)
        console.print(drawn)
    return held.get()


def width_of(*, terminal: bool) -> int:
    """Give the columns to write in."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if terminal else _PIPE_WIDTH


def write(text: str, output: Path | None) -> None:
    """Write to a file, whole or not at all, or to standard output.

    Raises:
        RequestError: The file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    with opened(output) as file:
        file.write(text)


_FOLDERS = {"rules": RULES, "templates": TEMPLATES, "knowledge": KNOWLEDGE}


def takes_folders(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter ``user`` of a command by the flags of the user's folders."""
    return spread(command, "user", _folder_flags(None), _user_files)


def takes_user_files(
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace ``user`` by the flags of the folders, in a panel of the help, and of measurements."""
    flags = [*_folder_flags(panel), keyword("no_measurements", NoMeasurements, False)]
    return lambda command: spread(command, "user", flags, _user_files)


def _folder_flags(panel: str | None) -> list[Parameter]:
    return [
        keyword(name, Annotated[list[Path] | None, layers_option(said, panel)])
        for name, said in _FOLDERS.items()
    ]


def _user_files(values: Mapping[str, Any]) -> UserFiles:
    folders: Mapping[str, Stack] = {name: values[name] for name in _FOLDERS}
    left_out = values.get("no_measurements", True)
    return UserFiles(
        **folders, measurements=None if left_out else measurements_of(folders["knowledge"])
    )


def measurements_of(knowledge: Stack) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)


_LINE_S = 10.0
"""Seconds between two plain lines."""


class _Bars:
    """Bars on a terminal, on stderr; elsewhere a line is written now and then."""

    left, extra = "{task.description}", ""
    """What stands before each bar, and behind its numbers."""

    def __init__(self) -> None:
        self._started = self._said = time.monotonic()
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
            *map(progress.TextColumn, filter(None, [self.left])),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            *map(progress.TextColumn, filter(None, [self.extra])),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with self._bar:
            yield

    def _moved(self, step: str, done: int, of: int, line: str, rate: str = "") -> None:
        """Take how far a step is: shown by its bar, else by a line every ten seconds."""
        now = time.monotonic()
        if self._bar is not None:
            if step not in self._tasks:
                self._tasks[step] = self._bar.add_task(step, total=of, rate=rate)
            self._bar.update(self._tasks[step], completed=done, total=of, rate=rate)
        elif now - self._said >= _LINE_S:
            self._said = now
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


class BatchProgress(_Bars):
    """Shows scenarios done, the rate and the time that remains."""

    left, extra = "", "{task.fields[rate]}"

    def __init__(self, scenarios: int) -> None:
        super().__init__()
        self._scenarios = scenarios
        self._held_up = ""

    def tell(self, totals: Totals) -> None:
        """Take the state after a shard."""
        rate = totals.made / (time.monotonic() - self._started) if totals.made else 0.0
        there = totals.reports + totals.failed
        self._tell_once(totals.held_up)
        line, shown = self._line(totals, there, rate), f"{rate:,.0f}/s" if rate else ""
        self._moved("", there, self._scenarios, line, shown)

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


STOPPED = 130
"""Exit code of a command that Ctrl-C stopped."""


class Steps(_Bars):
    """Shows one bar for each step."""

    def tell(self, step: str, done: int, of: int) -> None:
        """Take the state of a step."""
        self._moved(step, done, of, f"{step}: {done:,} of {of:,}")


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
