"""The cards at hand otherwise: fewer of them, copies side by side, or groups in stages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.estimator.limits import spare_bytes
from advisor.remedies.assessment import (
    attending_apart,
    copies_heads,
    in_stages,
    outlook_of,
    singly,
)
from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.remedies.search import Plan, bounds, proved, smaller_caches, that_divide, with_cache
from advisor.scenario import (
    Scenario,
    is_usual_split,
    offloads,
    split_of,
    split_ways,
    with_batch,
)


def _fewer(base: Base, *_: object) -> Iterator[Option]:
    """Cards that take turns: the most that share every tensor instead, or the few that hold all.

    Six of a server that cannot divide eight heads by six take turns; four work on each token.
    """
    scenario = base.scenario
    if scenario.split or scenario.gpus == 1 or offloads(scenario):
        return
    if scenario.cards:
        yield from _one_of(base)
    elif is_usual_split(scenario):
        yield from _fewest(base)
    elif other := that_divide(base, scenario):
        yield make_option(base, FEWER, {"gpus": other.gpus}, other)


def _fewest(base: Base) -> Iterator[Option]:
    """The fewest, half at most, that hold all that the cards do, up to those with room."""
    scenario = base.scenario
    for count in range(1, scenario.gpus // 2 + 1):
        other = replace(scenario, gpus=count, idle_cards=scenario.gpus - count)
        if is_usual_split(other) and cards_hold(base, other, roomy=True):
            option = make_option(base, FEWER, {"gpus": count}, other)
            held, now = (m.held_sequences or scenario.batch for m in (option.memory, base.memory))
            if held >= now:
                yield option
                if option.margin == "ample":
                    return


def _one_of(base: Base) -> Iterator[Option]:
    """Of unequal cards the quickest that holds all, if need be with a smaller cache.

    Those that are dealt layers take turns, and of a tensor each takes as much as the smallest can.
    """
    own, gentle = base.scenario, bounds(base)[0]
    alone = [Plan(o, {"gpu": o.gpu.name, "gpus": 1}, 1) for o in singly(own) if o.gpu]
    shared = alone if not base.fits and split_of(own) == "tensor" else []
    caches = ((p, k) for p in shared for k in smaller_caches(base, p.scenario, gentle))
    plans = (*alone, *(with_cache(base, plan, kind) for plan, kind in caches))
    held = (plan for plan in plans if cards_hold(base, plan.scenario, roomy=True))
    yield from (proved(base, FEWER, plan) for plan in islice(held, 1))


FEWER = Remedy("fewer-gpus", frozenset({"gpu", "gpus"}), "setting", _fewer)


def _split_requests(base: Base, *_: object) -> Iterator[Option]:
    """The same cards and requests, where a cache is copied or one card holds the model."""
    scenario = base.scenario
    if scenario.split or not scenario.batch >= scenario.gpus > 1:
        return
    copies = [replace(scenario, split="data")] if "data" in split_ways(scenario) else []
    for other in (*attending_apart(scenario), *copies):
        yield make_option(base, SPLIT, {"split": other.split}, other)


def copies_facts(base: Base) -> Iterator[tuple[str, float | None]]:
    """Tell of copies on a part of the cards each, which hold their share of all requests."""
    scenario, known = base.scenario, base.knowledge
    found = next(_copies(base), None) if base.fits else None
    if found is None:
        return
    count, then = scenario.gpus // found.gpus, outlook_of(found, known)
    yield "options.copies", float(count)
    yield "options.copy_gpus", float(found.gpus)
    yield "options.copy_batch", float(found.batch)
    if then.speed and base.speed:
        total, now = then.speed.decode_tok_s.estimate * scenario.batch, base.speed.total_tok_s
        yield "options.copies_gain", round(100 * (total / now - 1), 2)


def _copies(base: Base) -> Iterator[Scenario]:
    """Give one of several equal copies, on the fewest cards that hold their share with room."""
    own = base.scenario
    if own.split or own.stages or own.cards or offloads(own) or own.batch < own.gpus:
        return
    alone = "data" in split_ways(own)  # an option of its own
    for cards in range(1 + alone, own.gpus // 2 + 1):
        share = -(-own.batch * cards // own.gpus)
        one = with_batch(replace(own, gpus=cards, idle_cards=own.gpus - cards), share)
        if own.gpus % cards == 0 and is_usual_split(one):
            free = free_bytes(one, base.knowledge, in_full=True)
            if free is not None and free >= spare_bytes(one, base.knowledge):
                yield one


SPLIT = Remedy("split-requests", frozenset({"split"}), "setting", _split_requests)


def _in_stages(base: Base, *_: object) -> Iterator[Option]:
    """The most cards that share tensors, in stages, where all cannot or keep copies of heads."""
    scenario, usual = base.scenario, is_usual_split(base.scenario)
    fixed = scenario.split or scenario.stages or offloads(scenario)
    if fixed or (usual and not copies_heads(scenario)):
        return
    found = islice(in_stages(scenario), None if usual else 1)
    every = (make_option(base, STAGES, {"stages": one.stages}, one) for one in found)
    yield from sorted(every, key=lambda o: o.memory.held_sequences or 0)[-1:]


STAGES = Remedy("share-in-stages", frozenset({"stages"}), "setting", _in_stages)
