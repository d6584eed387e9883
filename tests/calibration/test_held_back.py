"""Runs that no fit has seen: a third of what was collected last, kept with the tests."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import pytest

from advisor.estimator.calibration import observations as found
from advisor.estimator.calibration.dataset import Row, speed_rows
from advisor.estimator.calibration.fits import Fitted, Material
from advisor.estimator.calibration.runs import Run, runs_of
from advisor.knowledge import load_knowledge

FILE = Path(__file__).parents[1] / "data" / "measurements" / "held-back.csv"
with FILE.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


@pytest.fixture(scope="module")
def held_back(material: Material) -> list[Run]:
    knowledge = load_knowledge()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "speed_rows", lambda: ROWS)
        kept = found.observations(knowledge)
    assert not kept.dropped, "every row is a run"
    return list(runs_of(kept.kept, knowledge, material.policy).kept)


@pytest.mark.parametrize("moe", [False, True])
def test_runs_that_were_kept_out_of_the_fit_are_told(
    held_back: list[Run], material: Material, fitted: Fitted, *, moe: bool
) -> None:
    """A Radeon AI PRO R9700, an RTX 4090, an Apple M4 and a Strix Halo, December 2025 to May."""
    errors = []
    for run in held_back:
        if run.metric == "decode" and run.moe == moe:
            slower = material.policy.layer_split.at(run.scenario.gpus)
            errors.append(abs(1 / (fitted.decode.seconds(run) * slower * run.tok_s) - 1))
    assert len(errors) >= 9
    assert median(errors) < 0.12
    assert sum(error <= 0.3 for error in errors) >= 0.9 * len(errors)


def files(rows: Iterable[Row]) -> set[tuple[str, ...]]:
    """Name the files that were run, by whom and on what."""
    return {
        (row["source"].partition("@")[0], row["gpu"], row["model"], row["quant"]) for row in rows
    }


def test_no_file_is_on_both_sides() -> None:
    assert not files(ROWS) & files(speed_rows())
