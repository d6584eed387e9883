"""What-ifs: changed scenarios, each estimated by the estimator that sized the request."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.estimate.result import Limits
from advisor.remedies.alternatives import draft_options, framework_options, own_head_options
from advisor.remedies.baseline import Base
from advisor.remedies.cards import more_cards_options, other_card_options
from advisor.remedies.changes import within_reach
from advisor.remedies.combination import combine_options
from advisor.remedies.formats import kv_cache_options, quantize_options
from advisor.remedies.impossible import expected_options
from advisor.remedies.last_resort import last_resort
from advisor.remedies.option import Option
from advisor.remedies.second_card import second_card_options
from advisor.remedies.smaller_models import smaller_model_options
from advisor.remedies.tradeoffs import (
    batch_options,
    context_options,
    flash_attention_options,
    offload_options,
)

__all__ = ["Base", "build_options", "expected_options"]


def build_options(base: Base, limits: Limits) -> tuple[Option, ...]:
    """Build every what-if of a request, in a stable order, unique by key."""
    if base.scenario.gpu is None:
        return ()
    unique: dict[str, Option] = {}
    for option in _all(base, limits):
        unique.setdefault(option.key, option)
    for option in combine_options(base, tuple(unique.values())):
        unique.setdefault(option.key, option)
    if not base.card_fits and not any(within_reach(base, option) for option in unique.values()):
        last = last_resort(base)
        if last:
            unique.setdefault(last.key, last)
    return tuple(unique.values())


def _all(base: Base, limits: Limits) -> Iterator[Option]:
    yield from quantize_options(base)
    yield from kv_cache_options(base)
    yield from context_options(base)
    yield from batch_options(base, limits)
    yield from offload_options(base)
    yield from flash_attention_options(base)
    yield from more_cards_options(base)
    yield from second_card_options(base)
    yield from other_card_options(base)
    yield from smaller_model_options(base)
    yield from framework_options(base)
    yield from draft_options(base)
    yield from own_head_options(base)
