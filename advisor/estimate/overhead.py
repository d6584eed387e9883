"""Memory outside every buffer of the model: what the driver, the display and the runtime hold.

All figures come from knowledge/policy.yaml, where each carries its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.catalogue import BACKENDS
from advisor.memo import by_identity_up_to
from advisor.runtimes import runtime_of
from advisor.runtimes.base import NO_BYTES, Range
from advisor.scenario.splits import is_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.knowledge.types import Framework, Gpu, Knowledge
    from advisor.scenario.scenario import Scenario

_PERCENT = 100
_MOST_CARDS = 16_384
"""Room for every card of a catalogue in every framework."""


class Card(Struct, frozen=True):
    """What one card offers and what the runtime takes of it, bytes."""

    name: str
    capacity: int | None
    usable: int | None
    overhead: Range
    cache_share: float = 1.0
    """Part of what is free beside weights and buffers that the cache may take."""

    def offers(self, beside_cache: int) -> int:
        """Say how much is usable in all when so many bytes are taken by all but the cache."""
        usable = self.usable or 0
        if self.cache_share == 1.0:
            return usable
        return usable - round((1 - self.cache_share) * max(usable - beside_cache, 0))


@by_identity_up_to(_MOST_CARDS)
def card_of(
    gpu: Gpu | None, backend: str | None, framework: Framework, knowledge: Knowledge
) -> Card:
    """Say what one card offers to a framework.

    Without a card and a back end the overhead is 0: the figures are those of llama.cpp's
    back-end-neutral buffers.
    """
    overhead = _overhead(gpu, backend, framework, knowledge.policy)
    if gpu is None or gpu.vram_bytes is None:
        return Card(gpu.name if gpu else "", None, None, overhead)
    capacity = gpu.vram_bytes
    usable = usable_bytes(gpu, capacity, framework, knowledge.policy)
    share = _share(framework.memory_fraction or 1.0) if _shares_what_is_free(framework) else 1.0
    return Card(gpu.name, capacity, usable, overhead, share)


def usable_bytes(gpu: Gpu, capacity: int, framework: Framework, policy: Mapping[str, float]) -> int:
    """Say what a framework may use of a card like this one with ``capacity`` bytes."""
    usable = capacity - _reserve(gpu, capacity, policy)
    if framework.memory_fraction is not None and not _shares_what_is_free(framework):
        usable = min(usable, int(capacity * _share(framework.memory_fraction)))
    return max(usable, 0)


def largest_share(gpu: Gpu, framework: Framework, policy: Mapping[str, float]) -> float:
    """Give a share of the capacity that ``usable_bytes`` never exceeds, 0 to 1."""
    kept = policy["reserve_unified_share"] / _PERCENT if gpu.unified_memory else 0.0
    claims = framework.memory_fraction is not None and not _shares_what_is_free(framework)
    claimed = _share(framework.memory_fraction or 0.0) if claims else 1.0
    return min(1.0 - kept, claimed)


def _shares_what_is_free(framework: Framework) -> bool:
    known = framework.memory_fraction is not None
    return known and runtime_of(framework).shares_what_is_free


def cards_of(scenario: Scenario, knowledge: Knowledge) -> tuple[Card, ...]:
    """Say what every card of a scenario offers, in their order."""
    backend, framework = scenario.backend, scenario.framework
    if scenario.gpus == 1:
        return (card_of(scenario.gpu, backend, framework, knowledge),)
    found = tuple(
        card_of(gpu, backend, framework, knowledge) for gpu in scenario.cards or (scenario.gpu,)
    )
    if trades(scenario):
        traded = communication(backend, knowledge.policy)
        found = tuple(replace(card, overhead=card.overhead + traded) for card in found)
    return found if scenario.cards else found * scenario.gpus


def splits_by_layer(scenario: Scenario) -> bool:
    """Whether several cards take whole layers each, not a shard of every tensor."""
    return runtime_of(scenario.framework).splits_by_layer(scenario)


def trades(scenario: Scenario) -> bool:
    """Whether the cards pass on results through a library with buffers of its own."""
    return scenario.gpus > 1 and (is_pipeline(scenario) or not splits_by_layer(scenario))


def communication(backend: str | None, policy: Mapping[str, float]) -> Range:
    """Size the buffers through which a card of a tensor split or a pipeline passes on results.

    Nothing where no figure is published: ``Memory.approximate`` then says that it is left out.
    """
    known = BACKENDS.get(backend or "")
    return _named(f"{known.library}_communication", policy) if known and known.library else NO_BYTES


def _share(fraction: float) -> float:
    """Read a share that may be written 0.92 or 92 (%)."""
    return fraction / _PERCENT if fraction > 1 else fraction


def _reserve(gpu: Gpu, capacity: int, policy: Mapping[str, float]) -> int:
    if gpu.unified_memory:
        return round(capacity * policy["reserve_unified_share"] / _PERCENT)
    reserve = policy[f"reserve_{gpu.segment}_bytes"]
    if gpu.segment == "datacenter" and (gpu.vram_type or "").startswith("GDDR"):
        reserve += capacity * policy["reserve_ecc_gddr_share"] / _PERCENT
    return round(reserve)


def _overhead(
    gpu: Gpu | None, backend: str | None, framework: Framework, policy: Mapping[str, float]
) -> Range:
    if backend is None or backend == "CPU":
        return NO_BYTES
    known = BACKENDS.get(backend)
    if known and known.sized:
        total = _cuda(gpu, policy)
    else:
        total = _named("other_backend_overhead", policy)
    for name in runtime_of(framework).overheads:
        total += _named(name, policy)
    return total


def _cuda(gpu: Gpu | None, policy: Mapping[str, float]) -> Range:
    if gpu is None or gpu.multiprocessors is None:
        context = policy["cuda_context_unknown_bytes"]
    else:
        context = gpu.multiprocessors * policy["cuda_context_bytes_per_multiprocessor"]
    central = context + policy["cuda_libraries_bytes"]
    return Range(
        round(central),
        round(central * policy["cuda_overhead_low_share"] / _PERCENT),
        round(central * policy["cuda_overhead_high_share"] / _PERCENT),
    )


def _named(name: str, policy: Mapping[str, float]) -> Range:
    return Range(
        round(policy[f"{name}_bytes"]),
        round(policy[f"{name}_low_bytes"]),
        round(policy[f"{name}_high_bytes"]),
    )
