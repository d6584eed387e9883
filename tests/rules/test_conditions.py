"""What a condition means, whoever asks."""

from __future__ import annotations

from typing import get_args

import pytest

from advisor.knowledge.vocabulary import FactValue
from advisor.rules import KNOWING, Test, Verb, all_hold, answer, compare, holds

LISTS = frozenset({"one of", "none of"})
VALUES: tuple[FactValue, ...] = (-1.0, 0.0, 1, 1.0, "a", "b", "1", True, False)


@pytest.mark.parametrize("verb", get_args(Verb))
def test_of_an_unknown_fact_only_being_unknown_holds(verb: Verb) -> None:
    value = ("a",) if verb in LISTS else None if verb in KNOWING else 1.0
    assert holds(Test("gpu.x", verb, value), {}) is (verb == "is unknown")
    if verb not in {*KNOWING, *LISTS}:
        assert not holds(Test("gpu.x", verb, other="gpu.y"), {"gpu.x": 1.0})


@pytest.mark.parametrize("verb", ["above", "at least", "below", "at most"])
@pytest.mark.parametrize("value", ["a", "1", True, False])
def test_only_numbers_are_ordered(verb: Verb, value: FactValue) -> None:
    assert not holds(Test("gpu.x", verb, 0.0), {"gpu.x": value})
    assert not compare(verb, 0.0, value)
    assert not compare(verb, value, value)


def test_values_of_two_kinds_are_never_equal() -> None:
    assert holds(Test("gpu.x", "is", 1.0), {"gpu.x": 1})
    for value in ("1", True):
        assert holds(Test("gpu.x", "is not", 1.0), {"gpu.x": value})
        assert not holds(Test("gpu.x", "is", other="gpu.y"), {"gpu.x": value, "gpu.y": 1.0})


@pytest.mark.parametrize("verb", ["above", "at least", "below", "at most", "is", "is not"])
def test_a_literal_and_a_fact_of_that_value_are_asked_alike(verb: Verb) -> None:
    for value in VALUES:
        literal, says = Test("option.x", verb, value), answer(Test("option.x", verb, value))
        for actual in VALUES:
            other = Test("option.x", verb, other="gpu.y")
            held = holds(other, {"gpu.y": value}, {"option.x": actual})
            assert says(actual) is held
            assert all_hold((literal, literal))({}, {"option.x": actual}) is held
