"""Combinations: the smallest set of changes that fits, found by search.

A set is a weight format, a cache type and changes of degree (``room``). Memory falls along each
of them, so a set whose every change is at its extreme and that still does not fit is passed over
with one look, and the best format of a set is found by halving. Sets of two come before sets of
three, gentle changes before desperate ones. New hardware (``machines``) is looked at only where
the present machine has no gentle remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from advisor.advice import Option
from advisor.knowledge.types import Format
from advisor.options.base import Base, cards_hold, host_fits, make_option
from advisor.options.choices import worth_having
from advisor.options.dominance import best_of
from advisor.options.formats import in_framework
from advisor.options.machines import machine_options
from advisor.options.plan import (
    Bounds,
    Plan,
    bounds,
    ram_limit,
    smaller_caches,
    smaller_formats,
    stored_bytes,
    with_cache,
    with_format,
)
from advisor.options.room import DEGREES, LAYERS, Degree, solved, stretched
from advisor.scenario import Scenario

_MOST_STEPS = 3
_MOST_OFFERED = 4
_FORMAT, _CACHE = "format", "cache"
_OTHER_MACHINE = frozenset({"add-gpus", "upgrade-gpu", "cloud"})


def combine_options(base: Base, singles: Sequence[Option]) -> Iterator[Option]:
    """The best combinations, where no single change is a gentle remedy; at most a handful.

    Args:
        base: The request.
        singles: Every single change that was tried.
    """
    if base.card_fits and host_fits(base.scenario, base.memory):
        return
    gentle, *further = bounds(base)
    if any(acceptable(base, option, gentle) for option in singles):
        return
    found = _fewest_steps(base, gentle, _MOST_STEPS)
    yield from found
    if found:
        return
    if not any(acceptable(base, option, further[-1]) for option in singles):
        for limits in further:
            found = _fewest_steps(base, limits, _MOST_STEPS)
            yield from found
            if found:
                break
    if not any(option.fits and option.action in _OTHER_MACHINE for option in singles):
        yield from machine_options(base)


def acceptable(base: Base, option: Option, limits: Bounds) -> bool:
    """Whether a single change fits, on this machine and with this model, within the bounds."""
    after, before = option.scenario, base.scenario
    if not option.fits or option.effort in {"rebuild", "purchase"}:
        return False
    if after.model is not before.model:
        return False
    loses = after.precision is not before.precision and not limits.takes(after.precision)
    if loses or not limits.takes_cache(after.kv_cache_k):
        return False
    enough = after.context_tokens >= limits.context(before) and after.batch >= limits.batch(before)
    on_card = after.gpu_layers is None or after.gpu_layers >= limits.layers(after)
    return enough and on_card and bearable(base, option, limits)


def bearable(base: Base, option: Option, limits: Bounds) -> bool:
    """Whether the RAM it takes is there, or usual where unstated, and it does not crawl."""
    memory = option.memory
    if memory.host_weights_bytes + memory.host_kv_cache_bytes > ram_limit(base, limits):
        return False
    speed, least = option.speed, base.knowledge.policy["crawling_below_tok_s"]
    split = option.scenario.gpu_layers is not None or option.scenario.cpu_experts > 0
    return not split or speed is None or speed.decode_tok_s.estimate >= least


def _fewest_steps(base: Base, limits: Bounds, most: int) -> list[Option]:
    """The best of the smallest sets that fit; in the present framework, else in another."""
    for start in _starts(base):
        for steps in range(2, most + 1):
            found = [option for plan in _sets(base, start, limits, steps) if (
                option := _proved(base, plan, limits))]  # fmt: skip
            if found:
                return best_of(found, _MOST_OFFERED)
    return []


def _proved(base: Base, plan: Plan, limits: Bounds) -> Option | None:
    option = make_option(
        base, "combine", plan.change, plan.scenario, plan.effort, steps=plan.steps
    )
    return option if option.fits and bearable(base, option, limits) else None


def _starts(base: Base) -> Iterator[Plan]:
    """The request as it stands and, where that framework places no layers, in one that does."""
    yield Plan(base.scenario)
    if base.scenario.framework.memory_model == "llama.cpp":
        return
    for framework in base.knowledge.frameworks.values():
        if framework.memory_model == "llama.cpp":
            largest = in_framework(base, framework, base.scenario.precision)
            formats = worth_having(largest, base.knowledge) if largest else ()
            moved = in_framework(base, framework, formats[-1]) if formats else None
            if moved:
                yield Plan(moved, {"framework": framework.name}, 0, "rebuild")
            return


def _sets(base: Base, start: Plan, limits: Bounds, steps: int) -> Iterator[Plan]:
    """Every set of so many changes that fits, each with its best format and least degrees."""
    scenario = start.scenario
    degrees = [d for d in DEGREES if d.applies(scenario, limits)]
    formats = smaller_formats(base, scenario, limits)
    kinds = smaller_caches(base, scenario, limits)
    if start.change:
        formats.insert(0, scenario.precision)
    names = [_FORMAT] if formats else []
    names += [_CACHE] if kinds and (base.memory.kv_cache_bytes) else []
    for chosen in combinations((*names, *degrees), steps):
        if start.change and _FORMAT not in chosen:
            continue
        those = [d for d in chosen if isinstance(d, Degree)]
        if sum(degree.offloads for degree in those) > 1:
            continue
        plan = with_cache(base, start, kinds[0 if limits.gentle else -1]) if (
            _CACHE in chosen) else start  # fmt: skip
        yield from _plans(base, plan, formats if _FORMAT in chosen else [], those, limits)


def _plans(
    base: Base, start: Plan, formats: Sequence[Format], degrees: Sequence[Degree], limits: Bounds
) -> Iterator[Plan]:
    """The plan that keeps most quality and, with layers in RAM, the one that keeps most of them."""
    first = _largest_format(base, start, formats, degrees, limits)
    if first is None:
        return
    for place in range(first, max(len(formats), 1)):
        plan = _exact(base, _with(start, formats, place), degrees, limits)
        if plan is not None:
            yield plan
            break
    if LAYERS in degrees and len(formats) > first + 1:
        plan = _exact(base, _with(start, formats, len(formats) - 1), degrees, limits)
        if plan is not None:
            yield plan


def _with(start: Plan, formats: Sequence[Format], place: int) -> Plan:
    return with_format(start, formats[place]) if formats else start


def _largest_format(
    base: Base, start: Plan, formats: Sequence[Format], degrees: Sequence[Degree], limits: Bounds
) -> int | None:
    """Halve the formats: the place of the largest that fits with all degrees at their extreme."""

    def holds(place: int) -> bool:
        plan = _with(start, formats, place)
        for degree in degrees:
            plan = stretched(base, plan, degree, limits)
        offloads = any(degree.offloads for degree in degrees)
        return (not offloads or _ram_may_do(base, plan.scenario, limits)) and cards_hold(
            base, plan.scenario
        )

    low, high = 0, max(len(formats), 1) - 1
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _ram_may_do(base: Base, scenario: Scenario, limits: Bounds) -> bool:
    """A look without an estimate: do the weights fit into cards and system RAM together."""
    cards = base.memory.usable_bytes or 0
    return stored_bytes(base, scenario) <= cards + ram_limit(base, limits)


def _exact(
    base: Base, plan: Plan, degrees: Sequence[Degree], limits: Bounds
) -> Plan | None:
    """Take all degrees but the last to their extreme, and the last only as far as needed."""
    for degree in degrees[:-1]:
        plan = stretched(base, plan, degree, limits)
    return solved(base, plan, degrees[-1], limits) if degrees else plan
