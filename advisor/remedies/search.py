"""Several changes of one request: how far each may go, and which no other makes pointless."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, le

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.types import Format, Knowledge, KvType
from advisor.remedies.assessment import on_some, outlook_of
from advisor.remedies.option import EFFORTS, Base, Effort, Option, Remedy, cards_hold, make_option
from advisor.runtimes.commands import can_tell
from advisor.scenario import Scenario, is_usual_split, offloads, support
from advisor.scenario.figures import held_percent
from advisor.scenario.images import least_context

_GENTLE_CACHE_BITS = 8.0
_GENTLE_CLASS_BITS = 4


class Plan(Struct, frozen=True):
    """A changed scenario, the keys that say so and how many single changes they are."""

    scenario: Scenario
    change: Mapping[str, object] = field(default_factory=dict)
    steps: int = 0
    effort: Effort = "setting"

    def then(self, scenario: Scenario, change: Mapping[str, object], effort: Effort) -> Plan:
        """Add one single change."""
        most = max(self.effort, effort, key=EFFORTS.index)
        return Plan(scenario, {**self.change, **change}, self.steps + 1, most)


class Bounds(Struct, frozen=True):
    """How far single changes may go: ``gentle`` first, further only where that is not enough."""

    worst_loss_percent: float
    context_kept: float
    """Share of the context and of the batch asked for that is kept, 0 to 1."""
    layers_kept: float
    """Share of the layers that stays on the cards, 0 to 1."""
    least_context_tokens: int
    gentle: bool
    roomy: bool = True
    """Whether what is a matter of degree leaves so much free that the margin is not thin."""
    slow: bool = True
    """Whether a server may take a format with slow kernels."""

    def context(self, scenario: Scenario) -> int:
        """The shortest context to go down to, tokens; nobody needs more than was trained."""
        useful = min(scenario.context_tokens, scenario.model.trained_context_tokens or 2**62)
        kept = int(useful * self.context_kept)
        shortest = max(kept, self.least_context_tokens, least_context(scenario))
        return min(shortest, scenario.context_tokens)

    def batch(self, scenario: Scenario) -> int:
        """The smallest batch to go down to."""
        return max(1, int(scenario.batch * self.context_kept))

    def layers(self, scenario: Scenario) -> int:
        """The fewest layers on the cards, the output counted as one."""
        return -int(-(scenario.model.shape.layers + 1) * self.layers_kept // 1)

    def takes(self, precision: Format) -> bool:
        """Whether a weight format is within what may be lost; unmeasured ones from 4 bits up."""
        loss = precision.quality_loss_percent
        if loss is None:
            return (precision.class_bits or 0) >= _GENTLE_CLASS_BITS
        return loss <= self.worst_loss_percent

    def takes_cache(self, kind: KvType) -> bool:
        """Whether a cache type is within what may be lost."""
        return not self.gentle or kind.bits >= _GENTLE_CACHE_BITS


def bounds(base: Base) -> Sequence[Bounds]:
    """The bounds to try in turn, from knowledge/policy.yaml."""
    policy = base.knowledge.policy
    least = int(policy["least_context_tokens"])
    context = policy["combine_context_kept_percent"] / 100
    harsh = policy["combine_context_harsh_percent"] / 100
    layers = policy["combine_layers_kept_percent"] / 100
    few = policy["least_layers_percent"] / 100
    return (
        Bounds(policy["gentle_up_to_percent"], context, layers, least, gentle=True),
        Bounds(policy["desperate_above_percent"], harsh, few, least, gentle=False),
        Bounds(policy["worst_loss_percent"], 0.0, few, least, gentle=False, roomy=False),
    )


def ram_limit(base: Base, limits: Bounds) -> float:
    """System RAM that a remedy may use, bytes: what was stated, else what a PC can hold.

    Less what the operating system keeps, and not more than can be read for a token before it
    crawls, where the bandwidth is stated.
    """
    name = "usual_ram_bytes" if limits.gentle else "unstated_ram_bytes"
    policy, scenario = base.knowledge.policy, base.scenario
    stated = policy[name] if scenario.ram_bytes is None else scenario.ram_bytes
    held = max(stated - policy["system_ram_bytes"], 0.0)
    least = least_decode(base)
    if scenario.ram_bandwidth_bytes_s is None or not least:
        return held
    idle = scenario.model.parameters / max(scenario.model.active_parameters, 1)
    crawls = scenario.ram_bandwidth_bytes_s / least * max(idle, 1.0)
    return min(held, crawls)


def least_decode(base: Base) -> float:
    """The slowest decoding that is no crawl, tokens per second; 0 where speed is no matter."""
    crawl = base.knowledge.policy["crawling_below_tok_s"]
    return 0.0 if base.scenario.use == "none" else crawl


def within_reach(base: Base, option: Option) -> bool:
    """Whether an option fits in RAM that is there or that a large PC holds, with a card at work."""
    memory = option.memory
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    idle = option.scenario.gpu_layers == 0 != base.scenario.gpu_layers
    return (option.fits and not idle) and (
        not offloads(option.scenario) or needed <= ram_limit(base, bounds(base)[-1])
    )


class Degree(Struct, frozen=True):
    """One setting along which memory falls.

    Its extreme says whether it can help at all; exactly, it is the least that makes the rest fit.
    """

    key: str
    """The setting."""
    applies: Callable[[Scenario, Bounds], bool]
    extreme: Callable[[Scenario, Bounds], int]
    """The furthest the bounds let it go."""
    exact: Callable[[Scenario, Bounds, Knowledge], int | None]
    """The least of it that fits; None where it takes none, or more than the bounds allow."""
    put: Callable[[Base, Scenario, int], Scenario]
    """The scenario with this much of it."""
    offloads: bool = False


def solved(base: Base, plan: Plan, degree: Degree, limits: Bounds) -> Plan | None:
    """Add the least of a change of degree that makes a plan fit; None where none does."""
    value = degree.exact(plan.scenario, limits, base.knowledge)
    return None if value is None else _with(base, plan, degree, value)


def stretched(base: Base, plan: Plan, degree: Degree, limits: Bounds) -> Plan:
    """Add as much of a change of degree as the bounds allow."""
    return _with(base, plan, degree, degree.extreme(plan.scenario, limits))


def _with(base: Base, plan: Plan, degree: Degree, value: int) -> Plan:
    return plan.then(degree.put(base, plan.scenario, value), {degree.key: value}, "setting")


def proved(
    base: Base, remedy: Remedy, plan: Plan, cost_usd: float | None = None, steps: int = 1
) -> Option:
    """Estimate a plan; it counts as at least so many single changes."""
    steps = max(plan.steps, steps)
    return make_option(
        base,
        remedy,
        plan.change,
        plan.scenario,
        effort=plan.effort,
        cost_usd=cost_usd,
        steps=steps,
    )


DOMINATED_BY = "option.dominated_by"
"""The fact that names them, and what stands between their keys."""
BETWEEN_KEYS = "\n"
_EFFORT = {effort: float(place) for place, effort in enumerate(EFFORTS)}
_Costs = tuple[float, ...]


def dominated(options: Iterable[Option]) -> frozenset[str]:
    """The keys of the fitting options that another fitting one makes pointless.

    What matters: quality, context, sequences, speed of one and of all, price, effort, system RAM
    and the number of changes. Options of different models are not compared, nor are moves to
    different programs, which have more to them than these figures, nor are two of which only one
    has a figure: unknown is neither better nor worse. Where nobody measured what a format loses,
    a cache of more bits is the better one.
    """
    return frozenset(key for group in _comparable(options) for key, _ in _beaten(group))


def _beaten(group: Sequence[tuple[str, _Costs]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Give every option that others beat, and those; only before it in order of costs they can."""
    ordered = sorted(group, key=itemgetter(1))
    for place, (key, costs) in enumerate(ordered):
        better = [
            one for one, other in ordered[:place] if other != costs and all(map(le, other, costs))
        ]
        if better:
            yield key, better


