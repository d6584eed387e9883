"""What is kept stays within bounds, is found again, and is never another's."""

from __future__ import annotations

from advisor.memo import Kept, by_identity_up_to, forget, table


def test_a_full_table_lets_go_of_what_was_not_asked_for_lately() -> None:
    kept: Kept[int, int] = Kept(10)
    for number in range(1_000):
        kept.put(number, -number)
        assert len(kept) <= 20
    assert kept.get(0) is None
    assert kept.get(999) == -999


def test_what_is_asked_for_again_and_again_stays() -> None:
    kept: Kept[int, int] = Kept(10)
    kept.put(7, 49)
    for number in range(100, 200):
        kept.put(number, number)
        assert kept.get(7) == 49


def test_results_by_identity_are_dropped_when_the_table_is_full() -> None:
    made = []

    @by_identity_up_to(4)
    def counted(thing: list[int]) -> int:
        made.append(thing)
        return len(thing)

    things = [[0] * size for size in range(6)]
    assert [counted(thing) for thing in things] == [0, 1, 2, 3, 4, 5]
    assert [counted(thing) for thing in things[4:]] == [4, 5]
    assert len(made) == 6
    assert counted(things[0]) == 0
    assert len(made) == 7


def test_equal_things_are_not_the_same_thing() -> None:
    @by_identity_up_to(4)
    def first(thing: list[int]) -> list[int]:
        return thing

    one, two = [1], [1]
    assert first(one) is one
    assert first(two) is two


def test_nothing_that_is_kept_outlives_being_forgotten() -> None:
    made: list[list[int]] = []

    @by_identity_up_to(4)
    def counted(thing: list[int]) -> int:
        made.append(thing)
        return len(thing)

    thing, plain, kept = [1, 2], table(), Kept[str, int](10)
    for _ in range(2):
        assert counted(thing) == 2
        plain["a"] = 1
        kept.put("a", 1)
        forget()
        assert not plain
        assert len(kept) == 0
    assert made == [thing, thing]
