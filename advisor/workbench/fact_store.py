"""The facts of many scenarios in one place, so that rules are tried on all of them at once.

The scenarios are a fixed, even sample of the catalogue: cards x models x formats x contexts x
runtimes. Point ``i`` of an additive recurrence on square roots of primes (R. D. Richtmyer, "The
evaluation of definite integrals, and a quasi-Monte-Carlo method", 1951) picks one entry of every
list, so any number of points covers all lists evenly, and the first thousand of ten thousand are
the thousand.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec import Struct

from advisor.advice.preparation import all_option_facts, prepare
from advisor.errors import UserError
from advisor.knowledge.types import Knowledge
from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, of_option
from advisor.rules.engine.base import OptionFacts
from advisor.scenario.settings import SETTINGS, request_from
from advisor.workbench.columns import Column, Mask, column_of, gathered, mask_of, rows_of

Given = Mapping[str, object]
_T = TypeVar("_T")

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


KEY = "option"
"""The column that holds the keys of options."""


@dataclass(slots=True)
class PartColumn:
    """A column under construction: distinct values, and their places row by row."""

    values: dict[FactValue, int] = field(default_factory=dict)
    codes: array[int] = field(default_factory=lambda: array("I"))

    def put(self, row: int, value: FactValue) -> None:
        """Write the value of a row; rows in between are unknown."""
        self.pad(row)
        self.codes.append(self.values.setdefault(value, len(self.values) + 1))

    def pad(self, rows: int) -> None:
        """Fill up with unknowns to so many rows."""
        if rows > len(self.codes):
            self.codes.extend(bytes(rows - len(self.codes)))


@dataclass(slots=True)
class Part:
    """The facts of some scenarios, as one worker gives them."""

    requests: list[Given] = field(default_factory=list)
    options: list[int] = field(default_factory=list)
    """How many options each scenario has."""
    rows: int = 0
    """Options so far."""
    scenario: dict[str, PartColumn] = field(default_factory=dict)
    option: dict[str, PartColumn] = field(default_factory=dict)
    refused: int = 0

    def take(
        self, given: Given, facts: Mapping[str, FactValue], options: Sequence[OptionFacts]
    ) -> None:
        """Add one scenario."""
        _put(self.scenario, len(self.requests), facts)
        for item in options:
            _put(self.option, self.rows, {KEY: item.key, **item.values})
            self.rows += 1
        self.requests.append(given)
        self.options.append(len(options))


def _put(columns: dict[str, PartColumn], row: int, facts: Mapping[str, FactValue]) -> None:
    for name, value in facts.items():
        column = columns.get(name)
        if column is None:
            column = columns[name] = PartColumn()
        column.put(row, value)


def part_of(requests: Iterable[Given], knowledge: Knowledge, *, easing: bool, most: int) -> Part:
    """Work out the facts of requests; those that are refused are left out.

    ``easing`` asks for less where a request is refused, see ``eased``; after ``most`` that were not
    refused it ends.
    """
    part = Part()
    for given in requests:
        if len(part.requests) >= most:
            break
        for asked in eased(given) if easing else (given,):
            try:
                ready = prepare(request_from(asked), knowledge)
            except UserError:
                continue
            part.take(asked, ready.facts, all_option_facts(ready))
            break
        else:
            part.refused += 1
    return part


@dataclass(frozen=True, slots=True)
class FactStore:
    """The facts of a sample, by column."""

    requests: Sequence[Given]
    starts: Sequence[int]
    """Row of each scenario's first option, and at the end the number of option rows."""
    columns: Mapping[str, Column]
    """Every fact that is known anywhere, and ``KEY``."""
    refused: int = 0
    """Requests drawn that could not be asked (a format that does not run on the card ...)."""
    kept: dict[object, Mask] = field(default_factory=dict, compare=False, repr=False)
    """Masks of tests that were tried before."""

    def __len__(self) -> int:
        return len(self.requests)

    @property
    def rows(self) -> int:
        """How many options there are."""
        return self.starts[-1]

    def height(self, *, option: bool) -> int:
        """Rows of the option table or of the scenario table."""
        return self.rows if option else len(self)

    def value(self, fact: str, row: int) -> FactValue | None:
        """Give one fact; ``row`` counts options for ``option.*`` facts, else scenarios."""
        column = self.columns.get(fact)
        return None if column is None else column.value(row)

    def facts(self, row: int, names: Sequence[str] | None = None) -> dict[str, FactValue]:
        """Give the scenario facts of one scenario, all or those named."""
        wanted = self.columns if names is None else names
        return self._row([name for name in wanted if not _per_option(name)], row)

    def option(self, row: int, names: Sequence[str] | None = None) -> dict[str, FactValue]:
        """Give the ``option.*`` facts of one option."""
        wanted = self.columns if names is None else names
        return self._row([name for name in wanted if of_option(name)], row)

    def key(self, row: int) -> str:
        """Give the key of one option."""
        return str(self.columns[KEY].value(row))

    def _row(self, names: Sequence[str], row: int) -> dict[str, FactValue]:
        found = ((name, self.value(name, row)) for name in names)
        return {name: value for name, value in found if value is not None}


def _per_option(name: str) -> bool:
    return name == KEY or of_option(name)


def joined(parts: Sequence[Part]) -> FactStore:
    """Put the parts of a sample together, in the order given."""
    starts = [0]
    for count in (count for part in parts for count in part.options):
        starts.append(starts[-1] + count)
    columns: dict[str, Column] = {}
    for table, height in (
        ([part.scenario for part in parts], [len(part.requests) for part in parts]),
        ([part.option for part in parts], [part.rows for part in parts]),
    ):
        columns.update(_columns(table, height))
    requests = [given for part in parts for given in part.requests]
    return FactStore(requests, array("I", starts), columns, sum(part.refused for part in parts))


def _columns(
    tables: Sequence[Mapping[str, PartColumn]], heights: Sequence[int]
) -> dict[str, Column]:
    names = sorted({name for table in tables for name in table})
    columns = {}
    for name in names:
        parts = []
        for table, height in zip(tables, heights, strict=True):
            part = table.get(name) or PartColumn()
            part.pad(height)
            parts.append((list(part.values), part.codes))
        columns[name] = column_of(parts)
    return columns


def naming(store: FactStore, names: Collection[str]) -> Mask:
    """Mark the scenarios that name one of some cards or models, or have a what-if that does."""
    asked = ({given["gpu"], given["model"]} for given in store.requests)
    own = mask_of(bytes(not those.isdisjoint(names) for those in asked))
    keys = store.columns[KEY]
    named = tuple(key for key in map(str, keys.values) if any(name in key for name in names))
    offered = keys.passing(Test(KEY, "one of", named)) if named else 0
    return own | gathered(offered, store.starts)


def part_without(store: FactStore, left_out: Mask) -> Part:
    """Take a store apart again, without some of its scenarios."""
    kept = [n for n, out in enumerate(rows_of(left_out, len(store))) if not out]
    starts = store.starts
    spans = [(starts[n], starts[n + 1]) for n in kept]
    options = [end - begin for begin, end in spans]
    part = Part([store.requests[n] for n in kept], options, sum(options), refused=store.refused)
    for name, column in store.columns.items():
        table, rows = (part.option, spans) if _per_option(name) else (part.scenario, None)
        codes = column.codes(rows or [(n, n + 1) for n in kept])
        table[name] = PartColumn({v: place for place, v in enumerate(column.values, 1)}, codes)
    return part
