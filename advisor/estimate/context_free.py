"""What of a scenario's memory follows from neither its context nor its batch.

A search for the longest context or the largest batch asks for it at every step, and a file of
requests for the same models again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.estimate.kv_cache import cache_shape_of
from advisor.estimate.placement import place
from advisor.estimate.weights import weights_of
from advisor.runtimes.base import CacheShape, Placement, Weights

if TYPE_CHECKING:
    from advisor.estimate.overhead import Card
    from advisor.knowledge.types import Knowledge
    from advisor.scenario.scenario import Key, Scenario

_MOST = 8_192


class Fixed(Struct, frozen=True):
    """Weights where they lie, and the cache of one token."""

    weights: Weights
    cache: CacheShape
    placement: Placement
    """To be read only: it is shared."""


_kept: dict[Key, tuple[Key, Fixed]] = {}


def fixed_of(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> Fixed:
    """Size the weights, place them and describe the cache; kept for equal cards.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    if scenario.cards:
        return _made(scenario, knowledge, cards)
    records = (
        knowledge,
        scenario.model,
        scenario.precision,
        scenario.framework,
        scenario.kv_cache_k,
        scenario.kv_cache_v,
    )
    key: Key = (
        *map(id, records),
        scenario.gpus,
        scenario.gpu_layers,
        scenario.cpu_experts,
        scenario.split,
        scenario.backend,
    )
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= _MOST:
            _kept.clear()
        found = _kept[key] = (records, _made(scenario, knowledge, cards))
    return found[1]


def _made(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> Fixed:
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    cache = cache_shape_of(scenario)
    unequal = cards if scenario.cards else ()
    room = [(card.usable or 0) - card.overhead.central for card in unequal]
    return Fixed(weights, cache, place(scenario, weights, room))
