"""Layers of several cards where experts stay in system RAM."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.estimator import estimate_memory
from advisor.estimator.limits import smallest_cpu_experts
from advisor.estimator.several_cards import filled
from advisor.knowledge import load_knowledge
from advisor.runtimes.commands import command_for
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request


def least_free(sizes: list[int], room: list[int], first: int, counts: tuple[int, ...]) -> int:
    edges = [sum(counts[:card]) for card in range(len(counts) + 1)]
    held = [sum(sizes[a:b]) for a, b in pairwise(edges)]
    held[0] += first
    return min(each - taken for each, taken in zip(room, held, strict=True))


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.lists(st.integers(0, 60), min_size=2, max_size=4),
    st.integers(0, 20),
)
def test_no_other_share_leaves_the_fullest_card_more(
    sizes: list[int], room: list[int], first: int
) -> None:
    counts = filled(sizes, room, first)
    every = [
        tuple(b - a for a, b in pairwise((0, *cuts, len(sizes))))
        for cuts in combinations(sorted([*range(len(sizes) + 1)] * len(room)), len(room) - 1)
    ]
    assert sum(counts) == len(sizes)
    best = max(least_free(sizes, room, first, one) for one in every)
    assert least_free(sizes, room, first, counts) == best


@pytest.mark.parametrize("context", [4096, 65536])
@pytest.mark.parametrize(
    ("gpu", "model", "precision"),
    [
        ("4x RTX 3090", "GLM-4.5-Air", "Q8_0"),
        ("2x RTX 3090", "qwen3-next-80b-a3b", "Q8_0"),
        ("8x RTX 3090", "Qwen3-235B-A22B", "Q8_0"),
        ("RTX 4090 + RTX 3090", "qwen3-next-80b-a3b", "Q8_0"),
        ("RTX 5090 + RTX 3060", "GLM-4.5-Air", "Q4_K_M"),
    ],
)
def test_experts_leave_the_cards_only_where_all_of_them_are_full(
    gpu: str, model: str, precision: str, context: int
) -> None:
    known = load_knowledge()
    request = Request(gpu=gpu, model=model, precision=precision, context=context,
                      framework="llama.cpp", ram_gib=512)  # fmt: skip
    whole = resolve(request, known)
    moved = smallest_cpu_experts(whole, known)
    assert moved
    scenario = resolve(replace(request, cpu_experts=moved), known)
    memory = estimate_memory(scenario, known)
    layer = whole.model.parameters or 0
    layer = layer * 9 // 8 // whole.model.shape.layers
    assert all(card.usable_bytes - card.required_bytes < 2 * layer for card in memory.per_gpu)
    assert "-ts " + ",".join(map(str, memory.layers_by_card)) in command_for(scenario, memory)
    assert sum(memory.layers_by_card) == whole.model.shape.layers + 1


def test_cards_without_experts_in_ram_share_as_before() -> None:
    known = load_knowledge()
    scenario = resolve(Request(gpu="4x RTX 3090", model="GLM-4.5-Air", precision="Q4_K_M"), known)
    memory = estimate_memory(scenario, known)
    assert memory.layers_by_card == ()
    assert "-ts 1,1,1,1" in command_for(scenario, memory)
