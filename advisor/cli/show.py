"""Reports on their way out: to the terminal, a pipe or a file."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.advice import Advice
from advisor.cli.tables import options_table, why_report
from advisor.errors import RequestError
from advisor.estimate.picture import memory_picture
from advisor.pipeline import Advisor
from advisor.render import (
    Length,
    document,
    picture_markdown,
    picture_text,
    render_html,
    render_json,
    render_markdown,
    render_text,
)

if TYPE_CHECKING:
    from advisor.render.contract import Document

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
    doc = document(advice, templates=templates, picture=picture)
    terminal = output is None and sys.stdout.isatty()
    if form == "json":
        text = render_json(doc)
    elif form == "html":
        text = render_html(doc, length=length, templates=templates)
    elif form == "markdown":
        text = render_markdown(doc, length=length, templates=templates)
    else:
        colour = terminal and not os.environ.get("NO_COLOR")
        text = render_text(
            doc,
            width=_width(terminal=terminal),
            color=colour,
            length=length,
            templates=templates,
        )
    if form in {"text", "markdown"}:
        extra = [_picture(doc, form, terminal=terminal)] if memory else []
        extra += [options_table(advice)] if options else []
        extra += [why_report(advisor, advice)] if why else []
        text = "\n\n".join([text.rstrip("\n"), *extra])
    write(text.rstrip("\n") + "\n", output)


def _picture(doc: Document, form: str, *, terminal: bool) -> str:
    return (
        picture_markdown(doc)
        if form == "markdown"
        else picture_text(doc, width=_width(terminal=terminal))
    )


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
    part = output.with_name(f".{output.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise RequestError(
            f"{output} cannot be written: {error.strerror}", hint="Give another --output."
        ) from None
