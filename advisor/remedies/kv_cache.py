"""A smaller element type for the KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.knowledge.types import KvType
from advisor.remedies.option import Base, Option, Remedy, make_option, may_help
from advisor.remedies.search import Bounds, Plan
from advisor.runtimes.commands import can_tell
from advisor.scenario import support
from advisor.scenario.scenario import Scenario


def propose(base: Base, *_: object) -> Iterator[Option]:
    """Smaller types, one per number of bits, where there is a cache."""
    scenario = base.scenario
    if not (base.memory.kv_cache_bytes or base.memory.host_kv_cache_bytes):
        return
    for kind in _smaller(base, scenario):
        other = replace(scenario, kv_cache_k=kind, kv_cache_v=kind)
        if may_help(base, other):
            yield make_option(base, REMEDY, _change(base, kind), other)


def smaller_caches(base: Base, scenario: Scenario, limits: Bounds) -> Sequence[KvType]:
    """Cache types below the present one, one per number of bits, the largest first."""
    kinds = (kind for kind in _smaller(base, scenario) if limits.takes_cache(kind))
    return sorted(kinds, key=lambda kind: -int(kind.bits))


def with_cache(base: Base, plan: Plan, kind: KvType) -> Plan:
    """Keep the cache in a smaller type."""
    scenario = replace(plan.scenario, kv_cache_k=kind, kv_cache_v=kind)
    return plan.then(scenario, _change(base, kind), "setting")


def _smaller(base: Base, scenario: Scenario) -> Iterator[KvType]:
    """Smaller types that the runtime has here, in its order, the first of each number of bits."""
    seen: set[int] = set()
    for name in scenario.framework.kv_types:
        kind = base.knowledge.kv_types[name]
        smaller = kind.bits < scenario.kv_cache_k.bits and int(kind.bits) not in seen
        if smaller and _can_cache(scenario, kind):
            seen.add(int(kind.bits))
            yield kind


def _can_cache(scenario: Scenario, kind: KvType) -> bool:
    """Whether the runtime can keep its cache in this type here, and its command can say so."""
    flash_ok = scenario.flash_attention or not kind.needs_flash_attention
    runs = support.runs_kv(scenario.framework, kind, scenario.gpu, scenario.model.shape)
    other = replace(scenario, kv_cache_k=kind, kv_cache_v=kind)
    return flash_ok and runs and not support.slow_cache(other) and can_tell(other, "kv_cache")


def _change(base: Base, kind: KvType) -> dict[str, object]:
    """The keys that ask for a cache type, as the request asked for its own."""
    if base.request.kv_cache_k or base.request.kv_cache_v:
        return {"kv_cache_k": kind.name, "kv_cache_v": kind.name}
    return {"kv_cache": kind.name}


REMEDY = Remedy("quantize-kv", frozenset({"kv_cache"}), "setting", propose, told_by="kv_cache")
