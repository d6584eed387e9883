"""The result document as text, Markdown, HTML and JSON; each view is made from it alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, json

from advisor.errors import RequestError, did_you_mean
from advisor.knowledge.layers import Stack
from advisor.report.charts import Bar, cells, memory_bar
from advisor.report.figures import say, spoken, wrapped
from advisor.report.prose import Length, Report, report
from advisor.report.remedy_view import Remedy
from advisor.units import json_line, typed

if TYPE_CHECKING:
    from advisor.advice.document import Advice

_RESET = "\x1b[0m"
_STYLES = {
    "bold": "\x1b[1m", "dim": "\x1b[2m", "good": "\x1b[1;32m", "warn": "\x1b[1;33m",
    "bad": "\x1b[1;31m", "weights": "\x1b[34m", "kv": "\x1b[36m", "compute": "\x1b[35m",
    "overhead": "\x1b[33m", "free": "\x1b[2m", "reserve": "\x1b[2m",
}  # fmt: skip
_MARKS = {"weights": "#", "kv": "=", "compute": "+", "overhead": "o", "free": ".", "reserve": ":"}
_BY_STATE = {"fits": "good", "tight": "warn", "needs_offload": "bad", "too_big": "bad"}
_NARROWEST, _WIDEST = 40, 100
_LABEL_WIDTH = 15


def render_text(
    doc: Advice,
    *,
    width: int = 80,
    color: bool = False,
    length: Length = "standard",
    templates: Stack = None,
) -> str:
    """Write the report for a terminal.

    The width is held between 40 and 100 columns; colours do not change the words.
    """
    with spoken(templates):
        return _page(doc, report(doc, length, templates), width, color=color)


def _page(doc: Advice, made: Report, width: int, *, color: bool) -> str:
    page = _Page(min(max(width, _NARROWEST), _WIDEST), color=color)
    page.paragraph(made.verdict, style=_BY_STATE.get(made.state, "bold"))
    for warning in made.warnings:
        page.paragraph(say("text.note", text=warning), style="warn")
    page.blank()
    _figures(page, made)
    _bar(page, doc)
    if made.command:
        page.heading(say("text.run"))
        _command(page, made.command, made.unsaid, indent=2)
    _remedies(page, made)
    _words(page, made)
    page.blank()
    page.paragraph(made.provenance, style="dim")
    return page.finish()


class _Page:
    """Lines of a fixed width, coloured or not."""

    def __init__(self, width: int, *, color: bool) -> None:
        self.width = width
        self.color = color
        self._lines: list[str] = []

    def paint(self, text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if self.color and style and text else text

    def line(self, text: str) -> None:
        self._lines.append(text)

    def blank(self) -> None:
        self._lines.append("")

    def paragraph(self, text: str, *, indent: int = 0, first: str = "", style: str = "") -> None:
        """Wrap a paragraph; ``first`` stands in the indent of its first line."""
        for number, line in enumerate(wrapped(text, self.width - indent)):
            lead = first.ljust(indent) if number == 0 else " " * indent
            self.line(lead + self.paint(line, style))

    def heading(self, text: str) -> None:
        self.blank()
        self.line(self.paint(text, "bold"))

    def finish(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines) + "\n"


def _figures(page: _Page, made: Report) -> None:
    for label, value in made.figures:
        page.paragraph(value, indent=_LABEL_WIDTH + 2, first=f"  {label}")


def _bar(page: _Page, doc: Advice) -> None:
    bar = memory_bar(doc)
    columns = page.width - 4
    widths = cells([segment.share for segment in bar.segments], columns)
    limit = _limit_cell(bar, widths, columns)
    drawn = ""
    position = 0
    for segment, size in zip(bar.segments, widths, strict=True):
        before = size if limit is None else min(max(limit - position, 0), size)
        mark = _MARKS[segment.kind]
        drawn += page.paint(mark * before, segment.kind)
        drawn += "|" if limit is not None and position <= limit < position + size else ""
        drawn += page.paint(mark * (size - before), segment.kind if not bar.over else "bad")
        position += size
    page.blank()
    page.line(f"  {drawn}")
    keys = [f"{_MARKS[s.kind]} {s.label} {s.size}" for s in bar.segments]
    keys += [f"| {say('bar.end')}"] if limit is not None else []
    parts = ", ".join(key.replace(" ", "\xa0") for key in keys)
    page.paragraph(say("bar.fullest", parts=parts) if bar.several else parts, indent=2)


def _limit_cell(bar: Bar, widths: Sequence[int], columns: int) -> int | None:
    """Where usable memory ends: in front of the reserve or, when too much is needed, inside."""
    if bar.limit is None or bar.limit >= 1:
        return None
    if bar.over:
        return round(bar.limit * columns)
    return sum(w for s, w in zip(bar.segments, widths, strict=True) if s.kind != "reserve")


def _remedies(page: _Page, made: Report) -> None:
    if not made.remedies:
        return
    runs = made.state in {"fits", "tight"}
    page.heading(say("text.remedies.runs" if runs else "text.remedies"))
    for number, remedy in enumerate(made.remedies):
        page.blank()
        _remedy(page, remedy, made.first if number == 0 else remedy.text)


def _remedy(page: _Page, remedy: Remedy, text: str) -> None:
    page.paragraph(remedy.title, indent=5, first=f"  {remedy.number}.", style="bold")
    sure = say(f"line.confidence.{remedy.confidence}")
    figures = remedy.figures
    loss = [] if text or not figures["loss"] else [figures["loss"]]
    told = " | ".join([figures["summary"], *loss, figures["effort"], sure])
    page.paragraph(told, indent=5, style="dim")
    if remedy.yours:
        page.paragraph(remedy.yours, indent=5, style="dim")
    if text:
        page.paragraph(text, indent=5)
    if remedy.also:
        page.paragraph(say("text.also", changes=remedy.also), indent=5, style="dim")
    _command(page, remedy.command, remedy.unsaid, indent=5)


def _command(page: _Page, command: str, unsaid: str, *, indent: int) -> None:
    """Write a command to paste, and what it cannot say."""
    if command:
        fed = "<<" in command  # what a program is fed must stand at the margin to paste back
        for line in command_lines(command, page.width - indent - 2):
            page.line(f"{'' if fed else ' ' * indent}{page.paint(line, 'kv')}")
    if command and unsaid:
        page.paragraph(unsaid, indent=indent, style="dim")


def command_lines(command: str, width: int) -> list[str]:
    r"""Break a shell command at unquoted spaces, continued with ``\``, so that it pastes back.

    Its own lines stay apart; one that feeds a program (``<<``) is left as it is.
    """
    parts = typed(command).split("\n")
    if "<<" in parts[0]:
        return [f"$ {parts[0]}", *parts[1:]]
    return [line for shell_line in parts for line in _wrapped_command(shell_line, width)]


def _wrapped_command(command: str, width: int) -> list[str]:
    lines, current = list[str](), ""
    for word in _with_values(_shell_words(command)):
        if current and len(current) + len(word) + 3 > width:
            lines.append(f"{current} \\")
            current = f"  {word}"
        else:
            current = f"{current} {word}" if current else f"$ {word}"
    return [*lines, current]


def _with_values(words: Sequence[str]) -> list[str]:
    """Keep an option and its value on one line."""
    kept: list[str] = []
    for word in words:
        if kept and kept[-1].startswith("-") and " " not in kept[-1] and not word.startswith("-"):
            kept[-1] += f" {word}"
        else:
            kept.append(word)
    return kept


def _shell_words(command: str) -> list[str]:
    words, quote = [""], ""
    for char in command:
        if char == " " and not quote:
            words.append("")
            continue
        if char in "'\"" and quote in {"", char}:
            quote = "" if quote else char
        words[-1] += char
    return [word for word in words if word]


def _words(page: _Page, made: Report) -> None:
    if not made.remedies and made.first:
        page.blank()
        page.paragraph(made.first)
    if made.have:
        page.heading(say("text.prose"))
        page.paragraph(made.have, indent=2)
        page.paragraph(made.happens, indent=2)
    _listed(page, say("text.watch"), made.watch)
    _listed(page, say("text.barred"), made.barred)


def _listed(page: _Page, heading: str, items: tuple[str, ...]) -> None:
    if items:
        page.heading(heading)
    for item in items:
        page.paragraph(item, indent=4, first="  -")


class Page(Struct, frozen=True):
    """What a format is asked to write."""

    doc: Advice
    length: Length
    templates: Stack
    """A user's templates in front of the built-in ones."""
    made: Report | None = None
    """Its sentences, where they are written already."""
    width: int = 88
    """Columns of a terminal or pipe."""
    color: bool = False


