"""Which what-ifs are no worse than another in anything and better in something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.advice import Effort, Option

_EFFORTS: Sequence[Effort] = ("setting", "download", "rebuild", "purchase")
_Costs = tuple[float, ...]


def dominates(one: Option, other: Option) -> bool:
    """Whether ``one`` is as good as ``other`` in all that matters and better in something.

    What matters: quality, context, sequences, speed, price, effort, system RAM and steps. A
    figure that only one of them has cannot be compared, so neither dominates.
    """
    if not one.fits or not other.fits or one.scenario.model is not other.scenario.model:
        return False
    pairs = list(zip(_comparable(one), _comparable(other), strict=True))
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    unmeasured = one.quality_loss_percent is None and (
        one.scenario.precision is not other.scenario.precision
        or one.scenario.kv_cache_k is not other.scenario.kv_cache_k
    )
    if unmeasured or any(a > b for a, b in known):
        return False
    return any(a < b for a, b in known)


def _comparable(option: Option) -> tuple[float | None, ...]:
    """What a what-if costs in each respect, less being better; None where unknown."""
    after = option.scenario
    speed = option.speed.decode_tok_s.estimate if option.speed else None
    total = option.speed.aggregate_tok_s if option.speed else None
    memory = option.memory
    return (
        option.quality_loss_percent,
        -after.context_tokens,
        -after.batch,
        None if speed is None else -speed,
        -total.estimate if total else None,
        option.cost_usd if option.effort == "purchase" else 0.0,
        _EFFORTS.index(option.effort),
        memory.host_weights_bytes + memory.host_kv_cache_bytes,
        option.steps,
        -after.kv_cache_k.bits if option.quality_loss_percent is None else 0.0,
    )


def undominated(options: Iterable[Option]) -> list[Option]:
    """The options that no other of them dominates, in their order."""
    those = list(options)
    return [o for o in those if not any(dominates(p, o) for p in those if p is not o)]


def best_of(options: Iterable[Option], most: int) -> list[Option]:
    """The undominated of several combinations: fewest steps, least loss, least effort first."""
    unique = {option.key: option for option in options}
    return sorted(undominated(unique.values()), key=_first)[:most]


def _first(option: Option) -> tuple[float | bool | str, ...]:
    loss = option.quality_loss_percent
    return (
        option.steps,
        loss is None,
        loss or 0.0,
        option.cost_usd is None,
        option.cost_usd or 0.0,
        option.key,
    )
