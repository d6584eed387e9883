"""What the command writes, and how it notices that a file is out of date."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.calibration.fits import Fitted, Material
from advisor.calibration.held_out import Spread, fitted_ranges
from advisor.calibration.outputs import fitted_text, measured_text, stale_files, write_files
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
    """All but the ranges, which take the command and CI half a minute."""
    stored = (data_dir("knowledge") / "calibration-fitted.yaml").read_text(encoding="utf-8")
    assert fitted_text(material, fitted, {}).split("\nranges:")[0] == stored.split("\nranges:")[0]


def test_the_measured_table_is_current(material: Material, fitted: Fitted) -> None:
    stored = (data_dir("knowledge") / "measured.csv").read_text(encoding="utf-8")
    assert measured_text(material.observed, material.known(), fitted.tok_s) == stored


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
