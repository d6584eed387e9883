"""What-ifs: changed scenarios, each estimated by the estimator that sized the request."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.advice import Option
from advisor.estimate.result import Limits
from advisor.options.alternatives import draft_options, framework_options, own_head_options
from advisor.options.base import Base
from advisor.options.combine import combine_options
from advisor.options.expected import expected_options
from advisor.options.fitting import (
    batch_options,
    context_options,
    flash_attention_options,
    offload_options,
)
from advisor.options.formats import kv_cache_options, quantize_options
from advisor.options.hardware import more_cards_options, other_card_options
from advisor.options.lastresort import last_resort
from advisor.options.pairs import second_card_options
from advisor.options.plan import within_reach
from advisor.options.siblings import smaller_model_options

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
