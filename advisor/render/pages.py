"""The written report as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.render.charts import bar_svg, speed_svg
from advisor.render.figures import typed
from advisor.render.pareto import options_html, scatter_svg
from advisor.render.picture import grid_html, growth_svg
from advisor.render.prose import Length, Remedy, Report, report
from advisor.render.templating import templates_for

if TYPE_CHECKING:
    from markupsafe import Markup

    from advisor.render.contract import Document

_SPECIAL = re.compile(r"([\\*\[\]<|#]|^>)")
_CODE = re.compile(r"`([^`]*)`")


def render_markdown(
    doc: Document,
    *,
    length: Length = "standard",
    templates: Path | None = None,
    made: Report | None = None,
) -> str:
    """Write the report as Markdown with four movements.

    Args:
        doc: The result document.
        length: ``short``, ``standard`` or ``full``.
        templates: A user's templates in front of the built-in ones.
        made: The report in this length, where it is written already.
    """
    made = made or report(doc, length, templates)
    context = {
        "title": escaped(made.title),
        "verdict": escaped(made.verdict),
        "warnings": [escaped(text) for text in made.warnings],
        "tiles": [(label, escaped(value)) for label, value in made.figures],
        "have": escaped(made.have),
        "happens": escaped(made.happens),
        "run": _fenced(made.command) if made.command else "",
        "run_unsaid": escaped(made.unsaid),
        "unsaid": escaped(made.remedies[0].unsaid) if made.remedies else "",
        "lead": escaped(made.remedies[0].title) if made.remedies else "",
        "first": escaped(made.first),
        "commands": [_fenced(item.command) for item in made.remedies[:1] if item.command],
        "rest": [_markdown_row(item) for item in made.remedies[1:]],
        "rows": [_markdown_row(item) for item in made.remedies],
        "watch": [escaped(text) for text in made.watch],
        "barred": [escaped(text) for text in made.barred],
        "provenance": made.provenance,
        "length": length,
    }
    page = templates_for(templates).page("report/report.md.j2", context)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def escaped(text: str) -> str:
    """Make text safe inside Markdown; code spans stay code."""
    if ">" not in text and not _SPECIAL.search(text):
        return text
    pieces = _CODE.split(text)
    return "".join(
        f"`{piece}`" if index % 2 else _SPECIAL.sub(r"\\\1", piece)
        for index, piece in enumerate(pieces)
    )


def _fenced(command: str) -> str:
    text = typed(command)
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(3, *(n + 1 for n in runs)) if runs else "```"
    return f"{fence}sh\n{text}\n{fence}"


def _markdown_row(item: Remedy) -> dict[str, str]:
    cells = {name: escaped(getattr(item, name)) for name in _CELLS}
    return cells | {"command": _fenced(item.command) if item.command else ""}


_CELLS = (
    "number", "title", "text", "brief", "summary", "required", "headroom", "speed", "quality", "effort",
    "cost", "confidence", "also",
)  # fmt: skip


def render_html(
    doc: Document,
    *,
    length: Length = "standard",
    templates: Path | None = None,
    made: Report | None = None,
) -> str:
    """Write the report as one HTML page: no scripts, no other files, light and dark.

    Args:
        doc: The result document.
        length: ``short``, ``standard`` or ``full``.
        templates: A user's templates in front of the built-in ones.
        made: The report in this length, where it is written already.
    """
    made = made or report(doc, length, templates)
    speed = doc["speed"]
    context = _html_words(made) | {
        "bar": bar_svg(doc),
        "dial": speed_svg(speed["decode_tok_s"] if speed else None),
        "commands": [typed(item.command) for item in made.remedies[:1] if item.command],
        "rest": [_html_row(item) for item in made.remedies[1:]],
        "rows": [_html_row(item) for item in made.remedies],
        "length": length,
        "growth": growth_svg(doc),
        "grid": grid_html(doc),
        "options_table": options_html(doc, templates=templates),
        "scatter": scatter_svg(doc, templates=templates),
    }
    page = templates_for(templates).page("report/page.html.j2", context)
    return re.sub(r"\n\s*\n+", "\n", page).strip() + "\n"


def _html_words(made: Report) -> dict[str, object]:
    return {
        "title": made.title,
        "state": made.state,
        "verdict": made.verdict,
        "warnings": made.warnings,
        "tiles": made.figures,
        "have": coded(made.have),
        "happens": coded(made.happens),
        "run": typed(made.command),
        "run_unsaid": made.unsaid,
        "unsaid": made.remedies[0].unsaid if made.remedies else "",
        "lead": made.remedies[0].title if made.remedies else "",
        "first": coded(made.first),
        "watch": [coded(text) for text in made.watch],
        "barred": [coded(text) for text in made.barred],
        "provenance": made.provenance,
    }


def coded(text: str) -> Markup:
    """Escape text for HTML and turn its code spans into ``code`` elements."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    parts = [
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(_CODE.split(text))
    ]
    return Markup("").join(parts)


def _html_row(item: Remedy) -> dict[str, object]:
    cells: dict[str, object] = {name: getattr(item, name) for name in _CELLS}
    return cells | {"text": coded(item.text), "command": typed(item.command)}
