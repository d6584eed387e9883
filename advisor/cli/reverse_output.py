"""Answers of ``models-for`` and ``gpus-for`` on their way out: a table, JSON or CSV."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.cli.own_settings import used_settings
from advisor.cli.report_output import write
from advisor.knowledge.catalogue import Cards
from advisor.knowledge.types import Knowledge
from advisor.models.stored_tensors import Model
from advisor.report import render_json
from advisor.reverse import Found
from advisor.reverse.asked import Page, cards_page, dropped_words, models_page, written_text
from advisor.reverse.documents import ReverseDoc, reverse_doc, written_csv
from advisor.reverse.view import USED, narrowed, tight_rows, with_bars

if TYPE_CHECKING:
    from rich.table import Table

    from advisor.reverse.view import Column


def write_models(
    cards: Cards, found: Found, knowledge: Knowledge, *, form: str, output: Path | None
) -> None:
    """Write the answer to ``models-for`` as a table, ``json`` or ``csv``.

    Raises:
        UserError: The file cannot be written.
    """
    found = _named(found)
    if form == "table":
        _write_table(models_page(cards, found, knowledge), found, knowledge, output)
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
        _write_table(cards_page(model, found, knowledge), found, knowledge, output)
    else:
        _write_data(reverse_doc("gpus-for", model.name, found, knowledge), form, output)


def _write_data(doc: ReverseDoc, form: str, output: Path | None) -> None:
    write(render_json(doc) if form == "json" else written_csv(doc), output)


def _write_table(page: Page, found: Found, knowledge: Knowledge, output: Path | None) -> None:
    if output is None and sys.stdout.isatty():
        _print_rich(page, found, knowledge)
    else:
        write(written_text(page), output)


def _print_rich(page: Page, found: Found, knowledge: Knowledge) -> None:
    """Draw the table with a bar of how full the card is; narrow terminals get fewer columns."""
    from rich.console import Console  # noqa: PLC0415  only on a terminal
    from rich.text import Text  # noqa: PLC0415

    console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    for number, line in enumerate(page.head):
        console.print(Text(line, style="bold" if number == 0 else ""))
    console.print()
    if found.rows:
        kept, dropped = narrowed(with_bars(page.columns, found), console.width)
        console.print(_table(kept, found, knowledge))
        for left in dropped_words(dropped):
            console.print(Text(left, style="dim"))
        console.print()
    for line in page.tail:
        console.print(Text(line, style="dim"))


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
