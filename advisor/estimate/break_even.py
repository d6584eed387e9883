"""Where a scenario tips over: the batch, the cards and the card size at which it (no longer) fits.

Every point is found with the estimator itself; ``Limits`` holds the longest context.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.estimate.memory import free_bytes
from advisor.estimate.overhead import Card, card_of, largest_share, usable_bytes
from advisor.runtimes import runtime_of
from advisor.scenario import support
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu, Knowledge
    from advisor.scenario.figures import Limits, Memory
    from advisor.scenario.scenario import Scenario

MOST_CARDS = 8
_MOST_CAPACITY_BYTES = 2**20 * GIB


def first_batch_too_large(scenario: Scenario, limits: Limits, memory: Memory) -> int | None:
    """Give the smallest batch that does not fit; None without a card, or where none was found."""
    if memory.usable_bytes is None:
        return None
    if limits.max_batch is None:
        return 1
    most = runtime_of(scenario.framework).most_sequences
    return None if limits.max_batch >= most else limits.max_batch + 1


def fewest_gpus(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """Find the smallest number of equal cards that hold the scenario, up to 8.

    Returns:
        None without a card, with unequal ones, when 8 are too few, and where more than one is not
        an answer: the card is part of a machine, the framework does not divide models, or the
        request places layers itself.
    """
    gpu = scenario.gpu
    if gpu is None or gpu.vram_bytes is None or scenario.cards:
        return None
    several = can_double(scenario)
    for count in range(1, (MOST_CARDS if several else 1) + 1):
        if support.can_share(scenario.framework, scenario.precision, scenario.model, count):
            free = free_bytes(replace(scenario, gpus=count), knowledge)
            if free is not None and free >= 0:
                return count
    return None


def can_double(scenario: Scenario) -> bool:
    """Whether more cards of the kind can be put beside it and share this scenario."""
    gpu = scenario.gpu
    if gpu is None or gpu.stands_alone:
        return False
    whole = scenario.gpu_layers is None and not scenario.cpu_experts
    return whole and bool(scenario.framework.multi_gpu)


def smallest_capacity_bytes(scenario: Scenario, knowledge: Knowledge, memory: Memory) -> int | None:
    """Find the smallest whole-GiB memory of a card, all else equal, that holds the scenario.

    Args:
        scenario: The situation; several cards stay as many.
        knowledge: As for ``estimate_memory``.
        memory: Its memory.

    Returns:
        Bytes of one card as sold; None without a card.
    """
    gpu = scenario.gpu
    if gpu is None or not memory.per_gpu or scenario.cards:
        return None
    steps = runtime_of(scenario.framework).capacity_steps(knowledge.policy)
    if not steps:
        needed = _needed(memory, card_of(gpu, scenario.backend, scenario.framework, knowledge))
        return _smallest(scenario, knowledge, needed, 0, _MOST_CAPACITY_BYTES)
    edges = (0, *steps, _MOST_CAPACITY_BYTES)
    for low, high in pairwise(edges):
        needed = _needed_with(scenario, knowledge, replace(gpu, vram_bytes=high - 1))
        found = _smallest(scenario, knowledge, needed, low, high)
        if found is not None:
            return found
    return None


def _needed(memory: Memory, card: Card) -> int:
    """Say how much the fullest card must have usable: what it holds, and what the cache leaves."""
    fullest = max(memory.per_gpu, key=lambda one: one.required_bytes)
    left = fullest.kv_cache_bytes / card.cache_share - fullest.kv_cache_bytes
    return fullest.required_bytes + math.ceil(left)


def _needed_with(scenario: Scenario, knowledge: Knowledge, gpu: Gpu) -> int:
    free = free_bytes(replace(scenario, gpu=gpu), knowledge)
    assert free is not None
    assert gpu.vram_bytes
    return usable_bytes(gpu, gpu.vram_bytes, scenario.framework, knowledge.policy) - free


def _smallest(
    scenario: Scenario, knowledge: Knowledge, needed: int, low: int, high: int
) -> int | None:
    """Search whole GiB from ``low`` up to but without ``high``; usable memory only grows."""
    gpu, framework, policy = scenario.gpu, scenario.framework, knowledge.policy
    assert gpu
    least = int(needed / largest_share(gpu, framework, policy))
    size = max(-(-max(low, least) // GIB), 1) * GIB
    while size < high:
        if usable_bytes(gpu, size, framework, policy) >= needed:
            return size
        size += GIB
    return None
