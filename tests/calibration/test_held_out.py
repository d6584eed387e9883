"""Predictions without what they are about: nothing leaks, and ranges are the tails that were left.

Everything runs on a few measured runs, so that a refit takes no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp
from typing import Any

import pytest
from msgspec.structs import replace

from advisor.estimator.calibration.fits import Material, fit_all
from advisor.estimator.calibration.held_out import (
    Held,
    HeldOut,
    Spread,
    fitted_ranges,
    is_small,
    situation,
    spread_of,
    spreads_by_situation,
    validate,
)
from advisor.estimator.calibration.runs import Run
from advisor.units import GIB

_CARDS, _RUNS = 4, 6


@pytest.fixture(scope="module")
def few(material: Material) -> Material:
    """Dense runs of four well measured cards of one architecture and backend, and nothing else."""
    dense = [run for run in material.single if not run.moe and not run.deep]
    kinds = Counter((run.architecture, run.card[1]) for run in dense)
    ((kind, _),) = kinds.most_common(1)
    of_kind = [run for run in dense if (run.architecture, run.card[1]) == kind]
    cards = [card for card, _ in Counter(run.card for run in of_kind).most_common(_CARDS)]
    chosen = [run for card in cards for run in [r for r in of_kind if r.card == card][:_RUNS]]
    return replace(
        material, single=chosen, prompts=[], layer_prompts=[], engines=[], batches=[], splits=[],
        layer_splits=[], tensor_splits=[],
    )  # fmt: skip


@pytest.fixture(scope="module")
def held(few: Material) -> Sequence[Held]:
    return validate(few, fit_all(few))


def of(held: Sequence[Held], held_out: HeldOut) -> list[Held]:
    return [one for one in held if one.held_out == held_out]


def test_every_run_is_predicted_once_without_its_configuration_and_once_without_its_card(
    few: Material, held: Sequence[Held]
) -> None:
    assert len(held) == 3 * len(few.single)
    for held_out in ("configuration", "card"):
        assert {one.run.rows for one in of(held, held_out)} == {run.rows for run in few.single}


def test_a_card_held_out_is_unknown_and_its_relatives_are_counted(held: Sequence[Held]) -> None:
    for one in of(held, "card"):
        assert not one.known
        assert one.cards == _CARDS - 1
        assert one.group == one.run.card[0]
    for one in of(held, "configuration"):
        assert one.known
        assert one.group == "\0".join(one.run.configuration)


def test_what_a_card_measured_does_not_reach_its_own_prediction(
    few: Material, held: Sequence[Held]
) -> None:
    """The card's runs become a fifth faster: predictions without it stay where they were."""
    card = few.single[0].card
    told = [replace(r, tok_s=1.2 * r.tok_s) if r.card == card else r for r in few.single]
    changed = replace(few, single=told)
    again = {one.run.rows: one for one in of(validate(changed, fit_all(changed)), "card")}
    for one in of(held, "card"):
        after = again[one.run.rows].predicted
        if one.run.card == card:
            assert after == pytest.approx(one.predicted, rel=0.01)
        else:
            assert after != pytest.approx(one.predicted, rel=1e-4), "a relative is judged by it"


def test_whole_sources_are_held_out(few: Material, held: Sequence[Held]) -> None:
    found = of(held, "source")
    assert {one.group for one in found} == {run.source for run in few.single}
    assert {situation(one, few) for one in found if not one.known} <= {None}


def test_errors_are_predicted_over_measured(held: Sequence[Held]) -> None:
    one = held[0]
    assert exp(one.error) == pytest.approx(one.predicted / one.run.tok_s)


# ---- which range a prediction informs


def dense_run(few: Material) -> Run:
    run = few.single[0]
    big = replace(run.reads, gpu_bytes=(few.policy.small_gib + 1) * GIB, gpu_expert_bytes=0.0)
    return replace(run, reads=big, scenario=replace(run.scenario, depth_tokens=0))


def one_held(run: Run, held_out: HeldOut, kind: str = "decode", **fields: Any) -> Held:
    return Held(run, run.tok_s, held_out, "g", kind, **fields)


@pytest.mark.parametrize(
    ("held_out", "fields", "expected"),
    [
        ("source", {"cards": 5}, "near"),
        ("source", {"cards": 5, "known": False}, None),
        ("configuration", {"cards": 5}, None),
        ("card", {"cards": 3, "known": False}, "modelled"),
        ("card", {"cards": 2, "known": False}, "alone"),
        ("model", {"cards": 5}, None),
    ],
)
def test_decoding_informs_the_range_that_the_estimator_looks_up(
    few: Material, held_out: HeldOut, fields: dict[str, Any], expected: str | None
) -> None:
    assert situation(one_held(dense_run(few), held_out, **fields), few) == expected