def dominators_in_kind(options: Sequence[Option]) -> Mapping[str, Sequence[str]]:
    """The fitting options that others of the same action make pointless, and the keys of those."""
    by_action: dict[str, list[Option]] = {}
    for option in options:
        by_action.setdefault(option.action, []).append(option)
    groups = (group for those in by_action.values() for group in _comparable(those))
    return dict(pair for group in groups for pair in _beaten(group))


def best_of(options: Iterable[Option], most: int) -> list[Option]:
    """The undominated of several combinations: fewest steps, least loss, least cost first."""
    unique = {option.key: option for option in options}
    pointless = dominated(unique.values())
    return sorted((o for o in unique.values() if o.key not in pointless), key=_first)[:most]


def _first(option: Option) -> tuple[float | bool | str, ...]:
    loss, cost = option.quality_loss_percent, option.cost_usd
    return (option.steps, loss is None, loss or 0.0, cost is None, cost or 0.0, option.key)


def _comparable(options: Iterable[Option]) -> Iterator[Sequence[tuple[str, _Costs]]]:
    """Groups of options whose known figures are the same ones, with what each costs."""
    groups: dict[tuple[object, ...], list[tuple[str, _Costs]]] = {}
    for option in options:
        if option.fits:
            kind, costs = _standing(option)
            groups.setdefault(kind, []).append((option.key, costs))
    return (group for group in groups.values() if len(group) > 1)


