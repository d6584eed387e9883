"""A diagnosis as text, as Markdown and as the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.report.diagnosis import Diagnosis, Row
from advisor.report.figures import aligned, amount, count, say, wrapped
from advisor.report.formats import FORMATS, Page
from advisor.scenario.settings import SETTINGS
from advisor.units import plain, typed

COLUMNS = ("figure", "log", "computed", "difference", "line")
NUMBERS = frozenset({1, 2, 3, 4})
"""Columns that end in line."""
_NONE = "-"


def head() -> tuple[str, ...]:
    """Give the names of the columns."""
    return tuple(say(f"log.column.{name}") for name in COLUMNS)


def cells(row: Row) -> tuple[str, ...]:
    """Write one figure of the log beside ours."""
    name = say(f"log.figure.{row.figure}")
    difference = _NONE if row.difference is None else _difference(row)
    return (
        say("log.each", figure=name) if row.each_card else name,
        _shown(row, row.logged),
        _NONE if row.computed is None else _shown(row, row.computed),
        say("log.far", difference=difference) if row.far else difference,
        str(row.line) if row.line else _NONE,
    )


def said(found: Diagnosis) -> list[tuple[str, str]]:
    """List what the log says beside figures: label and text."""
    program = " ".join(filter(None, (found.program, found.version)))
    rows = {
        "program": plain(program),
        "cards": plain(", ".join(dict.fromkeys(found.cards.values()))),
        "model": found.model or "",
        "settings": settings_shown(found),
    }
    return [(say(f"log.label.{key}"), text) for key, text in rows.items() if text]


def settings_shown(found: Diagnosis) -> str:
    """Write the settings that were asked for, as flags of ``advise``."""
    return " ".join(_flag(name, value) for name, value in found.settings.items())


def _flag(name: str, value: object) -> str:
    text = (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
    shown = f'"{text}"' if " " in text else text
    return f"--{SETTINGS[name].typed_name.replace('_', '-')} {plain(shown)}"


def text_head(found: Diagnosis, width: int) -> Iterator[str]:
    """Write what the log says, up to the table."""
    yield say("log.head.said")
    yield ""
    labels = said(found)
    size = max((len(label) for label, _ in labels), default=0)
    for label, text in labels:
        first, *more = wrapped(text, width - size - 4)
        yield f"  {label.ljust(size)}  {first}"
        yield from (f"  {' ' * size}  {line}" for line in more)
    if found.cause:
        yield ""
        yield from wrapped(found.cause.text, width)
        if found.cause.quoted:
            quoted = say("log.at", line=found.cause.line, text=found.cause.quoted)
            yield from (f"  {line}" for line in wrapped(quoted, width - 2))


def text_table(found: Diagnosis) -> Iterator[str]:
    """Write the figures in columns."""
    yield say("log.head.compared")
    yield ""
    rows = [head(), *(cells(row) for row in found.comparison)]
    yield from aligned(rows, "  ", right=NUMBERS)


def remarks(found: Diagnosis, width: int) -> Iterator[str]:
    """Write what is to be said of the figures, and what starts as things stand."""
    for text in found.remarks:
        yield ""
        yield from wrapped(text, width)
    if found.starts:
        yield ""
        yield from (f"  $ {line}" for line in typed(found.starts).split("\n"))


def text(found: Diagnosis, width: int) -> str:
    """Write everything but the advice for a pipe."""
    lines = [*text_head(found, width)]
    lines += ["", *text_table(found)] if found.comparison else []
    return "\n".join([*lines, *remarks(found, width)]).rstrip("\n") + "\n"


def with_advice(said: str, page: Page | None, form: str) -> str:
    """Add the report to what was said of a log, in the same form."""
    if page is None:
        return said
    title = say("log.head.advice")
    shown = f"\n## {title}\n\n" if form == "markdown" else f"\n{title}\n\n"
    return said + shown + FORMATS[form].write(page).rstrip("\n") + "\n"


def markdown(found: Diagnosis) -> str:
    """Write everything but the advice."""
    lines = [f"# {say('log.head.said')}", ""]
    lines += [f"- **{label}**: {_escaped(text)}" for label, text in said(found)]
    if found.cause:
        lines += ["", f"**{found.cause.text}**"]
        if found.cause.quoted:
            quoted = say("log.at", line=found.cause.line, text=found.cause.quoted)
            lines += ["", f"> {_escaped(quoted)}"]
    if found.comparison:
        lines += ["", f"## {say('log.head.compared')}", "", *_table(found.comparison)]
    for text in found.remarks:
        lines += ["", text]
    if found.starts:
        lines += ["", "```sh", typed(found.starts), "```"]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(head())} |"
    yield "|---|" + "---:|" * (len(COLUMNS) - 1)
    yield from (f"| {' | '.join(cells(row))} |" for row in rows)


def _escaped(text: str) -> str:
    """Keep what strangers wrote from being markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#!" else sign for sign in text)


def _shown(row: Row, value: float) -> str:
    if row.unit == "bytes":
        return amount(value)
    return f"{count(value)} %" if row.unit == "%" else count(value)


def _difference(row: Row) -> str:
    value = row.difference or 0.0
    sign = "-" if value < 0 else "+"
    return f"{sign}{_shown(row, abs(value))}"
