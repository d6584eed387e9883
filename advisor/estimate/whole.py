"""The estimator as a whole: memory and speed of a scenario, kept for what-ifs that recur.

Requests about one card and model try the same changes again and again, in other formats and other
contexts; a catalogue in order meets each of them a dozen times.
"""

from __future__ import annotations

from advisor.estimate.memory import estimate_memory
from advisor.estimate.result import Memory, Speed
from advisor.estimate.speed import estimate_speed
from advisor.knowledge.types import Knowledge
from advisor.scenario import Key, Scenario, whole_key

_MOST = 8_192
_kept: dict[Key, tuple[Knowledge, Key, Memory, Speed | None]] = {}


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
    key, records = whole_key(scenario)
    found = _kept.get(key)
    if found is None or found[0] is not knowledge:
        memory = estimate_memory(scenario, knowledge)
        if len(_kept) >= _MOST:
            _kept.clear()
        timed = host_fits(scenario, memory)
        speed = estimate_speed(scenario, memory, knowledge) if timed else None
        found = _kept[key] = (knowledge, records, memory, speed)
    return found[2], found[3]
