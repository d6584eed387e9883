"""Answers on their way out, to the terminal, a pipe or a file; the user's own files as flags."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from advisor.api import Report
from advisor.calibration import file_of
from advisor.cli.options import KNOWLEDGE, RULES, TEMPLATES, NoMeasurements, layers_option, spread
from advisor.cli.own_settings import used_settings
from advisor.errors import EngineError, UserError
from advisor.files import opened
from advisor.knowledge.layers import OwnFiles, Stack
from advisor.report import FORMATS
from advisor.report.charts import picture_markdown, picture_text
from advisor.report.prose import Length

if TYPE_CHECKING:
    from advisor.advice.document import Advice
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
    """Replace the parameter ``own`` of a command by the flags of the user's folders."""
    return spread(command, "own", _folder_flags(None), _own_files)


def takes_own_files(
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace ``own`` by the flags of the folders, in a panel of the help, and of measurements."""
    flags = [*_folder_flags(panel), _flag("no_measurements", NoMeasurements, default=False)]
    return lambda command: spread(command, "own", flags, _own_files)


def _folder_flags(panel: str | None) -> list[Parameter]:
    return [
        _flag(name, Annotated[list[Path] | None, layers_option(said, panel)], default=None)
        for name, said in _FOLDERS.items()
    ]


def _flag(name: str, kind: object, *, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _own_files(values: Mapping[str, Any]) -> OwnFiles:
    folders: Mapping[str, Stack] = {name: values[name] for name in _FOLDERS}
    left_out = values.get("no_measurements", True)
    return OwnFiles(
        **folders, measurements=None if left_out else measurements_of(folders["knowledge"])
    )


def measurements_of(knowledge: Stack) -> Path | None:
    """Give the file to read: beside the user's knowledge where that is named, else their own.

    None where the environment leaves measurements out.
    """
    if os.environ.get("ADVISOR_NO_MEASUREMENTS", "").casefold() not in {"", "0", "false", "no"}:
        return None
    return file_of(knowledge)
