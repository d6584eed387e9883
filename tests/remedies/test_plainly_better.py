"""What is plainly better stands first: told from documents alone, by benchmarks/order.py.

The reader in that script knows no rule, score or fact. Each of its kinds of inversion must be
seen in a document turned round, so that none can pass by never being found.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

import advisor

KINDS: Mapping[str, Mapping[str, object]] = {
    "another first": {
        "gpu": "4x RTX 4060 Ti 16GB", "model": "llama-3.3-70b-instruct", "precision": "INT4",
    },
    "beaten first": {
        "gpu": "6x RTX 3090", "model": "llama-4-scout-17b-16e-instruct", "context": 32768,
        "ram": "256GB", "batch": 8,
    },
    "switch late": {"gpu": "Ryzen AI Max+ 395", "model": "qwen3.6-35b-a3b", "context": 32768},
    "for nothing": {
        "gpu": "RTX 4090", "model": "qwen3.6-35b-a3b", "precision": "Q4_K_M", "ram": "32GB",
        "framework": "SGLang",
    },
}  # fmt: skip
"""A request whose advice holds such a pair, now the right way round."""
SETTLED = frozenset({"another first", "beaten first", "switch late", "for nothing", "context late"})
Pair = tuple[str, str, str]


class _Reader(Protocol):
    KINDS: Mapping[str, object]

    def inversions(self, doc: dict[str, Any], bits: Mapping[str, float]) -> Iterator[Pair]: ...

    def bits_of(self, known: object) -> Mapping[str, float]: ...


@pytest.fixture(scope="module")
def reader() -> Iterator[_Reader]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        yield cast("_Reader", importlib.import_module("order"))


@pytest.fixture(scope="module")
def found(reader: _Reader) -> Callable[[dict[str, Any]], set[Pair]]:
    bits = reader.bits_of(session().advisor.knowledge)
    return lambda doc: set(reader.inversions(doc, bits))


@lru_cache
def session() -> advisor.Session:
    return advisor.Session()


def told(given: Mapping[str, object]) -> dict[str, Any]:
    return session().advise(**given).to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_of_its_kind_stands_wrong_and_turned_round_one_does(
    kind: str, found: Callable[[dict[str, Any]], set[Pair]]
) -> None:
    doc = told(KINDS[kind])
    assert kind not in {pair[0] for pair in found(doc)}
    doc["recommendations"].reverse()
    assert kind in {pair[0] for pair in found(doc)}


SAMPLE: tuple[Mapping[str, object], ...] = tuple(
    {"gpu": gpu, "model": model, "ram": "32GB", **others}
    for others in ({}, {"context": 32768}, {"precision": "Q8_0"})
    for gpu, model in zip(
        ("RTX 3060 12GB", "RTX 2080 Ti", "RX 7900 XTX", "RTX 4070 Laptop", "M3 Ultra:512GB",
         "Strix Halo", "4x RTX 3090", "2x A6000", "8x H100 SXM", "RTX 5070 Ti"),
        ("qwen3.6-35b-a3b", "qwen3.6-27b", "qwen3-32b", "mistral-small-3.2-24b-instruct-2506",
         "qwq-32b", "gpt-oss-20b", "llama-3.3-70b-instruct", "deepseek-r1-distill-qwen-32b",
         "glm-4.5-air", "gemma-3-27b-it"),
        strict=True,
    )
)  # fmt: skip


def test_over_a_sample_nothing_plainly_better_stands_behind(
    found: Callable[[dict[str, Any]], set[Pair]],
) -> None:
    right: set[Pair] = set()
    for given in SAMPLE:
        doc = told(given)
        wrong = {pair for pair in found(doc) if pair[0] in SETTLED}
        assert not wrong, given
        doc["recommendations"].reverse()
        right |= {pair for pair in found(doc) if pair[0] in SETTLED}
    assert len(right) > len(SAMPLE), "pairs that could stand wrong"