def test_a_model_held_out_of_several_cards_is_a_model_that_nobody_ran_so(few: Material) -> None:
    run = replace(dense_run(few), tensor=True)
    assert situation(one_held(run, "model", "batch"), few) == "batch_tensor_parallel"


def test_small_and_deep_runs_have_ranges_of_their_own(few: Material) -> None:
    run = dense_run(few)
    limit = few.policy.small_gib
    small = replace(run, reads=replace(run.reads, gpu_bytes=0.5 * limit * GIB))
    assert is_small(small, limit)
    assert not is_small(run, limit)
    assert situation(one_held(small, "source"), few) == "near_small"
    assert situation(one_held(small, "card", cards=3), few) == "modelled_small"
    far = int(few.policy.deep_tokens) + 1
    deep = replace(small, scenario=replace(small.scenario, depth_tokens=far))
    assert situation(one_held(deep, "source"), few) == "deep"
    assert situation(one_held(deep, "card"), few) is None


@pytest.mark.parametrize(
    ("kind", "held_out", "fields", "expected"),
    [
        ("prefill", "configuration", {}, "prefill_card"),
        ("prefill", "configuration", {"known": False}, None),
        ("prefill", "card", {"cards": 1}, "prefill"),
        ("prefill", "card", {"cards": 0}, "prefill_unmeasured"),
        ("offload", "source", {}, "offload"),
        ("offload", "configuration", {}, None),
        ("prompt offload", "source", {}, "prefill_offload"),
        ("prompt offload", "configuration", {}, None),
        ("engine", "card", {}, None),
        ("layer split", "nothing", {}, "layer_split"),
        ("tensor parallel", "nothing", {}, "tensor_parallel"),
        ("batch", "configuration", {}, "batch"),
    ],
)
def test_other_kinds_inform_ranges_of_their_own(
    few: Material, kind: str, held_out: HeldOut, fields: dict[str, Any], expected: str | None
) -> None:
    assert situation(one_held(dense_run(few), held_out, kind, **fields), few) == expected


# ---- what a range is


def off(run: Run, ratio: float, group: str, held_out: HeldOut = "configuration") -> Held:
    """A prediction of which the measured speed is so many times."""
    return Held(run, run.tok_s / ratio, held_out, group, "decode")


def test_a_range_is_what_lies_between_the_tenths_of_measured_over_predicted(few: Material) -> None:
    run = dense_run(few)
    spread = spread_of([off(run, 0.5 + 0.01 * i, str(i)) for i in range(101)])
    assert (spread.runs, spread.groups, spread.cards) == (101, 101, 1)
    assert spread.low == pytest.approx(0.6, abs=0.011)
    assert spread.high == pytest.approx(1.4, abs=0.011)
    assert spread.coverage == pytest.approx(0.8, abs=0.03)


def test_coverage_is_counted_without_the_group_itself(few: Material) -> None:
    """One group far off: it would lie inside a range it had a part in."""
    run = dense_run(few)
    rows = [off(run, 1 + 0.001 * i, str(i % 4)) for i in range(20)]
    odd = [off(run, 3.0, "odd") for _ in range(20)]
    spread = spread_of([*rows, *odd])
    assert spread.high == pytest.approx(3.0)
    assert spread.coverage <= 0.5


def test_where_cards_were_held_out_many_runs_of_one_do_not_set_the_range(few: Material) -> None:
    run = dense_run(few)
    rows = [off(run, 1.0, f"card {i}", "card") for i in range(8)]
    many = [off(run, 2.0, "measured by everybody", "card") for _ in range(4)]
    by_root = spread_of([*rows, *many])
    plain = spread_of([replace(one, held_out="configuration") for one in [*rows, *many]])
    assert by_root.coverage > plain.coverage
    assert by_root.low == plain.low == pytest.approx(1.0)


def test_spreads_are_kept_by_situation(few: Material, held: Sequence[Held]) -> None:
    found = spreads_by_situation(held, few)
    assert list(found) == sorted(found)
    assert sum(spread.runs for spread in found.values()) == sum(
        situation(one, few) is not None for one in held
    )


def test_a_range_holds_its_figure_even_where_all_runs_lie_on_one_side() -> None:
    low, high = fitted_ranges({"near": Spread(1.1, 1.3, 99, 40, 9, 0.8)}, {})["near"]
    assert low == 0.99
    assert high == 1.3


def test_few_groups_without_a_stated_range_choose_nothing() -> None:
    thin = Spread(0.7, 1.3, 5, 3, 1, 0.8)
    assert not fitted_ranges({"new": thin}, {})
    assert not fitted_ranges({"wide": thin}, {"wide": (0.5, 2.0)})
    assert fitted_ranges({"wide": thin}, {"wide": (0.9, 1.1)}) == {"wide": (0.7, 1.3)}
