"""Combinations: the smallest set of changes that fits, found by search.

A set is a weight format, a cache type and changes of degree. Memory falls along each, so one look
passes over a set that does not fit with all at their extreme, and halving finds its best format.
Fewer changes come first, gentle ones before, new hardware (``machines``) last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.types import Format, KvType
from advisor.remedies.assessment import outlook_of, unserved_context, weights_loss
from advisor.remedies.cards import LARGER, MORE, RENTED
from advisor.remedies.format_lists import has_quick_kernels, in_placing
from advisor.remedies.formats import had_formats, least_cost, smaller_formats, with_format
from advisor.remedies.kv_cache import (
    BATCH,
    CONTEXT,
    is_clearly_faster,
    is_quick,
    where_experts_move,
)
from advisor.remedies.kv_cache import EXPERTS_DEGREE as EXPERTS
from advisor.remedies.kv_cache import LAYERS_DEGREE as LAYERS
from advisor.remedies.levers import share_plans, small_step_plans, text_alone_plans, together
from advisor.remedies.machines import on_machines
from advisor.remedies.option import Base, Option, Remedy, cards_hold, stored_bytes
from advisor.remedies.search import (
    Bounds,
    Degree,
    Plan,
    best_of,
    bounds,
    held_share,
    least_decode,
    proved,
    ram_limit,
    smaller_caches,
    solved,
    stretched,
    with_cache,
)
from advisor.scenario import offloads, split_ways, support
from advisor.scenario.figures import held_percent

_MOST_STEPS, _MOST_FOUND, _FEW_FOUND, _ALL, _FULL_BITS = 3, 8, 2, 100.0, 16
_FORMAT, _CACHE, _FRAMEWORK, _APART = "format", "cache", "framework", "dp-attention"
_OTHER_MACHINE = frozenset({MORE.action, LARGER.action, RENTED.action})
_DEGREES: Sequence[Degree] = (CONTEXT, BATCH, EXPERTS, LAYERS)
"""The last of those in a combination is the one that is solved exactly."""
_PARTS = ("kv_cache_k kv_cache_v", "context_tokens", "batch", "gpu_layers", "cpu_experts")
"""What of a scenario each part of a set changes, beside the format, which is the best that fits."""


def propose(base: Base, _: object, found: Mapping[str, Option]) -> Iterator[Option]:
    """The best combinations, where no single change is a gentle remedy; at most a handful."""
    singles = tuple(found.values())
    gentle, *further = bounds(base)
    yield from _with_smaller_cache(base, singles, gentle)
    if base.fits:
        return
    enough = [option for option in singles if acceptable(base, option, gentle)]
    quick = [option for option in enough if is_quick(base, option)]
    kept = any(_keeps_all(base, option) for option in quick)
    yield from () if kept else (proved(base, REMEDY, plan) for plan in together(base))
    if least_cost(singles) > base.knowledge.policy["little_loss_percent"]:
        yield from _less_lossy(base, gentle, [] if kept else text_alone_plans(base))
    if quick:
        yield from _keeping_context(base, quick, gentle)
        yield from _fewer_in_ram(base, quick, gentle)
        return
    sets = _gentle_sets(base, gentle, further[0])
    lost = min((weights_loss(found.scenario) or 0.0 for found in sets), default=0.0)
    if lost > base.knowledge.policy["little_loss_percent"]:
        yield from _less_lossy(base, gentle, [])
    yield from _keeping_context(base, sets, gentle)
    yield from (found for found in sets if is_clearly_faster(base, found, enough))
    if sets or enough:
        return
    enough = [option for option in singles if acceptable(base, option, further[-1])]
    faithful = [o for o in enough if o.scenario.precision is base.scenario.precision]
    for limits in further:
        sets = _fewest_steps(base, limits, 2 if enough else _MOST_STEPS)
        yield from (found for found in sets if is_clearly_faster(base, found, faithful))
        if sets:
            break
    if not any(_replaces(base, option) for option in singles):
        yield from on_machines(base, REMEDY)


def _with_smaller_cache(base: Base, singles: Sequence[Option], gentle: Bounds) -> Iterator[Option]:
    """Servers that let requests wait after a change: with a smaller cache, or one copy of it."""
    for option in singles:
        after = option.scenario
        if _lets_wait(base, option) and has_quick_kernels(after, after.precision):
            plan = Plan(after, option.change, option.steps, option.effort)
            for kind in smaller_caches(base, after, gentle)[:1]:
                yield proved(base, REMEDY, with_cache(base, plan, kind))
            if after.model.shape.mla and not after.split and _APART in split_ways(after):
                apart = replace(after, split=_APART)
                yield proved(base, REMEDY, plan.then(apart, {"split": _APART}, "setting"))


def _fewer_in_ram(base: Base, quick: Sequence[Option], gentle: Bounds) -> Iterator[Option]:
    """A smaller cache, or what was released, with fewer experts in RAM; where clearly faster."""
    moved = any(option.scenario.cpu_experts for option in quick)
    if not (moved and EXPERTS.applies(base.scenario, gentle)):
        return
    search = replace(_search(base, Plan(base.scenario), gentle), degrees=[EXPERTS])
    released = [f for f in search.formats if support.is_published(f, base.scenario.model)]
    found = (proved(base, REMEDY, p) for p in replace(search, formats=released).sets(2))
    yield from (option for option in found if is_clearly_faster(base, option, quick))


def _less_lossy(base: Base, gentle: Bounds, text: Sequence[Plan]) -> Iterator[Option]:
    """The usual format with a part of a mixture in RAM; a better one in more memory or for text."""
    own = base.scenario
    alone, placed = own.batch == 1 and own.model.shape.moe, own.framework.places_layers
    for start in [*_starts(base), *_where_experts_move(base)] if alone else ():
        search = _search(base, start, gentle)
        moved = next((d for d in search.degrees if d.offloads), None)
        plan = search.usual_with(moved) if moved else None
        if plan and not (placed and plan.scenario.precision is own.precision):
            yield proved(base, REMEDY, plan)
    found = _fewest_steps(base, gentle, 1, [*share_plans(base), *text])
    yield from (option for option in found if not offloads(option.scenario))


def _keeps_all(base: Base, option: Option) -> bool:
    """Whether it changes neither weights nor context, and costs no speed that nobody knows."""
    own, after = base.scenario, option.scenario
    as_quick = own.eager or not after.eager
    as_long = after.context_tokens >= own.context_tokens
    return after.precision is own.precision and as_long and as_quick


def _keeping_context(base: Base, found: Sequence[Option], gentle: Bounds) -> Sequence[Option]:
    """Sets that keep a context that was stated, where all that was found cuts it or loses much."""
    tokens, little = base.scenario.context_tokens, base.knowledge.policy["little_loss_percent"]
    kept = [o.quality_cost_percent or 0.0 for o in found if o.scenario.context_tokens >= tokens]
    if min(kept, default=little + 1) <= little or not found or base.request.context is None:
        return []
    return _gentle_sets(base, replace(gentle, context_kept=1.0), gentle)


def _lets_wait(base: Base, option: Option) -> bool:
    """Whether it fits without a purchase, in the server that was stated, and requests wait."""
    after, before = option.scenario, base.scenario
    if not option.fits or option.effort == "purchase" or after.model is not before.model:
        return False
    stated = base.request.framework and before.framework.serves_batches
    moved = stated and after.framework is not before.framework
    now, then = (one.precision.class_bits or _FULL_BITS for one in (before, after))
    shared = ("stages" in option.change or after.split == _APART) and then == now
    fewer = not base.fits or then < now or shared
    unpacked = support.is_unpacked(after.precision, after.model, after.gpu)
    waits = held_percent(option.memory, after.batch) < _ALL
    return fewer and not moved and not unpacked and waits


def _replaces(base: Base, option: Option) -> bool:
    """Whether other hardware alone does, with room, and is of the kind there is."""
    most = base.knowledge.policy["few_held_percent"]
    usable = option.margin not in {None, "thin"} and held_share(base, option.scenario) >= most
    own, other = base.scenario.gpu, option.scenario.gpu
    if not usable or option.action != LARGER.action or own is None or other is None:
        return usable and option.action in _OTHER_MACHINE
    return own.segment != "mobile" and bool(own.unified_memory) == bool(other.unified_memory)


def acceptable(base: Base, option: Option, limits: Bounds) -> bool:
    """Whether a single change fits, on this machine and with this model, within the bounds."""
    after, before = option.scenario, base.scenario
    elsewhere = option.effort in {"rebuild", "purchase"} or after.model.name != before.model.name
    thin = limits.roomy and option.margin == "thin"
    if elsewhere or thin or not option.fits or unserved_context(after):
        return False
    other = after.precision is not before.precision
    loses = other and not (
        limits.takes(after.precision) and has_quick_kernels(after, after.precision)
    )
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
    speed = option.speed
    if speed is None or not offloads(option.scenario):
        return True
    return speed.decode_tok_s.estimate >= least_decode(base)


def _gentle_sets(base: Base, gentle: Bounds, harsh: Bounds) -> list[Option]:
    """Gentle sets; a server asked for by name, with several sequences, is left last of all."""
    own, *moved = _starts(base)
    found = _sets_from(base, replace(gentle, slow=False), own) or _sets_from(base, gentle, own)
    if not found and moved and base.request.framework and base.scenario.batch > 1:
        found = _fewest_steps(base, harsh, _MOST_STEPS, [own])
    return found or _fewest_steps(base, gentle, _MOST_STEPS, moved)


def _sets_from(base: Base, limits: Bounds, own: Plan) -> list[Option]:
    """Sets in the program at hand, without images and with prompts in small steps too."""
    starts = [own], text_alone_plans(base), small_step_plans(base)
    return [one for s in starts for one in _fewest_steps(base, limits, _MOST_STEPS, s)]


def _fewest_steps(
    base: Base, limits: Bounds, most: int, starts: Iterable[Plan] | None = None
) -> list[Option]:
    """The best of the smallest sets that fit; in the present framework, else in another."""
    for start in _starts(base) if starts is None else starts:
        search = _search(base, start, limits)
        if not search.may_fit():
            continue
        for steps in range(2 - start.steps, most + 1):
            found = list(islice(_proved(search, steps), _MOST_FOUND))
            if not found:
                continue
            found = [o for o in found if o.scenario.cpu_experts] or found
            moved = _FRAMEWORK in start.change
            more = steps < most and (moved or all(offloads(one.scenario) for one in found))
            larger = islice(_proved(search.on_card(), steps + 1), _FEW_FOUND if more else 0)
            return [*best_of(found, _MOST_FOUND), *best_of(larger, _FEW_FOUND)]
    return []


def _proved(search: _Search, steps: int) -> Iterator[Option]:
    found = (proved(search.base, REMEDY, plan) for plan in search.sets(steps))
    yield from (o for o in found if o.fits and bearable(search.base, o, search.limits))


def _starts(base: Base) -> Iterator[Plan]:
    """The request as it stands and, where that framework places no layers, in one that does."""
    yield _served(Plan(base.scenario))
    if not base.scenario.framework.places_layers and (moved := in_placing(base)):
        yield _served(Plan(moved, {_FRAMEWORK: moved.framework.name}, 1, "rebuild"))


def _where_experts_move(base: Base) -> Iterator[Plan]:
    """The request in llama.cpp, where its own program places layers and moves no experts."""
    other = where_experts_move(base) if base.scenario.framework.places_layers else None
    if other and other.framework is not base.scenario.framework:
        yield _served(Plan(other, {_FRAMEWORK: other.framework.name}, 1, "rebuild"))


def _served(plan: Plan) -> Plan:
    """With no more of the context than is served."""
    scenario, trained = plan.scenario, plan.scenario.model.trained_context_tokens or 0
    if trained <= scenario.depth_tokens or not unserved_context(scenario):
        return plan
    served = replace(scenario, context_tokens=trained)
    return plan.then(served, {CONTEXT.key: trained}, "setting")


def _search(base: Base, start: Plan, limits: Bounds) -> _Search:
    scenario = start.scenario
    formats = had_formats(scenario, smaller_formats(base, scenario, limits))
    if _FRAMEWORK in start.change:
        formats.insert(0, scenario.precision)
    kinds = smaller_caches(base, scenario, limits) if base.memory.kv_cache_bytes else []
    degrees = [degree for degree in _DEGREES if degree.applies(scenario, limits)]
    return _Search(base, start, limits, formats, kinds, degrees)


class _Search(Struct, frozen=True):
    """The changes to choose from, within bounds."""

    base: Base
    start: Plan
    limits: Bounds
    formats: Sequence[Format]
    """The largest first."""
    kinds: Sequence[KvType]
    degrees: Sequence[Degree]

    def on_card(self) -> _Search:
        """The same without the changes that move a part to system RAM."""
        return replace(self, degrees=[d for d in self.degrees if not d.offloads])

    def may_fit(self) -> bool:
        """One look ahead: does it fit with every change at its extreme."""
        plan = self._with_format(self._with_cache(), len(self.formats) - 1)
        less = ([d for d in self.degrees if d is not left] for left in (LAYERS, EXPERTS))
        return any(self._holds(plan, degrees) for degrees in less)

    def sets(self, steps: int) -> Iterator[Plan]:
        """Every set of so many changes that fits, with its best format and least degrees."""
        names = [_FORMAT] if self.formats else []
        names += [_CACHE] if self.kinds else []
        for chosen in combinations((*names, *self.degrees), steps):
            degrees = [d for d in chosen if isinstance(d, Degree)]
            moves = _FRAMEWORK in self.start.change and _FORMAT not in chosen
            if moves or sum(degree.offloads for degree in degrees) > 1:
                continue
            plan = self._with_cache() if _CACHE in chosen else self.start
            found = self._plans(plan, degrees, formats=_FORMAT in chosen)
            yield from filter(self._needs_all, found)

    def _plans(self, start: Plan, degrees: Sequence[Degree], *, formats: bool) -> Iterator[Plan]:
        """The plan that keeps most quality, and others that keep more of the model on the card."""
        last = len(self.formats) - 1 if formats else -1
        first = self._largest_format(start, degrees, last)
        if first is None:
            return
        places = [*range(first, last), last] if formats else [-1]
        exact = (self._exact(self._with_format(start, place), degrees) for place in places)
        plan = next((found for found in exact if found and self._ram_holds(found)), None)
        if plan is None:
            return
        yield plan
        if any(degree.offloads for degree in degrees):
            for place in self._further(first, last, layers=LAYERS in degrees):
                smaller = self._exact(self._with_format(start, place), degrees)
                if smaller is not None:
                    yield smaller

    def _further(self, first: int, last: int, *, layers: bool) -> Sequence[int]:
        """Places of smaller formats worth a look: the usual one and, for layers, the smallest."""
        model, most = self.base.scenario.model, self.base.knowledge.policy["little_loss_percent"]
        losses = [support.format_loss(precision, model) for precision in self.formats]
        usual = [i for i, loss in enumerate(losses) if loss is not None and loss <= most]
        places = [*usual[-1:], *([last] if layers else [])]
        return [place for place in dict.fromkeys(places) if first < place <= last]

    def usual_with(self, degree: Degree) -> Plan | None:
        """The smallest format that loses little, with the least of a change of degree that fits."""
        usual = self._further(-1, len(self.formats) - 1, layers=False)
        plans = (self._exact(self._with_format(self.start, place), [degree]) for place in usual)
        return next((plan for plan in plans if plan and self._ram_holds(plan)), None)

    def _largest_format(self, start: Plan, degrees: Sequence[Degree], last: int) -> int | None:
        """Halve the formats: the largest that fits with all degrees at their extreme."""

        def fits(place: int) -> bool:
            return self._holds(self._with_format(start, place), degrees)

        if not fits(last):
            return None
        return bisect_left(range(last), True, key=fits) if last > 0 else last

    def _holds(self, plan: Plan, degrees: Sequence[Degree]) -> bool:
        for degree in degrees:
            plan = stretched(self.base, plan, degree, self.limits)
        offloads = any(degree.offloads for degree in degrees)
        cards = self.base.memory.usable_bytes or 0
        most = ram_limit(self.base, self.limits) if offloads else 0.0
        if offloads and stored_bytes(self.base, plan.scenario) > cards + most:
            return False
        held = cards_hold(self.base, plan.scenario, roomy=self.limits.roomy)
        return held and (not offloads or self._ram_holds(plan, at_least=True))

    def _ram_holds(self, plan: Plan, *, at_least: bool = False) -> bool:
        """Whether RAM holds what was moved there; at least, less what would still fit on cards."""
        if not offloads(plan.scenario):
            return True
        memory = outlook_of(plan.scenario, self.base.knowledge).memory
        moved = memory.host_weights_bytes + memory.host_kv_cache_bytes
        back = (memory.usable_bytes or 0) - memory.required_bytes if at_least else 0
        return moved - back <= ram_limit(self.base, self.limits)

    def _exact(self, plan: Plan, degrees: Sequence[Degree]) -> Plan | None:
        """Take all degrees but the last to their extreme, the last only as far as needed."""
        for degree in degrees[:-1]:
            plan = stretched(self.base, plan, degree, self.limits)
        return solved(self.base, plan, degrees[-1], self.limits) if degrees else plan

    def _needs_all(self, plan: Plan) -> bool:
        """Whether it no longer fits once any part is taken back; else a smaller set is as good."""
        own, asked = self.start.scenario, self.base.scenario
        if replace(plan.scenario, framework=asked.framework) == asked:
            return False
        for part in _PARTS:
            bare = replace(plan.scenario, **{name: getattr(own, name) for name in part.split()})
            if bare != plan.scenario and cards_hold(self.base, bare, roomy=self.limits.roomy):
                return False
        return True

    def _with_format(self, plan: Plan, place: int) -> Plan:
        return with_format(plan, self.formats[place]) if place >= 0 else plan

    def _with_cache(self) -> Plan:
        kinds = self.kinds[:1] if self.limits.gentle else self.kinds[-1:]
        return with_cache(self.base, self.start, kinds[0]) if kinds else self.start


REMEDY = Remedy("combine", frozenset(), "setting", propose, joins=True)
