"""The written report as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.report.charts import bar_svg, grid_html, growth_svg, speed_svg
from advisor.report.clauses import coded, escaped
from advisor.report.figures import spoken
from advisor.report.pareto import options_html, scatter_svg
from advisor.report.prose import Length, Report, report
from advisor.report.remedy_view import Remedy
from advisor.report.templates import templates_for
from advisor.report.views import Placeholders
from advisor.units import typed

if TYPE_CHECKING:
    from advisor.advice.document import Advice

_WORDS = ("number", "title", "text", "brief", "confidence", "also", "yours")
_FIGURES = ("summary", "required", "headroom", "speed", "quality", "effort", "cost")
_CELLS = (*_WORDS, *_FIGURES)


def render_markdown(
    doc: Advice,
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
    rows = [_MarkdownRow(item) for item in made.remedies]
    context = {
        **_told(made, escaped, escaped, _fenced),
        "rest": rows[1:],
        "rows": rows,
        "length": length,
    }
    page = templates_for(templates).page("report/report.md.j2", context)
    while "\n\n\n" in page:
        page = page.replace("\n\n\n", "\n\n")
    return page.strip() + "\n"


def _told(
    made: Report,
    safe: Callable[[str], str],
    marked: Callable[[str], str],
    typable: Callable[[str], str],
) -> dict[str, object]:
    """Give what both pages hold.

    Args:
        made: The report.
        safe: Makes figures and names safe.
        marked: Makes sentences safe, in which code spans stay code.
        typable: Makes a command one to paste.
    """
    best = made.remedies[:1]
    return {
        "title": safe(made.title),
        "fit.state": made.state,
        "verdict": safe(made.verdict),
        "warnings": [safe(text) for text in made.warnings],
        "tiles": [(label, safe(value)) for label, value in made.figures],
        "have": marked(made.have),
        "happens": marked(made.happens),
        "run": typable(made.command),
        "run_unsaid": safe(made.unsaid),
        "unsaid": safe(best[0].unsaid) if best else "",
        "lead": safe(best[0].title) if best else "",
        "lead_yours": safe(best[0].yours) if best else "",
        "first": marked(made.first),
        "commands": [typable(item.command) for item in best if item.command],
        "watch": [marked(text) for text in made.watch],
        "barred": [marked(text) for text in made.barred],
        "provenance": safe(made.provenance),
    }


def _fenced(command: str) -> str:
    text = typed(command)
    if not text:
        return ""
    runs = [len(run) for run in re.findall(r"`+", text)] if "`" in text else []
    fence = "`" * max(3, *(n + 1 for n in runs)) if runs else "```"
    return f"{fence}sh\n{text}\n{fence}"


def _cell(item: Remedy, name: str) -> str:
    return item.figures[name] if name in _FIGURES else str(getattr(item, name))


class _MarkdownRow(Placeholders):
    """Cells made safe as a template asks for them: a standard report takes five of them."""

    __slots__ = ("_item",)
    names = (*_CELLS, "command")

    def __init__(self, item: Remedy) -> None:
        super().__init__()
        self._item = item

    def __missing__(self, name: str) -> str:
        if name == "command":
            text = _fenced(self._item.command)
        elif name in self.names:
            text = escaped(_cell(self._item, name))
        else:
            raise KeyError(name)
        self[name] = text
        return text


def render_html(
    doc: Advice,
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
    with spoken(templates):
        return _html(doc, made or report(doc, length, templates), length, templates)


def _html(doc: Advice, made: Report, length: Length, templates: Path | None) -> str:
    speed = doc.speed
    context = _told(made, str, coded, typed) | {
        "bar": bar_svg(doc),
        "dial": speed_svg(speed.decode_tok_s if speed else None),
        "rest": [_html_row(item) for item in made.remedies[1:]],
        "rows": [_html_row(item) for item in made.remedies],
        "length": length,
        "growth": growth_svg(doc),
        "grid": grid_html(doc),
        "changes_table": options_html(doc, templates=templates),
        "scatter": scatter_svg(doc, templates=templates),
    }
    page = templates_for(templates).page("report/page.html.j2", context)
    return re.sub(r"\n\s*\n+", "\n", page).strip() + "\n"


def _html_row(item: Remedy) -> dict[str, object]:
    cells: dict[str, object] = {name: _cell(item, name) for name in _CELLS}
    return cells | {"text": coded(item.text), "command": typed(item.command)}
