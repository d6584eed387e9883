"""Changes of degree: a shorter context, fewer sequences, layers or experts in system RAM.

Each has an extreme, which says whether it can help at all, and an exact answer: the least of it
that makes the rest fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.estimate.limits import (
    largest_fitting_context,
    largest_gpu_layers,
    largest_that_fits,
    smallest_cpu_experts,
)
from advisor.estimate.memory import free_bytes
from advisor.estimate.overhead import cards_of
from advisor.knowledge.types import Knowledge
from advisor.remedies.baseline import Base
from advisor.remedies.changes import Bounds, Plan
from advisor.scenario.scenario import Scenario

CONTEXT_STEP = 256


class Degree(Struct, frozen=True):
    """One dimension along which memory falls."""

    name: str
    applies: Callable[[Scenario, Bounds], bool]
    extreme: Callable[[Scenario, Bounds], Scenario]
    """The furthest the bounds let it go."""
    key: str
    """The key of a change."""
    exact: Callable[[Scenario, Bounds, Knowledge], int | None]
    """The least of it that fits; None where it takes none, or more than the bounds allow."""
    offloads: bool = False

    def at(self, scenario: Scenario, value: int, base: Base) -> Scenario:
        """The scenario with this much of it."""
        if self.key == "context":
            return replace(scenario, context_tokens=value)
        if self.key == "batch":
            rows = base.request.logits_rows or value
            return replace(scenario, batch=value, logits_rows=rows)
        if self.key == "gpu_layers":
            return replace(scenario, gpu_layers=value)
        return replace(scenario, cpu_experts=value)


def solved(base: Base, plan: Plan, degree: Degree, limits: Bounds) -> Plan | None:
    """Add the least of a change of degree that makes a plan fit; None where none does."""
    value = degree.exact(plan.scenario, limits, base.knowledge)
    if value is None:
        return None
    return plan.then(degree.at(plan.scenario, value, base), {degree.key: value}, "setting")


def stretched(base: Base, plan: Plan, degree: Degree, limits: Bounds) -> Plan:
    """Add as much of a change of degree as the bounds allow."""
    scenario = degree.extreme(plan.scenario, limits)
    values = {
        "context": scenario.context_tokens,
        "batch": scenario.batch,
        "gpu_layers": scenario.gpu_layers,
        "cpu_experts": scenario.cpu_experts,
    }
    value = values[degree.key]
    assert value is not None
    return plan.then(degree.at(plan.scenario, value, base), {degree.key: value}, "setting")


def _shortest(scenario: Scenario, limits: Bounds) -> Scenario:
    return replace(scenario, context_tokens=limits.context(scenario))


def _context(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    context = shorter_context(scenario, knowledge, "thin_below_percent")
    return context if context is not None and context >= limits.context(scenario) else None


def shorter_context(scenario: Scenario, knowledge: Knowledge, margin: str) -> int | None:
    """The longest context that leaves a margin, else the longest that fits, in steps of 256 tokens.

    Args:
        scenario: What needs too much.
        knowledge: With the margin and the limits of every card.
        margin: Name in policy.yaml of the share of the usable memory that should stay free.

    Returns:
        None where none fits, or where that is no shorter.
    """
    most_usable = max(card.usable or 0 for card in cards_of(scenario, knowledge))
    least = round(knowledge.policy[margin] / 100 * most_usable)

    def free(tokens: int) -> int:
        shorter = replace(scenario, context_tokens=tokens)
        return (free_bytes(shorter, knowledge, once=True) or 0) - least

    trained = scenario.model.trained_context_tokens
    most = min(scenario.context_tokens - 1, trained or scenario.context_tokens)
    largest = largest_that_fits(free, most) if most > 0 else None
    if largest is None or largest < knowledge.policy["least_context_tokens"]:
        largest = largest_fitting_context(scenario, knowledge)
    if largest is None or largest >= scenario.context_tokens:
        return None
    return largest // CONTEXT_STEP * CONTEXT_STEP or largest


def _fewest(scenario: Scenario, limits: Bounds) -> Scenario:
    batch = limits.batch(scenario)
    rows = batch if scenario.logits_rows == scenario.batch else scenario.logits_rows
    return replace(scenario, batch=batch, logits_rows=rows)


def _batch(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    def free(batch: int) -> int:
        rows = batch if scenario.logits_rows == scenario.batch else scenario.logits_rows
        return free_bytes(replace(scenario, batch=batch, logits_rows=rows), knowledge) or 0

    batch = largest_that_fits(free, scenario.batch)
    if batch is None or batch >= scenario.batch or batch < limits.batch(scenario):
        return None
    return batch


def _can_offload(scenario: Scenario, _limits: Bounds) -> bool:
    gpu = scenario.gpu
    return scenario.framework.places_layers and gpu is not None and not gpu.unified_memory


def _most_offloaded(scenario: Scenario, limits: Bounds) -> Scenario:
    return replace(scenario, gpu_layers=min(limits.layers(scenario), scenario.model.shape.layers))


def _layers(scenario: Scenario, limits: Bounds, knowledge: Knowledge) -> int | None:
    layers = largest_gpu_layers(replace(scenario, gpu_layers=None), knowledge)
    if layers is None or layers > scenario.model.shape.layers:
        return None
    return layers if layers >= limits.layers(scenario) else None


def _has_experts(scenario: Scenario, limits: Bounds) -> bool:
    moves = bool(scenario.framework.expert_offload and scenario.model.shape.moe)
    return moves and _can_offload(scenario, limits)


def _all_experts(scenario: Scenario, _limits: Bounds) -> Scenario:
    return replace(scenario, cpu_experts=scenario.model.shape.layers)


def _experts(scenario: Scenario, _limits: Bounds, knowledge: Knowledge) -> int | None:
    return smallest_cpu_experts(replace(scenario, cpu_experts=0), knowledge) or None


CONTEXT = Degree(
    "context",
    lambda scenario, limits: limits.context(scenario) < scenario.context_tokens,
    _shortest,
    "context",
    _context,
)
BATCH = Degree(
    "batch",
    lambda scenario, limits: limits.batch(scenario) < scenario.batch,
    _fewest,
    "batch",
    _batch,
)
LAYERS = Degree("layers", _can_offload, _most_offloaded, "gpu_layers", _layers, offloads=True)
EXPERTS = Degree("experts", _has_experts, _all_experts, "cpu_experts", _experts, offloads=True)
DEGREES: Sequence[Degree] = (CONTEXT, BATCH, LAYERS, EXPERTS)
"""The last of those in a combination is the one that is solved exactly."""
