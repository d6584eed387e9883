"""Answers -> columns of text, and what is said around them; entries of the user's are marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.advice.conclusions import user_records
from advisor.bulk.reverse.cards import power_w, price_usd
from advisor.knowledge.layers import UserEntry, user_record
from advisor.knowledge.merit import merits
from advisor.report import figures as f
from advisor.report.situation import WRITES
from advisor.report.views import named
from advisor.scenario.figures import headroom_percent, margin_of
from advisor.units import format_quantity, plain, rate

if TYPE_CHECKING:
    from advisor.bulk.reverse.answers import Cause, Found, Row, Wish
    from advisor.knowledge.types import Knowledge
    from advisor.scenario import Scenario


UNKNOWN = "unknown"
THIN = "thin"
USED = "used"
GAP = 2
"""Spaces between columns."""
_BILLION = 1e9


class Column(Struct, frozen=True):
    """A column of the table."""

    name: str
    cells: Sequence[str]
    right: bool = False

    @property
    def width(self) -> int:
        """Characters of its widest cell."""
        return max(len(cell) for cell in (self.name, *self.cells))


_BAR_CELLS = 8
_RANGE = "80 % range"
_DISPENSABLE = (
    "evidence", USED, _RANGE, "framework", "power", "free", "loss", "max context", "size (active)",
)  # fmt: skip
"""What narrow lines go without, the first of them first."""


def model_columns(found: Found) -> list[Column]:
    """Lay out the rows of ``models-for``."""
    return [
        _column("model", found, lambda row: plain(row.answer.scenario.model.name)),
        _column("size (active)", found, _parameters, right=True),
        *([_column("merit", found, _merit, right=True)] if found.wish.use else ()),
        *_shared(found),
    ]


def card_columns(found: Found) -> list[Column]:
    """Lay out the rows of ``gpus-for``."""
    return [
        _column("card", found, lambda row: cards_named(row.answer.scenario)),
        _column("memory", found, lambda row: f.size(row.answer.memory.capacity_bytes), right=True),
        _column("launch price", found, _price, right=True),
        _column("power", found, _power, right=True),
        *_shared(found),
    ]


def with_bars(columns: Sequence[Column], found: Found) -> list[Column]:
    """Put a bar of how full the card is in front of what is free."""
    bars = [_bar(row) for row in found.rows]
    place = next(i for i, column in enumerate(columns) if column.name == "free")
    return [*columns[:place], Column(USED, bars), *columns[place:]]


def narrowed(columns: Sequence[Column], width: int) -> tuple[list[Column], list[str]]:
    """Leave columns out until the rest is no wider than ``width``; name those left out."""
    kept, dropped = list(columns), []
    for name in _DISPENSABLE:
        if sum(column.width + GAP for column in kept) - GAP <= width:
            break
        dropped += [column.name for column in kept if column.name == name]
        kept = [column for column in kept if column.name != name]
    return kept, dropped


def _bar(row: Row) -> str:
    share = 1 - (headroom_percent(row.answer.memory) or 0.0) / 100
    filled = min(max(round(share * _BAR_CELLS), 0), _BAR_CELLS)
    return "█" * filled + "░" * (_BAR_CELLS - filled)


def tight_rows(found: Found, policy: Mapping[str, float]) -> list[bool]:
    """Say for every row whether little of the card is left."""
    return [margin_of(row.answer.memory, policy) != "ample" for row in found.rows]


def lines(columns: Sequence[Column]) -> Iterator[str]:
    """Lay columns out as plain text, two spaces apart."""
    rows = list(zip(*((c.name, *c.cells) for c in columns), strict=True))
    yield from f.aligned(rows, right={i for i, column in enumerate(columns) if column.right})


def _column(name: str, found: Found, cell: Callable[[Row], str], *, right: bool = False) -> Column:
    return Column(name, [cell(row) for row in found.rows], right)


def _shared(found: Found) -> Iterator[Column]:
    """Lay out what both questions tell; what is the same in every row is told above the table."""
    yield _column("format", found, lambda row: row.answer.scenario.precision.name)
    yield _column("loss", found, _loss, right=True)
    if len(frameworks(found)) > 1:
        yield _column("framework", found, lambda row: row.answer.scenario.framework.name)
    if any(row.answer.split for row in found.rows):
        yield _column("in system RAM", found, _split)
    yield _column(
        "needs", found, lambda row: f.amount(row.answer.memory.required_bytes), right=True
    )
    yield _column("free", found, _free, right=True)
    yield _column("max context", found, _context, right=True)
    if writes(found):
        yield _column("tok/s", found, _speed, right=True)
        yield _column(_RANGE, found, _range, right=True)
        yield _column("evidence", found, _evidence)


def writes(found: Found) -> bool:
    """Whether any of the models writes text, so that a speed in tokens means something."""
    return any(row.answer.scenario.model.modality in WRITES for row in found.rows)


def caches(found: Found) -> bool:
    """Whether any of the models keeps a KV cache."""
    return any(row.answer.memory.kv_cache_bytes for row in found.rows)


def frameworks(found: Found) -> Sequence[str]:
    """Name the frameworks of the rows."""
    return list(dict.fromkeys(row.answer.scenario.framework.name for row in found.rows))


def cards_named(scenario: Scenario) -> str:
    """Name the card, or how many of it."""
    name = plain(scenario.gpu.name) if scenario.gpu else ""
    return f"{scenario.gpus} x {name}" if scenario.gpus > 1 else name


def _parameters(row: Row) -> str:
    model = row.answer.scenario.model
    active = model.read_parameters
    used = f" ({_billions(active)})" if active < model.parameters else ""
    return f"{_billions(model.parameters)}{used}"


def _billions(count: int) -> str:
    return f"{count / _BILLION:.1f} B"


def _price(row: Row) -> str:
    return f.dollars(price_usd(row.answer.gpu, row.answer.scenario.gpus)) or UNKNOWN


def _power(row: Row) -> str:
    watts = power_w(row.answer.gpu, row.answer.scenario.gpus)
    return f.quantity(watts, "W") or UNKNOWN


def _loss(row: Row) -> str:
    loss = row.answer.loss_percent
    return "not measured" if loss is None else f.percent(loss)


def _split(row: Row) -> str:
    scenario = row.answer.scenario
    layers = scenario.model.shape.layers
    if scenario.cpu_experts:
        return f"experts of {scenario.cpu_experts} of {layers} layers"
    if scenario.gpu_layers is not None:
        return f"{layers + 1 - scenario.gpu_layers} of {layers + 1} layers"
    return "nothing"


def _free(row: Row) -> str:
    free = f.amount(row.answer.memory.headroom_bytes)
    return f"{free} ({THIN})" if row.margin == THIN else free


def _context(row: Row) -> str:
    return f.count(row.limits.max_context_tokens)


def _speed(row: Row) -> str:
    return UNKNOWN if row.answer.speed is None else rate(row.answer.speed.decode_tok_s.estimate)


def _range(row: Row) -> str:
    return "" if row.answer.speed is None else f.speed_span(row.answer.speed.decode_tok_s) or ""


def _merit(row: Row) -> str:
    """Write what a format leaves of a model's merit; a relative's figure is marked."""
    if row.merit is None:
        return "-"
    return f"{'~' if row.merit.merit.unsure else ''}{row.merit.points:.1f}"


def _evidence(row: Row) -> str:
    speed = row.answer.speed
    return speed.decode_tok_s.evidence if speed else ""


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


def user_entries_of(found: Found, knowledge: Knowledge) -> Sequence[UserEntry]:
    """List what of the user's own knowledge the rows rest on."""
    return user_records(knowledge, [row.answer.scenario for row in found.rows])


