"""The estimator as a whole: memory and speed of a scenario."""

from __future__ import annotations

from advisor.estimate.memory import estimate_memory
from advisor.estimate.result import Memory, Speed
from advisor.estimate.speed import estimate_speed
from advisor.knowledge.types import Knowledge
from advisor.scenario import Scenario


def host_fits(scenario: Scenario, memory: Memory) -> bool:
    """Whether system RAM holds what lies there; unknown RAM counts as said to be needed."""
    needed = memory.host_weights_bytes + memory.host_kv_cache_bytes
    offloaded = scenario.gpu_layers is not None or scenario.cpu_experts > 0
    return not offloaded or scenario.ram_bytes is None or needed <= scenario.ram_bytes


def estimate_scenario(scenario: Scenario, knowledge: Knowledge) -> tuple[Memory, Speed | None]:
    """Size and time a scenario; see ``estimate_memory`` and ``estimate_speed``.

    There is no speed where system RAM cannot hold its part.

    Raises:
        KnowledgeError: calibration.yaml is wrong.
        RequestError: A figure of the architecture or of the format is not known.
    """
    memory = estimate_memory(scenario, knowledge)
    timed = host_fits(scenario, memory)
    return memory, estimate_speed(scenario, memory, knowledge) if timed else None
