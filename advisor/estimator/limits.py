"""How far a scenario can grow before it no longer fits: searched with the estimator itself."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.estimator import Placed, estimate_memory, free_bytes, placed_of
from advisor.estimator.placement import Card, cards_of, claim_of, largest_share, usable_bytes
from advisor.runtimes import runtime_of
from advisor.scenario import Scenario, holding, split_of, support, with_batch
from advisor.scenario.figures import Limits, Memory, thin_below_bytes
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.knowledge.types import Gpu, Knowledge
    from advisor.scenario.figures import Memory


LONGEST_TOKENS = 2**24
"""Where the search for a context ends if the trained length is unknown."""
_PATIENCE = 2

_Free = Callable[[int], int]
"""Bytes left on the fullest card at a size; negative when it does not fit."""


def find_limits(scenario: Scenario, knowledge: Knowledge, memory: Memory) -> Limits:
    """Find the longest context and the largest batch that fit in full, all else as it is.

    A figure is None without a card, or when not even the smallest fits.
    """
    if memory.usable_bytes is None:
        return Limits(None, None)
    start = None
    if memory.held_sequences in {None, scenario.batch}:
        start = (memory.headroom_bytes or 0) - (memory.deficit_bytes or 0)
    most = runtime_of(scenario.framework).most_sequences
    placed = _placed(scenario, knowledge)
    batch = largest_batch(scenario, knowledge, most, start, placed=placed)
    context = _largest_context(scenario, knowledge, start, in_full=True, placed=placed)
    return Limits(context, batch)


def largest_batch(
    scenario: Scenario,
    knowledge: Knowledge,
    most: int,
    start: int | None = None,
    *,
    roomy: bool = False,
    placed: Placed | None = None,
) -> int | None:
    """Find the largest batch up to ``most`` that fits; None when none does.

    The search ends at ``most``; ``start`` are the bytes left as the scenario stands, where known.
    ``roomy`` leaves so much free that the margin is not thin.
    """
    least = spare_bytes(scenario, knowledge) if roomy else 0
    placed = placed or _placed(scenario, knowledge)

    def free(batch: int) -> int:
        other = with_batch(scenario, batch)
        return _free(other, knowledge, in_full=True, placed=placed) - least

    return largest_that_fits(free, most, None if start is None else (scenario.batch, start))


def largest_fitting_context(scenario: Scenario, knowledge: Knowledge) -> int | None:
    """Find the longest context per sequence with which it runs, tokens; None when none does.

    It never exceeds the trained length.
    """
    if not _has_card(scenario):
        return None
    return _largest_context(scenario, knowledge)


def largest_gpu_layers(
    scenario: Scenario, knowledge: Knowledge, *, roomy: bool = False
) -> int | None:
    """Find the most layers that fit on the cards, the output counted as one.

    ``roomy`` leaves so much free that the margin is not thin.

    Returns:
        0 (everything in system RAM) up to layers + 1; None without a card or when even 0 does
        not fit.
    """
    if not _has_card(scenario):
        return None

    kept = spare_bytes(scenario, knowledge) if roomy else 0

    def free(size: int) -> int:
        return _free(replace(scenario, gpu_layers=size - 1), knowledge) - kept

    most = scenario.model.shape.layers + 2
    found = largest_that_fits(free, most)
    if split_of(scenario):  # one layer more can leave more on the fullest card
        sizes = (size for size in range(most, found or 0, -1) if free(size) >= 0)
        found = next(sizes, found)
    return None if found is None else found - 1


def smallest_cpu_experts(
    scenario: Scenario, knowledge: Knowledge, *, roomy: bool = False
) -> int | None:
    """Find the fewest layers whose experts must stay in system RAM for the rest to fit.

    ``roomy`` leaves so much free that the margin is not thin.

    Returns:
        0 up to the number of layers; None without a card or when it never fits.
    """
    if not _has_card(scenario):
        return None
    layers = scenario.model.shape.layers
    least = spare_bytes(scenario, knowledge) if roomy else 0

    def free(kept: int) -> int:
        return _free(replace(scenario, cpu_experts=layers + 1 - kept), knowledge) - least

    kept = largest_that_fits(free, layers + 1)
    return None if kept is None else layers + 1 - kept


def spare_bytes(scenario: Scenario, knowledge: Knowledge) -> int:
    """Give what has to stay free on each card so that no margin is thin, bytes."""
    most = max((card.usable or 0 for card in cards_of(scenario, knowledge)), default=0)
    return thin_below_bytes(most, knowledge.policy)


def _placed(scenario: Scenario, knowledge: Knowledge) -> Placed | None:
    """Place the weights for every context and batch; several cards may share them otherwise."""
    return None if scenario.gpus > 1 else placed_of(scenario, knowledge)


def _has_card(scenario: Scenario) -> bool:
    return scenario.gpu is not None and scenario.gpu.vram_bytes is not None


def _free(
    scenario: Scenario, knowledge: Knowledge, *, in_full: bool = False, placed: Placed | None = None
) -> int:
    free = free_bytes(scenario, knowledge, once=True, in_full=in_full, placed=placed)
    assert free is not None
    return free


def _largest_context(
    scenario: Scenario,
    knowledge: Knowledge,
    start: int | None = None,
    *,
    in_full: bool = False,
    placed: Placed | None = None,
) -> int | None:
    """Search in steps of the runtime's padding, within which memory does not change.

    Below a micro-batch it does: its buffers are no longer than the context.

    ``start`` are the bytes left as the scenario stands, where known; the rest is as for
    ``free_bytes``.
    """
    most = scenario.model.trained_context_tokens or LONGEST_TOKENS
    step = runtime_of(scenario.framework).step_tokens(scenario)

    placed = placed or _placed(scenario, knowledge)

    def free(tokens: int) -> int:
        other = replace(scenario, context_tokens=tokens)
        return _free(other, knowledge, in_full=in_full, placed=placed)

    if start is not None and start < 0 and free(1) < 0:
        return None
    steps, rest = divmod(scenario.context_tokens, step)
    known = (steps, start) if start is not None and rest == 0 else None
    found = largest_that_fits(lambda size: free(min(size * step, most)), -(-most // step), known)
    if found is not None:
        whole = min(found * step, most)
        if whole == most or whole >= scenario.ubatch or free(whole + 1) < 0:
            return whole
        known = (whole + 1, free(whole + 1))
        return largest_that_fits(free, min(whole + step, most), known)
    return largest_that_fits(free, min(step, most)) if step > 1 and free(1) >= 0 else None


def largest_that_fits(free: _Free, most: int, known: tuple[int, int] | None = None) -> int | None:
    """Find the largest size from 1 to ``most`` with ``free(size) >= 0``.

    ``free`` gives the bytes left at a size, which only fall as it grows; ``known`` is a size and
    its free bytes.

    Gives None when not even 1 fits.
    """
    low, low_free, high, high_free = 0, 0, most + 1, 0
    if known is not None and 1 <= known[0] <= most:
        if known[1] >= 0:
            if known[0] == most:
                return most
            low, low_free = known
        elif known[0] == 1:
            return None
        else:
            high, high_free = known
    if high > most:
        high, high_free = most, free(most)
        if high_free >= 0:
            return most
    if low == 0:
        low, low_free = 1, free(1)
        if low_free < 0:
            return None
    return _narrowed(free, low, low_free, high, high_free)


def _narrowed(free: _Free, low: int, low_free: int, high: int, high_free: int) -> int:
    """Close the bracket of a size that fits and one that does not.

    Memory is nearly a straight line, so the size tried is where the line through both ends
    meets zero; a bisection follows when two such steps did not halve the bracket.
    """
    stalled = 0
    while high - low > 1:
        width = high - low
        if stalled < _PATIENCE:
            guess = low + width * low_free // (low_free - high_free)
            guess = min(max(guess, low + 1), high - 1)
        else:
            guess = low + width // 2
        value = free(guess)
        if value >= 0:
            low, low_free = guess, value
        else:
            high, high_free = guess, value
        stalled = stalled + 1 if 2 * (high - low) > width else 0
    return low


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
    """Find the fewest equal cards, up to 8, that hold it: split as its own are, else anyhow.

    Returns:
        None without a card, with unequal ones, when 8 are too few, and where more than one is not
        an answer: the card is part of a machine, the framework does not divide models, or the
        request places layers itself.
    """
    gpu = scenario.gpu
    if gpu is None or gpu.vram_bytes is None or scenario.cards:
        return None
    form, model = scenario.precision, scenario.model
    others = [
        replace(scenario, gpus=count)
        for count in range(1, (MOST_CARDS if can_double(scenario) else 1) + 1)
        if support.can_share(scenario.framework, form, model, count)
    ]
    own = {None, split_of(scenario)}
    for other in sorted(others, key=lambda one: split_of(one) not in own):
        free = free_bytes(other, knowledge)
        if free is not None and free >= 0:
            return other.gpus
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

    Of a server that lets requests wait, one of them.

    Several cards stay as many.

    Gives bytes of one card as sold; None without a card.
    """
    gpu = scenario.gpu
    if gpu is None or not memory.per_gpu or scenario.cards:
        return None
    steps = runtime_of(scenario.framework).capacity_steps(knowledge.policy)
    if not steps:
        if (memory.held_sequences or 1) > 1:
            memory = estimate_memory(holding(scenario, 1), knowledge)
        needed = _needed(memory, cards_of(scenario, knowledge)[0])
        return _smallest(scenario, knowledge, needed, 0, _MOST_CAPACITY_BYTES)
    edges = (0, *steps, _MOST_CAPACITY_BYTES)
    for low, high in pairwise(edges):
        needed = _needed_with(scenario, knowledge, replace(gpu, vram_bytes=high - 1))
        found = _smallest(scenario, knowledge, needed, low, high)
        sizes = range(max(-(-low // GIB), 1), high // GIB)
        if found is not None and (least := _least(scenario, knowledge, sizes, found // GIB)):
            return least * GIB
    return None


def _least(scenario: Scenario, knowledge: Knowledge, sizes: range, found: int) -> int | None:
    """Look beside what was found: a server that claims what is free needs more of a larger card.

    One that lays 16 bits there first needs more than what it holds in the end.
    """
    assert scenario.gpu
    gpu = scenario.gpu

    def holds(size: int) -> bool:
        card = replace(gpu, vram_bytes=size * GIB)
        free = free_bytes(replace(scenario, gpu=card), knowledge)
        return free is not None and free >= 0

    if holds(found) and (found == sizes[0] or not holds(found - 1)):
        return found
    place = bisect_left(sizes, 1, key=holds)
    return sizes[place] if place < len(sizes) else None


def _needed(memory: Memory, card: Card) -> int:
    """Say how much the fullest card must have usable: what it holds, and what the cache leaves."""
    fullest = max(memory.per_gpu, key=lambda one: one.required_bytes)
    left = fullest.kv_cache_bytes / card.cache_share - fullest.kv_cache_bytes
    return fullest.required_bytes + math.ceil(left)


def _needed_with(scenario: Scenario, knowledge: Knowledge, gpu: Gpu) -> int:
    free = free_bytes(replace(scenario, gpu=gpu), knowledge)
    assert free is not None
    assert gpu.vram_bytes
    framework, claim = scenario.framework, claim_of(scenario)
    return usable_bytes(gpu, gpu.vram_bytes, framework, knowledge.policy, claim) - free


def _smallest(
    scenario: Scenario, knowledge: Knowledge, needed: int, low: int, high: int
) -> int | None:
    """Search whole GiB from ``low`` up to but without ``high``; usable memory only grows."""
    gpu, framework, policy = scenario.gpu, scenario.framework, knowledge.policy
    assert gpu
    claim = claim_of(scenario)
    least = int(needed / largest_share(gpu, framework, policy, claim))
    size = max(-(-max(low, least) // GIB), 1) * GIB
    while size < high:
        if usable_bytes(gpu, size, framework, policy, claim) >= needed:
            return size
        size += GIB
    return None
