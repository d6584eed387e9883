"""``advisor advise``: one report. ``estimate``: figures for a whole file of requests.

``check-command``: whether a pasted command starts.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from msgspec import Struct
from msgspec.structs import asdict

from advisor.api import Extra, Session
from advisor.cli.options import (
    USER_FILES,
    Asked,
    Hub,
    KnowledgeFolder,
    Length,
    NoMeasurements,
    Offline,
    Output,
    takes_machine,
    takes_request,
)
from advisor.cli.options import Format as PlainFormat
from advisor.cli.report_output import measurements_of, takes_user_files, write, write_report
from advisor.cli.user_settings import used_settings
from advisor.errors import EngineError, RequestError, raise_problems
from advisor.files import opened
from advisor.knowledge.layers import UserFiles
from advisor.report import FORMATS
from advisor.report.templates import template_problems

if TYPE_CHECKING:
    from advisor.bulk.estimates import Line
    from advisor.knowledge.types import Knowledge

NOT_FITTING = 3
_STDIN = "-"
_REFRESH_S = 0.2
_CHECK_EVERY = 64
_MOST_QUOTED = 300


Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]  # by register
"""How a report is written."""


_OUTPUT = "The report"
_NAMES = list(FORMATS)
_FIRST = Format(_NAMES[0])


def _report_option(*flags: str, says: str, metavar: str | None = None) -> object:
    return typer.Option(*flags, help=says, metavar=metavar, rich_help_panel=_OUTPUT)


_FORMAT_SAYS = f"How the report is written: {', '.join(_NAMES[:-1])} or {_NAMES[-1]}."
_LENGTH_SAYS = "How much is said: short (at most 150 words), standard (at most 500) or full."
_MEMORY_SAYS = "Show how memory grows with context, and which contexts and batches fit."
_WHY_SAYS = "Show which rules fired, which did not, and by how much."
_STRICT_SAYS = (
    "Check the report before it is written: figures, sums, bounds, words. "
    "Exit 1 or 70 and say what does not hold."
)
_Memory = Annotated[bool, _report_option("--memory", says=_MEMORY_SAYS)]
_Options = Annotated[
    bool, _report_option("--options", says="List every what-if that was estimated.")
]
_Why = Annotated[bool, _report_option("--why", says=_WHY_SAYS)]
_Strict = Annotated[bool, _report_option("--strict", says=_STRICT_SAYS)]
_ToFile = Annotated[Path | None, _report_option("--output", "-o", says="Write to this file.")]
_FailUnlessFits = Annotated[
    bool, _report_option("--fail-unless-fits", says="Exit 3 unless the verdict is 'fits'.")
]


@takes_request
@takes_user_files(USER_FILES)
def advise(
    asked: Asked,
    format_: Annotated[
        Format, _report_option("--format", says=_FORMAT_SAYS, metavar="<word>")
    ] = _FIRST,
    length: Annotated[Length, _report_option(says=_LENGTH_SAYS, metavar="<word>")] = "standard",
    memory: _Memory = False,
    options: _Options = False,
    why: _Why = False,
    strict: _Strict = False,
    output: _ToFile = None,
    fail_unless_fits: _FailUnlessFits = False,
    hub: Hub = False,
    offline: Offline = False,
    *,
    user: UserFiles,
) -> None:
    """Say whether a model runs on a card, how well, and what to change.

    Example: advisor advise --gpu "RTX 4090" --model phi-3-medium
    """
    if hub or offline:
        raise_problems(asked.wrong)
    raise_problems(template_problems(user.templates))
    session = Session(
        **asdict(user), hub=hub or offline, offline=offline, as_stated=fail_unless_fits
    )
    known = session.advisor.knowledge
    complete = FORMATS[format_].complete
    extras: Mapping[Extra, bool] = {
        "barred": complete or length == "full" or why,
        "reasons": complete or strict,
        "memory": memory,
        "options": options,
    }
    report = session.advise(
        asked.request if hub or offline else asked.checked(known),
        [extra for extra, taken in extras.items() if taken],
    )
    write_report(report, form=format_.value, length=length, output=output, why=why, strict=strict)
    if fail_unless_fits and report.document.verdict.state != "fits":
        raise typer.Exit(NOT_FITTING)


def estimate(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Requests, JSON Lines or CSV; - for standard input."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write to this file.")
    ] = None,
    knowledge: KnowledgeFolder = None,
    no_measurements: NoMeasurements = False,
) -> None:
    """Estimate memory and speed for many requests: one JSON object per line, in order.

    Lines hold id, gpu, gpus, model or config, and the settings of advise.

    A wrong line gets its error on its own line; the exit code is then 1.

    Example: advisor estimate requests.jsonl -o figures.jsonl
    """
    out = None if output is None or str(output) == _STDIN else output
    source = None if file == _STDIN else Path(file)
    count = _Count()
    destination = opened(out, source=source) if out else nullcontext(sys.stdout)
    with _input(source) as stream, destination as target:
        measured = None if no_measurements else measurements_of(knowledge)
        session = Session(knowledge=knowledge, measurements=measured)
        _say_whose(session.knowledge)
        lines = session.estimate_lines(stream, file if source else "standard input")
        if sys.stderr.isatty() and not (out is None and sys.stdout.isatty()):
            lines = _with_progress(lines, count)
        for line in lines:
            target.write(f"{line.written()}\n")
            if source is None:
                target.flush()
            count.note(line)
    count.conclude()


def _say_whose(knowledge: Knowledge) -> None:
    """Say where figures are not what another machine would give."""
    if knowledge.user_speeds:
        sys.stderr.write(
            f"with your measurements {knowledge.user_speeds.sha256[:12]}; "
            "--no-measurements leaves them out\n"
        )


class _Count(Struct):
    """What happened so far."""

    lines: int = 0
    bad: int = 0
    first: str = ""
    bug: Exception | None = None

    def note(self, line: Line) -> None:
        """Count a line, and remember what went wrong."""
        self.lines += 1
        if line.failure:
            self.bad += 1
            self.first = self.first or f"line {line.number}: {line.failure.message[:_MOST_QUOTED]}"
            self.bug = self.bug or line.failure.bug

    def conclude(self) -> None:
        """Say at the end what went wrong.

        Raises:
            EngineError: A line failed through a fault of ours.
            RequestError: A line is wrong.
        """
        if not self.bad:
            return
        message = f"{self.bad:,} of {self.lines:,} lines have no figures; the first is {self.first}"
        if self.bug:
            raise EngineError(message) from self.bug
        raise RequestError(message)


@contextmanager
def _input(source: Path | None) -> Iterator[BinaryIO]:
    if source is None:
        yield sys.stdin.buffer
        return
    if source.is_dir():
        raise RequestError(f"'{source}' is a folder", hint="Name a file in it.")
    try:
        stream = source.open("rb")
    except OSError as bad:
        raise RequestError(f"cannot read '{source}': {bad.strerror}.") from None
    with stream:
        yield stream


def _with_progress(lines: Iterable[Line], count: _Count) -> Iterator[Line]:
    """Pass the lines through and keep one line of the terminal up to date."""
    started = shown = time.perf_counter()
    try:
        for line in lines:
            yield line
            if count.lines % _CHECK_EVERY == 0 and time.perf_counter() - shown > _REFRESH_S:
                shown = time.perf_counter()
                rate = count.lines / (shown - started)
                wrong = f", {count.bad:,} wrong" if count.bad else ""
                sys.stderr.write(f"\r{count.lines:,} lines, {rate:,.0f}/s{wrong}\x1b[K")
                sys.stderr.flush()
    finally:
        sys.stderr.write("\r\x1b[K")


_MOST_TEXT = 100_000


@takes_machine
@takes_user_files()
def check_command_line(
    machine: Asked,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="The command, behind --. Without it, standard input."
        ),
    ] = None,
    format_: Annotated[PlainFormat, typer.Option("--format", help="How it is written.")] = "text",
    length: Annotated[
        Length, typer.Option(metavar="<word>", help="How much of the report follows.")
    ] = "short",
    output: Output = None,
    fail_unless_fits: Annotated[
        bool, typer.Option("--fail-unless-fits", help="Exit 3 unless the command starts.")
    ] = False,
    *,
    user: UserFiles,
) -> None:
    """Say whether a pasted command starts on a card, what it leaves, and which one does.

    It reads what starts vLLM, SGLang, TensorRT-LLM, TGI, LMDeploy, llama.cpp and what is built on
    it, Ollama (and Modelfiles), TabbyAPI, text-generation-webui, MLX-LM and LM Studio; also in a
    container, with variables and over several lines.

    Example: advisor check-command --gpu T4 -- vllm serve Qwen/Qwen3-8B-AWQ
    """
    raise_problems(machine.wrong)
    extras: Sequence[Extra] = ["barred", "reasons"] if format_ == "json" else []
    session = Session(**asdict(user))
    found = session.check_command(_pasted(command), machine.request, extras)
    found.report.noted(used_settings())
    write(found.written(format_, length), output)
    if fail_unless_fits and found.starts != "yes":
        raise typer.Exit(NOT_FITTING)


def _pasted(command: Sequence[str] | None) -> str:
    """Give the command as one text.

    Raises:
        RequestError: There is none, or it is far too long for one.
    """
    if command:
        return command[0] if len(command) == 1 else shlex.join(command)
    if sys.stdin is None or sys.stdin.isatty():
        raise RequestError(
            "no command is given", hint="Write it behind --, or send it to standard input."
        )
    text = sys.stdin.read(_MOST_TEXT + 1)
    if len(text) > _MOST_TEXT or not text.strip():
        what = "is empty" if not text.strip() else "is too long for a command"
        raise RequestError(f"standard input {what}", hint="Send a command to it.")
    return text
