"""What two conditions say about each other, held against trying them."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.knowledge.vocabulary import FactValue
from advisor.rules import Test, Verb, holds
from advisor.workbench.lint.logic import exclusive, implies

NUMBERS = [1.0, 2.0, 3.0]
NAMES = ["a", "b", "c"]
ORDERED: list[Verb] = ["above", "at least", "below", "at most"]
LISTED: list[Verb] = ["one of", "none of"]
EQUAL: list[Verb] = ["is", "is not"]


def number_tests() -> st.SearchStrategy[Test]:
    verbs = st.sampled_from([*ORDERED, *EQUAL])
    known = st.sampled_from([Test("x.n", "is known"), Test("x.n", "is unknown")])
    compared = verbs.flatmap(
        lambda verb: st.sampled_from(NUMBERS).map(lambda value: Test("x.n", verb, value))
    )
    return st.one_of(compared, compared, known)


def name_tests() -> st.SearchStrategy[Test]:
    one = st.tuples(st.sampled_from(EQUAL), st.sampled_from(NAMES))
    many = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
    flag = st.booleans().map(lambda value: Test("x.flag", "is", value))
    return st.one_of(
        one.map(lambda pair: Test("x.e", pair[0], pair[1])),
        st.tuples(st.sampled_from(LISTED), many).map(
            lambda pair: Test("x.e", pair[0], tuple(pair[1]))
        ),
        flag,
    )


def pair_tests() -> st.SearchStrategy[Test]:
    verbs = st.sampled_from(ORDERED)
    facts = st.sampled_from([("x.n", "x.m"), ("x.m", "x.n")])
    return st.tuples(verbs, facts).map(lambda both: Test(both[1][0], both[0], other=both[1][1]))


def every_situation() -> list[dict[str, FactValue]]:
    numbers = [None, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    found = []
    for n, m, name, flag in product(numbers, numbers, [None, *NAMES, "d"], [None, True, False]):
        values = {"x.n": n, "x.m": m, "x.e": name, "x.flag": flag}
        found.append({key: value for key, value in values.items() if value is not None})
    return found


SITUATIONS = every_situation()
ANY = st.one_of(number_tests(), name_tests(), pair_tests())


@given(ANY, ANY)
def test_what_excludes_never_holds_together(one: Test, two: Test) -> None:
    if exclusive((one, two)):
        assert not any(holds(one, s) and holds(two, s) for s in SITUATIONS)


@given(ANY, ANY)
def test_what_is_implied_holds_wherever_the_other_does(one: Test, two: Test) -> None:
    if implies((one,), (two,)):
        assert all(holds(two, s) for s in SITUATIONS if holds(one, s))


@given(number_tests(), number_tests())
def test_two_conditions_on_one_number_are_decided(one: Test, two: Test) -> None:
    if "is not" in {one.verb, two.verb}:
        return
    together = any(holds(one, s) and holds(two, s) for s in SITUATIONS)
    assert (exclusive((one, two)) is None) == together


@pytest.mark.parametrize(
    ("one", "two", "found"),
    [
        (Test("x.n", "above", 2.0), Test("x.n", "at most", 2.0), True),
        (Test("x.n", "at least", 2.0), Test("x.n", "at most", 2.0), False),
        (Test("x.n", "above", other="x.m"), Test("x.m", "above", other="x.n"), True),
        (Test("x.e", "one of", ("a", "b")), Test("x.e", "is", "c"), True),
        (Test("x.e", "is not", "a"), Test("x.e", "is", "a"), True),
        (Test("x.n", "above", 2.0), Test("x.m", "below", 1.0), False),
    ],
)
def test_examples(one: Test, two: Test, found: bool) -> None:  # noqa: FBT001  a table
    assert (exclusive((one, two)) is not None) is found
