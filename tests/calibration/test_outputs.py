"""What the command writes, and how it notices that a file is out of date."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from math import exp
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from advisor.estimator.calibration.fits import Fitted, Material, pairs_of_situations
from advisor.estimator.calibration.held_out import Spread, fitted_ranges
from advisor.estimator.calibration.observations import Observation
from advisor.estimator.calibration.outputs import fitted_text, stale_files, write_files
from advisor.estimator.calibration.published import measured_text, pairs_of_sources
from advisor.estimator.calibration.runs import Run
from advisor.files import data_dir
from tests.cli.running import run

TEXTS = {"a.yaml": "x: 1\n", "b.csv": "y\n"}


def test_written_files_are_not_stale(tmp_path: Path) -> None:
    assert stale_files(tmp_path, TEXTS) == ["a.yaml", "b.csv"]
    write_files(tmp_path, TEXTS)
    assert stale_files(tmp_path, TEXTS) == []
    (tmp_path / "b.csv").write_text("z\n", encoding="utf-8")
    assert stale_files(tmp_path, TEXTS) == ["b.csv"]


def test_the_fit_in_the_knowledge_base_is_current(material: Material, fitted: Fitted) -> None:
    """All but the ranges, which take the command and CI twenty seconds."""
    stored = (data_dir("knowledge") / "calibration-fitted.yaml").read_text(encoding="utf-8")
    assert fitted_text(material, fitted, {}).split("\nranges:")[0] == stored.split("\nranges:")[0]


def test_the_measured_table_is_current(material: Material) -> None:
    stored = (data_dir("knowledge") / "measured.csv").read_text(encoding="utf-8")
    assert measured_text(material.observed, material.known()) == stored


@pytest.mark.parametrize(
    ("groups", "cards", "expected"),
    [
        (20, 5, (0.9, 1.2)),
        (5, 5, (0.8, 1.25)),
        (20, 1, (0.8, 1.25)),
    ],
)
def test_few_groups_or_cards_only_widen(
    groups: int, cards: int, expected: tuple[float, float]
) -> None:
    measured = {"near": Spread(0.9, 1.2, 100, groups, cards, 0.8)}
    chosen = fitted_ranges(measured, {"near": (0.8, 1.25)})
    assert chosen.get("near", (0.8, 1.25)) == pytest.approx(expected)


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "calibrate", "--help")
    assert outcome.code == 0
    assert "--check" in outcome.out


def test_the_parameter_file_is_yaml_with_the_fitted_figures(
    material: Material, fitted: Fitted
) -> None:
    text = fitted_text(material, fitted, {"near": Spread(0.81234, 1.2, 99, 40, 9, 0.8)})
    made = yaml.safe_load(text)
    assert list(made) == [
        "decode", "prefill", "engines", "batch", "offload", "speculation", "ranges",
    ]  # fmt: skip
    assert made["ranges"]["near"] == [0.8123, 1.2], "four digits"
    own = fitted.decode.own
    counts = Counter(run.card for run in material.single)
    assert [(line["gpu"], line["backend"]) for line in made["decode"]["cards"]] == list(own)
    for line in made["decode"]["cards"]:
        card = line["gpu"], line["backend"]
        assert line["factor"] == pytest.approx(own[card], rel=1e-3)
        assert line["runs"] == counts[card]
    for name, pairs in pairs_of_situations().items():
        line = made["speculation"][name]
        assert line["low"] <= line["median"] <= line["high"]
        assert (line["pairs"], line["cards"]) == (len(pairs.factors), pairs.cards)
    for engine, cards in fitted.engines.cards.items():
        assert made["engines"][engine]["cards"] == cards
        assert max(made["engines"][engine][f"efficiency_{bits}"] for bits in (16, 8, 4)) <= 0.97


Seen = Callable[..., list[list[str]]]


@pytest.fixture
def table(material: Material) -> Seen:
    """The lines of measured.csv that some runs make, each a change of one dense run."""
    run = next(run for run in material.single if not run.moe and not run.deep)
    seen = next(one for one in material.observed if one.row in run.rows)

    def lines(*changes: dict[str, object]) -> list[list[str]]:
        rows: list[tuple[Observation, Run]] = []
        for number, change in enumerate(changes):
            exact = bool(change.pop("exact", True))
            row = f"R{number}"
            made = replace(run, rows=(row,), source="a: b", **change)
            rows.append((replace(seen, row=row, exact=exact), made))
        text = measured_text([o for o, _ in rows], [r for _, r in rows])
        return list(csv.reader(io.StringIO(text)))[1:]

    return lines


def test_a_configuration_is_the_median_of_its_newest_year(table: Seen) -> None:
    (line,) = table(
        {"tok_s": 10.0, "date": "2023-01"},
        {"tok_s": 20.0, "date": "2025-01"},
        {"tok_s": 30.0, "date": "2025-06"},
        {"tok_s": 40.0, "date": "2025-12"},
    )
    assert line[9:] == ["30", "3", "a", "2025-12"]


def test_an_old_build_of_experts_has_no_line_and_one_of_a_dense_model_stays(
    material: Material, table: Seen
) -> None:
    experts = next(run for run in material.single if run.moe).scenario
    old, new = {"tok_s": 10.0, "date": "2024-06"}, {"tok_s": 20.0, "date": "2026-01"}
    (line,) = table({**old, "scenario": experts}, new)
    assert line[9] == "20"
    (line,) = table(old)
    assert line[9] == "10"
    two = table(old, {**new, "scenario": experts})
    assert [line[9] for line in two] == ["10", "20"], "the newest of an engine does not age it"


def test_another_sources_run_is_predicted_by_a_like_one_both_ways(
    material: Material, fitted: Fitted
) -> None:
    first = next(run for run in material.single if not run.moe and not run.deep)
    faster = replace(first, source="other", tok_s=1.2 * first.tok_s, date="2020")
    same = replace(first, rows=("R",))
    found = list(pairs_of_sources(replace(material, single=[first, faster, same]), fitted))
    assert {one.group for one in found} == {found[0].group}
    assert sorted({round(exp(one.error), 3) for one in found}) == [0.833, 1.2]
    assert len(found) == 4, "runs of one source are no pair"


def test_a_relative_of_the_model_is_not_in_the_table(table: Seen) -> None:
    assert not table({"tok_s": 10.0, "exact": False})


def test_a_speed_far_from_the_model_is_shown(table: Seen) -> None:
    assert [table({"tok_s": speed})[0][9] for speed in (1.0, 1000.0)] == ["1", "1000"]
