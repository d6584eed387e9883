"""Printed starts of servers against ours: the level reached is held, fitted and kept out alike."""

from __future__ import annotations

import pytest

from tests.estimate.server_logs import (
    Start,
    certainties,
    compared,
    errors,
    held_out,
    middle,
    others,
    starts,
    unexplained,
    within,
)


@pytest.mark.parametrize("held", [False, True])
def test_the_room_of_vllm_is_near_what_it_prints(*, held: bool) -> None:
    found = [one for one in compared("vLLM") if one.held_out is held]
    assert len(found) >= 25
    assert middle(errors(found)) < 0.005
    assert within(errors(found)) >= 0.85


def test_the_room_is_near_on_other_cards_and_of_other_people_too() -> None:
    """Without the runs of one project on one kind of card, which are most of the rows."""
    found = others(compared())
    assert len(found) >= 18
    assert middle(errors(found)) < 0.08
    assert within(errors(found)) >= 0.65


@pytest.mark.parametrize(("part", "most", "share"), [
    ("weights_gib", 0.01, 0.95), ("activations_gib", 0.03, 0.85), ("cache_gib", 0.01, 0.85),
])  # fmt: skip
def test_its_parts_are_near(part: str, most: float, share: float) -> None:
    found = errors(compared("vLLM"), part)
    assert len(found) >= 60
    assert middle(found) < most
    assert within(found) >= share


def test_a_third_is_kept_out_and_few_cannot_be_asked() -> None:
    rows = starts()
    assert len(rows) >= 80
    assert 0.3 < len(held_out(rows)) / len(rows) < 0.45
    assert sum(bool(one.why_not) for one in rows) <= 2


def test_every_row_that_is_far_off_says_why_or_that_nobody_knows() -> None:
    assert {one.row["id"] for one in unexplained()} == {_id(one) for one in _far()}


def _far() -> list[Start]:
    return [one for one in compared() if one.room_error and abs(one.room_error) > 0.1]


def _id(one: Start) -> str:
    assert one.row["why"], one.row["id"]
    return one.row["id"]


@pytest.mark.parametrize("held", [False, True])
def test_what_is_said_of_servers_holds_as_often_as_it_sounds(*, held: bool) -> None:
    counts = certainties(one for one in compared("vLLM") if one.held_out is held)
    shares = {
        said: counts[said, True] / (counts[said, True] + counts[said, False])
        for said in ("sure", "may_exceed", "may_fit", "beyond")
    }
    assert shares["sure"] > 0.98
    assert shares["may_exceed"] > 0.8
    assert shares["may_fit"] < 0.6
    assert shares["beyond"] < 0.06
