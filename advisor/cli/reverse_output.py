"""The reverse questions: flags read, answers written to a terminal, a pipe or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.cli.own_settings import used_settings
from advisor.cli.report_output import write
from advisor.knowledge.cards import Cards
from advisor.knowledge.types import Knowledge
from advisor.models.stored_tensors import Model
from advisor.report import figures as f
from advisor.report.figures import wrapped
from advisor.report.formats import render_json
from advisor.reverse import Found
from advisor.reverse.answers import Cause
from advisor.reverse.documents import ReverseDoc, reverse_doc, written_csv
from advisor.reverse.view import (
    USED,
    Column,
    caches,
    card_columns,
    cards_named,
    frameworks,
    lines,
    marked,
    model_columns,
    narrowed,
    tight_rows,
    whose,
    with_bars,
    writes,
)
from advisor.reverse.words import left_out_words, ranking_words
from advisor.scenario.resolve import DEFAULT_CONTEXT_TOKENS, default_context
from advisor.units import plain

if TYPE_CHECKING:
    from rich.table import Table

_USUAL_CONTEXT = f"{DEFAULT_CONTEXT_TOKENS:,} tokens of context, or the trained length if shorter"
_WIDTH = 80
"""Columns in a pipe; names stay whole whatever they take."""
_UNJUDGED: dict[Cause, str] = {
    "price_unknown": "price left out",
    "power_unknown": "power left out",
    "release_unknown": "age left out",
}
"""Causes for which nobody can say whether a card is among those asked for."""
_BEST = {
    "price": "Cheapest of known launch price",
    "memory": "Smallest",
    "speed": "Fastest",
    "power": "Least power",
}


def write_models(
    cards: Cards, found: Found, knowledge: Knowledge, *, form: str, output: Path | None
) -> None:
    """Write the answer to ``models-for`` as a table, ``json`` or ``csv``.

    Raises:
        UserError: The file cannot be written.
    """
    found = _named(found)
    if form == "table":
        _write_table(
            _model_head(cards, found, knowledge), model_columns(found), found, knowledge, output
        )
    else:
        _write_data(reverse_doc("models-for", cards.gpu.name, found, knowledge), form, output)


def _named(found: Found) -> Found:
    """Let an answer name the settings of the user that stand for flags not given."""
    return replace(found, warnings=(*found.warnings, *used_settings()))


def write_cards(
    model: Model, found: Found, knowledge: Knowledge, *, form: str, output: Path | None
) -> None:
    """Write the answer to ``gpus-for``, as ``write_models`` does.

    Raises:
        UserError: The file cannot be written.
    """
    found = _named(found)
    if form == "table":
        _write_table(
            _card_head(model, found, knowledge), card_columns(found), found, knowledge, output
        )
    else:
        _write_data(reverse_doc("gpus-for", model.name, found, knowledge), form, output)


def _write_data(doc: ReverseDoc, form: str, output: Path | None) -> None:
    write(render_json(doc) if form == "json" else written_csv(doc), output)


def _write_table(
    head: Sequence[str],
    columns: Sequence[Column],
    found: Found,
    knowledge: Knowledge,
    output: Path | None,
) -> None:
    columns = marked(columns, found, knowledge)
    if output is None and sys.stdout.isatty():
        _print_rich(head, columns, found, knowledge)
    else:
        write("\n".join(_plain(head, columns, found, knowledge)) + "\n", output)


def _plain(
    head: Sequence[str], columns: Sequence[Column], found: Found, knowledge: Knowledge
) -> Iterator[str]:
    for line in head:
        yield from wrapped(line, _WIDTH)
    yield ""
    if found.rows:
        kept, dropped = narrowed(columns, _WIDTH)
        yield from lines(kept)
        yield ""
        yield from _dropped_words(dropped)
    yield from _tail(found, knowledge)


def _model_head(cards: Cards, found: Found, knowledge: Knowledge) -> list[str]:
    card, equal = cards.gpu, not cards.each
    named = f"{cards.count} x {card.name}" if equal and cards.count > 1 else card.name
    each = cards.each or (card,) * cards.count
    size = f.size(sum(gpu.vram_bytes or 0 for gpu in each))
    shown = len({row.answer.scenario.model.name for row in found.rows})
    fit = f"{found.fitting} of {found.tried} models run"
    return [
        f"{named}, {size}: {fit}{_shown(shown, found.fitting)}",
        *_notes(found),
        *_setup(found),
        ranking_words(found, knowledge),
    ]


def _card_head(model: Model, found: Found, knowledge: Knowledge) -> list[str]:
    name, size = plain(model.name), f.billions(model.parameters)
    unknown = {cause: found.left_out.get(cause, 0) for cause in _UNJUDGED}
    fit = f"{found.fitting} of {found.tried - sum(unknown.values())} cards run it"
    fit += "".join(f", {n} of unknown {_UNJUDGED[cause]}" for cause, n in unknown.items() if n)
    return [
        f"{name}, {size} parameters: {fit}{_shown(len(found.rows), found.fitting)}",
        *_notes(found),
        *_setup(found, default_context(model)),
        ranking_words(found, knowledge),
        *_firsts(found),
    ]


def _shown(shown: int, fitting: int) -> str:
    return "" if shown == fitting else f", {shown} shown (--limit all)"


def _setup(found: Found, usual: int | None = None) -> Iterator[str]:
    """Say how everything runs; what differs between rows has a column."""
    wish = found.wish
    context, batch = found.context or usual, wish.request.batch or 1
    parts = [
        f"{context:,} tokens of context" if context else _USUAL_CONTEXT,
        f"{batch} sequences" if batch > 1 else "one sequence",
    ]
    if caches(found) or not found.rows:
        parts.append(f"KV cache {wish.kv_type.name}")
    used = frameworks(found)
    if len(used) == 1:
        parts.append(used[0])
    speed = "; tok/s of one sequence with an empty cache"
    yield f"With {', '.join(parts)}{speed if writes(found) else ''}."


def _notes(found: Found) -> list[str]:
    return [f"Note: {plain(text)}" for text in found.warnings]


def _firsts(found: Found) -> Iterator[str]:
    for name, row in found.best.items():
        scenario = row.answer.scenario
        yield f"{_BEST[name]}: {cards_named(scenario)} with {scenario.precision.name}"


def _tail(found: Found, knowledge: Knowledge) -> Iterator[str]:
    if found.left_out:
        words = "; ".join(f"{count} {why}" for count, why in left_out_words(found))
        total = sum(found.left_out.values())
        yield from wrapped(f"Left out, {total} of {found.tried}: {words}.", _WIDTH)
    yield from whose(found, knowledge)


def _print_rich(
    head: Sequence[str], columns: Sequence[Column], found: Found, knowledge: Knowledge
) -> None:
    """Draw the table with a bar of how full the card is; narrow terminals get fewer columns."""
    from rich.console import Console  # noqa: PLC0415  only on a terminal
    from rich.text import Text  # noqa: PLC0415

    console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    for number, line in enumerate(head):
        console.print(Text(line, style="bold" if number == 0 else ""))
    console.print()
    if found.rows:
        kept, dropped = narrowed(with_bars(columns, found), console.width)
        console.print(_table(kept, found, knowledge))
        for left in _dropped_words(dropped):
            console.print(Text(left, style="dim"))
        console.print()
    for line in _tail(found, knowledge):
        console.print(Text(line, style="dim"))


def _dropped_words(dropped: Sequence[str]) -> Iterator[str]:
    if dropped:
        yield f"Not shown: {', '.join(dropped)} (--format csv)."


def _table(columns: Sequence[Column], found: Found, knowledge: Knowledge) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(column.name, justify="right" if column.right else "left")
    tight = tight_rows(found, knowledge.policy)
    for cells, little in zip(zip(*(c.cells for c in columns), strict=True), tight, strict=True):
        styled = (
            Text(cell, style=("yellow" if little else "green") if column.name == USED else "")
            for cell, column in zip(cells, columns, strict=True)
        )
        table.add_row(*styled)
    return table
