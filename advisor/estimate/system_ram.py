"""What holds for memory and speed together: system RAM has to hold what is offloaded."""

from __future__ import annotations

from advisor.estimate.speed import estimate_speed
from advisor.knowledge.types import Knowledge
from advisor.scenario.figures import Memory, Speed
from advisor.scenario.scenario import Scenario, offloads


def host_fits(scenario: Scenario, memory: Memory) -> bool:
    """Whether system RAM holds what lies there; unknown RAM counts as said to be needed."""
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    return not offloads(scenario) or scenario.ram_bytes is None or needed <= scenario.ram_bytes


def timed(scenario: Scenario, memory: Memory, knowledge: Knowledge) -> Speed | None:
    """Time a sized scenario; None where system RAM cannot hold its part, see ``estimate_speed``."""
    return estimate_speed(scenario, memory, knowledge) if host_fits(scenario, memory) else None
