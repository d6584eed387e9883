"""Published memory figures: how near, how often inside the range, and every outlier explained."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.estimate.published import (
    DESIGN,
    certainties,
    comparisons,
    coverage,
    exclusion,
    held_out,
    median_error,
    outliers,
    published,
    reason,
    share_within,
    totals,
)

ROOT = Path(__file__).parents[2]
STALE = "python benchmarks/memory_accuracy.py > docs/memory-accuracy.md"


def test_totals_are_near() -> None:
    assert median_error(totals()) < 0.05
    assert share_within(totals(), 0.10) >= 0.70
    assert coverage(totals()) >= 0.80


def test_parts_that_a_log_lists_are_nearly_exact() -> None:
    parts = [item for item in comparisons() if item.component in {"weights", "kv_cache"}]
    assert len(parts) > 40
    assert median_error(parts) < 0.005
    assert share_within(parts, 0.07) == 1


@pytest.mark.parametrize("kind", ["llama.cpp, buffers", "transformers, LLaMA"])
def test_totals_apart_from_the_design_rows_are_near(kind: str) -> None:
    found = [item for item in held_out() if item.kind == kind]
    assert found
    assert median_error(found) < 0.05


def test_rows_apart_share_no_model_and_no_card_with_the_design_rows() -> None:
    design = [item for item in totals() if item.kind == DESIGN]
    apart = held_out()
    assert not {item.card for item in design} & {item.card for item in apart}
    models = {item.scenario.model.name for item in design}
    assert not models & {item.scenario.model.name for item in apart}
    assert median_error(apart) < 0.10


def test_every_outlier_is_explained() -> None:
    assert [item.ids for item in outliers() if not reason(item)] == []
    assert len(outliers()) <= 0.05 * len(comparisons())


def test_enough_rows_are_left_to_say_something() -> None:
    kept = [row for row in published() if not exclusion(row)]
    assert len(kept) >= 200
    assert len({item.kind for item in totals()}) >= 7


def test_the_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location(
        "memory_accuracy", ROOT / "benchmarks" / "memory_accuracy.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "memory-accuracy.md").read_text(encoding="utf-8")
    assert page == module.document(), f"stale: {STALE}"


def test_what_is_said_to_be_sure_is_right_near_the_limit_too() -> None:
    counts = certainties(totals())
    assert counts["sure", True] >= 0.95 * (counts["sure", True] + counts["sure", False])
    assert counts["beyond", False] >= 0.95 * (counts["beyond", True] + counts["beyond", False])
