"""What is said around the rows of a reverse answer: how they are ordered, what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf
from typing import TYPE_CHECKING

from advisor.knowledge.layers import user_record
from advisor.knowledge.merit import merits
from advisor.units import format_quantity

if TYPE_CHECKING:
    from advisor.knowledge.types import Knowledge
    from advisor.reverse.answers import Cause, Found, Wish

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
    "memory_unknown": "sold with several memory sizes; ask as NAME:SIZE with models-for",
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
    return f"{order}{mine} {_FORMATS[chosen].format(barely=barely)}{thin}"


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
