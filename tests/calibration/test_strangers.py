"""What leads the accuracy page: another machine, and a card nobody measured."""

from __future__ import annotations

import pytest

from advisor.estimator.calibration.fits import Material
from advisor.estimator.calibration.held_out import Held, HeldOut, Spread
from advisor.estimator.calibration.published import Stranger, section, strangers

_SPREAD = Spread(0.8, 1.25, 99, 40, 9, 0.8)


def test_strangers_are_counted_inside_the_range_that_is_shown(material: Material) -> None:
    run = next(
        run
        for run in material.single
        if not run.moe and not run.deep and run.reads.gpu_bytes > 4 * 2**30
    )

    def held(times: float, out: HeldOut) -> Held:
        return Held(run, run.tok_s * times, out, "g", "decode", 5, known=out != "card")

    rows = [held(times, "source") for times in (1.0, 1.1, 1.2, 2.0)]
    rows += [held(1.3, "card"), held(1.0, "configuration")]
    spreads = {"near": _SPREAD, "modelled": _SPREAD}
    machine, card = strangers(rows, spreads, material)
    assert machine.name == "another machine, dense"
    assert machine.runs == 4, "what stayed in the fit is no stranger"
    assert machine.covered == pytest.approx(0.75)
    assert card.covered == 0.0
    assert machine.by_others == pytest.approx(0.25), "without others only the exact one is inside"
    assert "| 75.0 % |" in "\n".join(section([machine]))


@pytest.mark.parametrize(
    ("runs", "by_others", "says"),
    [
        (29, 0.5, "fewer than 30 runs"),
        (30, 0.77, "**narrower than 80 %**"),
        (30, 0.8, "80 %"),
        (30, 0.83, "wider than 80 %"),
    ],
)
def test_a_line_says_when_its_range_is_not_one_of_80_percent(
    runs: int, by_others: float, says: str
) -> None:
    assert Stranger("who", runs, 3, 0.1, 0.2, 0.9, 0.99, by_others).says == says