class Format(Struct, frozen=True):
    """One way to write a report."""

    name: str
    """As typed after ``--format``, and in ``--formats`` of a batch."""
    write: Callable[[Page], str]
    suffix: str = ""
    """Ending of its files in a batch, without the dot; empty: a batch has none."""
    complete: bool = False
    """Whether it holds what cannot run here at every length."""
    continued: bool = False
    """Whether pictures, tables and reasons that are asked for follow its text."""


FORMATS: dict[str, Format] = {}
"""Every format by name, in the order in which they are named."""


def register(made: Format) -> None:
    """Make a format known."""
    FORMATS[made.name] = made


def _text(page: Page) -> str:

    return render_text(
        page.doc,
        width=page.width,
        color=page.color,
        length=page.length,
        templates=page.templates,
    )


def _paged(name: str, page: Page) -> str:
    from advisor.report import pages  # noqa: PLC0415  start-up

    written: Callable[..., str] = getattr(pages, name)
    return written(page.doc, length=page.length, templates=page.templates, made=page.made)


register(Format("text", _text, continued=True))
register(Format("markdown", partial(_paged, "render_markdown"), suffix="md", continued=True))
register(Format("html", partial(_paged, "render_html"), suffix="html"))
register(Format("json", lambda page: render_json(page.doc), complete=True))


def chosen(form: str, forms: Mapping[str, Callable[[], str]]) -> str:
    """Write the form that is asked for.

    Raises:
        RequestError: There is no such form.
    """
    if form not in forms:
        hint = did_you_mean(form, forms) or f"Known: {', '.join(forms)}."
        raise RequestError(f"'{form}' is no format of this answer", hint=hint)
    return forms[form]()


def render_json(doc: object, *, indent: int | None = 2) -> str:
    """Write the document as JSON, keys in document order, with a final newline.

    Args:
        doc: The result document.
        indent: Spaces per level; None for one line without spaces (JSON Lines).

    Raises:
        ValueError: A figure is not a number.
    """
    line = json_line(doc)
    return (line if indent is None else json.format(line, indent=indent) + b"\n").decode()