def _standing(option: Option) -> tuple[tuple[object, ...], _Costs]:
    """Which figures an option has, and all of them with less being better."""
    after, memory, speed = option.scenario, option.memory, option.speed
    loss = option.quality_loss_percent
    price = option.cost_usd if option.effort == "purchase" else 0.0
    total = speed.aggregate_tok_s if speed else None
    unmeasured = after.precision.name if loss is None else None
    unpriced = (after.gpu.name if after.gpu else "", after.gpus) if price is None else None
    program = option.change.get("framework")
    kind = (after.model.name, unmeasured, speed is None, total is None, unpriced, program)
    return kind, (
        -after.kv_cache_k.bits if loss is None else loss,
        -after.context_tokens,
        -(memory.held_sequences or after.batch),
        -speed.decode_tok_s.estimate if speed else 0.0,
        -total.estimate if total else 0.0,
        price or 0.0,
        _EFFORT[option.effort],
        memory.host_weights_bytes + memory.host_kv_cache_bytes,
        option.steps,
    )


def marks_of(base: Base, options: Sequence[Option]) -> Mapping[str, set[str]]:
    """Give, by the fact that says so, the keys of the options it holds for."""
    marks: dict[str, set[str]] = {
        "option.holds_few": set(),
        "option.holds_most": set(),
        "option.keeps_asked": set(),
        "option.best_quality": set(),
        "option.fastest": set(),
        "option.smallest_step": set(),
    }
    by_action: dict[str, list[Option]] = {}
    for option in options:
        if option.fits:
            by_action.setdefault(option.action, []).append(option)
            _mark_held(base, option, marks)
            if _keeps_asked(base, option):
                marks["option.keeps_asked"].add(option.key)
    for group in by_action.values():
        _mark_best(group, marks)
    return marks


def held_share(base: Base, scenario: Scenario) -> float:
    """The share of the requests asked for that a what-if holds at once, %."""
    if base.scenario.batch == 1:
        return 100.0
    held = held_percent(outlook_of(scenario, base.knowledge).memory, scenario.batch)
    return held * scenario.batch / base.scenario.batch


def holds_few(base: Base, option: Option) -> bool:
    """Whether a server would hold hardly any of the requests, and too few to be busy."""
    least = base.knowledge.policy["hardly_held_percent"]
    return not holds_enough(base, option.scenario, least)


