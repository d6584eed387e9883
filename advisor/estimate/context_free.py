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
    from advisor.scenario.scenario import Scenario

_MOST = 8_192


class Fixed(Struct, frozen=True):
    """Weights where they lie, and the cache of one token."""

    weights: Weights
    cache: CacheShape
    placement: Placement
    """To be read only: it is shared."""


def fixed_of(scenario: Scenario, knowledge: Knowledge, cards: Sequence[Card]) -> Fixed:
    """Size the weights, place them and describe the cache.

    Raises:
        RequestError: A figure of the architecture or of the format is not known.
    """
    weights = weights_of(
        scenario.model, scenario.precision, scenario.framework, knowledge.ggml_types
    )
    cache = cache_shape_of(scenario)
    unequal = cards if scenario.cards else ()
    room = [(card.usable or 0) - card.overhead.central for card in unequal]
    return Fixed(weights, cache, place(scenario, weights, room))
