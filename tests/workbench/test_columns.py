"""A condition tried on a whole column gives what it gives row by row."""

from __future__ import annotations

import random
from array import array

import pytest

from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, Verb, holds
from advisor.workbench.columns import (
    Column,
    all_rows,
    column_of,
    gathered,
    mask_of,
    row_numbers,
    rows_of,
    spread,
)

VERBS: tuple[Verb, ...] = ("above", "at least", "below", "at most", "is", "is not")


def made(rows: list[FactValue | None]) -> Column:
    distinct = list(dict.fromkeys(value for value in rows if value is not None))
    codes = array("I", [0 if v is None else 1 + distinct.index(v) for v in rows])
    return column_of([(distinct, codes)])


@pytest.mark.parametrize("distinct", [1, 7, 300, 70_000])
def test_comparisons_agree_with_the_oracle_whatever_the_number_of_values(distinct: int) -> None:
    rng = random.Random(distinct)
    pool: list[FactValue] = [float(n) for n in rng.sample(range(10 * distinct), distinct)]
    places = {value: place for place, value in enumerate(pool, 1)}
    rows = [*pool, *(rng.choice([*pool[:50], None]) for _ in range(60))]
    codes = array("I", [0 if value is None else places[value] for value in rows])
    column = column_of([(pool, codes)])
    checked = rng.sample(range(len(rows)), min(len(rows), 400))
    for verb in VERBS:
        for limit in (pool[0], pool[-1], 0.0, -1.0, 1e9, 10 * distinct / 2):
            test = Test("memory.deficit", verb, limit)
            found = rows_of(column.passing(test), len(rows))
            for row in checked:
                value = rows[row]
                expected = value is not None and holds(test, {test.fact: value})
                assert bool(found[row]) is expected, (verb, limit, value)


def test_names_and_lists_of_names() -> None:
    column = made(["b", None, "a", "c", "b"])
    assert list(row_numbers(column.passing(Test("x.y", "is", "b")), 5)) == [0, 4]
    assert list(row_numbers(column.passing(Test("x.y", "is not", "b")), 5)) == [2, 3]
    assert list(row_numbers(column.passing(Test("x.y", "one of", ("a", "c"))), 5)) == [2, 3]
    assert list(row_numbers(column.passing(Test("x.y", "is known")), 5)) == [0, 2, 3, 4]
    assert list(row_numbers(column.passing(Test("x.y", "is unknown")), 5)) == [1]


def test_values_come_back_as_they_went_in() -> None:
    rows: list[FactValue | None] = [True, None, False, True]
    column = made(rows)
    assert [column.value(row) for row in range(4)] == rows


def test_parts_are_joined_by_value_and_not_by_place() -> None:
    left = (["b", "a"], array("I", [1, 2, 0]))
    right = (["c", "b"], array("I", [2, 1]))
    column = column_of([left, right])
    assert [column.value(row) for row in range(5)] == ["b", "a", None, "b", "c"]


def test_spreading_and_gathering_follow_the_owners() -> None:
    starts = [0, 2, 2, 5]
    assert rows_of(spread(mask_of(b"\1\1\0"), starts), 5) == b"\1\1\0\0\0"
    assert rows_of(spread(mask_of(b"\0\0\1"), starts), 5) == b"\0\0\1\1\1"
    assert rows_of(gathered(mask_of(b"\0\1\0\0\1"), starts), 3) == b"\1\0\1"
    assert gathered(0, starts) == 0
    assert all_rows(3).bit_count() == 3