def holds_enough(base: Base, scenario: Scenario, least: float = 100.0) -> bool:
    """Whether a what-if holds this share of the requests, in %, or as many as keep it busy."""
    share = held_share(base, scenario)
    busy = share / 100 * base.scenario.batch >= base.knowledge.policy["busy_sequences"]
    return share >= least or busy


def _mark_held(base: Base, option: Option, marks: Mapping[str, set[str]]) -> None:
    """Mark what holds few of the requests at once, and what holds most on the cards at hand."""
    after, least = option.scenario, base.knowledge.policy["few_held_percent"]
    whole = after.context_tokens >= base.scenario.context_tokens and not offloads(after)
    stays = not base.request.framework or after.framework is base.scenario.framework
    if holds_few(base, option):
        marks["option.holds_few"].add(option.key)
    elif whole and stays and option.effort != "purchase" and held_share(base, after) >= least:
        marks["option.holds_most"].add(option.key)


def _keeps_asked(base: Base, option: Option) -> bool:
    """Whether the very model runs gently on the machine at hand, with all its context and room.

    In system RAM that is stated, or that a PC has; hardly lossy where quality counts.
    """
    after, own, gentle = option.scenario, base.scenario, bounds(base)[0]
    if after.model.name != own.model.name or option.effort == "purchase":
        return False
    lost, careful = option.quality_cost_percent, own.prefer == "quality"
    most = base.knowledge.policy["little_loss_percent"] if careful else gentle.worst_loss_percent
    unknown = gentle.takes(after.precision) and not careful
    soft = unknown if lost is None else lost <= most
    memory, whole = option.memory, after.context_tokens >= own.context_tokens
    in_ram = memory.host_weights_bytes + memory.host_kv_cache_bytes if offloads(after) else 0
    return soft and whole and option.margin != "thin" and in_ram <= ram_limit(base, gentle)


def _mark_best(group: Sequence[Option], marks: Mapping[str, set[str]]) -> None:
    losses = [o.quality_loss_percent for o in group if o.quality_loss_percent is not None]
    speeds = [o.speed.decode_tok_s.estimate for o in group if o.speed]
    closest = max(o.memory.required_bytes for o in group)
    least, fastest = min(losses, default=None), max(speeds, default=None)
    for option in group:
        if least is not None and option.quality_loss_percent == least:
            marks["option.best_quality"].add(option.key)
        if option.speed and option.speed.decode_tok_s.estimate == fastest:
            marks["option.fastest"].add(option.key)
        if option.memory.required_bytes == closest:
            marks["option.smallest_step"].add(option.key)


def that_divide(base: Base, scenario: Scenario) -> Scenario | None:
    """The most of the cards that work on each token together and hold it; None where none do."""
    for count in range(0 if scenario.cards else scenario.gpus - 1, 1, -1):
        other = on_some(scenario, count)
        if is_usual_split(other) and cards_hold(base, other):
            return other
    return None


def smaller_caches(base: Base, scenario: Scenario, limits: Bounds) -> Sequence[KvType]:
    """Cache types below the present one, one per number of bits, the largest first."""
    kinds = (kind for kind in smaller_kinds(base, scenario) if limits.takes_cache(kind))
    return sorted(kinds, key=lambda kind: -int(kind.bits))


def with_cache(base: Base, plan: Plan, kind: KvType) -> Plan:
    """Keep the cache in a smaller type."""
    scenario = replace(plan.scenario, kv_cache_k=kind, kv_cache_v=kind)
    return plan.then(scenario, cache_change(base, kind), "setting")


def smaller_kinds(base: Base, scenario: Scenario) -> Iterator[KvType]:
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


def cache_change(base: Base, kind: KvType) -> dict[str, object]:
    """The keys that ask for a cache type, as the request asked for its own."""
    if base.request.kv_cache_k or base.request.kv_cache_v:
        return {"kv_cache_k": kind.name, "kv_cache_v": kind.name}
    return {"kv_cache": kind.name}