def whose(found: Found, knowledge: Knowledge) -> Iterator[str]:
    """Name every entry of the user's that the rows rest on, one line each."""
    yield from (f"Yours: {named(entry)}" for entry in user_entries_of(found, knowledge))


_BY_MERIT = (
    "Ranked by merit for {use}, in points of the {board} (boards up to {as_of}), less what the "
    "format loses"
)
_BY_DATE = "No leaderboard is known for this kind: the newest come first, then the largest."
_BY_SPEED = "Ranked by decode speed, the fastest first; models of unknown speed come last."
_SLOWER = "; too slow for it, or over {years:g} years old: after the others"
_UNSURE = " ~: a relative's or an estimated figure, at its low end; -: none, the newest first."
_CARDS = {
    "price": "Sorted by launch price of all cards together, the cheapest first; cards whose price "
    "no source states come last. Street prices differ.",
    "memory": "Sorted by memory of all cards together, the smallest first.",
    "speed": "Sorted by decode speed, the fastest first; cards of unknown speed come last.",
    "power": "Sorted by board power of all cards together, the least first; cards of unknown "
    "power come last.",
}
_WHOLE = "Of cards that share their computer's memory it is the price of the whole computer."
_PRICED = "Of cards marked as yours it is the price that you gave."
_FORMATS = {
    "quality": "The format of each is the one with the least measured loss that fits.",
    "use": "Formats: the smallest that loses at most {barely:g} %, else the least loss that fits "
    "and is fast enough.",
    "balanced": "The format of each is the smallest that loses little, or else the one with the "
    "least measured loss that fits.",
}
_THIN = (
    "Where it says thin, no format leaves more, and less stays free than an estimate can promise."
)
_CAUSES: dict[Cause, str] = {
    "does_not_fit": "no format fits",
    "too_slow": "slower than {speed}",
    "speed_unknown": "speed not known, so --min-speed cannot be judged",
    "cannot_run": "no framework known here runs it with these settings",
    "short_training": "trained on less context than {context} tokens",
    "not_sizable": "size or architecture not known well enough",
    "memory_unknown": "share the RAM of their computer, whatever it has; ask for NAME:SIZE",
    "price_unknown": "price not known, so --max-price cannot be judged",
    "power_unknown": "power not known, so --max-power cannot be judged",
    "release_unknown": "release date not known",
    "licence_unknown": "licence not known, so --licence cannot be judged",
    "not_for_sale": "not on sale: virtual profiles, closed markets, cards of one cloud, used cards",
    "filtered": "not asked for",
}


