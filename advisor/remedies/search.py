"""Several changes of one request on the way to a what-if, and how far each may go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from advisor.knowledge.types import Format, Knowledge, KvType
from advisor.remedies.option import EFFORTS, Base, Effort, Option, Remedy, make_option
from advisor.scenario.images import least_context
from advisor.scenario.scenario import Scenario, offloads

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
    """Whether an option fits in RAM that is there or that a large PC holds."""
    memory = option.memory
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    return option.fits and (
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
