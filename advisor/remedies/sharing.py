"""The cards at hand otherwise: fewer of them, copies side by side, or groups in stages.

A request is answered on the fewest that hold it and are as fast as all: cards that are dealt whole
layers take turns, and a small model gains nothing from more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from msgspec.structs import replace

from advisor.estimator import free_bytes
from advisor.estimator.limits import spare_bytes
from advisor.knowledge.types import Knowledge
from advisor.remedies.assessment import (
    Outlook,
    attending_apart,
    copies_heads,
    in_stages,
    on_some,
    outlook_of,
    singly,
    speed_when_full,
)
from advisor.remedies.option import Base, Option, Remedy, cards_hold, make_option
from advisor.remedies.search import Plan, bounds, proved, smaller_caches, that_divide, with_cache
from advisor.scenario import Scenario, is_usual_split, offloads, split_of, split_ways, with_batch
from advisor.scenario.figures import Speed, certainty_of
from advisor.units import rate

_USUAL = frozenset({"sure", "unverified"})
_NOTICED_S, _MOST_TRIED = 5, 3
_OF_CARDS = frozenset({"gpu", "gpus", "split", "stages"})
_quickest = attrgetter("bandwidth_bytes_s", "vram_bytes", "name")


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
        other = on_some(scenario, count)
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
    """Tell of copies on a part of the cards each, which hold their share of all requests.

    Where requests wait, or cards take turns and copies write more together.
    """
    found = next(_copies(base), None) if base.fits else None
    if found and (_waits(base) or _writes_more(base, found)):
        yield "options.copies", float(base.scenario.gpus // found.gpus)
        yield "options.copy_gpus", float(found.gpus)
        yield "options.copy_batch", float(found.batch)


def _waits(base: Base) -> bool:
    held = base.memory.held_sequences
    return held is not None and held < base.scenario.batch


def _writes_more(base: Base, copy: Scenario) -> bool:
    then = outlook_of(copy, base.knowledge).speed
    if split_of(base.scenario) != "layer" or not then or not base.speed:
        return False
    return then.decode_tok_s.estimate * base.scenario.batch > base.speed.total_tok_s


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


# ---- the fewest that do as well


def on_fewest(base: Base) -> Base:
    """Give the request on as few of its cards as hold it with room and are no slower."""
    own, found = base.scenario, fewest(base.scenario, base.knowledge)
    if found is own or base.request.split:
        return base
    now = outlook_of(found, base.knowledge)
    fewer = replace(base, scenario=found, memory=now.memory, speed=now.speed)
    said = (*own.read_as, *_said(base, fewer))
    return replace(fewer, scenario=replace(found, read_as=said))


def _said(base: Base, fewer: Base) -> Iterator[str]:
    """Say that the others gain nothing, or what they do gain, and how they are all used."""
    own, count = base.scenario, fewer.scenario.gpus
    speeds = [rate(one.speed.decode_tok_s.estimate) for one in (fewer, base) if one.speed]
    told = f" ({speeds[0]} tok/s against {speeds[1]})" if len({*speeds}) > 1 else ""
    which, many = ("it alone is", "One") if count == 1 else ("they alone are", str(count))
    verb = "is" if count == 1 else "are"
    why = f"enough and no slower than all of them{told}, so {which} used"
    if not is_usual_split(own):
        why = f"used: the {own.gpus} do not divide its tensors, so they would take turns{told}"
    yield f"{many} of the {own.gpus} cards {verb} {why}. `--split {split_of(own)}` takes them all."
    last = [_full(one) for one in (fewer, base)]
    waits = [one.first_token_s.estimate for one in last if one and one.first_token_s]
    if len(waits) > 1 and waits[0] - waits[1] >= _NOTICED_S:
        yield (
            f"All of them would read the longest prompt in about {waits[1]:.0f} s instead of "
            f"{waits[0]:.0f} s."
        )


def _full(one: Base) -> Speed | None:
    return speed_when_full(one.scenario, one.memory, one.speed, one.knowledge)


def options_on_fewest(base: Base, now: Base, options: Sequence[Option]) -> tuple[Option, ...]:
    """Give what-ifs of the cards at hand on as few of them, less what is the request itself now."""
    found = (_option(base, option) for option in options)
    own = (now.scenario.gpu, now.scenario.gpus)
    same = (FEWER.action, *own)
    return tuple(o for o in found if (o.action, o.scenario.gpu, o.scenario.gpus) != same)


def names_cards(change: Mapping[str, object]) -> bool:
    """Whether a change says which cards it takes and how, so that it takes them all."""
    return not _OF_CARDS.isdisjoint(change)


def _option(base: Base, option: Option) -> Option:
    after, at_hand = option.scenario, not (base.request.split or names_cards(option.change))
    found = fewest(after, base.knowledge) if option.fits and at_hand else after
    if found is after:
        return option
    then = outlook_of(found, base.knowledge)
    return replace(
        option,
        scenario=found,
        memory=then.memory,
        speed=then.speed,
        margin=then.margin,
        alone=then.facts,
    )


def fewest(scenario: Scenario, knowledge: Knowledge) -> Scenario:
    """Give a scenario on the fewest cards that do as well; as it is where none do.

    Where all would take turns because they do not divide the tensors, on the most that do.
    """
    told, usual = scenario.split or scenario.stages, is_usual_split(scenario)
    if told or offloads(scenario) or scenario.gpus == 1 or (scenario.cards and not usual):
        return scenario
    now = outlook_of(scenario, knowledge)
    if not now.fits or (now.speed is None and split_of(scenario) != "layer"):
        return scenario
    fewer = list(_on_fewer(scenario))[:: 1 if usual else -1]
    tried = islice((one for one in fewer if _holds(now, one, knowledge)), _MOST_TRIED)
    return next((one for one in tried if _as_good(now, scenario, one, knowledge)), scenario)


def _holds(now: Outlook, other: Scenario, knowledge: Knowledge) -> bool:
    """Whether fewer cards hold it with room: a cheap test before the estimate."""
    if not is_usual_split(other) or now.memory.weights_bytes > _most(other):
        return False
    free = free_bytes(other, knowledge)
    return free is not None and free >= spare_bytes(other, knowledge)


def _most(other: Scenario) -> int:
    return (other.gpu.vram_bytes or 0) * other.gpus if other.gpu else 0


def _on_fewer(scenario: Scenario) -> Iterator[Scenario]:
    """List what holds fewer of the cards: of unequal ones equal ones alone, the quickest."""
    if not scenario.cards:
        return (on_some(scenario, count) for count in range(1, scenario.gpus))
    known = [card for card in scenario.cards if card.bandwidth_bytes_s and card.vram_bytes]
    best = max(known, key=_quickest, default=None)
    alike = sum(card is best for card in scenario.cards)
    return (on_some(scenario, count, best) for count in range(1, alike + 1) if best)


def _as_good(now: Outlook, scenario: Scenario, other: Scenario, knowledge: Knowledge) -> bool:
    """Whether fewer cards hold as many requests, with room and certainty, and are no slower."""
    then = outlook_of(other, knowledge)
    if then.margin != "ample":
        return False
    held = [m.held_sequences or scenario.batch for m in (then.memory, now.memory)]
    if held[0] < held[1] or certainty_of(then.memory) not in _USUAL:
        return False
    return _no_slower(then.speed, now.speed) and _no_slower(
        speed_when_full(other, then.memory, then.speed, knowledge),
        speed_when_full(scenario, now.memory, now.speed, knowledge),
    )


def _no_slower(then: Speed | None, now: Speed | None) -> bool:
    if then is None or now is None:
        return then is now
    ends = [(one.decode_tok_s.estimate, one.total_tok_s) for one in (then, now)]
    return all(after >= before for after, before in zip(*ends, strict=True))
