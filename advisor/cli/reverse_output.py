"""The reverse questions: flags read, answers written to a terminal, a pipe or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.cli.hub import local_model
from advisor.cli.report_output import write
from advisor.cli.request_flags import read_bandwidth, read_size
from advisor.errors import RequestError, raise_problems
from advisor.knowledge import load_knowledge
from advisor.knowledge.field_kinds import is_date
from advisor.knowledge.types import Gpu, Knowledge
from advisor.models.model import Model
from advisor.report import figures as f
from advisor.report.text import wrapped
from advisor.reverse import CardFilter, Found, ModelFilter, Settings, gpus_for, models_for
from advisor.reverse.answers import Cause
from advisor.reverse.criteria import NO_LIMIT, Reader
from advisor.reverse.documents import reverse_doc, written_csv, written_json
from advisor.reverse.provenance import marked, whose
from advisor.reverse.remarks import left_out_words, ranking_words
from advisor.reverse.view import (
    USED,
    Column,
    caches,
    card_columns,
    cards_named,
    frameworks,
    lines,
    model_columns,
    narrowed,
    tight_rows,
    with_bars,
    writes,
)
from advisor.scenario.resolve import DEFAULT_CONTEXT_TOKENS, default_context
from advisor.units import UnitError, parse_quantity

if TYPE_CHECKING:
    from rich.table import Table

_USUAL_CONTEXT = f"{DEFAULT_CONTEXT_TOKENS:,} tokens of context, or the trained length if shorter"
_WIDTH = 100
"""Columns of prose in a pipe; the table takes what it needs."""
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


class Given(Struct, frozen=True):
    """The flags both commands share, as typed."""

    framework: str | None
    precision: Sequence[str]
    context: int | None
    batch: int | None
    gpus: int | None
    kv_cache: str | None
    prefer: str
    min_speed: str | None
    max_loss: str | None
    unmeasured: bool
    ram: str | None
    ram_bandwidth: str | None
    released_after: str | None
    limit: str
    form: str
    output: Path | None
    knowledge: Path | None


def write_models(
    given: Given,
    gpu: str,
    *,
    sizes: tuple[str | None, str | None],
    family: str | None,
    modality: str | None,
    all_formats: bool,
) -> None:
    """Answer ``models-for``.

    Raises:
        UserError: Flags are wrong, all of them at once; or the file cannot be written.
    """
    reader, knowledge = Reader(), load_knowledge(given.knowledge)
    settings, limit, since = _read(given, reader)
    wanted = ModelFilter(
        family=family,
        modality=modality,
        min_parameters=_number(reader, "--min-params", sizes[0], "parameters", 1e9),
        max_parameters=_number(reader, "--max-params", sizes[1], "parameters", 1e9),
        released_from=since,
    )
    answer = reader.attempt(
        lambda: models_for(gpu, settings, wanted, knowledge, limit=limit, all_formats=all_formats)
    )
    raise_problems(reader.errors)
    assert answer
    card, found = answer
    head = _model_head(card, found)
    _write(given, "models-for", card.name, head, model_columns(found), found, knowledge)


def write_cards(
    given: Given,
    model: str,
    *,
    hub: bool,
    offline: bool,
    vendor: str | None,
    forms: Sequence[str],
    most: tuple[str | None, str | None],
    sort: str,
) -> None:
    """Answer ``gpus-for``.

    Raises:
        UserError: Flags are wrong, all of them at once; or the file cannot be written.
    """
    reader, knowledge = Reader(), load_knowledge(given.knowledge)
    settings, limit, since = _read(given, reader)
    wanted = CardFilter(
        vendor=vendor,
        forms=forms,
        max_price_usd=_number(reader, "--max-price", most[0], "money"),
        max_power_w=_number(reader, "--max-power", most[1], "power"),
        released_from=since,
    )
    answer = reader.attempt(
        lambda: gpus_for(
            local_model(model, knowledge, hub=hub, offline=offline),
            settings,
            wanted,
            knowledge,
            sort=sort,
            limit=limit,
        )
    )
    raise_problems(reader.errors)
    assert answer
    known, found = answer
    head = _card_head(known, found)
    _write(given, "gpus-for", known.name, head, card_columns(found), found, knowledge)


def _read(given: Given, reader: Reader) -> tuple[Settings, int | None, str | None]:
    loss = given.max_loss
    any_loss = loss is not None and loss.strip().casefold() == "any"
    settings = Settings(
        framework=given.framework,
        precisions=given.precision,
        context=given.context,
        batch=given.batch,
        gpus=given.gpus,
        kv_cache=given.kv_cache,
        ram_gib=reader.attempt(lambda: read_size("--ram", given.ram)),
        ram_bandwidth_gb_s=reader.attempt(
            lambda: read_bandwidth("--ram-bandwidth", given.ram_bandwidth)
        ),
        min_speed_tok_s=_number(reader, "--min-speed", given.min_speed, "rate"),
        max_loss_percent=NO_LIMIT if any_loss else _number(reader, "--max-loss", loss, "share"),
        unmeasured=given.unmeasured,
        prefer=given.prefer,
    )
    return settings, _limit(reader, given.limit), _date(reader, given.released_after)


def _number(
    reader: Reader, flag: str, text: str | None, dimension: str, bare: float = 1.0
) -> float | None:
    """Read a quantity; a number without a unit counts ``bare`` base units."""
    if text is None:
        return None
    try:
        quantity = parse_quantity(text.strip().removeprefix("$"))
    except UnitError as error:
        reader.errors.append(RequestError(f"{flag}: {error}"))
        return None
    if quantity.dimension == "count":
        return quantity.value * bare
    if quantity.dimension == dimension:
        return quantity.value
    hint = f"Write a number, for example {_EXAMPLES[dimension]}."
    reader.errors.append(RequestError(f"{flag} is '{text}'", hint=hint))
    return None


_EXAMPLES = {
    "parameters": "7B",
    "money": "2000",
    "power": "300W",
    "rate": "20",
    "share": "5",
}


def _limit(reader: Reader, text: str) -> int | None:
    if text.strip().casefold() == "all":
        return None
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    reader.errors.append(RequestError(f"--limit is '{text}'", hint="Write 1 or more, or all."))
    return None


def _date(reader: Reader, text: str | None) -> str | None:
    if text is None or is_date(text.strip()):
        return text and text.strip()
    hint = "Write 2025, 2025-06 or 2025-06-30."
    reader.errors.append(RequestError(f"--released-after is '{text}'", hint=hint))
    return None


def _write(
    given: Given,
    question: str,
    subject: str,
    head: Sequence[str],
    columns: Sequence[Column],
    found: Found,
    knowledge: Knowledge,
) -> None:
    if given.form == "table":
        columns = marked(columns, found, knowledge)
        if given.output is None and sys.stdout.isatty():
            _print_rich(head, columns, found, knowledge)
        else:
            write("\n".join(_plain(head, columns, found, knowledge)) + "\n", given.output)
        return
    doc = reverse_doc(question, subject, found, knowledge)
    write((written_json if given.form == "json" else written_csv)(doc), given.output)


def _plain(
    head: Sequence[str], columns: Sequence[Column], found: Found, knowledge: Knowledge
) -> Iterator[str]:
    for line in head:
        yield from wrapped(line, _WIDTH)
    yield ""
    if found.rows:
        yield from lines(columns)
        yield ""
    yield from _tail(found, knowledge)


def _model_head(card: Gpu, found: Found) -> list[str]:
    cards = f"{found.wish.gpus} x {card.name}" if found.wish.gpus > 1 else card.name
    size = f.size(found.wish.gpus * (card.vram_bytes or 0))
    shown = len({row.answer.scenario.model.name for row in found.rows})
    fit = f"{found.fitting} of {found.tried} models run"
    return [
        f"{cards}, {size}: {fit}{_shown(shown, found.fitting)}",
        *_notes(found),
        *_setup(found),
        ranking_words(found),
    ]


def _card_head(model: Model, found: Found) -> list[str]:
    name, size = f.plain(model.name), f.billions(model.parameters)
    unknown = {cause: found.left_out.get(cause, 0) for cause in _UNJUDGED}
    fit = f"{found.fitting} of {found.tried - sum(unknown.values())} cards run it"
    fit += "".join(f", {n} of unknown {_UNJUDGED[cause]}" for cause, n in unknown.items() if n)
    return [
        f"{name}, {size} parameters: {fit}{_shown(len(found.rows), found.fitting)}",
        *_notes(found),
        *_setup(found, default_context(model)),
        ranking_words(found),
        *_firsts(found),
    ]


def _shown(shown: int, fitting: int) -> str:
    return "" if shown == fitting else f", {shown} shown (--limit all for the rest)"


def _setup(found: Found, usual: int | None = None) -> Iterator[str]:
    """Say how everything runs; what differs between rows has a column."""
    wish = found.wish
    context, batch = wish.request.context or usual, wish.request.batch or 1
    parts = [
        f"{context:,} tokens of context" if context else _USUAL_CONTEXT,
        f"{batch} sequences" if batch > 1 else "one sequence",
    ]
    if caches(found) or not found.rows:
        parts.append(f"KV cache {wish.kv_type.name}")
    used = frameworks(found)
    if len(used) == 1:
        parts.append(used[0])
    speed = "; speed of one sequence with an empty cache, in brackets its 80 % range"
    yield f"With {', '.join(parts)}{speed if writes(found) else ''}."


def _notes(found: Found) -> list[str]:
    return [f"Note: {f.plain(text)}" for text in found.warnings]


def _firsts(found: Found) -> Iterator[str]:
    for name, row in found.best.items():
        scenario = row.answer.scenario
        yield f"{_BEST[name]}: {cards_named(scenario)} with {scenario.precision.name}"


def _tail(found: Found, knowledge: Knowledge) -> Iterator[str]:
    if found.left_out:
        yield f"Left out, {sum(found.left_out.values())} of {found.tried}:"
    rows = list(left_out_words(found))
    width = max((len(str(count)) for count, _ in rows), default=0)
    for count, why in rows:
        yield f"  {str(count).rjust(width)}  {why}"
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
        if dropped:
            left = f"Left out for want of width: {', '.join(dropped)}. --format csv has them."
            console.print(Text(left, style="dim"))
        console.print()
    for line in _tail(found, knowledge):
        console.print(Text(line, style="dim"))


def _table(columns: Sequence[Column], found: Found, knowledge: Knowledge) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(column.name, justify="right" if column.right else "left")
    tight = tight_rows(found, knowledge.policy["tight_below_percent"])
    for cells, little in zip(zip(*(c.cells for c in columns), strict=True), tight, strict=True):
        styled = (
            Text(cell, style=("yellow" if little else "green") if column.name == USED else "")
            for cell, column in zip(cells, columns, strict=True)
        )
        table.add_row(*styled)
    return table
