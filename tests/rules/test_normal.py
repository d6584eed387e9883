from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.errors import RuleFileError, Source
from advisor.rules import MAX_BRANCHES, Test, When, branches

NUMBERS = ("n.a", "n.b")
NAMES = ("t.a", "t.b")
FLAGS = ("f.a", "f.b")
Value = float | str | bool | None


def holds(test: Test, facts: Mapping[str, Value]) -> bool:
    """Judge one test by the words of the language, on its own."""
    value = facts[test.fact]
    if test.verb == "is known":
        return value is not None
    if test.verb == "is unknown":
        return value is None
    right = facts[test.other] if test.other else test.value
    if value is None or right is None:
        return False
    if isinstance(value, float) and isinstance(right, float):
        return {
            "above": value > right, "at least": value >= right, "below": value < right,
            "at most": value <= right, "is": value == right, "is not": value != right,
        }[test.verb]  # fmt: skip
    if test.verb in {"one of", "none of"}:
        return isinstance(right, tuple) and (value in right) is (test.verb == "one of")
    return (value == right) == (test.verb == "is")


def lacks(test: Test, facts: Mapping[str, Value]) -> bool:
    """Judge the opposite of a test: a comparison with something unknown holds neither way."""
    unknown = facts[test.fact] is None or (test.other and facts[test.other] is None)
    if unknown and test.verb not in {"is known", "is unknown"}:
        return False
    return not holds(test, facts)


def judged(when: When, facts: Mapping[str, Value]) -> bool:
    return (
        all(holds(test, facts) for test in when.tests)
        and all(any(judged(block, facts) for block in blocks) for blocks in when.any)
        and all(refused(block, facts) for block in when.none)
    )


def refused(when: When, facts: Mapping[str, Value]) -> bool:
    return (
        any(lacks(test, facts) for test in when.tests)
        or any(all(refused(block, facts) for block in blocks) for blocks in when.any)
        or any(judged(block, facts) for block in when.none)
    )


def any_test() -> st.SearchStrategy[Test]:
    order = st.sampled_from(["above", "at least", "below", "at most"])
    number = st.sampled_from(NUMBERS)
    known = st.sampled_from(["is known", "is unknown"])
    name = st.sampled_from(["x", "y", "z"])
    return st.one_of(
        st.builds(Test, number, order, st.sampled_from([1.0, 2.0, 3.0])),
        st.builds(Test, number, st.sampled_from(["is", "is not"]), st.just(2.0)),
        st.builds(Test, number, order, st.none(), number),
        st.builds(Test, st.sampled_from(NAMES), st.sampled_from(["is", "is not"]), name),
        st.builds(
            Test,
            st.sampled_from(NAMES),
            st.just("one of"),
            st.lists(name, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(Test, st.sampled_from(FLAGS), st.just("is"), st.booleans()),
        st.builds(Test, st.sampled_from(NUMBERS + NAMES + FLAGS), known),
    )


def blocks() -> st.SearchStrategy[When]:
    flat = st.builds(When, st.lists(any_test(), min_size=1, max_size=2).map(tuple))
    return st.recursive(
        flat,
        lambda inner: st.builds(
            When,
            st.lists(any_test(), max_size=2).map(tuple),
            st.lists(st.lists(inner, min_size=1, max_size=2).map(tuple), max_size=1).map(tuple),
            st.lists(inner, max_size=1).map(tuple),
        ),
        max_leaves=4,
    )


def worlds() -> st.SearchStrategy[dict[str, Value]]:
    numbers = {name: st.sampled_from([None, 1.0, 1.5, 2.0, 3.0]) for name in NUMBERS}
    names = {name: st.sampled_from([None, "x", "y", "z", "w"]) for name in NAMES}
    flags = {name: st.sampled_from([None, True, False]) for name in FLAGS}
    return st.fixed_dictionaries({**numbers, **names, **flags})


@given(blocks(), st.lists(worlds(), min_size=1, max_size=8))
def test_branches_hold_exactly_when_the_block_holds(
    when: When, facts: list[dict[str, Value]]
) -> None:
    try:
        found = branches(when)
    except RuleFileError:
        return
    for world in facts:
        expected = judged(when, world)
        assert any(all(holds(test, world) for test in way) for way in found) == expected


@given(blocks())
def test_branches_are_distinct_and_hold_no_test_twice(when: When) -> None:
    try:
        found = branches(when)
    except RuleFileError:
        return
    assert len({frozenset(way) for way in found}) == len(found) <= MAX_BRANCHES
    assert all(len(set(way)) == len(way) for way in found)


def test_a_flat_block_is_one_branch_in_its_own_order() -> None:
    first, second = Test("n.a", "above", 1.0), Test("f.a", "is", value=True)
    assert branches(When((first, second))) == ((first, second),)
    assert branches(When(())) == ((),)


@pytest.mark.parametrize(
    ("test", "flipped"),
    [
        (Test("n.a", "above", 5.0, text="above 5 %"), ["at most 5 %"]),
        (Test("n.a", "at least", 5.0, text="at least 5 %"), ["below 5 %"]),
        (Test("n.a", "below", 5.0, text="below 5 %"), ["at least 5 %"]),
        (Test("n.a", "at most", 5.0, text="at most 5 %"), ["above 5 %"]),
        (Test("t.a", "is", "x", text="is x"), ["is not x"]),
        (Test("t.a", "is not", "x", text="is not x"), ["is x"]),
        (Test("t.a", "one of", ("x", "y"), text="one of x, y"), ["none of x, y"]),
        (Test("f.a", "is", value=True, text="is yes"), ["is no"]),
        (Test("n.a", "is known", text="is known"), ["is unknown"]),
        (Test("n.a", "is unknown", text="is unknown"), ["is known"]),
    ],
)
def test_not_flips_the_verb_and_its_wording(test: Test, flipped: list[str]) -> None:
    (way,) = branches(When((), none=(When((test,)),)))
    assert [found.text for found in way] == flipped
    assert all(found.text.startswith(found.verb) for found in way)


def test_too_many_branches_are_refused_with_a_place() -> None:
    place = Source("a.yaml", 3, 5)
    pairs = tuple(
        tuple(When((Test(f"n.{i}{side}", "above", 1.0, source=place),)) for side in "ab")
        for i in range(7)
    )
    assert len(branches(When((), any=pairs[:6]))) == MAX_BRANCHES
    with pytest.raises(RuleFileError) as caught:
        branches(When((), any=pairs))
    assert caught.value.source == place


def test_a_branch_that_another_implies_is_dropped() -> None:
    broad, narrow = Test("n.a", "above", 1.0), Test("f.a", "is", value=True)
    alternatives = (When((broad,)), When((broad, narrow)), When((replace(broad, text="again"),)))
    assert branches(When((), any=(alternatives,))) == ((broad,),)
