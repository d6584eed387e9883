"""The memory picture is the estimator's own arithmetic, laid out."""

from __future__ import annotations

from functools import lru_cache

import pytest
from msgspec.structs import replace

from advisor.advice.configuration import memory_picture
from advisor.estimator import estimate_memory
from advisor.knowledge import load_knowledge
from advisor.scenario import Scenario
from advisor.scenario.resolve import resolve
from advisor.scenario.settings import Request

REQUESTS = (
    Request(gpu="RTX 4090", model="llama-3-8b", precision="Q8_0", context=6000, batch=3),
    Request(gpu="RTX 3060 12GB", model="gemma-2-9b", precision="Q4_K_M"),
    Request(gpu="H100 SXM5 80 GB", model="llama-3.1-70b", precision="FP8", framework="vLLM"),
)


@lru_cache
def scenario(request: Request) -> Scenario:
    return resolve(request, load_knowledge())


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: str(r.model))
def test_every_cell_is_what_the_estimator_says(request_: Request) -> None:
    found = memory_picture(scenario(request_), load_knowledge())
    for tokens, row in zip(found.contexts, found.free_bytes, strict=True):
        for batch, free in zip(found.batches, row, strict=True):
            other = replace(
                scenario(request_), context_tokens=tokens, batch=batch, logits_rows=batch
            )
            memory = estimate_memory(other, load_knowledge())
            assert memory.headroom_bytes is not None
            assert memory.deficit_bytes is not None
            assert free is not None
            if memory.held_sequences in {None, batch}:
                assert free == memory.headroom_bytes - memory.deficit_bytes
            else:
                assert free < 0


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: str(r.model))
def test_more_context_or_sequences_never_leave_more(request_: Request) -> None:
    found = memory_picture(scenario(request_), load_knowledge())
    rows = [[cell or 0 for cell in row] for row in found.free_bytes]
    assert all(row == sorted(row, reverse=True) for row in rows)
    columns = list(zip(*rows, strict=True))
    assert all(list(column) == sorted(column, reverse=True) for column in columns)


def test_the_request_is_among_the_rows_and_columns() -> None:
    found = memory_picture(scenario(REQUESTS[0]), load_knowledge())
    assert 6000 in found.contexts
    assert 3 in found.batches
    assert found.growth[-1].context_tokens == 8192


def test_cache_tokens_are_what_the_free_memory_holds() -> None:
    found = memory_picture(scenario(REQUESTS[2]), load_knowledge())
    assert found.cache_tokens is not None
    longest = replace(scenario(REQUESTS[2]), context_tokens=found.cache_tokens - 512)
    assert estimate_memory(longest, load_knowledge()).deficit_bytes == 0
