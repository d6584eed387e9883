"""What is said around the rows: how they are ranked, and what was left out and why."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf
from typing import TYPE_CHECKING

from advisor.units import format_quantity

if TYPE_CHECKING:
    from advisor.reverse.answers import Cause, Found
    from advisor.reverse.criteria import Wish

_BY_PARAMETERS = (
    "most parameters first, then the least measured loss of the weight format, then the newest, "
    "with models for embeddings and speech at the end"
)
_MODELS = {
    "quality": f"Ranked by quality as far as it is known here: {_BY_PARAMETERS}. "
    "No benchmark scores are used.",
    "balanced": f"Ranked by quality as far as it is known here: {_BY_PARAMETERS}; "
    "models slower than reading speed come last. No benchmark scores are used.",
    "speed": "Ranked by decode speed, the fastest first; models of unknown speed come last, then "
    "those for embeddings and speech.",
}
_CARDS = {
    "price": "Sorted by launch price of all cards together, the cheapest first; cards whose price "
    "no source states come last. Street prices differ.",
    "memory": "Sorted by memory of all cards together, the smallest first.",
    "speed": "Sorted by decode speed, the fastest first; cards of unknown speed come last.",
    "power": "Sorted by board power of all cards together, the least first; cards of unknown "
    "power come last.",
}
_FORMATS = {
    "quality": "The format of each is the one with the least measured loss that fits.",
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
    "short_training": "trained on less than {context} tokens of context",
    "not_sizable": "size or architecture not known well enough",
    "memory_unknown": "sold with several memory sizes; ask as NAME:SIZE with models-for",
    "price_unknown": "price not known, so --max-price cannot be judged",
    "power_unknown": "power not known, so --max-power cannot be judged",
    "release_unknown": "release date not known",
    "not_for_sale": "not on sale: virtual profiles, closed markets, cards of one cloud, used cards",
    "filtered": "not asked for",
}


def ranking_words(found: Found) -> str:
    """Say how the rows are ordered, and which format each has."""
    order = _CARDS[found.sort] if found.sort else _MODELS[found.wish.prefer]
    chosen = "quality" if found.wish.prefer == "quality" else "balanced"
    thin = f" {_THIN}" if any(row.margin == "thin" for row in found.rows) else ""
    return f"{order} {_FORMATS[chosen]}{thin}"


def left_out_words(found: Found) -> Iterator[tuple[int, str]]:
    """Say for every cause how many were left out because of it."""
    for cause, count in found.left_out.items():
        yield count, _cause(cause, found.wish)


def _cause(cause: Cause, wish: Wish) -> str:
    if cause == "larger_loss_only":
        return _loss_words(wish)
    if cause == "cannot_run" and wish.framework:
        return f"{wish.framework.name} does not run it with these settings"
    return _CAUSES[cause].format(
        speed=format_quantity(wish.min_speed_tok_s or 0.0, "tok/s"),
        context=f"{wish.request.context or 0:,}",
    )


def _loss_words(wish: Wish) -> str:
    parts = []
    if not isinf(wish.max_loss_percent):
        parts.append(f"lose more than {wish.max_loss_percent:g} % (--max-loss)")
    if not wish.unmeasured:
        parts.append("have no measured loss (--unmeasured)")
    return f"only formats fit that {' or '.join(parts)}"
