"""Several changes of one request, on the way to a what-if."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.estimate.weights import weight_profile
from advisor.knowledge.types import Format, KvType
from advisor.remedies.baseline import Base
from advisor.remedies.format_choice import sized_formats
from advisor.remedies.formats import can_cache, kv_change
from advisor.remedies.option import Effort, Option
from advisor.scenario import support
from advisor.scenario.scenario import Scenario, offloads

_GENTLE_CACHE_BITS = 8.0
_GENTLE_CLASS_BITS = 4
_FLOAT_UNITS = frozenset({"fp8", "nvfp4", "mxfp4"})
_EFFORTS: Sequence[Effort] = ("setting", "download", "rebuild", "purchase")


class Plan(Struct, frozen=True):
    """A changed scenario, the keys that say so and how many single changes they are."""

    scenario: Scenario
    change: Mapping[str, object] = field(default_factory=dict)
    steps: int = 0
    effort: Effort = "setting"

    def then(self, scenario: Scenario, change: Mapping[str, object], effort: Effort) -> Plan:
        """Add one single change."""
        most = max(self.effort, effort, key=_EFFORTS.index)
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

    def context(self, scenario: Scenario) -> int:
        """The shortest context to go down to, tokens; nobody needs more than was trained."""
        useful = min(scenario.context_tokens, scenario.model.trained_context_tokens or 2**62)
        kept = int(useful * self.context_kept)
        shortest = max(kept, self.least_context_tokens, scenario.depth_tokens + 1)
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
        Bounds(policy["worst_loss_percent"], 0.0, few, least, gentle=False),
    )


def ram_limit(base: Base, limits: Bounds) -> float:
    """System RAM that a remedy may use, bytes: what was stated, else what a PC can hold.

    Not more than can be read for a token before it crawls, where the bandwidth is stated.
    """
    name = "usual_ram_bytes" if limits.gentle else "unstated_ram_bytes"
    policy, scenario = base.knowledge.policy, base.scenario
    held = policy[name] if scenario.ram_bytes is None else scenario.ram_bytes
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


def stored_bytes(base: Base, scenario: Scenario, precision: Format | None = None) -> int:
    """What the weights take wherever they lie, bytes: the floor of any what-if.

    Args:
        base: The request.
        scenario: Whose model and framework.
        precision: Another format than the scenario's own.
    """
    stored_as = precision or scenario.precision
    return weight_profile(
        scenario.model, stored_as, scenario.framework, base.knowledge.ggml_types
    ).total_bytes


def smaller_formats(base: Base, scenario: Scenario, limits: Bounds) -> list[Format]:
    """Formats of the scenario's framework that are smaller than its own, the largest first."""
    own = stored_bytes(base, scenario)
    return [
        precision
        for precision, stored in sized_formats(scenario, base.knowledge)
        if stored < own
        and precision is not scenario.precision
        and limits.takes(precision)
        and not _unpacked(precision, scenario)
    ]


def _unpacked(precision: Format, scenario: Scenario) -> bool:
    """Whether it is made for units that this card lacks; what the publisher released is not."""
    made_for_units = precision.family in _FLOAT_UNITS and scenario.gpu is not None
    if not made_for_units or support.is_published(precision, scenario.model):
        return False
    assert scenario.gpu
    return support.is_native(precision, scenario.gpu) is False


def smaller_caches(base: Base, scenario: Scenario, limits: Bounds) -> list[KvType]:
    """Cache types below the present one, one per number of bits, the largest first."""
    kinds = (base.knowledge.kv_types[name] for name in scenario.framework.kv_types)
    by_bits = {
        int(kind.bits): kind
        for kind in reversed(list(kinds))
        if kind.bits < scenario.kv_cache_k.bits
        and limits.takes_cache(kind)
        and can_cache(scenario, kind)
    }
    return [by_bits[bits] for bits in sorted(by_bits, reverse=True)]


def with_format(plan: Plan, precision: Format) -> Plan:
    """Store the weights in another format of the same framework."""
    scenario = replace(plan.scenario, precision=precision)
    return plan.then(scenario, {"precision": precision.name}, "download")


def with_cache(base: Base, plan: Plan, kind: KvType) -> Plan:
    """Keep the cache in a smaller type."""
    scenario = replace(plan.scenario, kv_cache_k=kind, kv_cache_v=kind)
    return plan.then(scenario, kv_change(base, kind), "setting")
