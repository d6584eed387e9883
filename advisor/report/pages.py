"""The written report as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.report.charts import bar_svg, grid_html, growth_svg, speed_svg
from advisor.report.clauses import coded, escaped
from advisor.report.pareto import options_html, scatter_svg
from advisor.report.prose import Length, Report, report
from advisor.report.remedy_view import Remedy
from advisor.report.templates import templates_for
from advisor.report.views import Placeholders
from advisor.report.words import spoken
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
        "lead_yours": escaped(made.remedies[0].yours) if made.remedies else "",
        "first": escaped(made.first),
        "commands": [_fenced(item.command) for item in made.remedies[:1] if item.command],
        "rest": rows[1:],
        "rows": rows,
        "watch": [escaped(text) for text in made.watch],
        "barred": [escaped(text) for text in made.barred],
        "provenance": escaped(made.provenance),
        "length": length,
    }
    page = templates_for(templates).page("report/report.md.j2", context)
    while "\n\n\n" in page:
        page = page.replace("\n\n\n", "\n\n")
    return page.strip() + "\n"


def _fenced(command: str) -> str:
    text = typed(command)
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
            text = _fenced(self._item.command) if self._item.command else ""
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
    context = _html_words(made) | {
        "bar": bar_svg(doc),
        "dial": speed_svg(speed.decode_tok_s if speed else None),
        "commands": [typed(item.command) for item in made.remedies[:1] if item.command],
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


def _html_words(made: Report) -> dict[str, object]:
    return {
        "title": made.title,
        "fit.state": made.state,
        "verdict": made.verdict,
        "warnings": made.warnings,
        "tiles": made.figures,
        "have": coded(made.have),
        "happens": coded(made.happens),
        "run": typed(made.command),
        "run_unsaid": made.unsaid,
        "unsaid": made.remedies[0].unsaid if made.remedies else "",
        "lead": made.remedies[0].title if made.remedies else "",
        "lead_yours": made.remedies[0].yours if made.remedies else "",
        "first": coded(made.first),
        "watch": [coded(text) for text in made.watch],
        "barred": [coded(text) for text in made.barred],
        "provenance": made.provenance,
    }


def _html_row(item: Remedy) -> dict[str, object]:
    cells: dict[str, object] = {name: _cell(item, name) for name in _CELLS}
    return cells | {"text": coded(item.text), "command": typed(item.command)}
