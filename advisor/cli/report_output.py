"""Reports on their way out: to the terminal, a pipe or a file."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.advice.document import Advice
from advisor.advice.pipeline import Advisor
from advisor.cli.tables import why_report
from advisor.estimate.picture import memory_picture
from advisor.files import opened
from advisor.report.assembly import document
from advisor.report.prose import Length

if TYPE_CHECKING:
    from advisor.report.contract import Document
    from advisor.report.pareto import OptionsTable

_PIPE_WIDTH = 88
_WIDEST = 100


def write_report(
    advisor: Advisor,
    advice: Advice,
    *,
    templates: Path | None,
    form: str,
    length: Length,
    output: Path | None,
    options: bool,
    why: bool,
    memory: bool,
) -> None:
    """Render the advice and write it to ``output`` or standard output.

    Raises:
        UserError: A template is wrong, or the file cannot be written.
    """
    if form == "json" or length == "full" or why:
        advice = advisor.with_expected(advice)
    picture = memory_picture(advice.scenario, advisor.knowledge) if memory else None
    doc = document(advice, templates=templates, picture=picture, options=options)
    terminal = output is None and sys.stdout.isatty()
    if form == "json":
        from advisor.report.json_view import render_json  # noqa: PLC0415

        text = render_json(doc)
    elif form == "html":
        from advisor.report.pages import render_html  # noqa: PLC0415

        text = render_html(doc, length=length, templates=templates)
    elif form == "markdown":
        from advisor.report.pages import render_markdown  # noqa: PLC0415

        text = render_markdown(doc, length=length, templates=templates)
    else:
        from advisor.report.text import render_text  # noqa: PLC0415

        colour = terminal and not os.environ.get("NO_COLOR")
        text = render_text(
            doc,
            width=_width(terminal=terminal),
            color=colour,
            length=length,
            templates=templates,
        )
    if form in {"text", "markdown"}:
        extra = [_picture(doc, form, templates, terminal=terminal)] if memory else []
        extra += [_options(doc, form, output, templates)] if options else []
        extra += [why_report(advisor, advice)] if why else []
        text = "\n\n".join([text.rstrip("\n"), *extra])
    write(text.rstrip("\n") + "\n", output)


def _picture(doc: Document, form: str, templates: Path | None, *, terminal: bool) -> str:
    from advisor.report.picture import picture_markdown, picture_text  # noqa: PLC0415

    if form == "markdown":
        return picture_markdown(doc, templates=templates)
    return picture_text(doc, width=_width(terminal=terminal), templates=templates)


def _options(doc: Document, form: str, output: Path | None, templates: Path | None) -> str:
    """The table of what fits; drawn by rich on a terminal, with its picture in a Markdown file."""
    from advisor.report import pareto  # noqa: PLC0415

    if form == "markdown":
        text = pareto.options_markdown(doc, templates=templates)
        picture = pareto.scatter_svg(doc, templates=templates) if output else None
        return f"{text}\n\n{picture}" if picture else text
    if output is None and sys.stdout.isatty():
        return _drawn(pareto.options_html(doc, templates=templates))
    return pareto.options_text(doc, width=_width(terminal=False), templates=templates)


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
    console = Console(width=_width(terminal=True), no_color=bool(os.environ.get("NO_COLOR")))
    with console.capture() as held:
        console.print(table.lead, highlight=False)
        console.print(drawn)
    return held.get()


def _width(*, terminal: bool) -> int:
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
