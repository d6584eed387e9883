"""What the accuracy page counts: errors, bars, what two sources differ by, and laptops."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.estimator.calibration.accuracy import scatter_svg
from advisor.estimator.calibration.fits import Material
from advisor.estimator.calibration.held_out import Held, HeldOut, Spread
from advisor.estimator.calibration.runs import Run
from advisor.estimator.calibration.strata import (
    Result,
    Stratum,
    laptops,
    noise_floor,
    off_by,
    percentile,
    results_of,
)

SPREAD = Spread(0.8, 1.2, 9, 9, 9, 0.8)


@pytest.fixture(scope="module")
def run(material: Material) -> Run:
    """A dense run of a card that is no laptop's."""
    return next(
        run
        for run in material.single
        if not run.moe
        and not run.deep
        and run.scenario.gpu
        and run.scenario.gpu.segment == "consumer"
    )


def held(run: Run, times: float, kind: str = "decode", out: HeldOut = "configuration") -> Held:
    """A prediction that is so many times what was measured."""
    return Held(run, run.tok_s * times, out, "g", kind)


def result(stratum: Stratum, figures: dict[str, float], cards: int = 9) -> Result:
    median, p90, near = figures.values()
    return Result(stratum, [], cards, median, p90, near, SPREAD, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("times", "error"), [(1.25, 0.25), (0.75, 0.25), (1.0, 0.0)])
def test_an_error_is_a_share_of_what_was_measured(run: Run, times: float, error: float) -> None:
    assert off_by(held(run, times)) == pytest.approx(error)


def test_a_percentile_leaves_its_share_below() -> None:
    values = [float(n) for n in range(10, 0, -1)]
    assert percentile(values, 0.9) == 10.0
    assert percentile(values, 0.5) == 6.0
    assert percentile([3.0], 0.9) == 3.0


@pytest.mark.parametrize(
    ("figures", "met"),
    [
        ({"median": 0.1, "p90": 0.2, "near": 0.9}, True),
        ({"median": 0.11, "p90": 0.2, "near": 0.9}, False),
        ({"median": 0.1, "p90": 0.21, "near": 0.9}, False),
        ({"median": 0.1, "p90": 0.2, "near": 0.89}, False),
    ],
)
def test_every_bar_must_be_met(figures: dict[str, float], met: bool) -> None:  # noqa: FBT001
    bars = Stratum("s", lambda _: True, 0.1, 0.2, 0.9)
    assert result(bars, figures).met is met
    assert result(Stratum("s", lambda _: True), figures).met is None


def test_two_cards_are_low_confidence() -> None:
    figures = {"median": 0.0, "p90": 0.0, "near": 1.0}
    stratum = Stratum("s", lambda _: True)
    assert result(stratum, figures, cards=2).low_confidence
    assert not result(stratum, figures, cards=3).low_confidence


def test_the_noise_floor_is_between_sources_of_one_configuration(run: Run) -> None:
    one = replace(run, source="one", tok_s=10.0)
    two = replace(run, source="two", tok_s=12.0)
    three = replace(run, source="three", tok_s=9.0)
    deep = replace(two, scenario=replace(run.scenario, depth_tokens=9000))
    again = replace(one, tok_s=20.0)
    assert noise_floor([one, two, three]) == pytest.approx([10 / 9, 1.2, 12 / 9])
    assert noise_floor([one, deep, again]) == []


def test_results_are_by_stratum_and_beside_one_efficiency_for_every_card(
    material: Material, run: Run
) -> None:
    prompt = material.prompts[0]
    rows = [held(run, times) for times in (1.0, 1.1, 1.5)]
    rows += [held(run, 2.0, out="card"), held(prompt, 1.0, "prefill")]
    found = {r.stratum.name: r for r in results_of(rows, material.policy)}
    known = found["dense, one card, known card"]
    assert (len(known.held), known.cards) == (3, 1)
    assert known.median == pytest.approx(0.1)
    assert known.p90 == pytest.approx(0.5)
    assert known.near == pytest.approx(2 / 3)
    assert known.flat_median == pytest.approx(0.0), "one run is its own median"
    assert found["dense, card left out"].median == pytest.approx(1.0)
    assert found["prefill, known card"].median == pytest.approx(0.0)
    assert "mixture of experts, known card" not in found


def test_laptops_are_judged_when_their_card_was_held_out(material: Material, run: Run) -> None:
    mobile = next(
        r for r in material.single if r.scenario.gpu and r.scenario.gpu.segment == "mobile"
    )
    rows = [held(mobile, 0.5, out="card"), held(mobile, 1.0), held(run, 1.0, out="card")]
    (laptop,) = laptops(rows)
    assert (laptop.card, laptop.kind) == (mobile.card[0], "decode")
    assert laptop.ratios == pytest.approx([2.0]), "measured over predicted"


def test_a_plot_has_a_dot_for_each_run_within_whole_decades(run: Run) -> None:
    slow = replace(run, tok_s=3.0)
    drawn = scatter_svg("Title", [held(slow, 1.0), held(slow, 20.0)])
    assert drawn.count('r="2"') == 2
    assert ">1</text>" in drawn
    assert ">100</text>" in drawn
    assert ">1000</text>" not in drawn
    diagonal = 56 + 300 * 0.4771 / 2
    assert f'cx="{diagonal:.1f}" cy="{34 + 300 - 300 * 0.4771 / 2:.1f}"' in drawn
