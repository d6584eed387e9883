"""A fixed, even sample of the catalogue: cards x models x formats x contexts x runtimes.

Point ``i`` of an additive recurrence on square roots of primes (R. D. Richtmyer, "The evaluation of
definite integrals, and a quasi-Monte-Carlo method", 1951) picks one entry of every list, so any
number of points covers all lists evenly, and the first thousand of ten thousand are the thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from advisor.knowledge.types import Knowledge
from advisor.scenario.settings import SETTINGS

Given = Mapping[str, object]
_T = TypeVar("_T")

DEFAULT_SAMPLE = 20_000
SEED = 1

_CONTEXTS = (
    None, None, None, 512, 1023, 1024, 2048, 4096, 8191, 8192, 16383, 16384, 32767, 32768, 65536,
    131072, 262144,
)  # fmt: skip
"""With the values on both sides of what rules ask about."""
_BATCHES = (None,) * 8 + (1, 2, 3, 4, 8, 16, 32, 64, 256)
_GPUS = (None,) * 7 + (2, 2, 4, 8)
_DEFAULTS = (None,) * 6
_PREFER = (None, None, "quality", "speed", "cost")
_DRAWN = {one.name: one.drawn for one in SETTINGS.values() if one.drawn}
_HOSTS: Sequence[Given] = [
    dict(zip(_DRAWN, values, strict=True)) for values in zip(*_DRAWN.values(), strict=True)
]
_SETTINGS: tuple[Given, ...] = ({},) * 12 + (
    {"gpu_layers": 8},
    {"gpu_layers": 20},
    {"cpu_experts": 8},
    {"flash_attention": False},
)
_STEPS = tuple(math.sqrt(prime) for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31))
"""One for each axis; irrational and independent, so that no two axes move in step."""


def drawn(knowledge: Knowledge, seed: int = SEED) -> Iterator[Given]:
    """Draw requests without end; some ask for what does not run, see ``eased``."""
    cards, models = tuple(knowledge.gpus.values()), tuple(knowledge.models)
    runtimes = [f for f in knowledge.frameworks.values() if f.sized]
    offered = [name for name, known in knowledge.formats.items() if known.offered]
    usual = next(f.kv_types for f in runtimes if f.card_free)
    point = 0
    while True:
        point += 1
        pick = _Point(point, seed)
        card = pick.one(0, cards)
        fitting = [f for f in runtimes if card.vendor in f.vendors]
        runtime = pick.one(4, (*[None] * (3 * len(fitting) + 1), *fitting))
        formats = runtime.formats if runtime else offered
        kinds = runtime.kv_types if runtime else usual
        given: dict[str, object] = {
            "gpu": card.name,
            "model": pick.one(1, models),
            "precision": pick.one(2, (*[None] * len(formats), "INT8", "INT4", *formats)),
            "context": pick.one(3, _CONTEXTS),
            "framework": runtime.name if runtime else None,
            "batch": pick.one(5, _BATCHES),
            "gpus": pick.one(6, _GPUS),
            "kv_cache": pick.one(7, (*_DEFAULTS, *kinds)),
            "prefer": pick.one(8, _PREFER),
            **pick.one(9, _HOSTS),
            **pick.one(10, _SETTINGS),
        }
        yield {key: value for key, value in given.items() if value is not None}


def eased(given: Given) -> Iterator[Given]:
    """Give a request, and then with less and less of what may not run together."""
    yield given
    for dropped in (("gpu_layers", "cpu_experts"), ("kv_cache",), ("framework",), ("precision",)):
        if any(key in given for key in dropped):
            given = {key: value for key, value in given.items() if key not in dropped}
            yield given


class _Point(Struct, frozen=True):
    number: int
    seed: int

    def one(self, axis: int, entries: Sequence[_T]) -> _T:
        """Take the entry at this point's place on one axis."""
        place = (_shift(self.seed, axis) + self.number * _STEPS[axis]) % 1.0
        return entries[int(place * len(entries))]


def _shift(seed: int, axis: int) -> float:
    return (seed * 0.7548776662466927 + axis * 0.5698402909980532) % 1.0
