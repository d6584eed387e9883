"""An answer to a reverse question, laid out and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.bulk.reverse.asked import Wishes
from advisor.bulk.reverse.cards import gpus_for
from advisor.bulk.reverse.documents import COLUMNS, ReverseDoc, flat_row, reverse_doc, written_csv
from advisor.bulk.reverse.models import models_for
from advisor.bulk.reverse.view import (
    Column,
    caches,
    card_columns,
    cards_named,
    frameworks,
    left_out_words,
    lines,
    marked,
    model_columns,
    narrowed,
    ranking_words,
    whose,
    writes,
)
from advisor.knowledge.catalogue import Cards
from advisor.report import chosen, render_json
from advisor.report import figures as f
from advisor.report.figures import wrapped
from advisor.report.views import escaped
from advisor.scenario.resolve import DEFAULT_CONTEXT_TOKENS, default_context
from advisor.units import json_line, plain

if TYPE_CHECKING:
    from advisor.bulk.reverse.answers import Cause, Found
    from advisor.knowledge.types import Knowledge
    from advisor.models.stored_tensors import Model

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


class Page(Struct, frozen=True):
    """An answer before it is written."""

    head: Sequence[str]
    """Sentences above the table, the first its title."""
    columns: Sequence[Column]
    tail: Sequence[str]
    """Lines below it."""


def written_text(page: Page) -> str:
    """Write it for a pipe."""
    return "\n".join(_text_lines(page)) + "\n"


def written_markdown(page: Page) -> str:
    """Write it as Markdown, with every column."""
    title, *more = map(escaped, page.head)
    text = [f"# {title}", *more]
    if rows := list(zip(*(column.cells for column in page.columns), strict=True)):
        names = [column.name for column in page.columns]
        rule = "".join("---:|" if column.right else "---|" for column in page.columns)
        cells = (" | ".join(map(escaped, row)) for row in rows)
        text.append(
            "\n".join([f"| {' | '.join(names)} |", f"|{rule}", *(f"| {c} |" for c in cells)])
        )
    return "\n\n".join([*text, *([escaped(" ".join(page.tail))] if page.tail else [])]) + "\n"


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
    shown = frameworks(found)
    for name, row in found.best.items():
        scenario, used = row.answer.scenario, row.answer.scenario.framework.name
        other = "" if shown == [used] else f" in {used}"
        yield f"{_BEST[name]}: {cards_named(scenario)} with {scenario.precision.name}{other}"


_NO_RAM = "System RAM is not counted: say what there is (--ram 64GB), it may hold a part."


def _tail(found: Found, knowledge: Knowledge) -> Iterator[str]:
    if found.left_out:
        words = "; ".join(f"{count} {why}" for count, why in left_out_words(found))
        total = sum(found.left_out.values())
        yield from wrapped(f"Left out, {total} of {found.tried}: {words}.", _WIDTH)
    if not (found.fitting or found.wish.request.ram_gib):
        yield _NO_RAM
    yield from whose(found, knowledge)


def _text_lines(page: Page) -> Iterator[str]:
    for line in page.head:
        yield from wrapped(line, _WIDTH)
    yield ""
    if page.columns[0].cells:
        kept, dropped = narrowed(page.columns, _WIDTH)
        yield from lines(kept)
        yield ""
        yield from dropped_words(dropped)
    yield from page.tail


def dropped_words(dropped: Sequence[str]) -> Iterator[str]:
    """Name the columns for which there was no room."""
    if dropped:
        yield from wrapped(f"Not shown: {', '.join(dropped)} (--format csv).", _WIDTH)


class Table:
    """The rows of ``models_for`` or ``gpus_for``, the best first."""

    def __init__(self, subject: Cards | Model, found: Found, knowledge: Knowledge) -> None:
        """Hold what was found for cards, or for a model."""
        self._subject, self.found, self.knowledge = subject, found, knowledge

    def noted(self, said: Sequence[str]) -> None:
        """Let it say these sentences too."""
        self.found = replace(self.found, warnings=(*self.found.warnings, *said))

    @property
    def document(self) -> ReverseDoc:
        """The document of ``--format json``."""
        subject = self._subject
        if isinstance(subject, Cards):
            return reverse_doc("models-for", subject.gpu.name, self.found, self.knowledge)
        return reverse_doc("gpus-for", subject.name, self.found, self.knowledge)

    @property
    def page(self) -> Page:
        """It laid out, before it is written."""
        subject, found, knowledge = self._subject, self.found, self.knowledge
        if isinstance(subject, Cards):
            head, columns = _model_head(subject, found, knowledge), model_columns(found)
        else:
            head, columns = _card_head(subject, found, knowledge), card_columns(found)
        return Page(head, marked(columns, found, knowledge), list(_tail(found, knowledge)))

    def to_dict(self) -> dict[str, Any]:
        """Give the document of ``--format json``, as plain values."""
        found: dict[str, Any] = json.loads(json_line(self.document))
        return found

    def rows(self) -> list[dict[str, object]]:
        """Give a flat row for each model or card, with the columns of ``--format csv``."""
        return [{name: flat_row(row).get(name) for name in COLUMNS} for row in self.document.rows]

    def written(self, form: str = "text") -> str:
        """Write it as text, markdown, csv or json."""
        forms: Mapping[str, Callable[[], str]] = {
            "text": lambda: written_text(self.page),
            "markdown": lambda: written_markdown(self.page),
            "csv": lambda: written_csv(self.document),
            "json": lambda: render_json(self.document),
        }
        return chosen(form, forms)

    def __str__(self) -> str:
        return self.written()

    def __repr__(self) -> str:
        doc = self.document
        return f"<advisor.Table {doc.question} {doc.subject}: {len(doc.rows)} of {doc.fitting}>"


def models_table(
    gpu: str, limit: int | str | None, asked: Mapping[str, object], knowledge: Knowledge
) -> Table:
    """Answer ``models-for``, its settings as ``Session.models_for`` takes them.

    Raises:
        UserError: A name or a number is wrong.
    """
    wishes = Wishes("models-for", limit, asked, gpu=gpu)
    cards, found = models_for(
        wishes.subject, wishes.settings("quality"), wishes.models(), knowledge,
        limit=wishes.limit, all_formats=wishes.own.get("all_formats", False),
    )  # fmt: skip
    return Table(cards, found, knowledge)


def cards_table(
    model: str,
    limit: int | str | None,
    asked: Mapping[str, object],
    knowledge: Knowledge,
    named: Callable[[str], str],
) -> Table:
    """Answer ``gpus-for``, its settings as ``Session.gpus_for`` takes them.

    ``named`` gives the files of a model that only the hub knows.

    Raises:
        UserError: A name or a number is wrong.
    """
    wishes = Wishes("gpus-for", limit, asked, model=model)
    read, found = gpus_for(
        named(wishes.subject), wishes.settings("balanced"), wishes.cards(), knowledge,
        sort=wishes.own.get("sort", "price"), limit=wishes.limit,
    )  # fmt: skip
    return Table(read, found, knowledge)
