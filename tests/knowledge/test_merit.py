"""Figures of leaderboards: put on one scale, lent to relatives, checked line by line."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import pytest

from advisor.errors import UserError
from advisor.knowledge import load_knowledge
from advisor.knowledge.merit import USES, Board, Merits, merits, purposes
from advisor.knowledge.merit_scale import stored_merits
from advisor.knowledge.types import ModelRecord
from advisor.reading.public_list import exact

POLICY = load_knowledge().policy
BOARDS = {
    "scale": Board("scale", "points", ("chat",), 1.0, sets_scale=True),
    "guess": Board("guess", "points", ("chat",), 0.5, on_scale_of="scale"),
    "votes": Board("votes", "rating", ("chat",), 1.0),
}
HEAD = "model,board,value,low,high,thinks,seen"


def record(name: str, billions: float, family: str = "F", modality: str = "text") -> ModelRecord:
    return ModelRecord(name, f"maker/{name}", (), family, modality, {}, "", round(billions * 1e9))  # type: ignore[arg-type]  # a modality


def read(
    lines: Sequence[str], models: Sequence[ModelRecord] = ()
) -> tuple[Merits, list[UserError]]:
    problems: list[UserError] = []
    table = "\n".join((HEAD, *lines)).encode()
    stored = stored_merits(table, BOARDS, {m.name: m for m in models}, POLICY, problems)
    return stored, problems


def line(model: str, board: str, value: float, seen: str = "2026-08-22") -> str:
    return f"{model},{board},{value},,,,{seen}"


def ranks(board: str, values: Sequence[float]) -> list[str]:
    return [line(f"m{n}", board, value) for n, value in enumerate(values)]


def test_a_figure_counts_as_the_one_of_its_rank_on_the_scale() -> None:
    """Ten models on both boards; one on the second alone lies where its rank is."""
    points = [n * n for n in range(10)]
    rows = ranks("scale", points) + ranks("votes", [1000 + 10 * n for n in range(10)])
    merit = read([*rows, line("new", "votes", 1065)])[0].uses["chat"]["new"]
    assert merit.points == pytest.approx((36 + 49) / 2)
    assert merit.relative is None


def test_boards_are_weighed() -> None:
    points = [float(n) for n in range(10)]
    rows = ranks("scale", points) + ranks("votes", points[::-1])
    found = read(rows)[0].uses["chat"]
    assert found["m0"].points == pytest.approx(4.5)
    assert found["m0"].band > 0


def test_a_board_that_shares_too_few_models_counts_for_nothing() -> None:
    few = int(POLICY["board_shared_models"]) - 1
    rows = ranks("scale", range(few)) + ranks("votes", range(few))
    assert "new" not in read([*rows, line("new", "votes", 3)])[0].uses["chat"]


def test_an_estimate_counts_at_its_low_end() -> None:
    merit = read([line("a", "guess", 20.0)])[0].uses["chat"]["a"]
    assert merit.estimated
    assert merit.counted == merit.points - merit.band
    measured = read([line("a", "scale", 20.0)])[0].uses["chat"]["a"]
    assert not measured.estimated
    assert measured.counted == measured.points


def test_a_model_without_a_figure_takes_that_of_the_nearest_relative() -> None:
    models = [record("near", 8), record("far", 14), record("asked", 9), record("other", 9, "G")]
    rows = [line("near", "scale", 20), line("far", "scale", 30), line("other", "scale", 40)]
    found = read(rows, models)[0].uses["chat"]
    assert (found["asked"].relative, found["asked"].points) == ("near", 20)
    assert found["asked"].band > found["near"].band
    assert found["asked"].counted < 20


@pytest.mark.parametrize(
    "asked",
    [record("asked", 30), record("asked-coder", 9), record("asked-base", 9),
     record("asked", 9, modality="embedding")],
)  # fmt: skip
def test_no_figure_is_lent_across_sizes_purposes_and_kinds(asked: ModelRecord) -> None:
    found = read([line("near", "scale", 20)], [record("near", 8), asked])[0]
    assert all(asked.name not in found.uses[use] for use in USES)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (line("a", "scales", 1), "unknown board 'scales'. Did you mean 'scale'"),
        (line("", "scale", 1), "no model is named"),
        (line("a", "scale", 1, "2026-08"), "not a day"),
        ("a,scale,1,2,3,,2026-08-22", "outside its interval"),
        ("a,scale,one,,,,2026-08-22", "one"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(row: str, words: str) -> None:
    _, problems = read([line("b", "scale", 1), row])
    assert len(problems) == 1
    assert words in str(problems[0])
    assert "merit.csv:3" in str(problems[0])


# ---- the table as it is


def test_every_use_has_one_scale_and_models_on_it() -> None:
    kept = merits(load_knowledge())
    assert set(kept.scales) == set(USES)
    assert all(len(kept.uses[use]) > 50 for use in USES)


def test_every_model_of_the_table_is_known() -> None:
    """By its record, or by the public list."""
    known = load_knowledge().models
    unknown = [name for name in merits(load_knowledge()).figures
               if name not in known and not ("/" in name and exact(name))]  # fmt: skip
    assert not unknown


def test_lenders_are_near() -> None:
    models, kept = load_knowledge().models, merits(load_knowledge())
    for use in USES:
        for name, merit in kept.uses[use].items():
            if merit.relative:
                ratio = (models[name].parameters or 1) / (models[merit.relative].parameters or 1)
                assert abs(log2(ratio)) <= log2(POLICY["merit_relative_size"])
                assert purposes(name) == purposes(merit.relative)
