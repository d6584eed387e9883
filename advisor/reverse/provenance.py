"""Which rows of an answer come from the user's own knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from advisor.knowledge.provenance import user_record
from advisor.report.provenance import named
from advisor.reverse.documents import yours_of
from advisor.reverse.view import Column

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.reverse.answers import Found, Row

_MARK = " (yours)"


def marked(columns: Sequence[Column], found: Found, knowledge: Knowledge) -> list[Column]:
    """Mark the cards or models in the first column that are entries of the user's."""
    first, *rest = columns
    cells = [
        f"{cell}{_MARK}" if _is_users(first.name, row, knowledge) else cell
        for cell, row in zip(first.cells, found.rows, strict=True)
    ]
    return [Column(first.name, cells, first.right), *rest]


def _is_users(column: str, row: Row, knowledge: Knowledge) -> bool:
    scenario = row.answer.scenario
    if column == "model":
        return user_record(knowledge, "model", scenario.model.name) is not None
    return scenario.gpu is not None and user_record(knowledge, "gpu", scenario.gpu.name) is not None


def whose(found: Found, knowledge: Knowledge) -> Iterator[str]:
    """Name every entry of the user's that the rows rest on, one line each."""
    yield from (f"Yours: {named(entry)}" for entry in yours_of(found, knowledge))