def ranking_words(found: Found, knowledge: Knowledge) -> str:
    """Say how the rows are ordered, and which format each has."""
    order = _CARDS[found.sort] if found.sort else _models_words(found, knowledge)
    chosen = "quality" if found.wish.prefer == "quality" else "balanced"
    if chosen == "quality" and found.wish.use:
        chosen = "use"
    barely = knowledge.policy["barely_lossy_percent"]
    thin = f" {_THIN}" if any(row.margin == "thin" for row in found.rows) else ""
    mine = f" {_PRICED}" if found.sort == "price" and _priced_by_user(knowledge) else ""
    whole = f" {_WHOLE}" if found.sort == "price" and any(map(_is_machine, found.rows)) else ""
    return f"{order}{whole}{mine} {_FORMATS[chosen].format(barely=barely)}{thin}"


def _is_machine(row: Row) -> bool:
    gpu = row.answer.scenario.gpu
    return bool(gpu and gpu.unified_memory and gpu.launch_price_usd)


def _priced_by_user(knowledge: Knowledge) -> bool:
    records = (user_record(knowledge, "gpu", name) for name in knowledge.gpus)
    return any(record and "launch_price" in record.stated_fields for record in records)


def _models_words(found: Found, knowledge: Knowledge) -> str:
    use, kept = found.wish.use, merits(knowledge)
    if found.wish.prefer == "speed":
        return _BY_SPEED
    if use is None or use not in kept.scales:
        return _BY_DATE
    board = kept.boards[kept.scales[use]].metric.partition(",")[0].partition(" as run")[0]
    words = _BY_MERIT.format(use=use, board=board, as_of=kept.as_of)
    if use != "embedding":
        words += _SLOWER.format(years=knowledge.policy["merit_oldest_years"])
    unsure = any(row.merit is None or row.merit.merit.unsure for row in found.rows)
    return f"{words}.{_UNSURE if unsure else ''}"


def left_out_words(found: Found) -> Iterator[tuple[int, str]]:
    """Say for every cause how many were left out because of it."""
    for cause, count in found.left_out.items():
        yield count, _cause(cause, found.wish, found.context)


def _cause(cause: Cause, wish: Wish, context: int | None) -> str:
    if cause == "larger_loss_only":
        return _loss_words(wish)
    if cause == "cannot_run" and wish.framework:
        return f"{wish.framework.name} does not run it with these settings"
    return _CAUSES[cause].format(
        speed=format_quantity(wish.min_speed_tok_s or 0.0, "tok/s"),
        context=f"{context or 0:,}",
    )


def _loss_words(wish: Wish) -> str:
    parts = []
    if not isinf(wish.max_loss_percent):
        parts.append(f"lose more than {wish.max_loss_percent:g} % (--max-loss)")
    if not wish.unmeasured:
        parts.append("have no measured loss (--unmeasured)")
    return f"only formats fit that {' or '.join(parts)}"
