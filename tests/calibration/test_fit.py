"""The fit finds what made the data, keeps to its priors, and shrugs off what does not belong."""

from __future__ import annotations

from math import exp, log
from random import Random

import pytest
from msgspec.structs import replace

from advisor.estimator.calibration import fit as prompts
from advisor.estimator.calibration.decode import engine_terms, fit_decode
from advisor.estimator.calibration.fit import Case, Prior, Priors, Term, fit, predict, weight_of
from advisor.estimator.calibration.fits import Material
from advisor.estimator.calibration.runs import Run

TRUE = {"overhead": 2.0, "reach": 0.6, "card:a": 1.2, "card:b": 0.8}


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


def test_a_card_far_off_says_little_of_its_architecture() -> None:
    """Four cards agree and one, that spilled into system RAM, runs at a third."""
    table = Priors({"architecture": Prior(1.0, 0.2), "card": Prior(1.0, 0.04, heavy=True)})
    seconds = {"a": 1.0, "b": 1.02, "c": 0.98, "d": 1.0, "spilled": 3.0}
    seen = [
        Case((Term(1.0, (("architecture", 1.0), (f"card:{card}", 1.0))),), time, 2.0)
        for card, time in seconds.items()
    ]
    found = fit(seen, table)
    assert abs(found["architecture"]) < 0.05
    assert found["card:spilled"] > 0.9
    assert all(abs(found[f"card:{card}"]) < 0.05 for card in "abcd")


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


def test_more_runs_of_a_card_weigh_more_together_and_less_each() -> None:
    weights = [count * weight_of(count) for count in (1, 2, 8, 50)]
    assert weights == sorted(weights)
    assert weight_of(1) == pytest.approx(2 * weight_of(8))


def test_older_builds_and_ollamas_experts_have_factors_of_their_own(material: Material) -> None:
    """They do not set what is told of a card today."""

    def kinds(run: Run) -> set[str]:
        found = prompts.terms(run, material.policy.falls, material.group_of)
        return {name.partition(":")[0] for term in found for name, _ in term.powers}

    old = next(
        run for run in material.prompts if run.older and run.scenario.precision.name == "Q4_K_M"
    )
    assert "older builds" in kinds(old)
    assert "older builds" not in kinds(replace(old, older=False))
    ollama = next(run for run in material.prompts if run.program and run.moe)
    assert "experts of program" in kinds(ollama)
    assert "experts of program" not in kinds(replace(ollama, program=""))


def test_a_machine_far_off_says_little_of_what_its_card_reaches(material: Material) -> None:
    card = ("GeForce RTX 3090", "CUDA")
    runs = [run for run in material.single if run.card == card and not run.deep]
    slow = [replace(run, tok_s=run.tok_s * 0.6, source="throttled") for run in runs if not run.moe]
    asked, fits = runs[0], [fit_decode(some, material.group_of) for some in (runs, runs + slow)]
    clean, spoilt = (model.seconds(asked) for model in fits)
    assert spoilt == pytest.approx(clean, rel=0.08)
    assert exp(fits[1].fitted[f"machine:{'/'.join(card)}/throttled"]) < 0.75
    assert not any(name.startswith("machine:") for name in fits[1].values), "it is not told"


def test_servers_far_below_the_power_of_a_card_say_little_of_it(material: Material) -> None:
    """A factor of their own takes what the limit costs."""
    limited = next(run for run in material.engines if run.limited)
    for run, own in ((limited, True), (replace(limited, limited=False), False)):
        names = {name for term in engine_terms(run) for name, _ in term.powers}
        assert ("limited" in names) is own
