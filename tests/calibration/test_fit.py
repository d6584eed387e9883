"""The fit finds what made the data, keeps to its priors, and shrugs off what does not belong."""

from __future__ import annotations

from math import exp, log
from random import Random

import pytest

from advisor.calibration.decode import Residual, Spreads, card_offset, spreads_of
from advisor.calibration.fit import Case, Prior, Priors, Term, fit, predict

TRUE = {"overhead": 2.0, "reach": 0.6, "card:a": 1.2, "card:b": 0.8}
SPREADS = Spreads(cards=0.1, sources=0.08, configurations=0.07)


def priors(_name: str) -> Prior:
    return Prior(1.0, 0.5)


def terms(draw: Random) -> tuple[Term, ...]:
    card = draw.choice(("a", "b"))
    return (
        Term(draw.uniform(0.5, 2), (("overhead", 1.0),)),
        Term(draw.uniform(0.5, 20), (("reach", -1.0), (f"card:{card}", -1.0))),
    )


def cases(count: int, noise: float, seed: int = 0) -> list[Case]:
    draw = Random(seed)
    logs = {name: log(value) for name, value in TRUE.items()}
    found = []
    for _ in range(count):
        made = terms(draw)
        found.append(Case(made, predict(made, logs, priors) * exp(draw.gauss(0, noise))))
    return found


def test_the_fit_finds_what_made_the_data() -> None:
    found = fit(cases(400, 0.01), priors)
    assert exp(found["overhead"]) == pytest.approx(2.0, rel=0.05)
    assert exp(found["reach"] + found["card:a"]) == pytest.approx(0.72, rel=0.02)
    assert exp(found["reach"] + found["card:b"]) == pytest.approx(0.48, rel=0.02)


def test_a_tenth_of_wrong_rows_does_not_move_it() -> None:
    rows = cases(400, 0.01)
    spoilt = [Case(r.terms, r.seconds * 5) if i % 10 == 0 else r for i, r in enumerate(rows)]
    clean, found = fit(rows, priors), fit(spoilt, priors)
    assert found["reach"] == pytest.approx(clean["reach"], abs=0.03)


def test_parameters_without_data_stay_at_their_prior() -> None:
    found = fit(cases(50, 0.01), priors)
    assert predict((Term(1.0, (("unheard of", 1.0),)),), found, priors) == pytest.approx(1.0)


def test_a_refit_from_the_answer_gives_the_answer() -> None:
    rows = cases(200, 0.05)
    found = fit(rows, priors)
    again = fit(rows, priors, start=found, most_steps=3)
    assert again == pytest.approx(found, abs=1e-3)


def rows(*ratios: float, source: str = "one") -> list[Residual]:
    return [Residual(source, ratio) for ratio in ratios]


def test_no_measurement_leaves_the_card_at_its_kind() -> None:
    offset = card_offset([], SPREADS)
    assert offset.factor == 1
    assert offset.low < 1 < offset.high


def test_more_configurations_and_more_sources_shrink_less() -> None:
    one = card_offset(rows(0.2), SPREADS).factor
    many = card_offset(rows(0.2, 0.2, 0.2, 0.2), SPREADS).factor
    two = card_offset([*rows(0.2, 0.2), *rows(0.2, 0.2, source="two")], SPREADS).factor
    assert 1 < one < many < two < exp(0.2)


def test_one_source_far_off_counts_little() -> None:
    spilled = card_offset([*rows(0.0, 0.01), *rows(-1.6, source="two")], SPREADS)
    assert spilled.factor > 0.9


def test_the_range_of_a_factor_holds_it() -> None:
    offset = card_offset(rows(0.1, 0.12), SPREADS)
    assert offset.low < offset.factor < offset.high
    assert (offset.configurations, offset.sources) == (2, 1)


def test_a_parameter_that_was_not_fitted_stands_at_the_prior_of_its_kind() -> None:
    table = Priors({"share": Prior(0.5, 0.3), "share of card": Prior(2.0, 0.3)})
    assert table("share of card:RTX").value == 2.0
    assert table.factor({}, "share of card:RTX") == 2.0
    assert table.factor({"share of card:RTX": log(3.0)}, "share of card:RTX") == pytest.approx(3.0)
    assert table.factor({"share of card:RTX": log(3.0)}, "share of card:GTX") == 2.0
    with pytest.raises(KeyError):
        table("unheard of")


def test_a_heavy_prior_lets_one_parameter_lie_far_out() -> None:
    """Four runs say ten times: a light prior pulls them back further than a heavy one."""
    far = [Case((Term(1.0, (("card", 1.0),)),), 10.0, 0.002)] * 4
    light = fit(far, lambda _: Prior(1.0, 0.3))["card"]
    heavy = fit(far, lambda _: Prior(1.0, 0.3, heavy=True))["card"]
    assert 0 < light < heavy <= log(10.0)


def test_weights_say_whose_measurement_counts() -> None:
    seen = [Case((Term(1.0, (("a", 1.0),)),), seconds) for seconds in (1.0, 2.0)]
    trusted = [seen[0], Case(seen[1].terms, seen[1].seconds, weight=50.0)]
    assert fit(trusted, priors)["a"] > fit(seen, priors)["a"] + 0.1


def test_spreads_are_told_apart_and_bounded() -> None:
    steady = {("a", "CUDA"): rows(0.3, 0.3, 0.3), ("b", "CUDA"): rows(-0.3, -0.3, -0.3)}
    found = spreads_of(steady)
    assert found.configurations == found.sources == 0.03
    assert found.cards == 0.2, "at most this, however far cards are apart"
    noisy = spreads_of({("a", "CUDA"): rows(-0.1, 0.0, 0.1)})
    assert 0.03 < noisy.configurations < 0.2
    assert spreads_of({}) == Spreads(0.03, 0.03, 0.03)
