"""The written report as Markdown and as one self-contained HTML page, and what-ifs side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.knowledge.layers import Stack
from advisor.report import figures as f
from advisor.report.charts import Drawing, bar_svg, grid_html, growth_svg, speed_svg
from advisor.report.figures import say, spoken, wrapped
from advisor.report.prose import Length, Report, report
from advisor.report.remedy_view import Remedy, changes
from advisor.report.templates import templates_for
from advisor.report.views import Placeholders, coded, escaped
from advisor.units import rate, typed

if TYPE_CHECKING:
    from markupsafe import Markup

    from advisor.advice.document import Advice, OptionDoc


_LEFT, _RIGHT, _TOP, _BOTTOM = 110.0, 960.0, 20.0, 360.0
_LOSSES = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0, 200.0, 400.0, 800.0)
_SPEED_TICKS = 4
_TABLE = "report/options.md.j2"
_PICTURE = "report/options.svg.j2"


def options_markdown(doc: Advice, *, templates: Stack = None) -> str:
    """Write the table as Markdown; empty when the document holds none."""
    with spoken(templates):
        rows = [{k: escaped(v) for k, v in row.items()} for row in _rows(doc)]
    return _options_page(doc, rows, templates)


def options_text(doc: Advice, *, width: int = 80, templates: Stack = None) -> str:
    """Lay the table out for a pipe; empty when the document holds none."""
    lines: list[str] = []
    table: list[list[str]] = []
    with spoken(templates):
        page = _options_page(doc, _rows(doc), templates)
    for line in page.splitlines():
        if line.startswith("|"):
            table.append(_cells(line))
            continue
        lines += _aligned(table)
        table = []
        lines += wrapped(line.removeprefix("## "), width)
    return "\n".join([*lines, *_aligned(table)]).strip("\n")


class OptionsTable(Struct, frozen=True):
    """The table with the words around it, for views that draw tables themselves."""

    title: str
    lead: str
    foot: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def options_html(doc: Advice, *, templates: Stack = None) -> OptionsTable | None:
    """Take the table apart; None when the document holds none."""
    lines = [line for line in _options_page(doc, _rows(doc), templates).splitlines() if line]
    if not lines:
        return None
    table = [_cells(line) for line in lines if line.startswith("|") and not _is_rule(line)]
    words = [line.removeprefix("## ") for line in lines if not line.startswith("|")]
    head, *rows = table or [[]]
    foot = " ".join(words[2:])
    return OptionsTable(words[0], words[1], foot, tuple(head), tuple(tuple(r) for r in rows))


def _is_rule(line: str) -> bool:
    return not line.strip("|-: ")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    rows = [row for row in table if any(cell.strip("-: ") for cell in row)]
    return list(f.aligned(rows, "  ")) if rows else []


def _options_page(doc: Advice, rows: Sequence[Mapping[str, str]], templates: Stack) -> str:
    options = doc.options
    if options is None:
        return ""
    context = {
        "changes": rows,
        "options.tried": f.count(options.tried),
        "options.fitting": str(options.fitting),
        "options.barred": f.count(options.barred or None),
        "options.dominated": f.count(options.dominated or None),
        "request.several_sequences": f.flag(doc.scenario.batch > 1),
    }
    page = templates_for(templates).page(_TABLE, context)
    return re.sub(r"\n{3,}", "\n\n", page).strip()


def _rows(doc: Advice) -> list[Mapping[str, str]]:
    options = doc.options
    return [_row(doc, row) for row in options.rows] if options else []


def _row(doc: Advice, row: OptionDoc) -> Mapping[str, str]:
    after, cost = row.after, row.tradeoff
    return {
        "action": row.action,
        "change": f.listed(changes(doc, row)) or row.action,
        "quality": f.percent(cost.quality) if cost.quality is not None else "",
        "speed": rate(after.decode_tok_s.estimate) if after.decode_tok_s else "",
        "required": f.amount(after.required_bytes),
        "cost": f.dollars(cost.cost_usd),
        "effort": cost.effort,
        "steps": str(row.steps),
        "best": "*" if row.best else "",
    }


def scatter_svg(doc: Advice, *, templates: Stack = None) -> Markup | None:
    """Draw the options that have both figures; None where fewer than two have."""
    from markupsafe import Markup  # noqa: PLC0415

    with spoken(templates):
        scatter = _scatter(doc)
    if scatter is None:
        return None
    page = templates_for(templates).page(_PICTURE, {"scatter": scatter})
    return Markup(re.sub(r"\n\s*\n+", "\n", page).strip())  # noqa: S704  escaped by the template


def _scatter(doc: Advice) -> Drawing | None:
    """Place quality against speed on a canvas 1000 by 440."""
    options = doc.options
    rows = [row for row in options.rows if _both(row)] if options else []
    if len(rows) <= 1:
        return None
    fastest = _round_up(max(_speed(row) for row in rows))
    worst = max(_loss(row) for row in rows)
    end = next((loss for loss in _LOSSES[1:] if loss >= worst), worst)
    across = (_RIGHT - _LEFT) / fastest
    down = (_BOTTOM - _TOP) / sqrt(end)
    dearest = max((row.tradeoff.cost_usd or 0.0 for row in rows), default=0.0)
    ticks = [fastest * i / _SPEED_TICKS for i in range(_SPEED_TICKS + 1)]
    return {
        "marks": [_mark(doc, row, across, down, dearest) for row in rows],
        "losses": [_tick(_TOP + sqrt(n) * down, f"{n:g} %") for n in _LOSSES if n <= end],
        "speeds": [_tick(_LEFT + value * across, f"{value:g}") for value in ticks],
    }


def _tick(at: float, text: str) -> Drawing:
    return {"at": f"{at:.1f}", "text": text}


def _mark(doc: Advice, row: OptionDoc, across: float, down: float, dearest: float) -> Drawing:
    cost, bought = row.tradeoff.cost_usd, row.tradeoff.effort == "purchase"
    shape = ("priced" if cost else "unpriced") if bought else "free"
    size = 7.0 + (9.0 * sqrt(cost / dearest) if cost and dearest and bought else 0.0)
    cells = _row(doc, row)
    figures = [cells["quality"], say("speed.point", speed=cells["speed"]), cells["cost"]]
    return {
        "x": f"{_LEFT + _speed(row) * across:.1f}",
        "y": f"{_TOP + sqrt(_loss(row)) * down:.1f}",
        "shape": shape,
        "size": f"{size:.1f}",
        "half": f"{2 * size:.1f}",
        "best": cells["best"],
        "words": f"{cells['change']}: {', '.join(text for text in figures if text)}",
    }


def _both(row: OptionDoc) -> bool:
    return row.tradeoff.quality is not None and row.after.decode_tok_s is not None


def _loss(row: OptionDoc) -> float:
    return max(row.tradeoff.quality or 0.0, 0.0)


def _speed(row: OptionDoc) -> float:
    figure = row.after.decode_tok_s
    return figure.estimate if figure else 0.0


def _round_up(value: float) -> float:
    step = 1.0
    while step * 10 < value:
        step *= 10
    return next((m * step for m in (1, 2, 4, 5, 6, 8, 10) if m * step >= value), 10 * step)


_WORDS = ("number", "title", "text", "brief", "confidence", "also", "yours")
_FIGURES = ("summary", "required", "headroom", "speed", "quality", "effort", "cost")
_CELLS = (*_WORDS, *_FIGURES)


def render_markdown(
    doc: Advice,
    *,
    length: Length = "standard",
    templates: Stack = None,
    made: Report | None = None,
) -> str:
    """Write the report as Markdown with four movements.

    ``made`` is the report in this length, where it is written already.
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
    templates: Stack = None,
    made: Report | None = None,
) -> str:
    """Write the report as one HTML page: no scripts, no other files, light and dark.

    ``made`` is the report in this length, where it is written already.
    """
    with spoken(templates):
        return _html(doc, made or report(doc, length, templates), length, templates)


def _html(doc: Advice, made: Report, length: Length, templates: Stack) -> str:
    speed = doc.speed
    context = _told(made, str, coded, typed) | {
        "bar": bar_svg(doc),
        "dial": speed_svg(speed.decode_tok_s if speed else None),
        "rest": [_html_row(item) for item in made.remedies[1:]],
        "rows": [_html_row(item) for item in made.remedies],
        "length": length,
        "language": say("language.code"),
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
